//! `faultline table`: the tables of mails, patches and commit messages.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use import::NoBaseline;
use model::Better;
use report::{Foreign, ForeignTable, ForeignUnread};

use super::write_out;
use crate::args::{BetterArg, TableArgs, TableFormat};
use crate::failure::Failure;

/// No mailbox that is read here is larger.
const MAX_SIZE: u64 = 64 << 20;
const STANDARD_INPUT: &str = "-";

const COMPUTED: &str = "Percentages are computed from the printed, rounded values.";
const UNKNOWN: &str = "No column of that name: as printed.";
const AMBIGUOUS: &str = "More than one column of that name: as printed.";

pub fn table(args: &TableArgs) -> Result<ExitCode, Failure> {
    let mut found = Foreign::default();
    let files: Vec<&Path> = match args.files.is_empty() {
        true => vec![Path::new(STANDARD_INPUT)],
        false => args.files.iter().map(AsRef::as_ref).collect(),
    };
    for file in files {
        add(file, args, &mut found)?;
    }
    if let Some(name) = &args.baseline {
        rebase(&mut found, name, args.better)?;
    }
    let failed = |error: &dyn std::error::Error| Failure::Host(error.to_string());
    let text = match args.format {
        TableFormat::Text if args.check => report::foreign_check(&found),
        TableFormat::Text => report::foreign(&found),
        TableFormat::Json => report::foreign_json(&found).map_err(|error| failed(&error))? + "\n",
        TableFormat::Csv => report::foreign_csv(&found).map_err(|error| failed(&error))?,
        TableFormat::Html => report::foreign_html(&found),
    };
    write_out(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

fn add(file: &Path, args: &TableArgs, found: &mut Foreign) -> Result<(), Failure> {
    let name = file.display().to_string();
    let bytes = bytes(file).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    let document = import::read(&bytes);
    found.tables.extend(document.tables.into_iter().map(|table| ForeignTable {
        file: name.clone(),
        check: args.check.then(|| import::check(&table)),
        table,
        note: None,
    }));
    let unread = document.unread.into_iter();
    found.unread.extend(unread.map(|unread| ForeignUnread { file: name.clone(), unread }));
    Ok(())
}

fn bytes(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let size = match file == Path::new(STANDARD_INPUT) {
        true => io::stdin().lock().take(MAX_SIZE + 1).read_to_end(&mut bytes)?,
        false => File::open(file)?.take(MAX_SIZE + 1).read_to_end(&mut bytes)?,
    };
    match size as u64 > MAX_SIZE {
        true => Err(io::Error::other("larger than 64 MiB: split it")),
        false => Ok(bytes),
    }
}

/// Sets every table that has the baseline against it. That none has it is an error.
fn rebase(found: &mut Foreign, name: &str, better: Option<BetterArg>) -> Result<(), Failure> {
    let mut any = false;
    for it in &mut found.tables {
        match import::rebase(&it.table, name, better.map(Better::from)) {
            Ok(table) => {
                any = true;
                it.table = table;
                it.note = Some(COMPUTED);
            }
            Err(NoBaseline::Unknown) => it.note = Some(UNKNOWN),
            Err(NoBaseline::Ambiguous) => it.note = Some(AMBIGUOUS),
        }
    }
    if any {
        return Ok(());
    }
    let mut names: Vec<&str> =
        found.tables.iter().flat_map(|it| &it.table.columns).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !name.is_empty());
    let names = report::escape(&names.join(", "));
    let name = report::escape(name);
    Err(Failure::Usage(format!("no table has one column `{name}`; there are: {names}")))
}

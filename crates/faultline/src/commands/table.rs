//! `faultline table`: reads benchmark tables in mails, patches and commit messages.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;
use std::process::ExitCode;

use import::{Document, NoBaseline};
use model::Better;
use report::{Foreign, ForeignTable, ForeignUnread};

use super::write_out;
use crate::args::{BetterArg, TableArgs, TableFormat};
use crate::failure::Failure;

/// How much of standard input, a pipe or a device is copied to the disk, in bytes.
const MAX_COPY: u64 = 256 << 20;
const STANDARD_INPUT: &str = "-";

const COMPUTED: &str = "Percentages are computed from the printed, rounded values.";
const UNKNOWN: &str = "No column of that name: percentages are as printed.";
const AMBIGUOUS: &str = "More than one column of that name: percentages are as printed.";

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
    let add = |document: Document| {
        found.tables.extend(document.tables.into_iter().map(|table| ForeignTable {
            file: name.clone(),
            check: args.check.then(|| import::check(&table)),
            table,
            note: None,
        }));
        let unread = document.unread.into_iter();
        found.unread.extend(unread.map(|unread| ForeignUnread { file: name.clone(), unread }));
    };
    let read = || import::read_mails(&mut BufReader::new(seekable(file)?), add);
    read().map_err(|error| Failure::Usage(format!("{name}: {error}")))
}

/// Opens a file. Standard input, pipes and devices cannot be read twice, so they are copied to the disk.
fn seekable(file: &Path) -> io::Result<File> {
    let source: Box<dyn Read> = match file == Path::new(STANDARD_INPUT) {
        true => Box::new(io::stdin().lock()),
        false => {
            let file = File::open(file)?;
            if file.metadata()?.is_file() {
                return Ok(file);
            }
            Box::new(file)
        }
    };
    let mut copy = tempfile::tempfile()?;
    if io::copy(&mut source.take(MAX_COPY + 1), &mut copy)? > MAX_COPY {
        return Err(io::Error::other(
            "more than 256 MiB are not read from a pipe or a device: save it to a file, and name that",
        ));
    }
    copy.rewind()?;
    Ok(copy)
}

/// Compares each table with its column of this name. Fails if no table has one.
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
    Err(Failure::Usage(format!("no table has exactly one column `{name}`; there are: {names}")))
}

//! `faultline diff`: which functions' machine code differs between two kernels. `faultline cover`: which of
//! these the stored profiles enter.

use std::path::PathBuf;
use std::process::ExitCode;

use boot::Vmlinux;
use kernels::Cache;
use plan::form::near;

use super::{existing_store, print, say};
use crate::args::{CoverArgs, DiffArgs, DiffFormat};
use crate::failure::Failure;

pub fn diff(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let is_text = args.format == DiffFormat::Text;
    full_needs_text(args.full, is_text)?;
    let [base, new] = read([&args.base, &args.new])?;
    let names = [&*base.name, &*new.name];
    let [base, new] = boot::images_of([&base, &new])?;
    let text = match &args.disassemble {
        None if is_text => report::code(names, &code::difference(&base, &new), args.full),
        None => json(report::code_json(names, &code::difference(&base, &new)))?,
        Some(function) => {
            let listings = code::listings(&base, &new, function);
            if listings.is_empty() {
                let known = base.names().chain(new.names());
                let meant = match &near::several(function, known)[..] {
                    [] => String::new(),
                    near => format!("; similar ones: {}", near.join(", ")),
                };
                let message = format!("neither kernel has a function `{function}`{meant}");
                return Err(Failure::Usage(message));
            }
            match is_text {
                true => report::listings(names, &listings),
                false => json(report::listings_json(names, &listings))?,
            }
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub fn cover(store: Option<PathBuf>, args: &CoverArgs) -> Result<ExitCode, Failure> {
    let is_text = args.format == DiffFormat::Text;
    full_needs_text(args.full, is_text)?;
    let store = existing_store(store)?;
    let [base, new] = read([&args.base, &args.new])?;
    let names = [&*base.name, &*new.name];
    let [base, new] = boot::images_of([&base, &new])?;
    let coverage = results::coverage(&*store, &code::difference(&base, &new))?;
    let text = match is_text {
        true => report::cover(names, &coverage, args.full),
        false => json(report::cover_json(names, &coverage))?,
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn full_needs_text(full: bool, is_text: bool) -> Result<(), Failure> {
    if full && !is_text {
        return Err(Failure::Usage("--full needs --format text: JSON has all functions".into()));
    }
    Ok(())
}

/// The kernels of these names.
fn read(specs: [&str; 2]) -> Result<[Vmlinux; 2], Failure> {
    let cache = Cache::open()?;
    let scratch = tempfile::tempdir()?;
    let read = |spec: &str| Vmlinux::read(&cache, spec, scratch.path(), &say);
    Ok([read(specs[0])?, read(specs[1])?])
}

fn json(text: serde_json::Result<String>) -> Result<String, Failure> {
    text.map_err(|error| Failure::Host(error.to_string()))
}

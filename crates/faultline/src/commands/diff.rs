//! `faultline diff`: which functions' machine code differs between two kernels.

use std::process::ExitCode;

use kernels::Cache;
use lab::Vmlinux;

use super::print;
use crate::args::{DiffArgs, DiffFormat};
use crate::failure::Failure;

pub fn diff(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let is_text = args.format == DiffFormat::Text;
    if args.full && !is_text {
        return Err(Failure::Usage("--full needs --format text: JSON has all functions".into()));
    }
    let cache = Cache::open()?;
    let scratch = tempfile::tempdir()?;
    let say = &|line: &str| eprintln!("{}", report::escape(line));
    let read = |spec: &str| Vmlinux::read(&cache, spec, scratch.path(), say);
    let (base, new) = (read(&args.base)?, read(&args.new)?);
    let names = [&*base.name, &*new.name];
    let (base, new) = (base.image()?, new.image()?);
    let json = |text: serde_json::Result<String>| text.map_err(|it| Failure::Host(it.to_string()));
    let text = match &args.disassemble {
        None if is_text => report::code(names, &code::difference(&base, &new), args.full),
        None => json(report::code_json(names, &code::difference(&base, &new)))?,
        Some(function) => {
            let listings = code::listings(&base, &new, function);
            if listings.is_empty() {
                let message = format!("neither kernel has a function `{function}`");
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

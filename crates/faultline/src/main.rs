//! The command line: parses options, calls the crates below, prints results.

/// Writes a line to standard error, escaped: see [`output`].
macro_rules! eprintln {
    ($($text:tt)*) => { crate::output::say(format_args!($($text)*)) };
}

mod args;
mod commands;
mod failure;
mod list;
mod log;
mod output;
mod progress;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Cli, Command};
use crate::failure::{Failure, report_failure};

fn main() -> ExitCode {
    store::say_waits(|line| eprintln!("{}", report::escape(line)));
    let ended = match parsed() {
        Ok(cli) => {
            log::begin(cli.verbose);
            run(cli)
        }
        Err(error) => match args::beside_a_file(&error) {
            Some(message) => Err(Failure::Usage(message)),
            None if error.use_stderr() => Err(Failure::Arguments(error.render().to_string())),
            // This is not an error: the text is the help or the version.
            None => print(&error).map(|()| ExitCode::SUCCESS).map_err(Failure::from),
        },
    };
    ended.unwrap_or_else(|failure| report_failure(&failure))
}

/// The command line.
fn parsed() -> Result<Cli, clap::Error> {
    let mut matches = with_negative_numbers(Cli::command()).try_get_matches()?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Cli::command()))
}

/// Takes a negative number after an option as its value, so that the error is about the value. Otherwise clap takes it
/// for an unknown option.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let is_valued = |it: &clap::Arg| !it.is_positional() && it.get_action().takes_values();
    let taken = |it: clap::Arg| match is_valued(&it) {
        true => it.allow_negative_numbers(true),
        false => it,
    };
    command.mut_args(taken).mut_subcommands(with_negative_numbers)
}

fn print(help: &clap::Error) -> io::Result<()> {
    let mut output = output::results()?;
    help.print()?;
    output.flush()
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let store = cli.store;
    match cli.command {
        Command::Kernel(command) => commands::kernel::kernel(command),
        Command::Event(command) => commands::event::event(&command),
        Command::Userspace(command) => commands::userspace::userspace(store, command),
        Command::Workload(command) => commands::workload::command(store, command),
        Command::Run(args) => commands::run::run(store, *args),
        Command::Try(args) => commands::attempt::attempt(store, &args),
        Command::Record(args) => commands::record::record(store, &args),
        Command::Boot(args) => commands::boot::boot(&args),
        Command::Compare(args) => commands::compare::compare(store, &args),
        Command::Replay(args) => commands::replay::replay(store, &args),
        Command::Explain(args) => commands::explain::explain(store, &args),
        Command::Culprit(args) => commands::culprit::culprit(store, &args),
        Command::Diff(args) => commands::diff::diff(&args),
        Command::Cover(args) => commands::diff::cover(store, &args),
        Command::Selftest(args) => commands::selftest::selftest(store, &args),
        Command::Export(args) => commands::export::export(store, &args),
        Command::Table(args) => commands::table::table(&args),
        Command::Import(command) => commands::import::import(store, command),
        Command::List => commands::show::list(store),
        Command::Rm(args) => commands::edit::rm(store, &args),
        Command::Rename { experiment, name } => commands::edit::rename(store, &experiment, &name),
        Command::Note { experiment, text } => commands::edit::note(store, &experiment, &text),
        Command::Show(args) => commands::show::show(store, args.what.as_deref()),
        Command::Machine(command) => commands::machine::machine(&command),
        Command::Store(command) => commands::store::store(store, &command),
        Command::Generate { directory } => commands::generate::generate(&directory),
    }
}

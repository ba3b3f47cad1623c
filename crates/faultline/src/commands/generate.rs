//! `faultline generate`: man pages, shell completions and the reference of the command line.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate_to};

use crate::args::Cli;
use crate::failure::Failure;

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

/// The beginning of `docs/cli.md`. Only the first section has the options of all commands.
const HEAD: &str = "# Command reference

This page is what `--help` prints. All commands have the options `--store`, `--verbose` and `--help`.
`docs/commands.md` explains kernels of your own, names of experiments and the store.

<!-- Written by `faultline generate DIRECTORY`; copy DIRECTORY/cli.md here when options change. -->
";

/// Writes a man page for each command, a file of completions for each shell, and `docs/cli.md`.
pub fn generate(directory: &Path) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::Host(format!("{}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
    let page = directory.join("faultline.1");
    let with_lists = fs::read_to_string(&page).map(|text| lists(&text));
    with_lists.and_then(|text| fs::write(&page, text)).map_err(failed)?;
    for shell in SHELLS {
        generate_to(shell, &mut completed(), "faultline", directory).map_err(failed)?;
    }
    let own = |option: clap::Arg| option.global(false);
    let command = Cli::command().disable_help_flag(true).disable_help_subcommand(true);
    let mut command = command.term_width(100).mut_arg("store", own).mut_arg("verbose", own);
    command.build();
    let mut text = HEAD.to_owned();
    add_help(&mut command, &mut text);
    fs::write(directory.join("cli.md"), text).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// The command line without hidden commands, which clap_complete would list.
fn completed() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|below| !below.is_hide_set()).cloned();
    Command::new("faultline").args(all.get_arguments().cloned()).subcommands(shown)
}

/// A man page in which the lists at the end of `--help` are lists; clap_mangen makes each a paragraph. The head of
/// each list becomes the head of a section.
fn lists(page: &str) -> String {
    let list = |line: &str| match (line.strip_suffix(':'), line.trim_start().split_once("  ")) {
        (Some(head), _) => format!(".SH {:?}\n", head.to_uppercase()),
        (None, Some((term, text))) => format!(".TP\n{term}\n{}\n", text.trim_start()),
        (None, None) if line.is_empty() => String::new(),
        (None, None) => format!(".PP\n{line}\n"),
    };
    let mut text = String::new();
    let mut is_extra = false;
    for line in page.lines() {
        match line {
            ".SH EXTRA" => is_extra = true,
            _ if is_extra && !line.starts_with('.') => text += &list(line),
            _ => {
                is_extra &= !line.starts_with(".SH");
                text += &format!("{line}\n");
            }
        }
    }
    text
}

/// Adds the `--help` of a command and of its subcommands.
fn add_help(command: &mut Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or("faultline").to_owned();
    let help = command.render_help().to_string();
    let lines = help.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n");
    *text += &format!("\n## {name}\n\n{}", lines.collect::<String>());
    for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set()) {
        add_help(below, text);
    }
}

//! Runs the commands of `docs/tour.md` in order. Each succeeds, and prints the lines that the page shows after it.
//! Figures may differ, because kernels of the archive are replaced. Runs in `make check-long`.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::common::Bench;

const TOUR: &str = include_str!("../../../../docs/tour.md");

/// A command on the page, and the lines that the page shows after it.
struct ShownCommand {
    command: String,
    shown: Vec<String>,
}

/// The commands in the indented blocks of a page. `$ ` begins a command, and `> ` continues it.
fn shown_commands(page: &str) -> Vec<ShownCommand> {
    let mut all: Vec<ShownCommand> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            is_open &= line.is_empty();
            continue;
        };
        if let Some(command) = line.strip_prefix("$ ") {
            all.push(ShownCommand { command: command.into(), shown: Vec::new() });
            is_open = true;
        } else if let Some(it) = all.last_mut().filter(|_| is_open) {
            match line.strip_prefix("> ").or((line == ">").then_some("")) {
                Some(more) if it.shown.is_empty() => it.command += &format!("\n{more}"),
                _ => it.shown.push(line.into()),
            }
        }
    }
    all
}

/// The words of a line, with those that have digits masked.
fn masked(line: &str) -> String {
    let mask = |word| if str::contains(word, |c: char| c.is_ascii_digit()) { "#" } else { word };
    line.split_whitespace().map(mask).collect::<Vec<_>>().join(" ")
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn the_tour_is_what_the_commands_print() {
    let bench = Bench::new();
    let program = Path::new(env!("CARGO_BIN_EXE_faultline")).parent().unwrap();
    let path = format!("{}:{}", program.display(), env::var("PATH").unwrap());
    let all = shown_commands(TOUR);
    assert!(all.len() > 10);
    for ShownCommand { command, shown } in all {
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(bench.directory.path());
        shell.env("PATH", &path).env("FAULTLINE_STORE", bench.store_path());
        let said = bench.said(shell).expect(0);
        let printed = format!("{}\n{}", said.err, said.out);
        let mut lines = printed.lines().map(masked);
        for line in shown.iter().filter(|line| line.trim() != "...") {
            assert!(lines.any(|it| it == masked(line)), "{command}\n{line}\n--\n{printed}");
        }
    }
}

#[test]
fn the_page_is_read() {
    let page = "Text.\n\n    $ cat > x <<E\n    > a\n    >\n    > E\n    $ cat x\n    a 1.5 %\n\n    ...\nEnd.\n\n    no command\n";
    let all = shown_commands(page);
    let commands: Vec<&str> = all.iter().map(|it| &*it.command).collect();
    assert_eq!(commands, ["cat > x <<E\na\n\nE", "cat x"]);
    assert_eq!(all[1].shown, ["a 1.5 %", "..."]);
    assert_eq!(masked("  a   1.5 % b-2"), "a # % #");
}

//! Runs the commands of `docs/tour.md` in order. Each succeeds, and prints the lines that the page shows after it.
//! Figures may differ, because kernels of the archive are replaced. Runs in `make check-long`.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::common::Bench;

const TOUR: &str = include_str!("../../../../docs/tour.md");

/// A command on the page, and the lines that the page shows after it.
struct Step {
    command: String,
    shown: Vec<String>,
}

/// The commands in the indented blocks of a page. `$ ` begins a command, and `> ` continues it.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            is_open &= line.is_empty();
            continue;
        };
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.into(), shown: Vec::new() });
            is_open = true;
        } else if let Some(step) = steps.last_mut().filter(|_| is_open) {
            match line.strip_prefix("> ").or((line == ">").then_some("")) {
                Some(more) if step.shown.is_empty() => step.command += &format!("\n{more}"),
                _ => step.shown.push(line.into()),
            }
        }
    }
    steps
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
    let steps = steps(TOUR);
    assert!(steps.len() > 10);
    for Step { command, shown } in steps {
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
    let steps = steps(page);
    let commands: Vec<&str> = steps.iter().map(|step| &*step.command).collect();
    assert_eq!(commands, ["cat > x <<E\na\n\nE", "cat x"]);
    assert_eq!(steps[1].shown, ["a 1.5 %", "..."]);
    assert_eq!(masked("  a   1.5 % b-2"), "a # % #");
}

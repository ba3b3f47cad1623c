//! The only module that writes to standard output and standard error. Text can have words of guests, packages, mails
//! and files, so what a terminal would act on is escaped here, whoever wrote it. Only binary exports are written
//! elsewhere.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use miette::GraphicalReportHandler;
use model::visible;
use plan::file::FileError;

/// The target of events of the log that are already printed.
pub const SAID: &str = "said";

/// Whether the program was started without standard output.
static HAS_NO_OUTPUT: AtomicBool = AtomicBool::new(false);

extern "C" fn look_for_output() {
    #[expect(unsafe_code, reason = "a system call that only reads a flag of a descriptor")]
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    HAS_NO_OUTPUT.store(flags < 0, Relaxed);
}

/// The C library calls this before `main`. In `main` the standard library has opened `/dev/null` in place of a closed
/// standard output, so that results would vanish without an error.
#[expect(unsafe_code, reason = "nothing of the standard library is used that early")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_FOR_OUTPUT: extern "C" fn() = look_for_output;

/// Standard output. Fails when the program was started without it.
pub fn results() -> io::Result<io::Stdout> {
    match HAS_NO_OUTPUT.load(Relaxed) {
        true => {
            Err(io::Error::other("standard output is closed, so the results cannot be printed"))
        }
        false => Ok(io::stdout()),
    }
}

/// Prints results to standard output.
pub fn print(text: &str) -> io::Result<()> {
    results()?.write_all(visible(text).as_bytes())
}

/// Writes a line to standard error. If that fails, as with a closed pipe, the run does not end.
pub fn say(line: fmt::Arguments<'_>) {
    tracing::info!(target: SAID, "{line}");
    let _ = write_error(&format!("{}\n", visible(&line.to_string())));
}

/// Writes an event of the log to standard error.
pub fn log(event: &str) {
    let _ = write_error(&visible(event));
}

/// Writes a question to standard error.
pub fn ask(question: &str) -> io::Result<()> {
    write_error(&visible(question))
}

/// Writes an error in a file to standard error, in colour if that is a terminal.
pub fn say_in_file(error: &FileError) {
    tracing::info!(target: SAID, "{error}");
    let _ = write_error(&(in_file(&GraphicalReportHandler::new(), error) + "\n"));
}

/// An error with the lines of the file that it is about. What it quotes is escaped before colours are added.
fn in_file(handler: &GraphicalReportHandler, error: &FileError) -> String {
    let mut text = String::new();
    match handler.render_report(&mut text, error) {
        Ok(()) => text,
        Err(_) => visible(&error.to_string()).into_owned(),
    }
}

fn write_error(text: &str) -> io::Result<()> {
    let mut output = io::stderr();
    output.write_all(text.as_bytes())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use miette::GraphicalTheme;
    use model::Mode;
    use plan::file::{Input, InputError, lock, parse};
    use plan::workloads;
    use proptest::prelude::*;

    use super::*;

    const MATRIX: &str = "name = \"defrag\"\nboots = \"auto\"\n[machine]\ncpus = 4\nmemory = \"2G\"\nnodes = 2\n\
        [[machine.disk]]\nsize = \"4G\"\nfilesystem = \"ext4\"\n[matrix]\nkernel = [\"debian:6.12\"]\n\
        sysfs = { \"/sys/kernel/mm/transparent_hugepage/defrag\" = [\"defer\", \"always\"] }\n\
        [[workload]]\nname = \"autonuma\"\niterations = 3\n";
    const SWEEP: &str = "name = \"s\"\nmode = \"exact\"\nseeds = 2\nprofile = { stacks = true }\n[machine]\ncpus = 1\n\
        memory = \"512M\"\n[sweep]\ncmdline = [\"quiet\", \"debug\"]\n[[variant]]\nkernel = \"debian:6.1\"\n\
        sysctl = { \"vm.swappiness\" = 0 }\n[[workload]]\nname = \"pagealloc\"\n";
    const CULPRIT: &str = "name = \"c\"\nmode = \"exact\"\ntree = \"linux\"\n[machine]\ncpus = 1\nmemory = \"512M\"\n\
        [culprit]\ngood = \"v6.1\"\nbad = \"v6.2\"\n[[workload]]\nname = \"pagealloc\"\n";
    const MANIFEST: &str = "name = \"own\"\ndescription = \"\"\ncommand = [\"x\"]\npackages = [\"fio\"]\n\
        [[metrics]]\nname = \"a\"\nunit = \"s\"\nbetter = \"lower\"\nmean = \"amean\"\n";
    const LOCK: &str = "architecture = \"amd64\"\nsuites = [\"bookworm\"]\ntaken = 1700000000\n[[package]]\n\
        name = \"fio\"\nversion = \"3.33-3\"\nfile = \"debian/pool/main/f/fio/fio_3.33-3_amd64.deb\"\nsize = 5\n\
        sha256 = \"dc79dae895125512620fcd16465f1a19edec8f2d73736fe76a9fbf8195cfb745\"\n";

    fn search(path: &Path, text: &str) -> Result<(), Box<FileError>> {
        let (input, form) = Input::file(path, text.to_owned())?;
        match input.search(form) {
            Ok(_) => Ok(()),
            Err(InputError::File(error)) => Err(error),
            Err(InputError::Option(message)) => panic!("no option is given: {message}"),
        }
    }

    /// The error about a text, read as each kind of file.
    fn said(text: &str, directory: &Path) -> Vec<String> {
        let path = directory.join("x\u{1b}.toml");
        fs::write(&path, text).unwrap();
        let plain = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
        let colours = GraphicalReportHandler::new_themed(GraphicalTheme::unicode());
        let files = [
            parse(&path, text, None).err(),
            parse(&path, text, Some(Mode::Exact)).err(),
            search(&path, text).err(),
        ];
        let mut said: Vec<String> =
            files.iter().flatten().map(|error| in_file(&plain, error)).collect();
        let coloured = files.iter().flatten().map(|error| in_file(&colours, error));
        said.extend(coloured.map(without_colours));
        said.extend(workloads::read(&path).err().map(|error| visible(&error.to_string()).into()));
        said.extend(lock::read(text).err().map(|error| visible(&error).into()));
        said
    }

    /// Removes the codes with which colours begin and end.
    fn without_colours(text: String) -> String {
        let mut parts = text.split("\u{1b}[");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |plain, part| {
            let rest = part.trim_start_matches(|it: char| it.is_ascii_digit() || it == ';');
            plain + rest.strip_prefix('m').expect("only colours")
        })
    }

    fn check(text: &str) {
        let directory = tempfile::tempdir().unwrap();
        for said in said(text, directory.path()) {
            let printed = said.replace(['\n', '\t'], "");
            assert!(!printed.contains(char::is_control), "{said:?}");
            assert_eq!(visible(&printed), printed);
            assert!(said.lines().count() < 80, "{said}");
            assert!(said.lines().all(|line| line.chars().count() < 1400), "{said}");
        }
    }

    #[test]
    fn files_without_a_fault_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.toml");
        for text in [MATRIX, SWEEP] {
            assert!(parse(&path, text, None).is_ok());
        }
        assert!(search(&path, CULPRIT).is_ok());
        fs::write(&path, MANIFEST).unwrap();
        assert!(workloads::read(&path).is_ok() && lock::read(LOCK).is_ok());
    }

    #[test]
    fn an_error_beyond_the_widest_column_is_reported() {
        for length in [65_000, 66_000, 1_000_000] {
            check(&format!("name = \"{}\" x", "a".repeat(length)));
            check(&format!("name = \"{}\" x", "\u{1b}".repeat(length)));
            check(&format!("{} = 1", "\u{4e2d}".repeat(length)));
            check(&format!("name = [{}", "\n".repeat(length)));
        }
    }

    fn hostile() -> impl Strategy<Value = String> {
        prop_oneof![
            "\\PC{0,5}",
            ".{0,4}",
            "[\u{0}\u{7}\u{1b}\u{7f}\u{9b}\u{202e}\u{2066}\u{feff}\r\n\t\u{301}\u{4e2d}\u{1f600}]{1,6}",
            "[\"'=\\[\\]{}#,.]{1,3}",
            (1..70_000_usize, "[a\u{1b}\u{4e2d}\u{301} \"]")
                .prop_map(|(times, it)| it.repeat(times)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]
        #[test]
        fn no_file_reaches_the_terminal_with_controls(
            text in prop::sample::select(vec![MATRIX, SWEEP, CULPRIT, MANIFEST, LOCK]),
            changes in prop::collection::vec((0.0..1.0_f64, 0..8_usize, hostile()), 1..4),
            windows in any::<bool>(),
        ) {
            let mut text = text.to_owned();
            for (place, removed, added) in changes {
                let letters: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
                let number = (place * letters.len() as f64) as usize;
                let at = letters[number.min(letters.len() - 1)];
                let end = letters.get(number + removed).copied().unwrap_or(text.len());
                text.replace_range(at..end, &added);
            }
            if windows {
                text = text.replace('\n', "\r\n");
            }
            check(&text);
        }
    }
}

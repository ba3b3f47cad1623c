//! Measures the memory needed to read other tools' results, relative to their size. The inputs are a directory of
//! mmtests whose lines say that latencies were measured 500,000 times, and mailboxes without and with many tables.
//!
//! Prints the peak of the program's resident memory, and its ratio to the input. `bench/README.md` has
//! figures.
//!
//! `bench-memory MAIL...` makes mailboxes of these mails, which have tables.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs};

/// Iterations of each of two runs.
const ITERATIONS: u64 = 8;
/// Sizes of mailboxes, in MiB.
const SIZES: [usize; 2] = [2, 10];

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let place = |name: &str| directory.path().join(name);
    println!("{:<44} {:>9} {:>9} {:>9} {:>9}", "", "input kB", "peak kB", "ratio", "wall s");
    let input = latencies(&place("log"))?;
    let ours = || -> Result<Command, Box<dyn Error>> {
        let mut command = Command::new(faultline()?);
        command.arg("--store").arg(place("store.db"));
        Ok(command)
    };
    row("import mmtests", input, ours()?.args(["import", "mmtests"]).arg(place("log")))?;
    row("compare", input, ours()?.arg("compare"))?;
    let page = place("page.html");
    row(
        "compare --format html",
        input,
        ours()?.args(["compare", "--format", "html", "-o"]).arg(page),
    )?;
    println!("the store: {} kB", fs::metadata(place("store.db"))?.len() / 1000);

    let mails: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let mails = mails.iter().map(fs::read).collect::<Result<Vec<_>, _>>()?;
    for size in SIZES {
        let prose = "a line of prose, as mails have many of them\n".repeat(1000).into_bytes();
        for (what, mails) in [("prose", &[prose][..]), ("tables", &mails)] {
            if mails.is_empty() {
                println!("no mails are named: no mailbox of tables");
                continue;
            }
            let path = place("mailbox");
            let input = mailbox(&path, mails, size << 20)?;
            let name = format!("table, {size} MiB of {what}");
            row(
                &name,
                input,
                Command::new(faultline()?).args(["table", "--format", "json"]).arg(path),
            )?;
        }
    }
    Ok(())
}

/// The path of `faultline`, beside this program.
fn faultline() -> Result<PathBuf, Box<dyn Error>> {
    let path = env::current_exe()?.with_file_name("faultline");
    match path.exists() {
        true => Ok(path),
        false => Err(format!("{} is not built", path.display()).into()),
    }
}

/// Makes a directory of mmtests; returns the bytes in its files.
fn latencies(log: &Path) -> Result<usize, Box<dyn Error>> {
    let mut bytes = 0;
    for run in ["a", "b"] {
        for iteration in 0..ITERATIONS {
            let directory = log.join(format!("{run}/iter-{iteration}"));
            fs::create_dir_all(directory.join("stutter/logs"))?;
            let begin = 1_700_000_000 + 1000 * iteration;
            let test = format!("test begin :: stutter {begin}\ntest end :: stutter {begin} 0\n");
            let mut latencies = format!("500000 {}\n", 2_000_000 + iteration);
            for at in 0..20 {
                writeln!(latencies, "1 {}", 3_000_000 + 1000 * at)?;
            }
            latencies.push_str("499980 7000000\n");
            for (name, text) in [
                ("tests-activity", format!("{begin} run-mmtests: Start\n")),
                ("kernel.version", "Linux h 6.6.0-x #1 SMP Wed Nov 1 2023 x86_64 GNU\n".to_owned()),
                ("tests-timestamp", format!("start :: {begin}\n{test}finish :: {begin}\n")),
                ("stutter/logs/mmap-latency.log", latencies),
            ] {
                bytes += text.len();
                fs::write(directory.join(name), text)?;
            }
        }
    }
    Ok(bytes)
}

/// Makes a mailbox of about `size` bytes by repeating `mails`; returns the number of mails.
fn mailbox(path: &Path, mails: &[Vec<u8>], size: usize) -> Result<usize, Box<dyn Error>> {
    let mut bytes = Vec::new();
    for mail in mails.iter().cycle() {
        if bytes.len() >= size {
            break;
        }
        bytes.extend_from_slice(b"From a Sat Mar  7 15:20:00 2015\nSubject: x\n\n");
        bytes.extend_from_slice(mail);
        bytes.push(b'\n');
    }
    fs::write(path, &bytes)?;
    Ok(bytes.len())
}

/// Runs a command to its end, and prints its peak resident memory (`VmHWM`, proc_pid_status(5)).
fn row(name: &str, input: usize, command: &mut Command) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    let ended = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        peak = peak.max(kib.unwrap_or(0.0) * 1.024);
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        sleep(Duration::from_millis(1));
    };
    if !ended.success() {
        return Err(format!("{name}: {ended}").into());
    }
    let (input, wall) = (input as f64 / 1000.0, begun.elapsed().as_secs_f64());
    println!("{name:<44} {input:>9.1} {peak:>9.0} {:>9.1} {wall:>9.2}", peak / input);
    Ok(())
}

//! Transactions of a PostgreSQL database by several clients: PostgreSQL's own pgbench, read-only (`select-only`) or
//! reading and writing (`tpcb-like`).
//!
//! | phase | what happens |
//! | --- | --- |
//! | `init` | the database is made, with accounts in proportion to the machine's memory, and written to the disk |
//! | `warmup-N` | N clients, not counted |
//! | `steady-N` | N clients, counted |
//!
//! A rate is reported for each fortieth of a steady phase, or for each 2 seconds if that is longer. Latencies are
//! over all transactions of the phase. pgbench's own count, its log and the server's count must agree. All figures
//! are reported between phases, because the names of phases would otherwise become part of their names.

mod log;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::program::{Output, ProgramError};
use super::reporter::Reporter;
use super::{Given, Result, While, Workload, list_within, refused};
use guest::clock::boot_time;
use log::{Log, Rate};
use model::count;
use server::Server;

/// The size of a table of accounts and its index for each unit of pgbench's scale, in bytes. A unit is 100000
/// accounts. 61 accounts fit on a page of 8 KiB, and 366 on a page of the index.
const UNIT: f64 = (100_000 / 61 + 100_000 / 366) as f64 * 8192.0;
/// The number of rates of a steady phase, and the least seconds of each. With 20 or more rates, warm-up can be
/// detected.
const WINDOWS: (u32, u32) = (40, 2);
/// The percentiles of transactions whose latencies are reported.
const PERCENTILES: [(&str, f64); 4] =
    [("lat-p50", 50.0), ("lat-p95", 95.0), ("lat-p99", 99.0), ("lat-max", 100.0)];
/// How many other transactions may be committed at the same time: pgbench queries the size of its tables, we query
/// the count, the server cleans up. Up to this number, or one in this many, is no disagreement.
const OTHERS: (u64, u64) = (100, 100);

/// The longest phase, in seconds: pgbench logs each transaction of it.
const LONGEST: u32 = 3600;
/// pgbench counts as hung if it takes this many seconds more than requested.
const PATIENCE: u32 = 300;

pub struct Options {
    directory: PathBuf,
    /// The size of the database, in percent of the machine's memory.
    size: f64,
    /// pgbench's name of the script.
    script: &'static str,
    clients: Vec<u32>,
    /// The length of each phase in seconds.
    warmup: u32,
    steady: u32,
    memory: u64,
    cpus: u32,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let (clients, cpus) = (given.optional("clients")?, given.within("cpus", 1, u32::MAX / 2)?);
        Ok(Self {
            directory: given.text("directory")?.into(),
            size: given.above_zero("size")?,
            script: match &*given.text("transactions")? {
                "read-only" => "select-only",
                "read-write" => "tpcb-like",
                other => return Err(refused("transactions", other, "read-only or read-write")),
            },
            clients: clients
                .map_or_else(|| Ok(steps(2 * cpus)), |it| list_within("clients", &it, 1, 1000))?,
            warmup: given.within("warmup", 0, LONGEST)?,
            steady: given.within("steady", 1, LONGEST)?,
            memory: given.within("memory", 1, u64::MAX)?,
            cpus,
        })
    }

    /// Makes the database, and measures each number of clients.
    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        reporter.phase("init")?;
        let most = self.clients.iter().copied().max().unwrap_or(1);
        let server = Server::start(&self.directory.join("pgbench"), self.memory, most)?;
        server.pgbench(["-i", "-q", "-s", &self.scale().to_string()]).run()?;
        server.checkpoint()?;
        for &clients in &self.clients {
            if self.warmup > 0 {
                reporter.phase(&format!("warmup-{clients}"))?;
                let program = server.pgbench(self.arguments(clients, self.warmup));
                program.limit(limit(self.warmup)).run()?;
            }
            let before = server.commits()?;
            reporter.phase(&format!("steady-{clients}"))?;
            let prefix = server.place().join(format!("log{clients}"));
            let log = ["-l".to_owned(), format!("--log-prefix={}", prefix.display())];
            let arguments = self.arguments(clients, self.steady).into_iter().chain(log);
            let output = server.pgbench(arguments).limit(limit(self.steady)).run()?;
            reporter.phase("")?;
            let log = read_logs(server.place(), &format!("log{clients}."))?;
            let told = agreed(&output, &log, server.commits()? - before).map_err(garbage)?;
            reporter.note(&format!("{}: {told}", count(clients as usize, "client")))?;
            report(reporter, clients, log, self.steady)?;
        }
        server.stop()
    }
}

impl Options {
    /// The scale of the database for pgbench.
    fn scale(&self) -> u64 {
        ((self.memory as f64 * self.size / 100.0 / UNIT).round() as u64).max(1)
    }

    /// The arguments for pgbench with these clients and seconds.
    fn arguments(&self, clients: u32, seconds: u32) -> Vec<String> {
        let threads = clients.min(self.cpus);
        let words =
            format!("-n -b {} -c {clients} -j {threads} -T {seconds} --random-seed=1", self.script);
        words.split_whitespace().map(str::to_owned).collect()
    }
}

/// The usual numbers of clients in tables: 1, 5, 12, 21, 30, then every 18. The last is `most`; the others are
/// smaller.
fn steps(most: u32) -> Vec<u32> {
    let steps = [1, 5, 12, 21].into_iter().chain((30..).step_by(18));
    steps.take_while(|&clients| clients < most).chain([most]).collect()
}

/// The time limit of a run of pgbench that takes `seconds` seconds.
fn limit(seconds: u32) -> Duration {
    Duration::from_secs((seconds + PATIENCE).into())
}

fn report(reporter: &mut Reporter, clients: u32, mut log: Log, seconds: u32) -> Result<()> {
    let label = clients.to_string();
    let windows = (seconds / WINDOWS.1).clamp(1, WINDOWS.0);
    let rates = log.rates(seconds, windows);
    let since = since_boot();
    for Rate { value, ended } in &rates {
        reporter.timed("txn", &label, *value, since(*ended))?;
    }
    let still = rates.iter().filter(|rate| rate.value <= 0.0).count();
    if still > 0 {
        // A rate of 0 has no harmonic mean; the note explains why it is missing.
        reporter.note(&format!(
            "{}: no transaction was completed in {still} of {windows} parts of the steady phase",
            count(clients as usize, "client")
        ))?;
    }
    for (metric, percent) in PERCENTILES {
        if let Some(latency) = log.percentile(percent) {
            reporter.labelled(metric, &label, latency)?;
        }
    }
    Ok(())
}

/// Returns a function from microseconds since 1970 to guest time, by the current difference of the two clocks.
fn since_boot() -> impl Fn(u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (now, up) = (now.as_micros() as u64, boot_time());
    move |then| up.saturating_sub(1000 * now.saturating_sub(then))
}

/// Reads all logs of one run, which pgbench writes per thread, and removes them.
fn read_logs(place: &Path, prefix: &str) -> Result<Log> {
    let mut log = Log::default();
    for entry in fs::read_dir(place).while_(place.display().to_string())? {
        let path = entry.while_(place.display().to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(prefix) {
            let file = fs::File::open(&path).while_(path.display().to_string())?;
            log.read(file).map_err(garbage)?;
            fs::remove_file(&path).while_(path.display().to_string())?;
        }
    }
    Ok(log)
}

fn garbage(problem: String) -> ProgramError {
    ProgramError::Garbage { program: "pgbench".into(), problem }
}

/// A note on pgbench's transactions, if pgbench's count, its log and the server's count agree.
fn agreed(output: &Output, log: &Log, counted: i64) -> Result<String, String> {
    let done = log::processed(&output.text).ok_or("its report has no number of transactions")?;
    if done == 0 {
        return Err("it completed no transaction".into());
    }
    if log.len() as u64 != done {
        return Err(format!("it completed {done} transactions, but its log has {}", log.len()));
    }
    let others = OTHERS.0 + done / OTHERS.1;
    let counted = u64::try_from(counted).unwrap_or(0);
    if !(done..=done + others).contains(&counted) {
        return Err(format!("it completed {done} transactions, but the server counted {counted}"));
    }
    Ok(format!("{done} transactions, {counted} in the server's count"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tests::{manifest, options};
    use guest::sys::CpuTime;

    #[test]
    fn the_manifest_gives_options() {
        let (manifest, _) = manifest("pgbench");
        let options: Options = options("pgbench", &[]).unwrap();
        assert_eq!((options.clients.as_slice(), options.script), (&[1, 5, 8][..], "select-only"));
        // The database has 1 GiB of 2 GiB. A unit has about 15 MB.
        assert_eq!(options.scale(), 69);
        let names: Vec<_> = manifest.metrics.iter().map(|metric| metric.name.as_str()).collect();
        let latencies = PERCENTILES.map(|(name, _)| name);
        assert_eq!(names, [&["txn"], &latencies[..]].concat());
    }

    #[test]
    fn the_numbers_of_clients_follow_the_machine() {
        assert_eq!(steps(32), [1, 5, 12, 21, 30, 32]);
        assert_eq!(steps(2), [1, 2]);
        assert_eq!(steps(1), [1]);
        assert_eq!(steps(64), [1, 5, 12, 21, 30, 48, 64]);
    }

    #[test]
    fn the_options_become_pgbenchs() {
        let given = [("cpus", "2"), ("transactions", "read-write")];
        let options: Options = options("pgbench", &given).unwrap();
        let expected = "-n -b tpcb-like -c 4 -j 2 -T 24 --random-seed=1";
        assert_eq!(options.arguments(4, 24).join(" "), expected);
    }

    #[test]
    fn three_counts_agree_or_are_refused() {
        let output = |text: &str| Output {
            text: text.into(),
            elapsed: Duration::ZERO,
            spent: CpuTime::default(),
        };
        let two = output("number of transactions actually processed: 2\n");
        let mut log = Log::default();
        log.read("0 1 900 0 1700000000 5\n0 2 800 0 1700000000 1000\n".as_bytes()).unwrap();
        assert_eq!(agreed(&two, &log, 5).unwrap(), "2 transactions, 5 in the server's count");
        for counted in [-5, 1, 103] {
            assert!(agreed(&two, &log, counted).unwrap_err().contains("the server counted"));
        }
        assert!(agreed(&output("garbage"), &log, 5).unwrap_err().starts_with("its report has no"));
        let problem = agreed(&two, &Log::default(), 5).unwrap_err();
        assert_eq!(problem, "it completed 2 transactions, but its log has 0");
        let none = output("number of transactions actually processed: 0\n");
        assert_eq!(agreed(&none, &Log::default(), 0).unwrap_err(), "it completed no transaction");
    }
}

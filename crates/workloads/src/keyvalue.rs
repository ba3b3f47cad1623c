//! Requests to a key-value server, Redis, in a memory cgroup. redis-benchmark reads and writes keys at random, with
//! and without a background save. A save forks the server, so that what is written during the save is copied.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `load` | the server starts in the cgroup and gets its keys |
//! | `get`, `set` | keys are read, or written, by several clients |
//! | `get-save`, `set-save` | the same while the server saves its keys to the disk |

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::cgroup::Memcg;
use super::program::{Program, ProgramError};
use super::reporter::Reporter;
use super::{Given, MIB, Result, While, Workload, refused, share_of};

/// The path of the server's socket.
const SOCKET: &str = "/tmp/keyvalue.socket";
/// How many bytes the server needs for a key besides the value, roughly.
const OF_KEY: u64 = 120;
/// How long the server may take to start, or to end a save.
const PATIENCE: Duration = Duration::from_secs(300);
/// The pause between two questions to the server.
const PAUSE: Duration = Duration::from_millis(20);
/// Writes keys with the names that redis-benchmark uses. Arguments are the number of keys and the size of a value.
const LOAD: &str = "for i = 0, ARGV[1] - 1 do \
    redis.call('SET', string.format('key:%012d', i), string.rep('x', ARGV[2])) end";
/// The reported columns of redis-benchmark and their metrics.
const COLUMNS: [(&str, &str); 4] = [
    ("rps", "Requests"),
    ("p50_latency_ms", "lat-p50"),
    ("p99_latency_ms", "lat-p99"),
    ("max_latency_ms", "lat-max"),
];

pub struct Options {
    directory: PathBuf,
    tests: Vec<(&'static str, ())>,
    /// Whether the server saves its keys in the background. The name is that of the choice.
    save: Vec<(&'static str, bool)>,
    /// The size of the keys and values, in percent of the machine's memory.
    share: f64,
    /// The limit of the cgroup, in percent of the machine's memory.
    limit: f64,
    /// The size of a value in bytes.
    value: u64,
    requests: u64,
    clients: u32,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let found = Self {
            directory: given.text("directory")?.into(),
            tests: given.chosen("tests", &[("get", ()), ("set", ())])?,
            save: given.chosen("save", &[("no", false), ("yes", true)])?,
            share: given.percent("share", 80.0, "the machine needs the rest")?,
            limit: given.percent("limit", 80.0, "the machine needs the rest")?,
            value: given.within("value", 1, 1 << 20)?,
            requests: given.within("requests", 1, 1_000_000_000)?,
            clients: given.within("clients", 1, 1000)?,
            memory: given.value("memory")?,
        };
        match found.keys() {
            0 => Err(refused("share", found.share, "not a key")),
            _ => Ok(found),
        }
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        reporter.phase("load")?;
        let memcg = Memcg::limited("keyvalue", share_of(self.memory, self.limit))?;
        let server = self.start(&memcg)?;
        server.load(self.keys(), self.value)?;
        for &(_, saves) in &self.save {
            for (test, ()) in &self.tests {
                let name = if saves { format!("{test}-save") } else { (*test).to_owned() };
                reporter.phase(&name)?;
                if saves {
                    server.ask(&["BGSAVE"])?;
                }
                let output = self.benchmark(test).run()?;
                let copied = saves.then(|| server.saved()).transpose()?;
                reporter.phase("")?;
                let garbage =
                    |problem| ProgramError::Garbage { program: BENCHMARK.into(), problem };
                for (metric, value) in figures(&output.text).map_err(garbage)? {
                    reporter.labelled(metric, &name, value)?;
                }
                if let Some(copied) = copied {
                    reporter.labelled("Copied", &name, copied / MIB)?;
                }
            }
        }
        server.stop()?;
        let dump = self.directory.join("dump.rdb");
        if dump.exists() {
            fs::remove_file(&dump).while_(dump.display().to_string())?;
        }
        Ok(())
    }
}

const BENCHMARK: &str = "redis-benchmark";

impl Options {
    fn keys(&self) -> u64 {
        share_of(self.memory, self.share) / (self.value + OF_KEY)
    }

    /// Starts the server in the cgroup.
    fn start(&self, memcg: &Memcg) -> Result<Server> {
        memcg.join()?;
        let words = format!(
            "--port 0 --unixsocket {SOCKET} --daemonize yes --appendonly no --rdbcompression no --dir {}",
            self.directory.display()
        );
        let words = words.split_whitespace().chain(["--save", ""]);
        Program::new("redis-server").args(words).run()?;
        memcg.leave()?;
        Server::await_answer()
    }

    /// A program that runs one test of redis-benchmark (`redis-benchmark --help`).
    fn benchmark(&self, test: &str) -> Program {
        let words = format!(
            "-s {SOCKET} -t {test} -n {} -r {} -d {} -c {} --csv",
            self.requests,
            self.keys(),
            self.value,
            self.clients
        );
        Program::new(BENCHMARK).args(words.split_whitespace())
    }
}

/// The server, while it runs.
struct Server;

impl Server {
    /// Waits until the server answers.
    fn await_answer() -> Result<Self> {
        let start = Instant::now();
        loop {
            match Self.ask(&["PING"]) {
                Err(error) if start.elapsed() > PATIENCE => return Err(error.into()),
                Ok(answer) if answer.trim() == "PONG" => return Ok(Self),
                _ => thread::sleep(PAUSE),
            }
        }
    }

    /// Sends a command. Fails when the answer is an error.
    fn ask(&self, command: &[&str]) -> Result<String, ProgramError> {
        let words = ["-s", SOCKET, "-e"].into_iter().chain(command.iter().copied());
        Ok(Program::new("redis-cli").args(words).run()?.text)
    }

    fn load(&self, keys: u64, value: u64) -> Result<(), ProgramError> {
        self.ask(&["EVAL", LOAD, "0", &keys.to_string(), &value.to_string()]).map(drop)
    }

    /// Waits for the end of a save. Returns how many bytes were copied because they were written during the save.
    fn saved(&self) -> Result<f64, ProgramError> {
        let garbage = |problem: &str| ProgramError::Garbage {
            program: "redis-server".into(),
            problem: problem.into(),
        };
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let text = self.ask(&["INFO", "persistence"])?;
            let value = |name: &str| {
                text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
            };
            match (value("rdb_bgsave_in_progress"), value("rdb_last_bgsave_status")) {
                (Some("0"), Some("ok")) => {
                    let copied = value("rdb_last_cow_size").and_then(|it| it.parse().ok());
                    return copied.ok_or_else(|| garbage("no rdb_last_cow_size"));
                }
                (Some("0"), _) => return Err(garbage("the background save failed")),
                _ => thread::sleep(PAUSE),
            }
        }
        Err(garbage("the background save does not end"))
    }

    /// Stops the server, and waits until it has ended.
    fn stop(self) -> Result<()> {
        self.ask(&["SHUTDOWN", "NOSAVE"])?;
        let start = Instant::now();
        while fs::exists(SOCKET).while_(SOCKET)? && start.elapsed() < PATIENCE {
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

/// Parses the figures of redis-benchmark: a line of names and a line of values, in quotation marks.
fn figures(text: &str) -> Result<Vec<(&'static str, f64)>, String> {
    let fields = |line: &str| -> Vec<String> {
        line.split(',').map(|field| field.trim().trim_matches('"').to_owned()).collect()
    };
    let lines: Vec<Vec<String>> =
        text.lines().filter(|line| line.starts_with('"')).map(fields).collect();
    let [names, values] = &lines[..] else {
        return Err(format!("{} lines of figures", lines.len()));
    };
    let by_name: BTreeMap<&String, &String> = names.iter().zip(values).collect();
    let figure = |(name, metric): (&str, &'static str)| {
        let value = by_name.get(&name.to_owned()).and_then(|value| value.parse().ok());
        value.map(|value| (metric, value)).ok_or_else(|| format!("no figure {name}"))
    };
    COLUMNS.into_iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::options;

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("keyvalue", &[("value", "1000")]).unwrap();
        let save: Vec<bool> = options.save.iter().map(|(_, saves)| *saves).collect();
        assert_eq!((save, options.tests.len()), (vec![false, true], 2));
        assert_eq!(options.keys(), (2u64 << 30) / 10 / (1000 + OF_KEY));
        let command = format!("{:?}", options.benchmark("get").command());
        assert!(command.contains(r#""-t" "get" "-n""#), "{command}");
    }

    #[test]
    fn figures_are_read() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                    \"GET\",\"66666.66\",\"0.421\",\"0.096\",\"0.415\",\"0.559\",\"0.663\",\"1.039\"\n";
        let expected =
            [("Requests", 66666.66), ("lat-p50", 0.415), ("lat-p99", 0.663), ("lat-max", 1.039)];
        assert_eq!(figures(text).unwrap(), expected);
        assert_eq!(figures("").unwrap_err(), "0 lines of figures");
        assert_eq!(figures(&text.replace("rps", "x")).unwrap_err(), "no figure rps");
    }
}

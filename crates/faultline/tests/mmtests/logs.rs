//! Generates synthetic, reproducible mmtests logs. `examples/mmtests-logs.rs` writes them to a directory for
//! mmtests itself.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The runs, and the time that each takes relative to the first.
pub const RUNS: [(&str, f64); 3] = [("6.6.0-base", 1.0), ("6.6.0-fix", 0.93), ("5.10.0-old", 1.15)];

/// Logs of one form.
pub struct Form {
    /// The name of the form in these tests.
    pub name: &'static str,
    /// The name of the benchmark's directory.
    pub benchmark: &'static str,
    /// The number of iterations of a run.
    pub iterations: u32,
    files: fn(&mut Maker),
}

/// All forms.
pub const FORMS: [Form; 17] = [
    Form { name: "autonumabench", benchmark: "autonumabench", iterations: 2, files: autonumabench },
    Form {
        name: "autonumabench-2019",
        benchmark: "autonumabench",
        iterations: 2,
        files: autonumabench_2019,
    },
    Form {
        name: "autonumabench-2012",
        benchmark: "autonumabench",
        iterations: 1,
        files: autonumabench_2012,
    },
    Form { name: "bonniepp", benchmark: "bonniepp", iterations: 3, files: bonniepp },
    Form { name: "nas", benchmark: "nas-mpi", iterations: 2, files: nas },
    Form { name: "nas-2018", benchmark: "nas", iterations: 2, files: nas_2018 },
    Form { name: "pagealloc", benchmark: "pagealloc", iterations: 2, files: pagealloc },
    Form { name: "paralleldd", benchmark: "paralleldd", iterations: 2, files: paralleldd },
    Form { name: "pgbench", benchmark: "pgbench", iterations: 2, files: pgbench },
    Form { name: "pgbench-2018", benchmark: "pgbench", iterations: 2, files: pgbench_2018 },
    Form { name: "stutter", benchmark: "stutter", iterations: 1, files: stutter },
    Form { name: "stutterp", benchmark: "stutterp", iterations: 2, files: stutterp },
    Form { name: "tiobench", benchmark: "tiobench", iterations: 2, files: tiobench },
    Form { name: "trunc", benchmark: "trunc", iterations: 2, files: trunc },
    Form { name: "trunc-2022", benchmark: "trunc", iterations: 2, files: trunc_2022 },
    Form { name: "xfsrepair", benchmark: "xfsrepair", iterations: 2, files: xfsrepair },
    Form { name: "xfsrepair-2015", benchmark: "xfsrepair", iterations: 2, files: xfsrepair_2015 },
];

impl Form {
    /// The files of one iteration of a run, by name.
    pub fn logs(&self, run: usize, iteration: u32) -> BTreeMap<String, Vec<u8>> {
        let mut maker = Maker {
            state: (run as u64) << 32 | u64::from(iteration),
            slower: RUNS[run].1,
            files: BTreeMap::new(),
        };
        (self.files)(&mut maker);
        maker.files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
    }
}

struct Maker {
    state: u64,
    slower: f64,
    files: BTreeMap<String, String>,
}

impl Maker {
    /// A number from 0 to 1 (SplitMix64).
    fn chance(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A time of about this length in this run: up to a tenth more, and sometimes much more.
    fn about(&mut self, time: f64) -> f64 {
        let outlier = if self.chance() < 0.05 { 1.6 } else { 1.0 };
        time * self.slower * (1.0 + 0.1 * self.chance()) * outlier
    }

    /// A rate of about this much in this run.
    fn rate(&mut self, rate: f64) -> f64 {
        1.0 / self.about(1.0 / rate)
    }

    fn add(&mut self, name: impl Into<String>, text: impl AsRef<str>) {
        self.files.entry(name.into()).or_default().push_str(text.as_ref());
    }

    /// What GNU `time` prints for about this many seconds.
    fn time(&mut self, user: f64, system: f64, elapsed: f64) -> String {
        let [user, system, elapsed] = [user, system, elapsed].map(|time| self.about(time));
        let cpu = (100.0 * (user + system) / elapsed) as u64;
        let minutes = (elapsed / 60.0) as u64;
        let clock = match minutes {
            60.. => format!("{}:{:02}:{:02}", minutes / 60, minutes % 60, elapsed as u64 % 60),
            _ => format!(
                "{minutes}:{:05.2}",
                (elapsed * 100.0) as u64 as f64 / 100.0 - (60 * minutes) as f64
            ),
        };
        format!(
            "{user:.2}user {system:.2}system {clock}elapsed {cpu}%CPU \
             (0avgtext+0avgdata 3145728maxresident)k\n0inputs+8outputs (0major+9999minor)pagefaults 0swaps\n"
        )
    }
}

/// Tests of autonumabench: user, system and elapsed seconds.
const NUMA: [(&str, [f64; 3]); 4] = [
    ("NUMA01", [31000.0, 820.0, 755.0]),
    ("NUMA01_THREADLOCAL", [7100.0, 93.5, 158.0]),
    ("NUMA02", [2100.0, 31.0, 46.0]),
    ("NUMA02_SMT", [1800.0, 9.0, 89.0]),
];

fn autonumabench(maker: &mut Maker) {
    for (test, [user, system, elapsed]) in NUMA {
        for number in 1..=7 {
            let time = maker.time(user, system, elapsed);
            maker.add(format!("time-{test}-{number}"), time);
            maker.add(format!("autonumabench-{test}-{number}.log"), "AUTONUMA BENCHMARK\n");
        }
    }
}

fn autonumabench_2019(maker: &mut Maker) {
    for (test, [user, system, elapsed]) in NUMA {
        for number in 1..=7 {
            let time = maker.time(user, system, elapsed);
            maker.add(format!("autonumabench-{test}-{number}.time"), time);
        }
    }
}

fn autonumabench_2012(maker: &mut Maker) {
    for (test, [user, system, elapsed]) in NUMA {
        let time = maker.time(user, system, elapsed);
        maker.add(format!("time.{test}"), time);
    }
}

fn bonniepp(maker: &mut Maker) {
    let kinds =
        [("wr", 480.0), ("rw", 930.0), ("rd", 260.0), ("sk", 7000.0), ("cs", 9.0), ("ds", 12.5)];
    for (kind, microseconds) in kinds {
        for _ in 0..200 {
            let latency = maker.about(microseconds);
            maker.add("bonnie-detail", format!("{kind} {latency:.0}\n"));
        }
    }
    let mut figures = vec![String::new(); 50];
    for (place, text) in [(0, "1.98"), (1, "1.98"), (2, "machine"), (3, "1"), (4, "1700000000")] {
        figures[place] = text.to_owned();
    }
    let rates = [(11, 180_000.0), (13, 91_000.0), (17, 410_000.0), (19, 700.0), (26, 21_000.0)];
    for (place, rate) in rates {
        figures[place] = format!("{:.0}", maker.rate(rate));
        figures[place + 1] = "12".to_owned();
    }
    figures[28] = "+++++".to_owned();
    figures[30] = format!("{:.0}", maker.rate(33_000.0));
    maker.add("bonnie", "Using uid:0, gid:0.\nWriting intelligently...done\n");
    maker.add("bonnie", figures.join(",") + "\n");
}

/// Kernels of NAS: elapsed seconds.
const NAS: [(&str, f64); 4] = [("bt.C", 81.0), ("cg.C", 24.5), ("is.C", 2.25), ("sp.C", 4100.0)];

fn nas(maker: &mut Maker) {
    for (kernel, elapsed) in NAS {
        for number in 1..=3 {
            let time = maker.time(elapsed * 15.0, elapsed * 0.07, elapsed);
            maker.add(format!("time-{kernel}-{number}"), time);
            let log = " Verification    =               SUCCESSFUL\n";
            maker.add(format!("{kernel}.log.{number}"), log);
        }
    }
}

fn nas_2018(maker: &mut Maker) {
    for (kernel, elapsed) in NAS {
        for number in 1..=3 {
            let seconds = maker.about(elapsed);
            let log = format!(
                " NAS Parallel Benchmarks\n\n Time in seconds =           {seconds:12.2}\n \
                 Verification    =               SUCCESSFUL\n"
            );
            maker.add(format!("{kernel}.log.{number}"), log);
        }
    }
}

fn pagealloc(maker: &mut Maker) {
    for order in 0..3 {
        for batch in [1, 2, 4, 8, 16384] {
            for round in 0..15 {
                let warm = if round < 2 { 3.0 } else { 1.0 };
                let cycles = 230.0 * f64::from(order + 1) * (1.0 + 1.0 / f64::from(batch)) * warm;
                let (alloc, free) = (maker.about(cycles), maker.about(cycles * 0.6));
                let line =
                    format!("order {order:2} batch {batch:6} alloc {alloc:.0} free {free:.0}\n");
                maker.add("pagealloc.log", line);
                // mmtests splits the log, and takes the orders from the names of the parts.
                maker.add(format!("alloc-{order}"), format!("{batch} {alloc:.0}\n"));
            }
        }
    }
}

fn paralleldd(maker: &mut Maker) {
    for readers in [1, 2, 12] {
        for number in 1..=3 {
            for reader in 1..=readers {
                let time = maker.time(2.0, 11.0, 31.0);
                let name = format!("time-{readers}.log");
                maker.add(&name, format!("iteration: {number} instance: {reader}\n"));
                maker.add(name, time);
            }
        }
    }
}

fn pgbench(maker: &mut Maker) {
    for clients in [1, 4, 12] {
        let time = maker.time(1.2, 2.3, 130.0);
        maker.add(format!("time-{clients}-1"), time);
        maker.add(format!("pgbench-{clients}.log"), "pgbench\n");
        let mut seconds = 1_700_000_000;
        for line in 0..61 {
            // The machine was too busy to write a line in time.
            seconds += if line == 30 { 3 } else { 1 };
            let transactions = maker.rate(1000.0 * f64::from(clients)) as u64;
            let line = format!("{seconds} {transactions} 4658400 4710160000 300 9000\n");
            maker.add(format!("pgbench-transactions-{clients}.log"), line);
        }
    }
}

/// The layout until May 2019: it has other names and, with two threads, one log for each.
fn pgbench_2018(maker: &mut Maker) {
    for clients in [1, 4, 12] {
        let time = maker.time(1.2, 2.3, 130.0);
        maker.add(format!("time-{clients}"), time);
        maker.add(format!("pgbench-raw-{clients}"), "transaction type: <builtin: select only>\n");
        for thread in 1..=if clients > 1 { 2 } else { 1 } {
            for second in 0..47 {
                let transactions = maker.rate(500.0 * f64::from(clients)) as u64;
                let line = format!(
                    "{} {transactions} 4658400 4710160000 300 9000\n",
                    1_540_000_000 + second
                );
                maker.add(format!("pgbench-transactions-{clients}-{thread}"), line);
            }
        }
    }
}

/// Latencies. Most are short and share a line.
fn latencies(maker: &mut Maker, name: &str, milliseconds: f64) {
    for _ in 0..400 {
        let latency = (maker.about(milliseconds) * 1e6) as u64;
        let together = match maker.chance() {
            0.0..0.2 => 1 + (maker.chance() * 40.0) as u64,
            _ => 1,
        };
        maker.add(name, format!("{together} {latency}\n"));
    }
}

fn stutter(maker: &mut Maker) {
    latencies(maker, "mmap-latency.log", 55.0);
}

fn stutterp(maker: &mut Maker) {
    for workers in [4, 7, 12, 21] {
        latencies(maker, &format!("mmap-latency-{workers}.log"), f64::from(workers) * 11.0);
    }
}

fn tiobench(maker: &mut Maker) {
    let speed = maker.rate(89.0);
    maker.add("disk-read.speed", format!("{speed:.2}\n"));
    for threads in [1, 2, 16] {
        for number in 1..=3 {
            let mut log = String::from("Unit information\n================\n");
            let kinds = [
                ("Sequential Reads", 93.0),
                ("Random Reads", 0.9),
                ("Sequential Writes", 80.0),
                ("Random Writes", 1.1),
            ];
            for (kind, rate) in kinds {
                let rate = maker.rate(rate / f64::from(threads).sqrt());
                let _ = writeln!(
                    log,
                    "{kind}\n6.6.0-rc1                     8000  4096  {threads:3} {rate:6.2} \
                     22.98%     0.042      303.80   0.00000  0.00000   404\n"
                );
            }
            maker.add(format!("tiobench-{threads}-{number}.log"), log);
        }
    }
}

fn trunc(maker: &mut Maker) {
    for number in 1..=30 {
        let (fault, trunc) = (maker.time(0.06, 3.2, 3.31), maker.time(0.0, 0.24, 0.25));
        maker.add(format!("time-fault-{number}"), fault);
        maker.add(format!("time-trunc-{number}"), trunc);
    }
}

fn trunc_2022(maker: &mut Maker) {
    for number in 1..=30 {
        let (fault, trunc) = (maker.time(0.06, 3.2, 3.31), maker.time(0.0, 0.24, 0.25));
        maker.add(format!("fault-{number}.time"), fault);
        maker.add(format!("trunc-{number}.time"), trunc);
    }
}

fn xfsrepair(maker: &mut Maker) {
    for number in 1..=3 {
        let steps = [("sparsecreate", [0.0, 0.01, 0.04]), ("fsmark", [900.0, 4000.0, 1166.0])];
        for (step, [user, system, elapsed]) in steps.into_iter().chain([REPAIR]) {
            let time = maker.time(user, system, elapsed);
            maker.add(format!("time-{step}-{number}"), time);
        }
        maker.add(format!("time.fscreate.{number}"), "0.00user 0.10system 0:00.31elapsed\n");
    }
}

/// The repair takes more than an hour.
const REPAIR: (&str, [f64; 3]) = ("xfsrepair", [9000.0, 519.0, 5008.0]);

fn xfsrepair_2015(maker: &mut Maker) {
    for number in 1..=3 {
        for (step, [user, system, elapsed]) in [("fsmark", [900.0, 4000.0, 1166.0]), REPAIR] {
            let time = maker.time(user, system, elapsed);
            maker.add(format!("time.{step}.{number}"), time);
        }
        maker.add(format!("time.fscreate.{number}"), "0.00user 0.10system 0:00.31elapsed\n");
    }
}

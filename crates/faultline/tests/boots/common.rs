//! A bench for one test: a store in a temporary directory, and the real program, which runs experiments as users do.
//! Kernels come from the user's cache, and missing ones are fetched.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::{Boot, Chunk, Kept, Sample, Source};
use serde_json::Value;
use store::Detail;
use tempfile::TempDir;

pub use crate::said::Said;

/// Boots disturb each other, so tests that boot take turns.
static TURN: Mutex<()> = Mutex::new(());

pub struct Bench {
    pub directory: TempDir,
    began: Instant,
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Bench {
    /// Writes how long the test took, past what the test harness captures.
    fn drop(&mut self) {
        let thread = std::thread::current();
        let (test, seconds) = (thread.name().unwrap_or("?"), self.began.elapsed().as_secs());
        writeln!(io::stderr(), "{test}: {seconds} s").ok();
    }
}

impl Bench {
    pub fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(
            std::env::var_os("FAULTLINE_GUEST").is_some(),
            "the guest's programs are built and named by `make test`"
        );
        Self { directory: tempfile::tempdir().unwrap(), began: Instant::now(), _turn: turn }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub fn store_path(&self) -> PathBuf {
        self.path("test.db")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
        command.env("FAULTLINE_STORE", self.store_path()).args(args).stdin(Stdio::null());
        command
    }

    pub fn said(&self, mut command: Command) -> Said {
        Said::of(&mut command)
    }

    pub fn faultline(&self, args: &[&str]) -> Said {
        self.said(self.command(args))
    }

    /// Runs the experiment that this text describes. A boot that hangs is repeated once: with several CPUs, each a
    /// thread, emulation hangs in one of several hundred boots.
    pub fn run(&self, text: &str) -> Said {
        let file = self.write("x.toml", text);
        let run = ["run", file.to_str().unwrap()];
        let said = self.faultline(&run);
        match said.err.contains(&format!("the job was not complete {LONGEST}")) {
            true => self.faultline(&[&run[..], &["--retry-failed"]].concat()),
            false => said,
        }
    }

    /// The JSON that a command prints.
    pub fn json(&self, args: &[&str]) -> Value {
        let args = [args, &["--format", "json"]].concat();
        serde_json::from_str(&self.faultline(&args).expect(0).out).unwrap()
    }

    /// Compiles a program of C with these options of the compiler.
    pub fn compile(&self, name: &str, text: &str, options: &[&str]) {
        let source = self.write(&format!("{name}.c"), text);
        let mut compiler = Command::new("cc");
        compiler.arg("-o").arg(self.path(name)).arg(source).args(options);
        assert!(compiler.status().unwrap().success());
    }

    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The boots of the latest experiment, except those that were repeated.
    pub fn boots(&self) -> Vec<Boot> {
        self.kept().into_iter().filter(|it| !it.superseded).map(|it| it.boot).collect()
    }

    /// Every boot of the latest experiment, whole.
    pub fn every_boot(&self) -> Vec<Boot> {
        self.kept().into_iter().map(|it| it.boot).collect()
    }

    fn kept(&self) -> Vec<Kept> {
        let store = store::open(&self.store_path()).unwrap();
        let latest = store.experiments().unwrap().last().unwrap().id;
        store.boots(latest, Detail::Whole).unwrap()
    }

    /// Waits until the QEMU of this bench has ended. The kernel kills it once its parent is dead.
    pub fn await_no_qemu(&self) {
        let start = Instant::now();
        while let Some(process) = self.qemu() {
            assert!(start.elapsed() < Duration::from_secs(60), "QEMU {process} lives on");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The process ID of the QEMU that runs in this bench, if one does.
    pub fn qemu(&self) -> Option<i32> {
        let mine = self.directory.path().to_str().unwrap().to_owned();
        fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let said = fs::read(entry.path().join("cmdline")).ok()?;
            let said = String::from_utf8_lossy(&said).into_owned();
            let is_qemu = said.split('\0').next()?.ends_with("qemu-system-x86_64");
            (is_qemu && said.contains(&mine)).then_some(pid)
        })
    }
}

/// The values of a metric with a label.
pub fn values(boot: &Boot, metric: &str, label: &str) -> Vec<f64> {
    let is_wanted = |it: &&Sample| it.metric == metric && it.label == label;
    boot.samples.iter().filter(is_wanted).map(|it| it.value).collect()
}

/// The values of a metric in a phase.
pub fn values_in(boot: &Boot, metric: &str, phase: &str) -> Vec<f64> {
    let is_wanted = |it: &&Sample| it.metric == metric && it.phase == phase;
    boot.samples.iter().filter(is_wanted).map(|it| it.value).collect()
}

/// The chunks of `/proc/vmstat` of a phase.
pub fn phase<'a>(boot: &'a Boot, workload: &str, phase: &str) -> Vec<&'a Chunk> {
    let chunks = boot.chunks.iter().filter(|chunk| chunk.is_of(Source::Vmstat));
    chunks.filter(|chunk| chunk.workload == workload && chunk.phase == phase).collect()
}

/// How much a counter grew in a chunk.
pub fn grown(chunk: &Chunk, counter: &str) -> f64 {
    chunk.difference(counter).unwrap() as f64
}

/// Variants with the oldest and the newest kernel.
pub const OLDEST_AND_NEWEST: &str =
    "[[variant]]\nkernel = \"5.10\"\n[[variant]]\nkernel = \"newest\"\n";

/// The time limit of a boot's workloads, which none of them reaches.
pub const LONGEST: &str = "15m";

/// The text of an experiment on 4 CPUs and 512 MiB.
pub fn small_experiment(name: &str, rest: &str) -> String {
    on_machine(name, "cpus = 4\nmemory = \"512M\"\nnodes = 1", rest)
}

/// The text of an experiment on 4 CPUs and 2 nodes.
pub fn experiment(name: &str, rest: &str) -> String {
    on_machine(name, "cpus = 4\nmemory = \"2G\"\nnodes = 2", rest)
}

fn on_machine(name: &str, machine: &str, rest: &str) -> String {
    format!(
        "name = \"{name}\"\nboots = 1\n[machine]\n{machine}\nlimits = {{ run = \"{LONGEST}\" }}\n{rest}"
    )
}

/// A path as a string of TOML.
pub fn quoted(path: &Path) -> String {
    format!("{:?}", path.to_str().unwrap())
}

//! stress-ng's stressors by name (Colin Ian King). Each stressor is a phase: `switch-4` has 4 instances of it. The
//! unit of rates is stress-ng's own operation ("bogo ops"), which is a different amount of work for each stressor.

use std::fs;

use super::program::{Program, ProgramError};
use super::reporter::Reporter;
use super::{Given, Result, While, Workload, list_within, share_of, within};

/// Where stress-ng writes its figures.
const FIGURES: &str = "/tmp/stressng.yaml";
/// Stressors of memory, files, scheduling and shared objects.
const STRESSORS: &str = "\
    access affinity bigheap brk cache chmod clone close context cpu daemon dentry dev-shm dup epoll \
    eventfd exec exit-group fallocate fault fiemap fifo file-ioctl flock fork fstat full futex getdent \
    getrandom hdd idle-page inode-flags inotify io iomix judy kcmp kill lease link locka lockf lockofd \
    madvise malloc mcontend membarrier memcpy memfd memrate memthrash mincore mlock mlockmany mmap \
    mmapaddr mmapfixed mmapfork mmaphuge mmapmany mprotect mq mremap msg msync msyncmany munmap mutex \
    nanosleep null numa open opcode pageswap pagemove physpage pipe pipeherd pkey poll prefetch procfs \
    pthread ramfs readahead remap rename resources rlimit rmap rseq schedpolicy seal seek sem sem-sysv \
    sendfile session set shm shm-sysv sigchld sigpipe sigsegv sock sockmany sockpair softlockup spawn \
    splice stack stackmmap stream swap switch symlink sync-file sysinfo tee timer tlb-shootdown tmpfs \
    unshare userfaultfd utime vfork vforkmany vm vm-addr vm-rw vm-segv vm-splice vma wait workload yield \
    zero zombie";

pub struct Options {
    stressors: Vec<&'static str>,
    /// The numbers of instances with which each stressor runs.
    tasks: Vec<usize>,
    /// How long each stressor runs, in seconds.
    seconds: u32,
    /// After this many operations of all instances a stressor ends early.
    operations: Option<u64>,
    /// The memory of all instances of the stressors `vm` and `mmap`, in percent of the machine's.
    share: f64,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let cpus = given.value("cpus")?;
        let (tasks, operations) = (given.optional("tasks")?, given.optional("operations")?);
        let known: Vec<_> = STRESSORS.split_whitespace().map(|name| (name, name)).collect();
        let stressors = given.chosen("stressors", &known)?;
        Ok(Self {
            stressors: stressors.into_iter().map(|(name, _)| name).collect(),
            tasks: tasks.map_or_else(|| Ok(vec![cpus]), |it| list_within("tasks", &it, 1, 1000))?,
            seconds: given.within("seconds", 1, 3600)?,
            operations: operations
                .map(|it| within("operations", &it, 1, 1_000_000_000))
                .transpose()?,
            share: given.percent("share", 80.0, "the memory has to fit")?,
            memory: given.value("memory")?,
        })
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        for &stressor in &self.stressors {
            for &tasks in &self.tasks {
                let label = format!("{stressor}-{tasks}");
                reporter.phase(&label)?;
                let output =
                    Program::new("stress-ng").args(self.arguments(stressor, tasks)).run()?;
                reporter.phase("")?;
                let text = fs::read_to_string(FIGURES).while_(FIGURES)?;
                let Some(figures) = Figures::read(&text) else {
                    let last = output.text.lines().last().unwrap_or_default();
                    let problem = format!("no figures of {stressor}; {last}");
                    return Err(
                        ProgramError::Garbage { program: "stress-ng".into(), problem }.into()
                    );
                };
                reporter.labelled("Rate", &label, figures.operations / figures.elapsed)?;
                reporter.labelled("User", &label, figures.user)?;
                reporter.labelled("System", &label, figures.system)?;
            }
        }
        Ok(())
    }
}

impl Options {
    /// The arguments for stress-ng (stress-ng(1)).
    fn arguments(&self, stressor: &str, tasks: usize) -> Vec<String> {
        let bytes = share_of(self.memory, self.share);
        let mut arguments = vec![
            format!("--{stressor}={tasks}"),
            format!("--timeout={}s", self.seconds),
            format!("--yaml={FIGURES}"),
            format!("--vm-bytes={bytes}"),
            format!("--mmap-bytes={bytes}"),
        ];
        // Random numbers are the same in each run.
        arguments.extend(
            ["--metrics", "--no-rand-seed", "--oomable", "--temp-path=/tmp"].map(str::to_owned),
        );
        arguments.extend(self.operations.map(|it| format!("--{stressor}-ops={it}")));
        arguments
    }
}

/// The figures of one stressor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    operations: f64,
    elapsed: f64,
    user: f64,
    system: f64,
}

impl Figures {
    /// Reads the text of stress-ng's option `--yaml`. `None` if a stressor did no operation.
    fn read(text: &str) -> Option<Self> {
        let (_, metrics) = text.split_once("\nmetrics:")?;
        let value = |name: &str| {
            let is_it =
                |line: &str| line.trim().strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok();
            metrics.lines().find_map(is_it)
        };
        let found = Self {
            operations: value("bogo-ops")?,
            elapsed: value("wall-clock-time")?,
            user: value("user-time")?,
            system: value("system-time")?,
        };
        (found.operations > 0.0 && found.elapsed > 0.0).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{manifest, options};

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("stressng", &[("operations", "100")]).unwrap();
        assert_eq!(options.stressors, ["switch", "fault", "mmap", "vm", "fork"]);
        let arguments = options.arguments("fault", 4).join(" ");
        assert!(arguments.starts_with("--fault=4 --timeout=2s "), "{arguments}");
        assert!(arguments.ends_with(" --fault-ops=100"), "{arguments}");
        assert_eq!(options.tasks, [4]);
        let known: Vec<&str> = STRESSORS.split_whitespace().collect();
        assert_eq!(manifest("stressng").0.parameters["stressors"].words, known);
    }

    #[test]
    fn figures_are_read() {
        let text = "---\nsystem-info:\n      user-time: 9\n\nmetrics:\n    - stressor: switch\n      bogo-ops: 2000\n      \
                    bogo-ops-per-second-usr-sys-time: 1.0\n      wall-clock-time: 2.5\n      user-time: 0.25\n      system-time: 1.5\n...\n";
        let expected = Figures { operations: 2000.0, elapsed: 2.5, user: 0.25, system: 1.5 };
        assert_eq!(Figures::read(text), Some(expected));
        assert_eq!(Figures::read(&text.replace("2000", "0")), None);
        assert_eq!(Figures::read("---\n"), None);
    }
}

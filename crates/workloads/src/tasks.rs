//! Tasks that start at the same time, as threads of one process or as processes.

#![expect(unsafe_code, reason = "fork(2)")]

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::ops::Range;
use std::panic::resume_unwind;
use std::process;
use std::str::FromStr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use guest::clock::boot_time;
use guest::words::Words;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::{Given, Result, While, WorkloadError, list, list_within};

/// The largest number of tasks.
pub const MOST: usize = 1000;

/// The size of a thread's stack. It is below a huge page, which the kernel would count together with those of a test.
pub const STACK: usize = 256 << 10;

/// What a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A process with its own address space.
    Processes,
    /// A thread that shares the address space with the others.
    Threads,
}

impl Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Processes => "processes",
            Self::Threads => "threads",
        })
    }
}

impl FromStr for By {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "processes" => Ok(Self::Processes),
            "threads" => Ok(Self::Threads),
            _ => Err("neither processes nor threads"),
        }
    }
}

/// A number of tasks of one kind, printed as `processes-4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tasks {
    by: By,
    /// The number of tasks.
    pub count: usize,
}

impl Display for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.by, self.count)
    }
}

impl Tasks {
    /// Each number in `--tasks` with each kind in `--by`.
    pub fn given(given: &mut Given) -> Result<Vec<Self>> {
        let (by, counts) = (list::<By>("by", &given.text("by")?)?, counts(given)?);
        let all = by.iter().flat_map(|&by| counts.iter().map(move |&count| Self { by, count }));
        Ok(all.collect())
    }

    /// Each number in `--tasks`, as processes.
    pub fn processes_given(given: &mut Given) -> Result<Vec<Self>> {
        let counts = counts(given)?.into_iter();
        Ok(counts.map(Self::of_processes).collect())
    }

    pub fn of_processes(count: usize) -> Self {
        Self { by: By::Processes, count }
    }

    /// Whether each task has its own address space.
    pub fn are_processes(self) -> bool {
        self.by == By::Processes
    }

    /// Lets all tasks do their work together, several times, with `operations` operations each time. For each time,
    /// returns the operations per second and when they ended.
    pub fn rates(
        self,
        rounds: u32,
        operations: f64,
        work: impl Fn(usize) -> Result<()> + Sync,
    ) -> Result<Vec<(f64, u64)>> {
        let round = |_| Ok((operations / self.timed(&work)?.as_secs_f64(), boot_time()));
        (0..rounds).map(round).collect()
    }

    /// Lets each task do its work, which gets the task's number. Returns the time from the common start to the end of
    /// the last task. Fails if one fails.
    pub fn timed(self, work: impl Fn(usize) -> Result<()> + Sync) -> Result<Duration> {
        match self.by {
            By::Processes => self.processes(work),
            By::Threads => self.threads(work),
        }
    }

    fn threads(self, work: impl Fn(usize) -> Result<()> + Sync) -> Result<Duration> {
        let (start, work) = (&Barrier::new(self.count + 1), &work);
        thread::scope(|scope| {
            let task = |number| {
                thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
                    start.wait();
                    work(number)
                })
            };
            let tasks: Vec<_> =
                (0..self.count).map(task).collect::<io::Result<_>>().while_("a thread")?;
            start.wait();
            let started = Instant::now();
            for task in tasks {
                task.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            }
            Ok(started.elapsed())
        })
    }

    fn processes(self, work: impl Fn(usize) -> Result<()>) -> Result<Duration> {
        let (mut ready, is_ready) = io::pipe().while_("a pipe")?;
        let (go, start) = io::pipe().while_("a pipe")?;
        let mut children = Vec::new();
        for number in 0..self.count {
            // SAFETY: this process has one thread here, so the child's memory is consistent. The child never
            // returns from this branch.
            match unsafe { libc::fork() } {
                0 => {
                    drop(start);
                    process::exit(child(go, is_ready, || work(number)))
                }
                id => children.push(Pid::from_raw(id).ok_or_else(io::Error::last_os_error)),
            }
        }
        let children = children.into_iter().collect::<io::Result<Vec<Pid>>>().while_("fork")?;
        drop(is_ready);
        ready.read_exact(&mut vec![0; self.count]).while_("starting processes")?;
        let started = Instant::now();
        drop(start);
        for (number, child) in children.into_iter().enumerate() {
            let ended = waitpid(Some(child), WaitOptions::empty());
            let status = ended.map_err(io::Error::from).while_("waiting for a process")?;
            if status.is_none_or(|(_, status)| status.exit_status() != Some(0)) {
                let signal = status.and_then(|(_, status)| status.terminating_signal());
                let how =
                    signal.map_or("failed".to_owned(), |it| format!("was killed by signal {it}"));
                return Err(WorkloadError::Child(format!("process {number} of {self} {how}")));
            }
        }
        Ok(started.elapsed())
    }
}

/// Lets `count` threads work together. The work gets the thread's number. A single one works in this thread. Returns
/// the time from the start to the end of the last thread.
pub fn side_by_side(count: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<Duration> {
    if count > 1 {
        return Tasks { by: By::Threads, count }.timed(work);
    }
    let start = Instant::now();
    work(0)?;
    Ok(start.elapsed())
}

/// The part of `count` items that belongs to the thread with this number. Parts are consecutive, and differ by at
/// most 1.
pub fn share(count: usize, number: usize, threads: usize) -> Range<usize> {
    let (part, more) = (count / threads, count % threads);
    let start = number * part + number.min(more);
    start..start + part + usize::from(number < more)
}

/// Memory in which tasks can store figures, even if they are processes.
pub fn figures(count: usize) -> io::Result<Words> {
    let file: File = memfd_create("figures", MemfdFlags::CLOEXEC)?.into();
    ftruncate(&file, (count * size_of::<u64>()) as u64)?;
    Words::shared(&file)
}

/// Pins this thread, and what the kernel does for it, to one CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None::<Pid>, &set)?)
}

/// The numbers in `--tasks`; by default 1 and the number of CPUs.
fn counts(given: &mut Given) -> Result<Vec<usize>> {
    let cpus = given.value("cpus")?;
    match given.optional("tasks")? {
        Some(counts) => list_within("tasks", &counts, 1, MOST),
        None if cpus == 1 => Ok(vec![1]),
        None => Ok(vec![1, cpus]),
    }
}

/// Waits for the start, then works. Returns the status of the process.
fn child(mut go: PipeReader, mut ready: impl Write, work: impl FnOnce() -> Result<()>) -> i32 {
    let started = ready.write_all(&[1]).and_then(|()| go.read(&mut [0]));
    match started.map(|_| ()).while_("starting").and_then(|()| work()) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        for threads in 1..6 {
            for count in 0..20 {
                let shares = (0..threads).flat_map(|number| share(count, number, threads));
                assert_eq!(shares.collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn tasks_are_numbers_of_threads_and_processes() {
        let given = |by: &str, tasks: &str| {
            let options = [("by", by), ("tasks", tasks), ("cpus", "4")];
            let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let tasks = Tasks::given(&mut Given { options: options.into(), ..Given::default() });
            tasks.map(|tasks| tasks.iter().map(Tasks::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(given("processes", "").unwrap(), "processes-1 processes-4");
        assert_eq!(given("threads,processes", "2").unwrap(), "threads-2 processes-2");
        assert!(given("fibers", "2").is_err() && given("threads", "0").is_err());
    }

    #[test]
    fn each_thread_works_once_and_errors_are_returned() {
        let sum = AtomicU64::new(0);
        let tasks = Tasks { by: By::Threads, count: 3 };
        let add = |number: usize| {
            sum.fetch_add(1 << (8 * number), Relaxed);
            Ok(())
        };
        tasks.timed(add).unwrap();
        assert_eq!(sum.into_inner(), 0x01_01_01);
        let fail = |number: usize| match number {
            2 => Err(WorkloadError::Child("so".into())),
            _ => Ok(()),
        };
        assert_eq!(tasks.timed(fail).unwrap_err().to_string(), "so");
    }
}

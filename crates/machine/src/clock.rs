//! Measures the time that counts against a machine's limits. In exact mode that is QEMU's CPU time, because a busy
//! host slows a boot down, but hardly changes the work in it.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use model::Millis;
use rustix::param::clock_ticks_per_second;

use crate::Time;

/// The longest time that an exact machine may run without using any CPU time. It never waits for the host, and idle
/// guests use CPU time too, because QEMU moves their clock from timer to timer.
const STALLED: Duration = Duration::from_secs(600);
/// A boot that exceeded a limit of the host's time had too little of it if one of QEMU's threads was ready to run, but
/// waited for a CPU, for at least this share of the boot.
const STARVED: f64 = 0.5;
/// Shorter waits are usual, and cause no boot to exceed a limit.
const LEAST: Duration = Duration::from_secs(5);
/// The longest time between two readings that counts. If more passes, Faultline itself did not run.
const MOST: Duration = Duration::from_secs(1);

/// The clock of a machine's limits.
pub enum Clock {
    /// The host's time, since this moment.
    Wall(Instant),
    /// QEMU's CPU time.
    Cpu(Cpu),
}

impl Clock {
    /// The host's clock, started now.
    pub fn wall() -> Self {
        Self::Wall(Instant::now())
    }

    /// A clock of the CPU time of a process that was just started.
    pub fn cpu() -> Self {
        Self::Cpu(Cpu::new(Instant::now()))
    }

    /// A length of time by this clock.
    pub fn time(&self, length: Millis) -> Time {
        match self {
            Self::Wall(_) => Time::Wall(length),
            Self::Cpu(_) => Time::Cpu(length),
        }
    }

    /// Starts again from 0.
    pub fn restart(&mut self) {
        match self {
            Self::Wall(since) => *since = Instant::now(),
            Self::Cpu(cpu) => cpu.since = cpu.used,
        }
    }

    /// Reads the CPU time that QEMU's process has used, if this clock needs it.
    pub fn tick(&mut self, process: u32) {
        if let Self::Cpu(cpu) = self {
            cpu.note(Reading::of(process), Instant::now());
        }
    }

    /// Whether this much time has passed since the start.
    pub fn has_passed(&self, limit: Time) -> bool {
        let passed = match self {
            Self::Wall(since) => since.elapsed(),
            Self::Cpu(cpu) => cpu.used.saturating_sub(cpu.since),
        };
        passed >= limit.length()
    }

    /// The state of QEMU's process if it has used no CPU time for [`STALLED`].
    pub fn stall(&self) -> Option<Stall> {
        match self {
            Self::Cpu(cpu) if cpu.idle >= STALLED => Some(Stall { state: cpu.state }),
            _ => None,
        }
    }
}

/// The time for which the thread of a process that waited longest was ready to run, but had no CPU: the second field of
/// `/proc/PID/task/TID/schedstat` (`Documentation/scheduler/sched-stats.rst`). `None` if the kernel does not count it.
pub fn waited(process: u32) -> Option<Duration> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let waited = threads.filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().nth(1)?.parse().ok()
    });
    waited.max().map(Duration::from_nanos)
}

/// Why the host is to blame for a boot of this length that exceeded a limit of the host's time. The error says why it
/// is not: the boot had the CPU time that it could use. `waited` is as in [`waited`].
pub fn starved(waited: Option<Duration>, length: Duration) -> Result<String, String> {
    let Some(waited) = waited else {
        return Err("this host does not tell how long QEMU waited for a CPU".to_owned());
    };
    let text = format!(
        "a thread of QEMU was ready to run, but waited for a CPU for {} s of {} s",
        waited.as_secs(),
        length.as_secs()
    );
    match waited >= LEAST.max(length.mul_f64(STARVED)) {
        true => Ok(format!("{text}, because the host was busy")),
        false => Err(format!("{text}, so the host is not to blame")),
    }
}

/// The CPU time of a process.
pub struct Cpu {
    used: Duration,
    /// The CPU time that was used when the current limit began.
    since: Duration,
    /// The time during which none was used.
    idle: Duration,
    state: Option<char>,
    /// The time of the last reading.
    read: Instant,
}

impl Cpu {
    fn new(now: Instant) -> Self {
        let none = Duration::ZERO;
        Self { used: none, since: none, idle: none, state: None, read: now }
    }

    /// Says how much CPU time was used in a boot of this length.
    pub fn share_of(&self, length: Duration) -> String {
        let [used, length] = [self.used, length].map(|time| time.as_secs());
        format!("the limit is of CPU time, of which QEMU used {used} s in {length} s")
    }

    /// Takes a reading; `None` if the process cannot be read.
    fn note(&mut self, reading: Option<Reading>, now: Instant) {
        let passed = now.saturating_duration_since(self.read).min(MOST);
        self.read = now;
        self.state = reading.map(|it| it.state);
        match reading {
            Some(Reading { cpu, .. }) if cpu > self.used => {
                (self.used, self.idle) = (cpu, Duration::ZERO);
            }
            _ => self.idle += passed,
        }
    }
}

/// The state of a process that has used no CPU time for very long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    state: Option<char>,
}

impl Stall {
    /// Whether the process sleeps by itself: it does not wait for a disk, and was not stopped.
    pub fn is_sleep(self) -> bool {
        self.state == Some('S')
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = STALLED.as_secs() / 60;
        write!(f, "QEMU used no CPU time for {minutes} minutes: ")?;
        match self.state {
            Some('T' | 't') => f.write_str("its process was stopped"),
            Some('D') => f.write_str("its process waited for a disk or was frozen"),
            Some('R') => f.write_str("the host's other processes left it none"),
            Some('S') => f.write_str("its process slept, or was frozen with others"),
            Some(state) => write!(f, "the state of its process was {state}"),
            None => f.write_str("its process cannot be read in /proc"),
        }
    }
}

/// The CPU time and the state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    /// User and system time of all its threads, past ones included.
    cpu: Duration,
    state: char,
}

impl Reading {
    /// Reads `/proc/PID/stat`; `None` if there is no such process.
    fn of(process: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        Self::parse(&stat, clock_ticks_per_second())
    }

    /// Fields 3 (`state`), 14 (`utime`) and 15 (`stime`) of `proc_pid_stat(5)`. Field 2, the name, can have
    /// blanks and parentheses.
    fn parse(stat: &str, ticks_per_second: u64) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let milliseconds = ticks(14)?.saturating_add(ticks(15)?).saturating_mul(1000);
        let cpu = Duration::from_millis(milliseconds / ticks_per_second.max(1));
        Some(Self { cpu, state: fields.first()?.chars().next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A clock to which `readings` were given, one each second.
    fn clock(readings: impl Iterator<Item = (u64, char)>) -> Clock {
        let begin = Instant::now();
        let mut cpu = Cpu::new(begin);
        for (second, (used, state)) in (1..).zip(readings) {
            cpu.note(Some(Reading { cpu: seconds(used), state }), begin + seconds(second));
        }
        Clock::Cpu(cpu)
    }

    #[test]
    fn a_busy_host_does_not_use_up_a_limit() {
        let limit = Time::Cpu(Millis(180_000));
        // The process gets about a seventeenth of a CPU.
        let mut slow = clock((0..3000).map(|second| (second / 17, 'R')));
        assert!(!slow.has_passed(limit) && slow.stall().is_none());
        assert!(clock((0..=180).map(|used| (used, 'R'))).has_passed(limit));
        // The next stage has a limit of its own.
        assert!(slow.has_passed(Time::Cpu(Millis(170_000))));
        slow.restart();
        assert!(!slow.has_passed(Time::Cpu(Millis(1))));
    }

    #[test]
    fn a_process_that_uses_no_time_is_stalled() {
        let after = |state| {
            let readings = [(7, 'R')].into_iter().chain([(7, state); 600]);
            clock(readings).stall().unwrap()
        };
        assert!(after('S').is_sleep());
        for (state, how) in [('T', "was stopped"), ('D', "for a disk"), ('R', "left it none")] {
            let stall = after(state);
            let said = stall.to_string();
            assert!(!stall.is_sleep() && said.starts_with("QEMU used no CPU time for 10 minutes"));
            assert!(said.contains(how), "{said}");
        }
        assert_eq!(clock([(7, 'T'); 600].into_iter()).stall(), None);
        assert_eq!(clock((0..2000).map(|second| (second / 599, 'S'))).stall(), None);
    }

    #[test]
    fn the_host_is_to_blame_if_a_thread_waited_for_half_of_the_time() {
        let [boot, most] = [180, 90].map(seconds);
        let why = starved(Some(most), boot).unwrap();
        assert!(why.ends_with("waited for a CPU for 90 s of 180 s, because the host was busy"));
        let why = starved(Some(seconds(89)), boot).unwrap_err();
        assert!(why.ends_with("for 89 s of 180 s, so the host is not to blame"), "{why}");
        assert!(starved(None, boot).is_err() && starved(Some(seconds(4)), seconds(4)).is_err());
    }

    /// Two busy threads on one CPU: one of them always waits.
    #[test]
    fn the_time_for_which_a_thread_waits_for_a_cpu_is_read() {
        let mut busy = [0, 1].map(|_| {
            let mut command = std::process::Command::new("taskset");
            let command = command.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
            command.spawn().unwrap()
        });
        let begun = Instant::now();
        let is_read = || busy.iter().any(|it| waited(it.id()) > Some(Duration::from_millis(50)));
        while !is_read() && begun.elapsed() < seconds(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let found = is_read();
        busy.iter_mut().for_each(|it| {
            it.kill().unwrap();
            it.wait().unwrap();
        });
        assert!(found);
        assert_eq!(waited(u32::MAX), None);
    }

    #[test]
    fn a_pause_of_faultline_itself_is_no_stall() {
        let begin = Instant::now();
        let mut cpu = Cpu::new(begin);
        let reading = Some(Reading { cpu: seconds(7), state: 'T' });
        cpu.note(reading, begin);
        cpu.note(reading, begin + seconds(36_000));
        assert_eq!(Clock::Cpu(cpu).stall(), None);
    }

    #[test]
    fn the_cpu_time_of_a_process_is_read() {
        let stat = "77 (a) b) (c) T 1 77 77 0 -1 4194304 9 0 0 0 150 75 8 9 20 0 4 0 11 22 33";
        let reading = Reading::parse(stat, 100).unwrap();
        assert_eq!(reading, Reading { cpu: Duration::from_millis(2250), state: 'T' });
        assert_eq!(Reading::parse("77 (a) S 1", 100), None);
        assert!(Reading::of(std::process::id()).is_some());
        assert_eq!(Reading::of(u32::MAX), None);
    }
}

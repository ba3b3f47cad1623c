//! The clocks of the agent.

use std::time::Duration;

use rustix::thread::{ClockId as SleepClock, clock_nanosleep_absolute};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Guest time: nanoseconds of `CLOCK_BOOTTIME`, the clock of the recorder's frames.
pub fn boot_time() -> u64 {
    nanoseconds(clock_gettime(ClockId::Boottime))
}

/// Deadlines at equal distances on `CLOCK_MONOTONIC`. They do not drift, and missed ones are skipped.
pub struct Ticks {
    interval: u64,
    next: u64,
}

impl Ticks {
    /// Ticks whose first deadline is one interval from now.
    pub fn every(interval: Duration) -> Self {
        let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        let now = nanoseconds(clock_gettime(ClockId::Monotonic));
        Self { interval, next: now.saturating_add(interval) }
    }

    /// Sleeps until the next deadline.
    pub fn wait(&mut self) {
        let deadline = Timespec {
            tv_sec: (self.next / 1_000_000_000) as i64,
            tv_nsec: (self.next % 1_000_000_000) as i64,
        };
        // This fails only by a signal, and the tick is then early.
        let _ = clock_nanosleep_absolute(SleepClock::Monotonic, &deadline);
        let now = nanoseconds(clock_gettime(ClockId::Monotonic));
        let missed = now.saturating_sub(self.next) / self.interval;
        self.next = self.next.saturating_add((missed + 1).saturating_mul(self.interval));
    }
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_at_their_deadlines_and_missed_ones_are_skipped() {
        let now = || nanoseconds(clock_gettime(ClockId::Monotonic));
        let mut ticks = Ticks::every(Duration::from_millis(2));
        let first = ticks.next;
        ticks.wait();
        assert!(now() >= first && ticks.next > first);
        assert!((ticks.next - first).is_multiple_of(ticks.interval));

        let before = now();
        ticks.next -= 10 * ticks.interval;
        ticks.wait();
        assert!(ticks.next > before);
        assert!((ticks.next - first).is_multiple_of(ticks.interval));
    }
}

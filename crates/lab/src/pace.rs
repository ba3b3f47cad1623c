//! Estimates how long the rest of a run takes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The boots that run now, and how long the ended ones took.
pub struct Pace {
    jobs: usize,
    /// When each running boot began, by its number.
    begun: BTreeMap<usize, Instant>,
    ended: u32,
    walls: Duration,
}

impl Pace {
    /// The pace of a run that does this many boots in parallel.
    pub fn new(jobs: usize) -> Self {
        Self { jobs, begun: BTreeMap::new(), ended: 0, walls: Duration::ZERO }
    }

    /// Notes that a boot begins.
    pub fn begin(&mut self, number: usize, now: Instant) {
        self.begun.insert(number, now);
    }

    /// Notes that a boot has ended, and how long it took with its verification.
    pub fn end(&mut self, number: usize, wall: Duration) {
        self.begun.remove(&number);
        self.ended += 1;
        self.walls += wall;
    }

    /// Estimates the time until the running boots and `waiting` further ones are done, if each
    /// takes as long as the mean of those that have ended. Zero if none has ended.
    pub fn left(&self, waiting: usize, now: Instant) -> Duration {
        let mean = self.walls.checked_div(self.ended).unwrap_or_default();
        let running = self.begun.values().map(|begun| mean.saturating_sub(now - *begun));
        let mut places: Vec<Duration> = running.collect();
        places.resize(places.len().max(self.jobs), Duration::ZERO);
        for _ in 0..waiting {
            if let Some(first) = places.iter_mut().min() {
                *first += mean;
            }
        }
        places.into_iter().max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_boots_did() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pace = Pace::new(2);
        pace.begin(1, at(0));
        pace.begin(2, at(0));
        pace.end(1, Duration::from_secs(40));
        let left = |pace: &Pace, waiting, now| pace.left(waiting, at(now)).as_secs();
        // Boot 2 is about to end; 8 others run in 4 pairs.
        assert_eq!(left(&pace, 8, 40), 160);
        pace.end(2, Duration::from_secs(44));
        pace.begin(3, at(44));
        assert_eq!(left(&pace, 0, 50), 36);
        assert_eq!(left(&pace, 1, 50), 42);
        assert_eq!(left(&pace, 2, 50), 78);
        // A boot that takes longer than the others may end at any moment.
        assert_eq!(left(&pace, 0, 500), 0);
        assert_eq!(left(&Pace::new(1), 3, 0), 0);
    }
}

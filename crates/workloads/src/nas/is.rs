//! IS, "integer sort": ranks integer keys, ten times, each time with two keys changed. It accesses memory at random.
//! Keys are first sorted into buckets, which threads then take in turn.
//!
//! NASA's programs have 8-byte keys in class D; here keys always have 4 bytes, which suffice for all ranks.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use guest::words::HalfWords;

use super::memory::{Element, integers};
use super::random::Random;
use super::stages::{Stage, Stages};
use super::team::{Member, Team};
use super::{Class, Outcome, Result};

const SEED: u64 = 314_159_265;
const ITERATIONS: usize = 10;

/// The logarithms to the base 2 of the number of keys, of the number of their values, and of the number of buckets.
fn size(class: Class) -> [u32; 3] {
    class.pick([[16, 11, 9], [20, 16, 10], [23, 19, 10], [25, 21, 10], [27, 23, 10], [31, 27, 10]])
}

/// A key whose rank is known: its place, its rank in iteration 0, and by how much the rank changes with each
/// iteration, 1 or -1.
type KnownRank = (usize, i64, i64);

fn official(class: Class) -> [KnownRank; 5] {
    class.pick([
        [(48427, 0, 1), (17148, 18, 1), (23627, 346, 1), (62548, 64917, -1), (4431, 65463, -1)],
        [
            (357_773, 1247, 1),
            (934_767, 11696, 1),
            (875_723, 1_039_987, -1),
            (898_999, 1_043_896, -1),
            (404_505, 1_048_018, -1),
        ],
        [
            (2_112_377, 103, 1),
            (662_041, 17522, 1),
            (5_336_171, 123_927, 1),
            (3_642_833, 8_288_933, -1),
            (4_250_760, 8_388_265, -1),
        ],
        [
            (41869, 33_422_937, -1),
            (812_306, 10244, 1),
            (5_102_857, 59149, 1),
            (18_232_239, 33_135_281, -1),
            (26_860_214, 99, 1),
        ],
        [
            (44_172_927, 61147, 1),
            (72_999_161, 882_988, 1),
            (74_326_391, 266_290, 1),
            (129_606_274, 133_997_595, -1),
            (21_736_814, 133_525_895, -1),
        ],
        [
            (1_317_351_170, 1, 1),
            (995_930_646, 36_538_729, 1),
            (1_157_283_250, 1_978_098_519, -1),
            (1_503_301_535, 2_145_192_618, -1),
            (1_453_734_525, 2_147_425_337, -1),
        ],
    ])
}

/// The size of all arrays in bytes.
pub fn bytes(class: Class) -> u64 {
    let [keys, values, _] = size(class);
    4 * (2 * (1u64 << keys) + (1u64 << values))
}

/// What the threads share.
struct Sort {
    known: [KnownRank; 5],
    /// The number of possible keys.
    values: usize,
    buckets: usize,
    /// The number of bits of a key below those of its bucket.
    shift: u32,
    keys: HalfWords,
    /// The keys, ordered by bucket.
    sorted: HalfWords,
    /// For each key, the number of keys up to it.
    ranks: HalfWords,
    /// The number of keys of each thread in each bucket.
    counts: HalfWords,
    /// Where the buckets end in `sorted`.
    ends: HalfWords,
    next_bucket: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

pub fn run(class: Class, team: &Team, stages: &Stages<'_>) -> Result<Outcome> {
    let sort = Sort::of(class, team)?;
    team.run(|member| {
        stages.begin(member, Stage::Fill);
        sort.fill(member);
        stages.begin(member, Stage::WarmUp);
        sort.rank(member, 1);
        // Failures in the warm-up do not count, because it is not timed.
        member.alone(|| sort.failures.lock().expect("nobody panics").clear());
        stages.begin(member, Stage::Steady);
        for iteration in 1..=ITERATIONS {
            sort.rank(member, iteration);
        }
        stages.begin(member, Stage::Verify);
        sort.place(member);
    });
    let failures = sort.failures.into_inner().expect("nobody panics");
    Ok(Outcome {
        millions: (ITERATIONS * sort.keys.len()) as f64 / 1e6,
        verdict: failures.into_iter().next().map_or(Ok(()), Err),
        remark: format!("{} keys", sort.keys.len()),
    })
}

impl Sort {
    fn of(class: Class, team: &Team) -> Result<Self> {
        let [keys, values, buckets] = size(class);
        Ok(Self {
            known: official(class),
            values: 1 << values,
            buckets: 1 << buckets,
            shift: values - buckets,
            keys: integers(1 << keys)?,
            sorted: integers(1 << keys)?,
            ranks: integers(1 << values)?,
            counts: integers(team.threads() << buckets)?,
            ends: integers(1 << buckets)?,
            next_bucket: AtomicUsize::new(0),
            failures: Mutex::new(Vec::new()),
        })
    }

    /// Makes the keys. Each is the mean of four random numbers, scaled.
    fn fill(&self, member: &Member<'_>) {
        let share = member.share(self.keys.len());
        let mut random = Random::new(SEED).skip(4 * share.start as u64);
        let quarter = (self.values / 4) as f64;
        for place in share {
            let sum = random.draw() + random.draw() + random.draw() + random.draw();
            self.keys[place].set((quarter * sum) as u32);
            self.sorted[place].set(0);
        }
    }

    /// Ranks all keys, two of which depend on the iteration.
    fn rank(&self, member: &Member<'_>, iteration: usize) {
        member.alone(|| {
            self.keys[iteration].set(iteration as u32);
            self.keys[iteration + ITERATIONS].set((self.values - iteration) as u32);
            self.next_bucket.store(0, Relaxed);
        });
        // The keys do not change until the next iteration changes two of them.
        self.count(member);
        member.wait();
        self.distribute(member);
        member.wait();
        while let Some(bucket) = self.take_bucket() {
            self.rank_bucket(bucket);
        }
        member.alone(|| self.verify_known(iteration));
    }

    /// Counts this thread's keys by buckets.
    fn count(&self, member: &Member<'_>) {
        let counts = &self.counts[member.number * self.buckets..][..self.buckets];
        counts.iter().for_each(|count| count.set(0));
        for key in &self.keys[member.share(self.keys.len())] {
            let count = &counts[(key.get() >> self.shift) as usize];
            count.set(count.get() + 1);
        }
    }

    /// Moves this thread's keys to their buckets, behind those of the preceding threads.
    fn distribute(&self, member: &Member<'_>) {
        let mut next = vec![0; self.buckets];
        let mut end = 0;
        for (bucket, next) in next.iter_mut().enumerate() {
            let counts = (0..member.threads()).map(|number| {
                let count = &self.counts[number * self.buckets + bucket];
                count.get() as usize
            });
            *next = end + counts.clone().take(member.number).sum::<usize>();
            end += counts.sum::<usize>();
            if member.number == 0 {
                self.ends[bucket].set(end as u32);
            }
        }
        for key in &self.keys[member.share(self.keys.len())] {
            let key = key.get();
            let next = &mut next[(key >> self.shift) as usize];
            self.sorted[*next].set(key);
            *next += 1;
        }
    }

    /// A bucket that no thread has taken. Threads take one at a time, because sizes differ much.
    fn take_bucket(&self) -> Option<usize> {
        let bucket = self.next_bucket.fetch_add(1, Relaxed);
        (bucket < self.buckets).then_some(bucket)
    }

    /// The places of a bucket's keys in `sorted`.
    fn places(&self, bucket: usize) -> Range<usize> {
        let start = bucket.checked_sub(1).map_or(0, |before| self.ends[before].get());
        start as usize..self.ends[bucket].get() as usize
    }

    /// Counts the keys up to each key of a bucket.
    fn rank_bucket(&self, bucket: usize) {
        let places = self.places(bucket);
        let ranks = &self.ranks[bucket << self.shift..(bucket + 1) << self.shift];
        ranks.iter().for_each(|rank| rank.set(0));
        let first = bucket << self.shift;
        for key in &self.sorted[places.clone()] {
            let rank = &ranks[key.get() as usize - first];
            rank.set(rank.get() + 1);
        }
        let mut below = places.start as u32;
        for rank in ranks {
            below += rank.get();
            rank.set(below);
        }
    }

    /// Compares the ranks of five keys with the official ones.
    fn verify_known(&self, iteration: usize) {
        for (place, rank, slope) in self.known {
            let key = self.keys[place].get() as usize;
            let found = key.checked_sub(1).map(|below| i64::from(self.ranks[below].get()));
            let official = rank + slope * iteration as i64;
            if found != Some(official) {
                let found = found.map_or("none".to_owned(), |rank| rank.to_string());
                let why = format!(
                    "in iteration {iteration} the rank of key {place} is {found}, but the official \
                     one is {official}"
                );
                self.failures.lock().expect("nobody panics").push(why);
            }
        }
    }

    /// Puts all keys in order by rank, and checks the order.
    fn place(&self, member: &Member<'_>) {
        member.alone(|| self.next_bucket.store(0, Relaxed));
        while let Some(bucket) = self.take_bucket() {
            for key in &self.sorted[self.places(bucket)] {
                let key = key.get();
                let rank = &self.ranks[key as usize];
                // If there are more keys than were counted, ranks would become negative. Then the order is wrong.
                rank.set(rank.get().saturating_sub(1));
                self.keys[rank.get() as usize].set(key);
            }
        }
        member.wait();
        let share = member.share(self.keys.len());
        let pairs = &self.keys[share.start..(share.end + 1).min(self.keys.len())];
        let wrong = pairs.windows(2).filter(|pair| pair[0].get() > pair[1].get()).count();
        let [wrong] = member.sum([wrong as f64]);
        if wrong > 0.0 && member.number == 0 {
            let why = format!("{wrong} keys are out of order");
            self.failures.lock().expect("nobody panics").push(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key changed after it was ranked.
    #[test]
    fn a_wrong_rank_is_found() {
        let team = Team::new(2);
        let sort = Sort::of(Class::S, &team).unwrap();
        team.run(|member| {
            sort.fill(member);
            sort.rank(member, 1);
        });
        let failures = || sort.failures.lock().unwrap().clone();
        assert_eq!(failures(), [""; 0]);
        sort.keys[48427].set(1024);
        sort.verify_known(1);
        assert!(failures()[0].starts_with("in iteration 1 the rank of key 48427 is "));
        sort.failures.lock().unwrap().clear();
        sort.ranks[1023].set(0);
        team.run(|member| sort.place(member));
        assert!(failures()[0].ends_with(" keys are out of order"), "{:?}", failures());
    }
}

//! Decides whether there are enough boots with `boots = "auto"`. The numbers of blocks at which
//! looks take place are fixed in advance. A look depends only on the stored boots, so a run that
//! was killed and resumed decides the same.

use std::time::{Duration, Instant};

use compare::{Comparison, Judging, Look, Results, RowVerdict, Verdict};
use model::{Experiment, Reading, count};
use stats::sequential::looks;
use store::{Archive, Detail, ExperimentId};

use crate::watch::{Progress, Watch};
use crate::{RunEnding, RunError};

/// The looks of one run, and the state between them.
pub struct Looks<'a> {
    experiment: &'a Experiment,
    reading: &'a Reading,
    id: ExperimentId,
    begun: Instant,
    /// The last block for which [`Looks::before`] was called; `None` before the first.
    block: Option<u32>,
    /// The number of the last look; 0 before the first.
    looked: u32,
}

impl<'a> Looks<'a> {
    /// Starts without a look. `begun` is the start of the run, from which its time budget counts.
    pub fn new(
        (experiment, reading): (&'a Experiment, &'a Reading),
        id: ExperimentId,
        begun: Instant,
    ) -> Self {
        Self { experiment, reading, id, begun, block: None, looked: 0 }
    }

    /// Reports at which numbers of boots looks take place. Reports nothing if the number of boots
    /// is fixed.
    pub fn announce(&self, watch: &mut Watch<'_>) {
        if self.may_end() {
            let looks = looks().map(|look| look.units);
            let looks = looks.take_while(|units| *units <= self.experiment.boots);
            let looks = looks.map(|units| units.to_string()).collect::<Vec<_>>().join(", ");
            let text = format!(
                "until every verdict is decided, with looks at {looks} boots of each variant"
            );
            watch(Progress::Message(&text));
        }
    }

    /// Returns whether a look may end the run. Its duration is then not known.
    pub fn may_end(&self) -> bool {
        self.experiment.sequential.is_some()
    }

    /// Returns why no boot of this block is needed; `None` if the block must be booted. All boots
    /// of earlier blocks are done.
    pub fn before(
        &mut self,
        block: u32,
        store: &dyn Archive,
        watch: &mut Watch<'_>,
    ) -> Result<Option<RunEnding>, RunError> {
        if self.block.replace(block) == Some(block) {
            return Ok(None);
        }
        let decided = self.look(store, watch)?;
        let budget = self.experiment.sequential.and_then(|sequential| sequential.budget);
        let spent = budget.is_some_and(|it| self.begun.elapsed() >= Duration::from_millis(it.0));
        Ok(decided.or(spent.then_some(RunEnding::Budget)))
    }

    /// Judges the stored boots if a look is due. Returns why no more boots are needed; `None` if
    /// more are needed or no look is due. Fails when the store cannot be read.
    pub fn look(
        &mut self,
        store: &dyn Archive,
        watch: &mut Watch<'_>,
    ) -> Result<Option<RunEnding>, RunError> {
        if !self.may_end() {
            return Ok(None);
        }
        let kept = store.boots(self.id, Detail::Summary)?;
        let results = Results::of(self.experiment, self.reading, &kept);
        let judging = Judging::of(&results);
        let Some(look) = judging.look.filter(|look| look.number > self.looked) else {
            return Ok(None);
        };
        self.looked = look.number;
        let mut comparison = compare::compare(&results, 0, &judging);
        let mut points: Vec<(String, Comparison)> = std::mem::take(&mut comparison.points)
            .into_iter()
            .map(|spot| (format!(" {}", spot.name), spot.comparison))
            .collect();
        if points.is_empty() {
            points.push((String::new(), comparison));
        }
        // A point of a sweep is left out if a variant has no complete boot there.
        points.retain(|(point, comparison)| {
            let fruitless = comparison.variants.iter().find(|variant| variant.complete == 0);
            if let Some(variant) = fruitless {
                let line = format!("{}{point} has no complete boot", variant.name);
                watch(Progress::Message(&line));
            }
            fruitless.is_none()
        });
        let Some((_, first)) = points.first() else {
            return Ok(Some(RunEnding::Fruitless));
        };
        let judging = first.judging;
        let verdicts: Vec<Judged> = points.iter().flat_map(verdicts).collect();
        let mut unmet: Vec<String> = Vec::new();
        for it in points.iter().flat_map(|(_, comparison)| &comparison.unmet) {
            let line = format!("  {} has no row `{}` to judge", it.workload, it.row);
            if !unmet.contains(&line) {
                unmet.push(line);
            }
        }
        for line in lines(&look, &judging, &verdicts).into_iter().chain(unmet) {
            watch(Progress::Message(&line));
        }
        if verdicts.is_empty() {
            return Ok(Some(RunEnding::Unjudged));
        }
        let decided = verdicts.iter().all(|judged| judged.verdict != Verdict::Undecided);
        Ok(decided.then_some(RunEnding::Verdicts))
    }
}

/// A verdict with the row that it judges.
struct Judged {
    /// The variant, the point of a sweep, the workload and the metric, in one text.
    name: String,
    verdict: Verdict,
    /// The gain in percent, over the boots of the look; `None` if it is not known.
    gain: Option<f64>,
}

fn verdicts((point, comparison): &(String, Comparison)) -> Vec<Judged> {
    let columns = comparison.variants.iter().enumerate().skip(1);
    let judged = columns.flat_map(|(column, variant)| {
        comparison.verdicts(column).map(move |RowVerdict { table, row, verdict }| Judged {
            name: format!("{}{point}: {} {}", variant.name, table.workload, row.metric),
            verdict,
            gain: row.evidence(column).and_then(|it| it.gain(row.better?)),
        })
    });
    judged.collect()
}

/// Describes the result of a look: one line of totals, then one line for each verdict.
fn lines(look: &Look, judging: &Judging, verdicts: &[Judged]) -> Vec<String> {
    let open = verdicts.iter().filter(|judged| judged.verdict == Verdict::Undecided).count();
    let level = 100.0 * judging.alpha();
    let head = format!(
        "look {} of {}, at {} of each variant, level {level:.2} %: {} of {} decided",
        look.number,
        look.of,
        count(look.boots as usize, "boot"),
        verdicts.len() - open,
        count(verdicts.len(), "verdict"),
    );
    let line = |judged: &Judged| {
        let gain = judged.gain.map_or(String::new(), |gain| format!(" ({gain:+.2}%)"));
        format!("  {}: {}{gain}", judged.name, judged.verdict.name())
    };
    [head].into_iter().chain(verdicts.iter().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::{Boot, Millis, Outcome, Sample, Sequential};
    use tempfile::TempDir;

    use super::*;
    use plan::Request;
    use plan::file;

    const FILE: &str = "name = \"x\"\nboots = \"auto\"\nat_most = 8\n[machine]\ncpus = 2\n\
                        memory = \"1G\"\nnodes = 2\n[[variant]]\nname = \"a\"\nkernel = \"6.1\"\n\
                        [[variant]]\nname = \"b\"\nkernel = \"6.1\"\n\
                        [[workload]]\nname = \"autonuma\"\n";

    /// An experiment with synthetic boots in a store.
    struct Bench {
        _directory: TempDir,
        store: Box<dyn Archive>,
        experiment: Experiment,
        reading: Reading,
        id: ExperimentId,
    }

    impl Bench {
        fn new() -> Self {
            Self::of(FILE)
        }

        fn of(text: &str) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let mut store = store::open(&directory.path().join("x.db")).unwrap();
            let Request { experiment, reading, .. } =
                file::parse(Path::new("x.toml"), text, None).unwrap();
            let id = store.keep_experiment(&experiment, &reading).unwrap();
            Self { _directory: directory, store, experiment, reading, id }
        }

        /// Stores a block of boots, one for each variant. `None` is a failed boot.
        fn keep<const N: usize>(&mut self, block: u32, figures: [Option<f64>; N]) {
            let sample = |value| sample("autonuma", "Elapsed", "NUMA01", value);
            self.keep_samples(block, figures.map(|figure| Some(vec![sample(figure?)])));
        }

        fn keep_samples<const N: usize>(&mut self, block: u32, samples: [Option<Vec<Sample>>; N]) {
            assert_eq!(self.experiment.variants.len(), N);
            for (variant, samples) in self.experiment.variants.iter().zip(samples) {
                let outcome = match samples {
                    Some(_) => Outcome::Complete,
                    None => Outcome::Failed("no answer".into()),
                };
                let boot = Boot {
                    variant: variant.name.clone(),
                    boot_index: block,
                    block,
                    outcome,
                    samples: samples.unwrap_or_default(),
                    ..Boot::default()
                };
                self.store.keep_boot(self.id, &boot).unwrap();
            }
        }

        fn looks(&self) -> Looks<'_> {
            Looks::new((&self.experiment, &self.reading), self.id, Instant::now())
        }

        /// Returns why no boot of this block is needed, and the printed messages.
        fn before(&self, looks: &mut Looks<'_>, block: u32) -> (Option<RunEnding>, String) {
            let mut said = String::new();
            let ending = looks.before(block, &*self.store, &mut |progress| {
                if let Progress::Message(line) = progress {
                    said.push_str(&format!("{line}\n"));
                }
            });
            (ending.unwrap(), said)
        }
    }

    fn sample(workload: &str, metric: &str, label: &str, value: f64) -> Sample {
        Sample { label: label.into(), ..Sample::new(workload, metric, value) }
    }

    /// Returns figures that scatter by a few percent above `about`.
    fn scattered(block: u32, about: f64) -> Option<f64> {
        Some(about * (1.0 + f64::from(block * 7 % 5) / 100.0))
    }

    #[test]
    fn boots_end_when_a_change_is_decided() {
        let mut bench = Bench::new();
        for block in 0..4 {
            assert_eq!(bench.before(&mut bench.looks(), block), (None, String::new()));
            bench.keep(block, [scattered(block, 10.0), scattered(block + 1, 20.0)]);
        }
        let (ending, said) = bench.before(&mut bench.looks(), 4);
        assert_eq!(ending, Some(RunEnding::Verdicts));
        let head = "look 1 of 3, at 4 boots of each variant, level 0.50 %: 1 of 1 verdict decided";
        assert!(said.starts_with(head), "{said}");
        assert!(said.contains("b: autonuma Elapsed-NUMA01: regression (-"), "{said}");
    }

    /// Runs looks on a sweep with two points. `has[point]` is false if the second variant has no
    /// boots at the point. Returns the looks that printed something.
    fn swept(has: [bool; 2]) -> Vec<(Option<RunEnding>, String)> {
        let text = FILE.replace("memory = \"1G\"\n", "") + "[sweep]\nmemory = [\"1G\", \"2G\"]\n";
        let mut bench = Bench::of(&text);
        let looks = (0..6).map(|block| {
            let slower = scattered(block + 1, 20.0).filter(|_| has[0]);
            let equal = scattered(block, 30.0).filter(|_| has[1]);
            bench.keep(block, [scattered(block, 10.0), slower, scattered(block, 30.0), equal]);
            bench.before(&mut bench.looks(), block + 1)
        });
        looks.filter(|(_, said)| !said.is_empty()).collect()
    }

    #[test]
    fn a_sweep_ends_when_all_points_are_decided() {
        let [(first, said), _, (last, decided)] = &swept([true, true])[..] else { panic!() };
        assert_eq!((first, last), (&None, &Some(RunEnding::Verdicts)));
        // The two points share the error level of the look.
        let head = "look 1 of 3, at 4 boots of each variant, level 0.25 %: 1 of 2 verdicts decided";
        assert!(said.starts_with(head), "{said}");
        assert!(said.contains("\n  b memory=1G: autonuma Elapsed-NUMA01: regression (-"), "{said}");
        assert!(decided.contains("\n  b memory=2G: autonuma Elapsed-NUMA01: same"), "{decided}");
    }

    #[test]
    fn a_sweep_does_not_wait_for_a_point_without_complete_boots() {
        let [(ending, said), ..] = &swept([true, false])[..] else { panic!() };
        assert_eq!(*ending, Some(RunEnding::Verdicts));
        assert!(said.starts_with("b memory=2G has no complete boot\nlook 1 of 3, "), "{said}");
        let none = &swept([false, false])[0];
        assert_eq!(none.0, Some(RunEnding::Fruitless));
    }

    /// Returns a pseudo-random number from -3 to 3 (SplitMix64).
    fn noise(place: [u32; 3]) -> f64 {
        let seed = place.iter().fold(0, |seed, &number| seed * 100 + u64::from(number) + 1);
        let mut mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        6.0 * ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 3.0
    }

    /// Many rows, as in `pagealloc`. Any of them may be decided last.
    #[test]
    fn boots_end_when_the_chosen_rows_are_decided() {
        let ending = |primary: &str| {
            let text = FILE.replace("\"autonuma\"", &format!("\"pagealloc\"\n{primary}"));
            let mut bench = Bench::of(&text);
            let mut found = (None, String::new());
            for block in 0..8 {
                let side = |side: u32| {
                    let rows = (0..30).map(|row| {
                        let label = format!("odr{}-{}", row / 15, row % 15);
                        let value = 100.0 + 5.0 * f64::from(side) + noise([block, row, side]);
                        sample("pagealloc", "total", &label, value)
                    });
                    Some(rows.collect::<Vec<_>>())
                };
                bench.keep_samples(block, [side(0), side(1)]);
                found = bench.before(&mut bench.looks(), block + 1);
                if found.0.is_some() {
                    return (block + 1, found.1);
                }
            }
            (0, found.1)
        };
        let (all, said) = ending("");
        assert!(all == 0 && said.contains(" of 30 verdicts decided"), "{said}");
        let (chosen, said) = ending("primary = [\"total-odr0-1\", \"total-odr1-*4\"]");
        assert!(chosen > 0 && said.contains(": 3 of 3 verdicts decided"), "{chosen} {said}");
        let (some, said) = ending("primary = [\"total-odr0-1\", \"free\"]");
        assert!(some > 0 && said.contains("\n  pagealloc has no row `free` to judge"), "{said}");
    }

    #[test]
    fn boots_end_if_no_row_can_be_judged() {
        let primary = "\"autonuma\"\nprimary = [\"Elapsed-NUMA9\"]";
        let mut bench = Bench::of(&FILE.replace("\"autonuma\"", primary));
        for block in 0..4 {
            assert_eq!(bench.before(&mut bench.looks(), block), (None, String::new()));
            bench.keep(block, [scattered(block, 10.0), scattered(block + 1, 20.0)]);
        }
        let (ending, said) = bench.before(&mut bench.looks(), 4);
        assert_eq!(ending, Some(RunEnding::Unjudged));
        assert!(said.ends_with("\n  autonuma has no row `Elapsed-NUMA9` to judge\n"), "{said}");
    }

    #[test]
    fn a_resumed_run_has_the_same_looks() {
        let mut bench = Bench::new();
        for block in 0..6 {
            bench.keep(block, [scattered(block, 10.0), scattered(block + 2, 10.0)]);
        }
        let mut looks = bench.looks();
        let there = bench.before(&mut looks, 6);
        assert_eq!(there.0, None);
        assert!(there.1.contains("look 2 of 3, at 6 boots") && there.1.contains("undecided"));
        // Each look is reported once.
        bench.keep(6, [scattered(6, 10.0), scattered(8, 10.0)]);
        assert_eq!(bench.before(&mut bench.looks(), 7), there);
        let mut looks = Looks { looked: 2, ..bench.looks() };
        assert_eq!(bench.before(&mut looks, 7), (None, String::new()));
    }

    #[test]
    fn boots_end_when_variants_are_the_same() {
        let mut bench = Bench::new();
        let mut endings = Vec::new();
        for block in 0..6 {
            bench.keep(block, [scattered(block, 10.0); 2]);
            endings.push(bench.before(&mut bench.looks(), block + 1).0);
        }
        assert_eq!(endings, [None, None, None, None, None, Some(RunEnding::Verdicts)]);
    }

    #[test]
    fn boots_end_if_a_variant_never_completes() {
        let mut bench = Bench::new();
        for block in 0..4 {
            bench.keep(block, [scattered(block, 10.0), None]);
        }
        let (ending, said) = bench.before(&mut bench.looks(), 4);
        assert_eq!((ending, &*said), (Some(RunEnding::Fruitless), "b has no complete boot\n"));
    }

    #[test]
    fn a_budget_ends_the_run_at_a_block() {
        let mut bench = Bench::new();
        let budget = Some(Millis(0));
        bench.experiment.sequential = Some(Sequential { margin: 0.01, budget });
        let mut looks = bench.looks();
        looks.block = Some(0);
        assert_eq!(bench.before(&mut looks, 0).0, None);
        assert_eq!(bench.before(&mut looks, 1).0, Some(RunEnding::Budget));
    }
}

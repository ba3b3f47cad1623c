//! The verdicts of exact mode on variants that do not differ.

use std::error::Error;

use compare::{
    Comparison, Judging, Kind, Results, Row, Section, Statistic, VariantBoots, Verdict, compare,
    explain,
};
use model::{Boot, Experiment, INSTRUCTIONS, Kept, Reading};
use statrs::distribution::{Beta, ContinuousCDF};
use store::{Archive, Detail};

/// The share by which the cost of each function rises in a real change.
const REAL: f64 = 0.01;

/// Counts over pairs of variants.
#[derive(Default)]
pub struct Judged {
    /// Pairs of variants.
    pairs: usize,
    /// Pairs with any false verdict.
    false_pairs: usize,
    /// Verdicts, and false ones.
    verdicts: usize,
    false_verdicts: usize,
    /// Lists of functions per entry, contributions and counters: their number, and the number that name any.
    lists: [usize; 3],
    false_lists: [usize; 3],
    /// Figures in these, and those that are called beyond luck.
    figures: usize,
    false_figures: usize,
    /// Floors in percent: of all instructions, and at equal entries.
    floors: [Vec<f64>; 2],
    /// Verdicts on the real change, and those that detect it.
    real: usize,
    seen: usize,
}

/// Compares each two variants of an experiment.
pub fn judged(store: &dyn Archive, experiment: &str) -> Result<Judged, Box<dyn Error>> {
    let id = store.find_experiment(experiment)?;
    let experiment = store.experiment(id)?;
    let kept = store.boots(id, Detail::Profiles(&["vmstat"]))?;
    let dearer: Vec<Kept> = kept.iter().map(dearer).collect();
    let mut judged = Judged::default();
    let variants = &experiment.variants;
    for (number, base) in variants.iter().enumerate() {
        for new in &variants[number + 1..] {
            let base = VariantBoots::of(base, &kept);
            judged.pair(&experiment, &base, &VariantBoots::of(new, &kept));
            judged.real(&experiment, &base, &VariantBoots::of(new, &dearer));
        }
    }
    Ok(judged)
}

/// The boot in which every function of the kernel costs more per entry.
fn dearer(kept: &Kept) -> Kept {
    let more = |count: u64| count + (REAL * count as f64).round() as u64;
    let mut boot: Boot = kept.boot.clone();
    for profile in &mut boot.profiles {
        let instructions = profile.costs.number(INSTRUCTIONS);
        profile.costs =
            profile.costs.with_values(|_, cell| match Some(cell.cost) == instructions {
                true => more(cell.value),
                false => cell.value,
            });
    }
    for sample in boot.samples.iter_mut().filter(|sample| sample.metric == INSTRUCTIONS) {
        sample.value += (REAL * sample.value).round();
    }
    Kept { boot, ..kept.clone() }
}

/// Rows and columns of verdicts, with no margin.
fn compared(
    experiment: &Experiment,
    base: &VariantBoots<'_>,
    new: &VariantBoots<'_>,
) -> Comparison {
    let results =
        Results { experiment, reading: Reading::USUAL, variants: vec![base.clone(), new.clone()] };
    compare(&results, 0, &Judging { margin: 0.0, ..Judging::default() })
}

fn found(comparison: &Comparison) -> (usize, usize) {
    let verdicts: Vec<Verdict> = comparison.verdicts(1).map(|it| it.verdict).collect();
    let found = |it: &&Verdict| matches!(it, Verdict::Regression | Verdict::Improvement);
    (verdicts.len(), verdicts.iter().filter(found).count())
}

impl Judged {
    /// The heading of the lines.
    pub const HEAD: &str = "                                 pairs false  verdicts false  lists false  \
                            figures false  floor %  equal %  +1 % seen";

    fn pair(&mut self, experiment: &Experiment, base: &VariantBoots<'_>, new: &VariantBoots<'_>) {
        let comparison = compared(experiment, base, new);
        let (verdicts, found) = found(&comparison);
        self.pairs += 1;
        self.false_pairs += usize::from(found > 0);
        self.verdicts += verdicts;
        self.false_verdicts += found;
        let tables = comparison.tables.iter().filter(|table| table.kind == Kind::Metrics);
        for row in tables.flat_map(|table| &table.rows) {
            self.floor(row);
        }
        for used in &experiment.workloads {
            let explanation = explain(base, new, used, experiment.boots, INSTRUCTIONS);
            for section in explanation.phases.iter().filter(|it| is_measured(used, it)) {
                self.section(section);
            }
        }
    }

    fn floor(&mut self, row: &Row) {
        let place = match row.statistic {
            Statistic::Equal => 1,
            it if it.is_mean() && row.verdict(1).is_some() => 0,
            _ => return,
        };
        if let (Some(floor), Some(base)) = (row.floor(1), row.value(0)) {
            self.floors[place].push(100.0 * floor / base);
        }
    }

    fn section(&mut self, section: &Section) {
        let beyond = |floor: Option<bool>| floor == Some(true);
        let costs = section.contributions.iter().filter_map(|it| it.calls.as_ref()?.per_entry);
        let counts = [
            costs.filter(|it| beyond(it.beyond_luck())).count(),
            section.contributions.iter().filter(|it| beyond(it.instructions.beyond_luck())).count(),
            section.counters.iter().filter(|it| beyond(it.growth.beyond_luck())).count(),
        ];
        let of = section.compared;
        for (list, (count, of)) in
            counts.into_iter().zip([of.per_entry, of.contributions, of.counters]).enumerate()
        {
            self.lists[list] += 1;
            self.false_lists[list] += usize::from(count > 0);
            self.figures += of;
            self.false_figures += count;
        }
    }

    fn real(&mut self, experiment: &Experiment, base: &VariantBoots<'_>, new: &VariantBoots<'_>) {
        let (verdicts, found) = found(&compared(experiment, base, new));
        self.real += verdicts;
        self.seen += found;
    }

    /// Adds the counts of another cell.
    pub fn add(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.false_pairs += other.false_pairs;
        self.verdicts += other.verdicts;
        self.false_verdicts += other.false_verdicts;
        for list in 0..3 {
            self.lists[list] += other.lists[list];
            self.false_lists[list] += other.false_lists[list];
        }
        self.figures += other.figures;
        self.false_figures += other.false_figures;
        for (own, other) in self.floors.iter_mut().zip(&other.floors) {
            own.extend(other);
        }
        self.real += other.real;
        self.seen += other.seen;
    }

    /// The counts as a line; floors are the largest.
    pub fn line(&self, name: &str) -> String {
        let [lists, false_lists] =
            [self.lists, self.false_lists].map(|lists| lists.iter().sum::<usize>());
        let [floor, equal] =
            self.floors.each_ref().map(|floors| floors.iter().copied().fold(f64::NAN, f64::max));
        format!(
            "{name:<32} {:>5} {:>5} {:>9} {:>5} {lists:>6} {false_lists:>5} {:>8} {:>5} {floor:>8.3} \
             {equal:>8.3} {:>4} of {:>3}",
            self.pairs,
            self.false_pairs,
            self.verdicts,
            self.false_verdicts,
            self.figures,
            self.false_figures,
            self.seen,
            self.real
        )
    }

    /// The summary of all cells.
    pub fn summary(&self) -> String {
        let at_most = |count: usize, of: usize| 100.0 * upper_bound(count, of);
        let mut text = format!(
            "false verdicts {} of {}: at most {:.2} % with 95 % confidence, 1 % is stated\n\
             pairs with one {} of {}: at most {:.2} %\n",
            self.false_verdicts,
            self.verdicts,
            at_most(self.false_verdicts, self.verdicts),
            self.false_pairs,
            self.pairs,
            at_most(self.false_pairs, self.pairs)
        );
        for (list, name) in ["functions per entry", "contributions", "counters"].iter().enumerate()
        {
            let (count, of) = (self.false_lists[list], self.lists[list]);
            text += &format!(
                "lists of {name} with anything beyond luck: {count} of {of}, {:.1} %, 5 % is stated\n",
                100.0 * count as f64 / of as f64
            );
        }
        text
    }
}

/// Whether verdicts rest on a phase.
fn is_measured(used: &model::WorkloadUse, section: &Section) -> bool {
    let phase = section.phase.as_deref().unwrap_or_default();
    !phase.is_empty() && !used.manifest.prepares(phase)
}

/// The upper end of the one-sided 95 % interval of a share (Clopper and Pearson, "The use of
/// confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26, 1934).
fn upper_bound(count: usize, of: usize) -> f64 {
    if count >= of {
        return 1.0;
    }
    let beta = Beta::new(count as f64 + 1.0, (of - count) as f64);
    beta.map_or(1.0, |beta| beta.inverse_cdf(0.95))
}

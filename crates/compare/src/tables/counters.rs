//! The table of counters: what the kernel counted during a workload and, in exact mode, the true locality of
//! its memory accesses and its instructions by class.

use std::collections::BTreeSet;
use std::ops::Add;

use kernelfiles::derived::{self, Derived, Differences, Section};
use model::{Boot, Chunk, INSTRUCTIONS, Mode, Source, Topology};

use super::accesses::{Accesses, Split, accesses};
use super::classes::{self, ClassIn, Classes, classes};
use crate::figures::BootFigures;
use crate::figures::growth::{Growth, lost_series};
use crate::figures::steady::{Part, Share, Steady};
use crate::verdicts::exact::{self, SeedRow};
use crate::verdicts::judge::judge;
use crate::{Judging, KeptBoot, Kind, Pool, Row, Statistic, Table, VariantBoots, Workload};

/// The unit of rows that are shares.
const PERCENT: &str = "%";
/// The kernel's estimate of locality; the true share is printed after it.
const GUESS: &str = "NUMA hint local percent";
/// The section of instructions by class.
const CLASSES: &str = "Kernel instructions by class";
/// The section of transfers of lines.
pub const TRANSFERS: &str = "Lines taken from other CPUs";
/// The section of misses in a model.
pub const MISSES: &str = "Kernel misses in a model of caches and TLBs";

/// The rows of `workload`. A value is a sum over the phases of a boot's iterations, without preparatory phases, as
/// the mean over complete boots. Shares and rates are computed from these means, because a mean of ratios would
/// weight boots wrongly. What precedes the `steady` part is left out if it is known.
pub fn table(
    workload: Workload<'_>,
    columns: &[VariantBoots<'_>],
    topology: &Topology,
    steady: &Steady,
    mode: Mode,
    judging: &Judging,
) -> Table {
    let part = part(workload, columns, steady, judging);
    let share = |kept: KeptBoot<'_>, chunk: &Chunk| match part {
        Some(Part::Steady) => steady.share(kept, chunk).ok(),
        _ => Some(Share::All),
    };
    let pools: Vec<Vec<Counted>> =
        columns.iter().map(|column| boots(workload, column, topology, share)).collect();
    let phases = phases(&pools);
    let of_classes = || pools.iter().flatten().map(|boot| &*boot.classes);
    let classes = classes::rows(of_classes, &phases, topology.cpus());
    let figures = |boots: &[Counted<'_>]| figures(boots, &phases, &classes);
    let together: Vec<_> = pools.iter().map(|boots| figures(boots)).collect();
    let by_boot: Vec<Vec<(&Boot, Vec<Figure>)>> = pools
        .iter()
        .map(|boots| {
            let each = boots.chunks(1);
            each.map(|boot| (boot[0].boot, figures(boot))).collect()
        })
        .collect();

    let count = together.first().map_or(0, Vec::len);
    let mut held = Vec::new();
    let mut row = |number: usize, place: usize| {
        let values = together.iter().map(|figures| figures[number].value).collect();
        let Figure { section, label, unit, decimals, .. } = &together[0][number];
        let row = Row::new(label, unit, None, Statistic::Amean, values, *decimals);
        let row = row.in_section(section);
        let values = by_boot
            .iter()
            .map(|boots| boots.iter().map(|(boot, figures)| (*boot, figures[number].value)));
        match mode {
            Mode::Exact => {
                held.push(SeedRow::listed(place, columns, values));
                row
            }
            Mode::Measured => {
                row.against_boots(&values.map(BootFigures::of_boots).collect::<Vec<_>>(), judging)
            }
        }
    };
    let known = |number: &usize| together.iter().any(|figures| figures[*number].value.is_some());
    let known = (0..count).filter(known).enumerate();
    let mut rows: Vec<Row> = known.map(|(place, number)| row(number, place)).collect();
    match mode {
        Mode::Exact => exact::judge(&mut rows, &held, judging),
        Mode::Measured => judge(&mut rows, |_| false, judging),
    }
    let pooled = |boots: &Vec<Counted>| Pool {
        iterations: boots.iter().map(|boot| boot.iterations.len()).collect(),
        warmup: workload.used.warmup,
    };
    Table {
        workload: workload.name().to_owned(),
        kind: Kind::Counters,
        left_out: left_out(workload, columns),
        part,
        rows,
        pooled: pools.iter().map(pooled).collect(),
        ..Table::default()
    }
}

/// The counts of one boot.
struct Counted<'a> {
    boot: &'a Boot,
    /// Numbers of the iterations in which something was counted.
    iterations: BTreeSet<u32>,
    /// Growth of the counters of `/proc/vmstat`.
    growth: Growth<'a>,
    accesses: Vec<Accesses<'a>>,
    classes: Vec<Classes<'a>>,
}

/// Phases that the table leaves out, in the order in which they were first seen in the boots that count.
pub(super) fn left_out(workload: Workload<'_>, columns: &[VariantBoots<'_>]) -> Vec<String> {
    let chunks = columns.iter().flat_map(VariantBoots::complete).flat_map(|boot| &boot.chunks);
    let mut phases: Vec<String> = Vec::new();
    for chunk in chunks.filter(|chunk| chunk.workload == workload.name()) {
        if workload.leaves_out(&chunk.phase) && !phases.contains(&chunk.phase) {
            phases.push(chunk.phase.clone());
        }
    }
    phases
}

/// The part of their phases that the counters cover; the same for all boots that the current look sees.
fn part(
    workload: Workload<'_>,
    columns: &[VariantBoots<'_>],
    steady: &Steady,
    judging: &Judging,
) -> Option<Part> {
    let boots = columns.iter().flat_map(VariantBoots::complete_kept).copied();
    let boots = boots.filter(|it| !lost_series(it.boot) && judging.counts(it.boot.block));
    steady.part(boots.flat_map(|it| chunks(workload, it.boot).map(move |chunk| (it, chunk))))
}

/// The chunks of a boot that the table counts.
fn chunks<'a>(workload: Workload<'_>, boot: &'a Boot) -> impl Iterator<Item = &'a Chunk> + Clone {
    let own = boot.chunks.iter().filter(move |it| it.workload == workload.name());
    own.filter(move |it| it.is_of(Source::Vmstat) && counts(workload, it.iteration, &it.phase))
}

fn counts(workload: Workload<'_>, iteration: u32, phase: &str) -> bool {
    workload.used.counts(iteration) && !workload.leaves_out(phase)
}

/// The complete boots with all their counters, each chunk with its `share`. Boots after the current look and boots
/// with an unknown share are left out.
fn boots<'a>(
    workload: Workload<'_>,
    column: &VariantBoots<'a>,
    topology: &Topology,
    share: impl Fn(KeptBoot<'_>, &Chunk) -> Option<Share>,
) -> Vec<Counted<'a>> {
    let counted = |&kept: &KeptBoot<'a>| {
        let boot = kept.boot;
        let chunks = chunks(workload, boot).map(|chunk| Some((chunk, share(kept, chunk)?)));
        let chunks: Vec<(&Chunk, Share)> = chunks.collect::<Option<_>>()?;
        let mut accesses = accesses(boot, workload.name(), topology);
        accesses.retain(|it| counts(workload, it.iteration, it.phase));
        let of_accesses = accesses.iter().map(|accesses| accesses.iteration);
        let mut classes = classes(boot, workload.name());
        classes.retain(|it| counts(workload, it.iteration, it.phase));
        Some(Counted {
            boot,
            iterations: chunks.iter().map(|(it, _)| it.iteration).chain(of_accesses).collect(),
            growth: Growth::over(chunks),
            accesses,
            classes,
        })
    };
    column
        .complete_kept()
        .filter(|kept| !lost_series(kept.boot))
        .filter_map(counted)
        .filter(|boot| !boot.iterations.is_empty())
        .collect()
}

/// Phases in which accesses or classes of instructions were counted, in the order in which they were first seen.
fn phases<'a>(pools: &[Vec<Counted<'a>>]) -> Vec<&'a str> {
    let mut phases = Vec::new();
    for boot in pools.iter().flatten() {
        let accesses = boot.accesses.iter().map(|it| it.phase);
        for phase in accesses.chain(boot.classes.iter().map(|it| it.phase)) {
            if !phase.is_empty() && !phases.contains(&phase) {
                phases.push(phase);
            }
        }
    }
    phases
}

/// The figure that a row prints for a set of boots.
struct Figure {
    section: &'static str,
    label: String,
    unit: &'static str,
    value: Option<f64>,
    decimals: usize,
    /// Whether the value is a ratio, and not a sum to which each boot contributes.
    is_ratio: bool,
}

/// All figures of a set of boots. Sums are per boot.
fn figures(boots: &[Counted<'_>], phases: &[&str], classes: &[ClassIn<'_>]) -> Vec<Figure> {
    let difference = |counter: &str| total(boots, counter);
    let seconds: f64 = boots.iter().map(|boot| boot.growth.seconds()).sum();
    let differences = Differences { of: &difference, seconds: Some(seconds) };
    let holds = |row: &&Derived| boots.iter().all(|it| row.holds_for(it.boot.facts.page_size));
    let mut figures: Vec<Figure> = derived::rows()
        .map(|row| Figure {
            section: row.section.name(),
            label: row.label.to_owned(),
            unit: row.unit,
            value: Some(row).filter(holds).and_then(|row| row.value(&differences)),
            decimals: row.decimals,
            is_ratio: row.is_ratio(),
        })
        .collect();
    let guess = figures.iter().position(|figure| figure.label == GUESS);
    let place = guess.map_or(figures.len(), |place| place + 1);
    figures.splice(place..place, truth(boots, phases));
    figures.extend(classes.iter().map(|&which| of_class(boots, which)));
    for figure in figures.iter_mut().filter(|figure| !figure.is_ratio) {
        figure.value = figure.value.map(|total| total / boots.len() as f64);
    }
    figures
}

/// The growth of a counter over all boots. `None` if a chunk lacks it, a boot has no chunk, or there is no
/// boot.
fn total(boots: &[Counted<'_>], counter: &str) -> Option<f64> {
    sum(boots.iter().map(|boot| boot.growth.get(counter))).map(|grown| grown as f64)
}

/// The sum. `None` if a part is missing, or there is none.
fn sum<T: Add<Output = T>>(mut parts: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = parts.next()??;
    parts.try_fold(first, |sum, more| Some(sum + more?))
}

/// The instructions of a class.
fn of_class(boots: &[Counted<'_>], which: ClassIn<'_>) -> Figure {
    let value = sum(boots.iter().map(|boot| classes::number(&boot.classes, which)));
    let (section, unit) = match which.0 {
        class if class.is_transfer() => (TRANSFERS, "lines"),
        class if class.is_miss() => (MISSES, "misses"),
        _ => (CLASSES, INSTRUCTIONS),
    };
    Figure {
        section,
        label: classes::label(which),
        unit,
        value: value.map(|number| number as f64),
        decimals: 0,
        is_ratio: false,
    }
}

/// The true local-access share, in all and by phase, and the accesses behind it.
fn truth(boots: &[Counted<'_>], phases: &[&str]) -> Vec<Figure> {
    let percent = |of: &str, phase: Option<&str>, split: Option<Split>| {
        let suffix = phase.map_or(String::new(), |phase| format!("-{phase}"));
        Figure {
            section: Section::Numa.name(),
            is_ratio: true,
            label: format!("True local percent {of}{suffix}"),
            unit: PERCENT,
            value: split.and_then(Split::percent),
            decimals: 2,
        }
    };
    let count = |label: &str, number: Option<u64>| Figure {
        section: Section::Numa.name(),
        is_ratio: false,
        label: format!("Accesses {label}"),
        unit: "accesses",
        value: number.map(|number| number as f64),
        decimals: 0,
    };
    let mut figures = Vec::new();
    for phase in [None].into_iter().chain(phases.iter().copied().map(Some)) {
        let (user, kernel) = splits(boots, phase).unzip();
        let all = user.zip(kernel).map(|(user, kernel)| user + kernel);
        figures.extend([percent("user", phase, user), percent("total", phase, all)]);
    }
    let (user, kernel) = splits(boots, None).unzip();
    figures.extend([
        count("local user", user.map(|it: Split| it.local)),
        count("remote user", user.map(|it| it.remote)),
        count("local kernel", kernel.map(|it: Split| it.local)),
        count("remote kernel", kernel.map(|it| it.remote)),
    ]);
    figures
}

/// The accesses of user mode and of the kernel in all boots, in one phase or in all phases. `None` if a boot
/// has none, or there is no boot.
fn splits(boots: &[Counted<'_>], phase: Option<&str>) -> Option<(Split, Split)> {
    let of_boot = |boot: &Counted<'_>| {
        let accesses = boot.accesses.iter();
        let wanted = accesses.filter(|it| phase.is_none_or(|phase| it.phase == phase));
        wanted.map(|it| (it.user, it.kernel)).reduce(add)
    };
    let splits: Option<Vec<_>> = boots.iter().map(of_boot).collect();
    splits?.into_iter().reduce(add)
}

fn add(one: (Split, Split), other: (Split, Split)) -> (Split, Split) {
    (one.0 + other.0, one.1 + other.1)
}

#[cfg(test)]
mod tests {
    use model::{Manifest, Privilege, Problem, ProblemKind, Target};

    use super::*;
    use crate::testing::{
        accessed, boot, chunk, columns, manifest, topology, used, usual, variant,
    };

    fn faults(all: i64, local: i64) -> [(&'static str, i64); 2] {
        [("numa_hint_faults", all), ("numa_hint_faults_local", local)]
    }

    fn table_of(boots: &[&[Boot]]) -> Table {
        table_without(&[], boots)
    }

    fn table_without(preparation: &[&str], boots: &[&[Boot]]) -> Table {
        let variants = vec![variant(""); boots.len()];
        let preparation = preparation.iter().map(|&phase| phase.to_owned()).collect();
        let workload = Manifest { preparation, ..manifest() };
        let (used, columns) = (used(workload), columns(&variants, boots));
        table(
            usual(&used, &columns),
            &columns,
            &topology(),
            &Steady::default(),
            Mode::Measured,
            &Judging::default(),
        )
    }

    fn values(table: &Table, label: &str) -> Vec<Option<f64>> {
        let row = table.rows.iter().find(|row| row.metric == label);
        row.map(|row| row.values().collect()).unwrap_or_default()
    }

    #[test]
    fn phases_and_iterations_add_up_and_boots_are_averaged() {
        let mut boots = [boot(0), boot(1)];
        boots[0].chunks = vec![
            chunk(0, "", &faults(7, 7)),
            chunk(0, "run", &faults(11, 2)),
            chunk(1, "run", &faults(89, 8)),
        ];
        boots[1].chunks = vec![chunk(0, "run", &faults(300, 290))];
        let mut elsewhere = chunk(0, "", &faults(7, 7));
        elsewhere.workload = "other".into();
        boots[1].chunks.push(elsewhere);

        let table = table_of(&[&boots]);
        assert_eq!(values(&table, "NUMA hint faults"), [Some(200.0)]);
        // 150 of 200, not the mean of 10 % and 97 %.
        assert_eq!(values(&table, "NUMA hint local percent"), [Some(75.0)]);
        assert_eq!(table.pooled[0].iterations, [2, 1]);
    }

    #[test]
    fn phases_that_prepare_are_left_out() {
        let mut boots = [boot(0)];
        boots[0].chunks = vec![
            chunk(0, "", &faults(1, 1)),
            chunk(0, "a-fill", &[("pgfault", 4)]),
            chunk(0, "run", &faults(10, 1)),
            chunk(0, "", &faults(5, 5)),
        ];
        boots[0].profiles =
            ["a-fill", "run"].map(|it| accessing(0, &[(it, 8, 4)]).profiles.remove(0)).into();
        let table = table_without(&["a*fill", "", "run*else"], &[&boots]);
        assert_eq!(values(&table, "NUMA hint faults"), [Some(10.0)]);
        assert_eq!(values(&table, "Accesses local user"), [Some(8.0)]);
        assert_eq!(values(&table, "True local percent user-a-fill"), []);
        assert_eq!(table.left_out, ["", "a-fill"]);
        // As they would be with a counter that one phase lacks.
        assert_eq!(values(&table_of(&[&boots]), "NUMA hint faults"), []);
    }

    #[test]
    fn what_a_kernel_does_not_count_is_absent() {
        let mut with = boot(0);
        with.chunks = vec![chunk(0, "", &faults(4, 1))];
        let mut without = boot(0);
        without.chunks = vec![chunk(0, "", &[("pgfault", 4)])];
        let table = table_of(&[&[with], &[without]]);
        assert_eq!(values(&table, "NUMA hint faults"), [Some(4.0), None]);
        assert_eq!(values(&table, "NUMA pages migrated"), []);
    }

    #[test]
    fn boots_that_lost_series_do_not_count() {
        let mut boots = [boot(0), boot(1)];
        for (boot, all) in boots.iter_mut().zip([4, 1000]) {
            boot.chunks = vec![chunk(0, "", &faults(all, 0))];
        }
        boots[1].problems.push(Problem { kind: ProblemKind::SeriesDropped, text: String::new() });
        let table = table_of(&[&boots]);
        assert_eq!(values(&table, "NUMA hint faults"), [Some(4.0)]);
        assert_eq!(table.pooled[0].iterations, [1]);
    }

    #[test]
    fn huge_differences_do_not_overflow() {
        let mut boots = [boot(0)];
        boots[0].chunks = vec![chunk(0, "", &faults(i64::MAX - 1000, 0)); 3];
        let sum = 3.0 * (i64::MAX - 1000) as f64;
        assert_eq!(values(&table_of(&[&boots]), "NUMA hint faults"), [Some(sum)]);
    }

    /// Two boots that scan 300 and 100 pages in 2 and 1 seconds.
    #[test]
    fn rates_are_over_the_time_of_the_chunks() {
        let mut boots = [boot(0), boot(1)];
        let scanned = |pages| [("pgscan_kswapd", pages), ("pgsteal_kswapd", pages / 2)];
        boots[0].chunks = vec![chunk(0, "fill", &scanned(100)), chunk(0, "run", &scanned(200))];
        boots[1].chunks = vec![chunk(0, "run", &scanned(100))];
        let mut lacking = boot(0);
        lacking.chunks = vec![chunk(0, "", &[("pgfault", 1)])];
        let table = table_of(&[&boots, &[lacking]]);
        assert_eq!(values(&table, "Kswapd pages scanned"), [Some(200.0), None]);
        assert_eq!(values(&table, "Kswapd velocity"), [Some(400.0 / 3.0), None]);
        assert_eq!(values(&table, "Kswapd efficiency"), [Some(50.0), None]);
        assert!(table.rows.iter().all(|row| row.section == Some("Reclaim")));
    }

    /// A boot in which user mode made these local and remote accesses in each phase, and the kernel 10 of
    /// each.
    fn accessing(seed: u32, phases: &[(&str, u64, u64)]) -> Boot {
        let profile = |&(phase, local, remote): &(&str, u64, u64)| {
            let counts = [
                (0, Privilege::User, Target::Node(0), local),
                (0, Privilege::User, Target::Node(1), remote),
                (3, Privilege::Kernel, Target::Node(1), 10),
                (3, Privilege::Kernel, Target::Node(0), 10),
            ];
            accessed(0, phase, &counts)
        };
        Boot { profiles: phases.iter().map(profile).collect(), ..boot(seed) }
    }

    #[test]
    fn the_true_local_share_follows_the_kernels_estimate() {
        let mut boots = [
            accessing(0, &[("", 0, 0), ("fill", 10, 30), ("run", 90, 10)]),
            accessing(1, &[("", 0, 0), ("fill", 30, 30), ("run", 900, 100)]),
        ];
        for boot in &mut boots {
            boot.chunks = vec![chunk(0, "", &faults(4, 1))];
        }
        let table = table_of(&[&boots]);
        // 1030 of 1200 in both boots, 100 of 100 in phases without a name.
        assert_eq!(values(&table, "True local percent user"), [Some(100.0 * 1030.0 / 1200.0)]);
        assert_eq!(values(&table, "True local percent total"), [Some(100.0 * 1090.0 / 1320.0)]);
        assert_eq!(values(&table, "True local percent user-fill"), [Some(40.0)]);
        assert_eq!(values(&table, "True local percent total-run"), [Some(100.0 * 1010.0 / 1140.0)]);
        assert_eq!(values(&table, "True local percent user-"), []);
        assert_eq!(values(&table, "Accesses local user"), [Some(515.0)]);
        assert_eq!(values(&table, "Accesses remote kernel"), [Some(30.0)]);
        let labels: Vec<_> = table.rows.iter().map(|row| &*row.metric).collect();
        let guess = labels.iter().position(|label| *label == GUESS).unwrap();
        assert_eq!(
            labels[guess + 1..guess + 3],
            ["True local percent user", "True local percent total"]
        );
        assert_eq!(table.pooled[0].iterations, [1, 1]);
    }

    #[test]
    fn a_share_needs_accesses_in_every_boot() {
        let boots = [accessing(0, &[("run", 90, 10)]), accessing(1, &[])];
        assert_eq!(table_of(&[&boots[..1]]).pooled[0].iterations, [1]);
        let mut both = boots.to_vec();
        both[1].chunks = vec![chunk(0, "", &faults(4, 1))];
        let table = table_of(&[&boots[..1], &both]);
        assert_eq!(values(&table, "True local percent user"), [Some(90.0), None]);
        assert_eq!(values(&table, "NUMA hint faults"), []);
    }

    #[test]
    fn counters_differ_beyond_luck_or_not() {
        let boots = |all: [i64; 4], local: i64| {
            let mut boots = [0, 1, 2, 3].map(boot);
            for (boot, all) in boots.iter_mut().zip(all) {
                boot.chunks = vec![chunk(0, "", &faults(all, local))];
            }
            boots
        };
        let (base, new) = (boots([100, 104, 98, 102], 50), boots([160, 164, 158, 162], 80));
        let variants = ["a", "b"].map(variant);
        let columns = columns(&variants, &[&base, &new]);
        let (used, steady) = (used(manifest()), Steady::default());
        let (workload, judging) = (usual(&used, &columns), Judging::default());
        let table = table(workload, &columns, &topology(), &steady, Mode::Exact, &judging);
        let luck = |label: &str| {
            let row = table.rows.iter().find(|row| row.metric == label).unwrap();
            assert!(!row.is_judged());
            (row.floor(1).is_some(), row.beyond_luck(1))
        };
        assert_eq!(luck("NUMA hint faults"), (true, Some(true)));
        // About 49.5 % on both sides.
        assert_eq!(luck(GUESS), (true, Some(false)));
    }
}

//! Finds what an experiment cannot show: settings that the kernel changes by itself because of the machine, and
//! functions that cannot be named because there are too few seeds.

use std::fs;

use compare::FEWEST_FOR_LISTS;
use model::{Bytes, Experiment, MEMORY_BLOCK, Mode, Variant, count};

/// The kernel turns transparent huge pages off if it has fewer bytes when it initializes them
/// (`hugepage_init` in `mm/huge_memory.c`).
const LEAST_FOR_THP: u64 = 512 << 20;
/// The memory that is in use at that moment, at most, in bytes. Linux 6.1 uses 42 MiB of 512 MiB
/// and 45 MiB of 640 MiB. Our part of the initramfs uses 7 MiB plus modules; it is freed later.
const TAKEN: u64 = 64 << 20;
/// The file through which a variant can turn transparent huge pages on again.
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Returns messages about an experiment, which are printed before it runs: about machines that are
/// too small for transparent huge pages, and about too few seeds.
pub fn remarks(experiment: &Experiment) -> Vec<String> {
    small_machines(experiment).into_iter().chain(few_seeds(experiment)).collect()
}

/// Returns a message if exact mode has too few seeds to name the functions that hold a change; `None`
/// if it has enough, or if nothing is compared.
fn few_seeds(experiment: &Experiment) -> Option<String> {
    let Experiment { mode, variants, boots, .. } = experiment;
    let is_few = *mode == Mode::Exact && variants.len() > 1 && *boots < FEWEST_FOR_LISTS;
    is_few.then(|| {
        let seeds = count(*boots as usize, "seed");
        format!(
            "seeds: with {seeds} a side no function, contribution or counter can be told from luck; that takes \
             {FEWEST_FOR_LISTS}"
        )
    })
}

fn small_machines(experiment: &Experiment) -> Vec<String> {
    let files = experiment.workloads.iter().flat_map(|used| used.files());
    // A missing file is ignored here. The run reports it.
    let sizes = files.filter_map(|file| Some(fs::metadata(file.path()).ok()?.len()));
    let initramfs: u64 = sizes.sum();
    let wanted = LEAST_FOR_THP + TAKEN + initramfs;
    let small = experiment.variants.iter().filter_map(|variant| {
        let topology = experiment.seen_by(variant).machine.topology;
        let is_small = topology.memory().0 < wanted && !sets_thp(variant);
        is_small.then_some((topology.memory(), topology.nodes.len() as u64))
    });
    let mut small: Vec<(Bytes, u64)> = small.collect();
    small.dedup();
    let remark = |(memory, nodes): (Bytes, u64)| {
        let enough = Bytes(wanted.next_multiple_of(nodes * MEMORY_BLOCK.0));
        format!(
            "transparent huge pages: off, because Linux turns them off if it has less than 512 MiB when it starts, \
             and of {memory} it takes a part; {enough} is enough"
        )
    };
    small.into_iter().map(remark).collect()
}

fn sets_thp(variant: &Variant) -> bool {
    variant.settings.iter().any(|setting| setting.file() == THP)
}

#[cfg(test)]
mod tests {
    use model::{Machine, Setting, Topology};

    use super::*;

    #[test]
    fn too_few_seeds_to_name_functions_are_remarked_on() {
        let machine = Machine::new(Topology::even(1, Bytes::mib(1024), 1).unwrap());
        let named = |name: &str| Variant { name: name.into(), ..Variant::default() };
        let remarks_with = |mode, boots, names: &[&str]| {
            let variants = names.iter().map(|name| named(name)).collect();
            let machine = machine.clone();
            remarks(&Experiment { mode, boots, variants, machine, ..Experiment::default() })
        };
        let told = "seeds: with 3 seeds a side no function, contribution or counter can be told from luck; that takes 4";
        assert_eq!(remarks_with(Mode::Exact, 3, &["a", "b"]), [told]);
        assert_eq!(remarks_with(Mode::Exact, 4, &["a", "b"]), [""; 0]);
        assert_eq!(remarks_with(Mode::Exact, 3, &["a"]), [""; 0]);
        assert_eq!(remarks_with(Mode::Measured, 3, &["a", "b"]), [""; 0]);
    }

    fn remarks_on(mebibytes: u64, nodes: u32, settings: Vec<Setting>) -> Vec<String> {
        let topology = Topology::even(4, Bytes::mib(mebibytes), nodes).unwrap();
        let variant = Variant { name: "a".into(), settings, ..Variant::default() };
        let machine = Machine::new(topology);
        remarks(&Experiment { variants: vec![variant], machine, ..Experiment::default() })
    }

    #[test]
    fn a_machine_that_turns_huge_pages_off_is_remarked_on() {
        let ends =
            |all: Vec<String>| all.first().and_then(|it| Some(it.rsplit_once("; ")?.1.to_owned()));
        assert_eq!(ends(remarks_on(512, 1, Vec::new())).unwrap(), "640M is enough");
        assert_eq!(ends(remarks_on(512, 2, Vec::new())).unwrap(), "768M is enough");
        assert_eq!(remarks_on(640, 1, Vec::new()), [""; 0]);
        let on = Setting::Sysfs { path: THP.into(), value: "always".into() };
        assert_eq!(remarks_on(512, 1, vec![on]), [""; 0]);
    }
}

//! Combines several experiments into one, so that variants of different experiments can be compared.

use std::collections::BTreeMap;

use model::{Boot, Experiment, Kept, Mode, Reading, Variant};
use store::ExperimentId;

use crate::differences::{COUNTED_BY, differences};

/// The distance between the block numbers of different experiments. No schedule has more blocks.
const BLOCKS: u32 = 1 << 24;

/// What the store has of an experiment: the experiment, its reading and its boots.
pub struct Stored {
    pub experiment: Experiment,
    pub reading: Reading,
    pub kept: Vec<Kept>,
}

/// An experiment with its number.
pub type Of = (ExperimentId, Stored);

/// Combines the variants and boots of several experiments that ran the same workloads on the same
/// machine. A variant whose name is in several experiments is renamed to `NAME@1`, with the number
/// of its experiment. If any name already contains `@`, all variants are renamed. Boots of
/// different measured experiments never share a block, because the experiments did not alternate.
/// The error has a line for each difference that prevents the comparison.
pub fn across(all: &[Of]) -> Result<Stored, Vec<String>> {
    let Some(((first, Stored { experiment: base, reading, .. }), others)) = all.split_first()
    else {
        return Err(vec!["no experiment is named".into()]);
    };
    let mut wrong: Vec<String> = all.iter().flat_map(alone).collect();
    for (id, Stored { experiment: other, reading: own, .. }) in others {
        if other.mode != base.mode {
            let [one, two] = [base, other].map(|it| it.mode.name());
            wrong.push(format!("mode: {one} in {first}, {two} in {id}"));
            continue;
        }
        let differences = differences((base, reading), (other, own)).into_iter();
        // Measured experiments may differ in the number of boots. Exact ones must have the same
        // seeds. What counted the instructions is checked below, from the boots: the emulator must
        // be the same; the notes of a comparison list other libraries.
        let is_free =
            |key: &str| key.starts_with("variant.") || key == "boots" || COUNTED_BY.contains(&key);
        let differences = differences.filter(|it| !is_free(&it.key));
        let usual = |value: Option<String>| value.unwrap_or_else(|| "not set".into());
        wrong.extend(differences.map(|it| {
            format!("{}: {} in {first}, {} in {id}", it.key, usual(it.first), usual(it.second))
        }));
    }
    wrong.extend(match base.mode {
        Mode::Measured => unlike(all, "accelerator", |boot| boot.facts.provenance.execution_name()),
        Mode::Exact => unlike(all, "emulator", |boot| &boot.facts.provenance.emulator),
    });
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for variant in all.iter().flat_map(|(_, own)| &own.experiment.variants) {
        *names.entry(&variant.name).or_default() += 1;
    }
    let least = if names.keys().any(|name| name.contains('@')) { 1 } else { 2 };
    let named = |id: ExperimentId, name: &str| match names.get(name) {
        Some(number) if *number >= least => format!("{name}@{id}"),
        _ => name.to_owned(),
    };
    let mut whole = Experiment { variants: Vec::new(), ..base.clone() };
    let mut reading = Reading { workloads: reading.workloads.clone(), ..Reading::default() };
    let mut boots = Vec::new();
    for (place, (id, own)) in (0..).zip(all) {
        whole.boots = whole.boots.max(own.experiment.boots);
        for variant in &own.experiment.variants {
            let name = named(*id, &variant.name);
            let mut read = own.reading.variant(variant).clone();
            if let Some(step) = &mut read.step {
                step.after = named(*id, &step.after);
            }
            reading.variants.insert(name.clone(), read);
            whole.variants.push(Variant { name, ..variant.clone() });
        }
        for kept in &own.kept {
            let mut kept = kept.clone();
            kept.boot.variant = named(*id, &kept.boot.variant);
            if base.mode == Mode::Measured {
                kept.boot.block = kept.boot.block % BLOCKS + place * BLOCKS;
            }
            boots.push(kept);
        }
    }
    Ok(Stored { experiment: whole, reading, kept: boots })
}

/// Returns the reasons why the experiment cannot be compared with any other.
fn alone((id, Stored { experiment, .. }): &Of) -> Vec<String> {
    let mut wrong = Vec::new();
    if experiment.imported.is_some() {
        wrong.push(format!("{id} was imported, so its machine is unknown"));
    }
    if !experiment.points().is_empty() {
        wrong.push(format!("{id} is a sweep: compare it alone"));
    }
    if experiment.sequential.is_some() {
        wrong.push(format!("{id} ran until its own verdicts were decided (boots = \"auto\")"));
    }
    wrong
}

/// Returns a line about a fact that differs between boots; `None` if it is the same in all. Boots
/// without the fact are ignored.
fn unlike(all: &[Of], what: &str, fact: fn(&Boot) -> &str) -> Option<String> {
    let mut known: BTreeMap<&str, ExperimentId> = BTreeMap::new();
    for (id, own) in all {
        for kept in &own.kept {
            known.entry(fact(&kept.boot)).or_insert(*id);
        }
    }
    known.remove(""); // boots whose agent never started
    let found: Vec<_> = known.iter().map(|(fact, id)| format!("{fact} in {id}")).collect();
    (found.len() > 1).then(|| format!("{what}: {}", found.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::{BootId, Execution, Outcome};

    use super::*;
    use plan::Request;
    use plan::file;

    fn of(id: i64, head: &str, emulator: &str) -> Of {
        let text = format!(
            "name = \"x\"\n{head}\n[[variant]]\nkernel = \"debian:6.1\"\n\
             [[variant]]\nname = \"own{id}\"\nkernel = \"debian:6.12\"\n\
             [[workload]]\nname = \"mprotect\"\n"
        );
        let Request { experiment, reading, .. } =
            file::parse(Path::new("x.toml"), &text, None).unwrap();
        let kept = experiment.variants.iter().zip(0..).map(|(variant, block)| {
            let mut boot = Boot {
                variant: variant.name.clone(),
                outcome: Outcome::Complete,
                block,
                ..Boot::default()
            };
            boot.facts.provenance.emulator = emulator.into();
            Kept { id: BootId(10 * id + i64::from(block)), superseded: false, boot }
        });
        let kept = kept.collect();
        (ExperimentId(id), Stored { experiment, reading, kept })
    }

    const MACHINE: &str = "[machine]\ncpus = 2\nmemory = \"512M\"";

    #[test]
    fn variants_are_renamed_and_no_boots_are_pairs() {
        let head = |boots: u32| format!("boots = {boots}\n{MACHINE}");
        let Stored { experiment, kept, .. } =
            across(&[of(3, &head(2), "a"), of(7, &head(5), "b")]).unwrap();
        let names: Vec<_> = experiment.variants.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["6.1@3", "own3", "6.1@7", "own7"]);
        assert_eq!(experiment.boots, 5);
        let boots: Vec<_> = kept.iter().map(|it| (&*it.boot.variant, it.boot.block)).collect();
        let other = BLOCKS;
        assert_eq!(boots, [("6.1@3", 0), ("own3", 1), ("6.1@7", other), ("own7", other + 1)]);
    }

    #[test]
    fn invented_names_are_nobodys() {
        let head = format!("boots = 2\n{MACHINE}");
        let mut second = of(7, &head, "b");
        second.1.experiment.variants[1].name = "6.1@3".into();
        second.1.kept[1].boot.variant = "6.1@3".into();
        let Stored { experiment, kept, .. } = across(&[of(3, &head, "a"), second]).unwrap();
        let names: Vec<_> = experiment.variants.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["6.1@3", "own3@3", "6.1@7", "6.1@3@7"]);
        let boots: Vec<_> = kept.iter().map(|it| &*it.boot.variant).collect();
        assert_eq!(boots, names);
    }

    #[test]
    fn each_difference_that_prevents_a_comparison_is_listed() {
        let told = |first: &str, second: &str, emulator: &str| {
            across(&[of(1, first, "QEMU 10"), of(2, second, emulator)]).err().unwrap().join("\n")
        };
        let measured = format!("boots = 3\n{MACHINE}");
        let exact = |seeds: u32| format!("mode = \"exact\"\nseeds = {seeds}\n{MACHINE}");
        assert_eq!(
            told(&measured, &measured.replace("512M", "1G"), "QEMU 10"),
            "machine.memory: 512M in 1, 1G in 2"
        );
        assert_eq!(told(&measured, &exact(3), "QEMU 10"), "mode: measured in 1, exact in 2");
        let seeds = told(&exact(4), &exact(5), "QEMU 11");
        assert_eq!(seeds, "seeds: 4 in 1, 5 in 2\nemulator: QEMU 10 in 1, QEMU 11 in 2");
        let mut recounted = of(2, &exact(3), "QEMU 10");
        recounted.1.experiment.counted_by.plugin = "ab".repeat(32);
        assert!(across(&[of(1, &exact(3), "QEMU 10"), recounted]).is_ok());
        let mut emulated = of(2, &measured, "");
        emulated.1.kept[0].boot.facts.provenance.execution = Some(Execution::Tcg);
        let mut native = of(1, &measured, "");
        native.1.kept[1].boot.facts.provenance.execution = Some(Execution::Kvm);
        assert_eq!(across(&[native, emulated]).err().unwrap(), ["accelerator: kvm in 1, tcg in 2"]);
        let auto = of(2, &format!("boots = \"auto\"\n{MACHINE}"), "");
        let wrong = across(&[of(1, &measured, ""), auto]).err().unwrap();
        assert!(wrong[0].contains("2 ran until its own verdicts were decided"), "{wrong:?}");
    }
}

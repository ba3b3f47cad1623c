//! Sampled profiles of measured mode.

use std::collections::BTreeMap;

use model::{Boot, Note, NoteKind, Outcome, Place, Profile, SAMPLES};

use crate::common::{Bench, quoted};
use crate::events::faulting;
use crate::planted::{BASE, SOURCE, variant};

/// Two processes that fault.
const FAULTS: &str = "[[workload]]\nname = \"pagefault\"\n\
     parameters = { tests = \"anonymous\", by = \"processes\", tasks = \"2\", rounds = 40 }\n";

fn experiment(boots: u32, variants: &str, workload: &str) -> String {
    format!(
        "name = \"sampled\"\nboots = {boots}\n[profile]\nsampled = true\n\
         [machine]\ncpus = 2\nmemory = \"512M\"\naccel = \"tcg\"\n{variants}{workload}"
    )
}

/// A variant with or without huge pages.
fn huge(name: &str, value: &str) -> String {
    format!(
        "[[variant]]\nname = \"{name}\"\nkernel = \"6.1\"\n\
         sysfs = {{ \"/sys/kernel/mm/transparent_hugepage/enabled\" = \"{value}\" }}\n"
    )
}

/// Samples in the kernel by function, over all measured phases.
fn functions(boot: &Boot) -> BTreeMap<&str, u64> {
    let mut functions = BTreeMap::new();
    for row in boot.profiles.iter().flat_map(|profile| profile.costs.rows()) {
        if let Place::Function { name, .. } = row.place {
            *functions.entry(&**name).or_default() += row.sum(Some(0)) as u64;
        }
    }
    functions
}

fn seconds(profile: &Profile) -> f64 {
    profile.sampled.as_ref().unwrap().seconds()
}

#[test]
fn samples_are_of_what_ran() {
    let bench = Bench::new();
    let variants = [huge("never", "never"), huge("always", "always")].concat();
    bench.run(&experiment(1, &variants, FAULTS)).expect(0);
    for boot in bench.boots() {
        assert_eq!(boot.outcome, Outcome::Complete);
        assert!(!boot.notes.iter().any(|note| note.kind == NoteKind::Profile), "{:?}", boot.notes);
        let [mut samples, mut longest] = [0, 0].map(f64::from);
        for profile in &boot.profiles {
            let sampled = profile.sampled.as_ref().unwrap();
            // Emulated processors count no cycles.
            assert_eq!((&*sampled.event, sampled.frequency), ("cpu-clock", 99));
            samples += profile.totals().total() as f64;
            longest += 2.0 * 99.0 * seconds(profile);
            assert_eq!(profile.since(0).as_ref(), Some(profile));
        }
        let used: f64 = boot.usage.iter().map(|usage| 99.0 * (usage.user + usage.system)).sum();
        println!(
            "{}: {samples} samples, {used:.0} by CPU time, at most {longest:.0}",
            boot.variant
        );
        // On a busy host some ticks of the clock come too late to be samples.
        assert!(samples > 0.4 * used && samples < 1.1 * longest, "{samples}, {used}, {longest}");
        let functions = functions(&boot);
        let all: u64 = functions.values().sum();
        let unknown = functions.get("[unknown]").copied().unwrap_or(0);
        assert!(20 * unknown <= all, "{unknown} of {all} have no name");
        let is_fault = |place: &Place| match place {
            Place::Path(path) => path.first().is_some_and(|first| **first == *"asm_exc_page_fault"),
            _ => false,
        };
        let faults = boot.profiles.iter().map(|profile| profile.costs.sum(SAMPLES, is_fault));
        assert!(faults.sum::<u128>() as u64 > all / 4);
        let places = boot.profiles.iter().flat_map(|profile| profile.costs.places());
        let alive: Vec<&Vec<model::Name>> = places
            .filter_map(|place| match place {
                Place::Process { name, functions, .. } if **name != *"[ended]" => Some(functions),
                _ => None,
            })
            .collect();
        let known = alive.iter().filter(|functions| !functions.is_empty()).count();
        assert!(known > 0 && 2 * known >= alive.len(), "{alive:?}");
    }
    let text = bench.faultline(&["explain", "never", "always"]).expect(0).out;
    println!("{text}");
    assert!(text.contains("cpu-clock at 99 Hz"), "{text}");
    let clears_huge = |boot: &Boot| {
        let mut places = boot.profiles.iter().flat_map(|profile| profile.costs.places());
        places.any(|place| match place {
            Place::Path(path) => path.iter().any(|name| **name == *"clear_huge_page"),
            _ => false,
        })
    };
    for boot in bench.boots() {
        assert_eq!(clears_huge(&boot), boot.variant == "always", "{}", boot.variant);
    }

    // What is exported can be imported, and is the same.
    let [never, always] = ["never", "always"].map(|name| {
        let boot = bench.boots().iter().position(|boot| boot.variant == name).unwrap() + 1;
        let file = bench.path(&format!("{name}.txt"));
        let path = file.to_str().unwrap().to_owned();
        let export = ["export", &format!("b{boot}"), "--format", "perf-script", "-o", &path];
        bench.faultline(&export).expect(0);
        format!("{name}={path}")
    });
    let totals = |args: &[&str]| {
        let json = bench.json(args);
        ["base", "new"].map(|side| json[side]["samples"].as_u64().unwrap())
    };
    let own = totals(&["explain", "never", "always"]);
    let said = bench.faultline(&["import", "perf", &never, &always]).expect(0).out;
    assert!(said.contains("samples of cpu-clock"), "{said}");
    let imported = totals(&["explain", "never", "always", "perf"]);
    // The exported samples include phases that are not measured.
    assert!(imported[0] >= own[0] && imported[1] >= own[1], "{own:?} {imported:?}");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_kernel_that_denies_samples_is_noted() {
    let bench = Bench::new();
    let variants = "[[variant]]\nkernel = \"6.1\"\nsysctl = { \"kernel.kptr_restrict\" = 2 }\n";
    bench.run(&experiment(1, variants, FAULTS)).expect(0);
    let boots = bench.boots();
    let notes = &boots[0].notes;
    let expected = "functions have no names: /proc/kallsyms does not tell";
    let is_it = |note: &Note| note.kind == NoteKind::Profile && note.text.starts_with(expected);
    assert!(notes.iter().any(is_it), "{notes:?}");
    let functions = functions(&boots[0]);
    assert_eq!(functions.keys().copied().collect::<Vec<_>>(), ["[unknown]"]);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn samples_that_a_full_buffer_loses_are_counted() {
    let bench = Bench::new();
    let busy = "i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done";
    let workload = faulting(&bench, busy);
    let variant = "[[variant]]\nkernel = \"6.1\"\n";
    // A buffer of 1 MiB has room for less than this workload's samples.
    let text = experiment(1, variant, &workload).replace(
        "sampled = true\n",
        "sampled = true\nfrequency = 5000\n[sampler]\ninterval = \"10m\"\n",
    );
    bench.run(&text).expect(0);
    let boots = bench.boots();
    let lost: u64 =
        boots[0].profiles.iter().filter_map(|profile| Some(profile.sampled.as_ref()?.lost)).sum();
    assert!(lost > 0, "{:?}", boots[0].notes);
    let why = "samples are lost, because the kernel's buffers were full";
    let is_noted = |note: &Note| note.kind == NoteKind::Profile && note.text.ends_with(why);
    assert!(boots[0].notes.iter().any(is_noted), "{:?}", boots[0].notes);
}

/// A loop of 3000 loads in this function, which every fault on an anonymous page enters once. The instructions of
/// `scripts/planted` are too few for samples, or take no time under emulation.
const PLANTED: &str = "page_add_new_anon_rmap";
const SLOW: &str = "\
--- a/mm/rmap.c
+++ b/mm/rmap.c
@@ -1276,6 +1276,7 @@ void page_add_new_anon_rmap(struct page
 		/* increment count (starts at -1) */
 		atomic_set(&page->_mapcount, 0);
 	}
+	asm volatile(\"mov $3000, %%ecx; 1: testl %%ecx, (%%rsp); dec %%ecx; jne 1b\" ::: \"ecx\", \"cc\", \"memory\");
 	__mod_lruvec_page_state(page, NR_ANON_MAPPED, nr);
 	__page_set_anon_rmap(page, vma, address, 1);
 }
";

/// Samples rank functions as counted instructions do, since each instruction takes about the same time under
/// emulation.
#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn samples_rank_functions_as_exact_mode_does() {
    let bench = Bench::new();
    let patch = quoted(&bench.write("slow.patch", SLOW));
    let never = "sysfs = { \"/sys/kernel/mm/transparent_hugepage/enabled\" = \"never\" }\n";
    let slow = format!(
        "[[variant]]\nname = \"slow\"\nkernel = \"{SOURCE}\"\npatches = [{patch}]\n{never}"
    );
    let kernels = variant(BASE, never) + &slow;
    let sampling = experiment(6, &kernels, FAULTS);
    bench.run(&sampling).expect(0);
    let sampled = bench.boots();
    let json = bench.json(&["explain", BASE, "slow"]);
    let first = &json["functions"][0];
    assert_eq!(first["name"], PLANTED);
    assert_eq!(first["share"]["differs"], true);

    let exact = sampling
        .replace("boots = 6\n[profile]\nsampled = true", "mode = \"exact\"\nseeds = 1")
        .replace("accel = \"tcg\"\n", "")
        .replace("rounds = 40", "rounds = 10");
    bench.run(&exact).expect(0);
    let counted = bench.boots();
    let both = bench.faultline(&["explain", BASE, "slow"]).expect(0).out;
    println!("{both}");
    assert!(both.contains("samples: base") && both.contains("instructions: base"), "{both}");
    let ranked = |boots: &[Boot], variant: &str| {
        let own = boots.iter().filter(|boot| boot.variant == variant);
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        own.flat_map(functions).for_each(|(name, count)| *sums.entry(name).or_default() += count);
        let mut names: Vec<_> = sums.into_iter().collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        names.into_iter().map(|(name, _)| name.to_owned()).take(8).collect::<Vec<String>>()
    };
    for name in [BASE, "slow"] {
        let [sampled, counted] = [&sampled, &counted].map(|boots| ranked(boots, name));
        println!("{name}: sampled {sampled:?}\ncounted {counted:?}");
        assert_eq!(sampled[0] == PLANTED, name == "slow");
        assert_eq!(counted[0] == PLANTED, name == "slow");
    }
}

//! Exact mode on real kernels: equal inputs give equal boots, and counts add up.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kernels::Cache;
use machine::{CONSOLE_FILE, Emulator, Engine, Exact, Vm};
use model::{
    Architecture, Boot, Bytes, CpuSet, ENTRIES, Execution, INSTRUCTIONS, Limits, Node, Place,
    Profile, Reading, Topology,
};
use serde_json::Value;

use crate::common::Bench;

/// An experiment in exact mode. `machine` is the shape of the machine, `rest` the rest of the file.
fn exact(name: &str, seeds: u32, machine: &str, rest: &str) -> String {
    format!("name = \"{name}\"\nmode = \"exact\"\nseeds = {seeds}\n[machine]\n{machine}\n{rest}")
}

const TWO_KERNELS: &str = "[[variant]]\nkernel = \"6.1\"\n[[variant]]\nkernel = \"newest\"\n";

fn autonuma(parameters: &str) -> String {
    format!("[[workload]]\nname = \"autonuma\"\nparameters = {{ {parameters} }}\n")
}

#[test]
fn two_boots_of_each_kernel_are_the_same_and_counts_add_up() {
    let bench = Bench::new();
    let rest = format!(
        "[profile]\naccesses = true\nstacks = true\n{TWO_KERNELS}{}",
        autonuma("programs = \"NUMA01\", scale = 0.02")
    );
    let text = exact("same", 1, "cpus = 2\nmemory = \"512M\"\nnodes = 2", &rest);
    let file = bench.write("x.toml", &text);
    let said = bench.faultline(&["run", "--verify", file.to_str().unwrap()]).expect(0);
    assert!(
        said.out.contains("2 boots done, 2 boots repeated with bit-identical results"),
        "{}",
        said.out
    );
    let boots = bench.boots();
    boots.iter().for_each(adds_up);
    explanation_adds_up(&bench, &boots);
    export_adds_up(&bench, &boots[0]);
    let said = bench.faultline(&["replay", "b2"]).expect(0);
    assert_eq!(said.out, "b2 replayed: bit-identical\n");
    let both_kept = ["replay", "b1", "b2", "--keep", "kept"];
    assert!(bench.faultline(&both_kept).expect(2).err.contains("--keep works with one boot"));
    a_boot_of_another_machine_is_not_replayed(&bench);
}

/// Keeps a boot in another store, as one of an exact machine that is no longer made.
fn a_boot_of_another_machine_is_not_replayed(bench: &Bench) {
    let stored = store::open(&bench.store_path()).unwrap();
    let id = stored.experiments().unwrap()[0].id;
    let mut experiment = stored.experiment(id).unwrap();
    experiment.counted_by.machine = "another machine".into();
    let path = bench.path("older.db");
    let mut older = store::open(&path).unwrap();
    let own = older.keep_experiment(&experiment, Reading::USUAL).unwrap();
    older.keep_boot(own, &bench.boots()[0]).unwrap();
    let said = bench.faultline(&["--store", path.to_str().unwrap(), "replay", "b1"]).expect(2);
    assert!(said.err.contains("replay it with the faultline that made it"), "{}", said.err);
}

/// A function that a workload enters often.
const FAULT: &str = "handle_mm_fault";

/// Checks the figures of one boot, each counted in several ways.
fn adds_up(boot: &Boot) {
    assert_eq!(boot.facts.provenance.execution, Some(Execution::Tcg));
    assert_eq!(boot.problems, []);
    let phases: Vec<&str> = boot.profiles.iter().map(|profile| &*profile.phase).collect();
    assert_eq!(phases, ["", "NUMA01"]);
    for profile in &boot.profiles {
        let sum = profile.totals();
        let of = |wanted: fn(&Place) -> bool| profile.costs.sum(INSTRUCTIONS, wanted) as u64;
        let functions = of(|place| matches!(place, Place::Function { .. }));
        let paths = of(|place| matches!(place, Place::Path(_)));
        assert_eq!((functions, paths), (sum.kernel, sum.kernel));
        assert_eq!(by_path(profile), by_function(profile));
        assert_eq!(of(|place| matches!(place, Place::Process { .. })), sum.user);
        let sampled = |label| {
            let mut samples = boot.samples.iter().filter(|sample| sample.phase == profile.phase);
            samples.find(|sample| sample.metric == "instructions" && sample.label == label)
        };
        assert_eq!(sampled("total").unwrap().value as u64, sum.total());
        assert_eq!(sampled("kernel").unwrap().value as u64, sum.kernel);
    }
    let numa01 = &boot.profiles[1];
    let is_fault =
        |place: &Place| matches!(place, Place::Function { name, .. } if **name == *FAULT);
    let entries = numa01.costs.sum(ENTRIES, is_fault);
    assert!(entries > 100, "{entries}");
    assert!(numa01.costs.places().iter().any(|place| match place {
        Place::Path(functions) => {
            let mut functions = functions.iter();
            functions.any(|name| **name == *FAULT) && functions.len() > 1
        }
        _ => false,
    }));
    let is_workload =
        |place: &Place| matches!(place, Place::Process { name, .. } if **name == *"workloads");
    assert!(numa01.costs.places().iter().any(is_workload));
    accesses_add_up(boot, numa01);
}

/// The instructions of each function itself, as counted by address.
fn by_function(profile: &Profile) -> BTreeMap<&str, u128> {
    instructions(profile, |place| match place {
        Place::Function { name, .. } => Some(name),
        _ => None,
    })
}

/// The instructions of each function itself, as counted by path.
fn by_path(profile: &Profile) -> BTreeMap<&str, u128> {
    instructions(profile, |place| match place {
        Place::Path(functions) => functions.last().map(|name| &**name),
        _ => None,
    })
}

/// Instructions by the names of places.
fn instructions(profile: &Profile, name: fn(&Place) -> Option<&str>) -> BTreeMap<&str, u128> {
    let cost = profile.costs.number(INSTRUCTIONS);
    let mut sums = BTreeMap::new();
    for row in profile.costs.rows() {
        if let Some(name) = name(row.place) {
            *sums.entry(name).or_default() += row.sum(cost);
        }
    }
    sums
}

/// Checks that the last row of the series of accesses equals the profile.
fn accesses_add_up(boot: &Boot, profile: &Profile) {
    let mut chunks = boot.chunks.iter();
    let chunk = chunks.find(|chunk| chunk.source == "accesses" && chunk.phase == profile.phase);
    let columns = &chunk.unwrap().columns;
    let last = |prefix: &str| -> i64 {
        let of = columns.iter().filter(|column| column.name.starts_with(prefix));
        of.map(|column| column.values.last().unwrap().unwrap()).sum()
    };
    let counted = |privilege| -> u64 {
        let rows = profile.memory().filter(|row| row.privilege == privilege);
        let rows = rows.filter(|row| matches!(row.target, model::Target::Node(_)));
        rows.flat_map(|row| row.cells).map(|cell| cell.value).sum()
    };
    assert_eq!(last("user-").cast_unsigned(), counted(model::Privilege::User));
    assert_eq!(last("kernel-").cast_unsigned(), counted(model::Privilege::Kernel));
    assert!(last("user-") > 1_000_000);
}

/// Checks that the contributions in `explain` add up to the change of the total.
fn explanation_adds_up(bench: &Bench, boots: &[Boot]) {
    let explained = bench.json(&["explain", "6.1", "newest"]);
    let all = &explained["all"];
    let contributions = all["contributions"].as_array().unwrap();
    assert!(contributions.len() > 100);
    let changes = contributions.iter().map(|row| row["exact_change"].as_i64().unwrap());
    // Boots run side by side, and are kept in the order in which they end.
    let totals = ["6.1", "newest"].map(|variant| {
        let boot = boots.iter().find(|boot| boot.variant == variant).unwrap();
        let phases = boot.profiles.iter().map(|profile| profile.totals().total());
        phases.sum::<u64>().cast_signed()
    });
    assert_eq!(changes.sum::<i64>(), totals[1] - totals[0]);
    let page = bench.path("x.html");
    let page = page.to_str().unwrap();
    bench.faultline(&["explain", "6.1", "newest", "--format", "html", "-o", page]).expect(0);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("class=\"flame\"") && page.contains("handle_mm_fault"));
}

/// Checks that the weights of the exported paths add up to the counts of the profile.
fn export_adds_up(bench: &Bench, boot: &Boot) {
    let said = bench.faultline(&["export", "b1", "--format", "collapsed"]).expect(0);
    let weights = said.out.lines().map(|line| line.rsplit(' ').next().unwrap());
    let sum: u64 = weights.map(|weight| weight.parse::<u64>().unwrap()).sum();
    let counted = boot.profiles.iter().map(|profile| profile.totals().total());
    assert_eq!(sum, counted.sum::<u64>());
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn kernels_old_and_new_are_exact_on_one_two_and_four_cpus() {
    let bench = Bench::new();
    for cpus in [1, 2, 4] {
        let nodes = topology(cpus).nodes;
        let nodes = nodes.iter().map(|node| {
            let (cpus, memory) = (&node.cpus, node.memory);
            format!("[[machine.node]]\ncpus = \"{cpus}\"\nmemory = \"{memory}\"\n")
        });
        let machine = nodes.collect::<String>();
        let rest = format!(
            "[[variant]]\nkernel = \"5.10\"\n{TWO_KERNELS}{}",
            autonuma("programs = \"NUMA01,NUMA02\", scale = 0.05")
        );
        let text = exact(&format!("grid-{cpus}"), 1, &machine, &rest);
        let file = bench.write("x.toml", &text);
        let said = bench.faultline(&["run", "--verify", file.to_str().unwrap()]).expect(0);
        assert!(said.out.contains("3 boots repeated with bit-identical results"), "{}", said.out);
        for boot in bench.boots() {
            assert!(boot.outcome.is_complete(), "{}", boot.outcome);
        }
        let number = match cpus {
            1 => "b2",
            2 => "b5",
            _ => "b8",
        };
        without_the_plugin(&bench, number, cpus);
    }
}

/// One node for each CPU. With one CPU there is a second node with only memory, because the programs need two.
fn topology(cpus: u32) -> Topology {
    let mut topology = Topology::even(cpus, Bytes::mib(1024), cpus).unwrap();
    if cpus == 1 {
        topology.nodes.push(Node {
            cpus: CpuSet::default(),
            memory: Bytes::mib(512),
            distances: Vec::new(),
        });
    }
    topology
}

/// Boots the same without the plugin, and checks that the guest behaves the same.
fn without_the_plugin(bench: &Bench, boot: &str, cpus: u32) {
    let with = bench.path(&format!("with-{cpus}"));
    bench.faultline(&["replay", boot, "--keep", with.to_str().unwrap()]).expect(0);
    let without = bench.path(&format!("without-{cpus}"));
    fs::create_dir(&without).unwrap();
    let libraries = std::env::var_os("FAULTLINE_LIBRARIES").expect("`make check-long` names it");
    let clock = Path::new(&libraries).join("libstillclock.so");
    let kernel = Cache::open().unwrap().get("6.1").unwrap().unwrap();
    let vm = Vm {
        emulator: &Emulator::find(Architecture::X86_64).unwrap(),
        engine: Engine::Exact(&Exact { seed: 0, clock, plugin: None }),
        topology: &topology(cpus),
        disks: &[],
        userspace: None,
        image: kernel.vmlinux.as_deref().unwrap_or(&kernel.image),
        initramfs: &with.join("initramfs.cpio"),
        cmdline: "",
        directory: &without,
        recorder: Bytes::mib(256),
        limits: &Limits::default(),
    };
    machine::run(&vm, &mut |_| ()).unwrap();
    let console = |directory: &Path| fs::read(directory.join(CONSOLE_FILE)).unwrap();
    assert!(console(&with) == console(&without), "the consoles differ on {cpus} CPUs");
    let log = |directory: &Path| machine::read_log(directory).unwrap();
    assert!(log(&with) == log(&without), "the recordings differ on {cpus} CPUs");
    println!("{cpus} CPUs: console and recording are the same without the plugin");
}

/// With `liblate.so`, QEMU's main loop acts at the worst moment, hundreds of times in a boot.
#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_late_main_loop_changes_nothing() {
    let bench = Bench::new();
    let library = Path::new(env!("CARGO_BIN_EXE_faultline")).with_file_name("examples/liblate.so");
    assert!(library.exists(), "`cargo build -p stillclock --examples` makes {}", library.display());
    let script = format!(
        "#!/bin/sh\n[ -z \"$LD_PRELOAD\" ] || export LD_PRELOAD=\"$LD_PRELOAD:{}\" LATE={}.$$\n\
         PATH=${{PATH#*:}}\nexec qemu-system-x86_64 \"$@\"\n",
        library.display(),
        bench.path("late").display(),
    );
    let emulator = bench.write("qemu-system-x86_64", &script);
    fs::set_permissions(&emulator, Permissions::from_mode(0o755)).unwrap();
    let kernel = "[[variant]]\nkernel = \"newest\"\n";
    let rest = format!("{kernel}{}", autonuma("programs = \"NUMA01\", scale = 0.02"));
    let text = exact("late", 1, "cpus = 2\nmemory = \"512M\"\nnodes = 2", &rest);
    let file = bench.write("x.toml", &text);
    let mut command = bench.command(&["run", "--verify", file.to_str().unwrap()]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bench.directory.path().display()));
    bench.said(command).expect(0);
    bench.faultline(&["replay", "b1"]).expect(0);
    let entries = fs::read_dir(bench.directory.path()).unwrap().map(Result::unwrap);
    let records = entries.filter(|it| it.file_name().to_string_lossy().starts_with("late."));
    let times: Vec<u64> = records.map(|it| it.metadata().unwrap().len()).collect();
    assert!(times.len() == 2 && times.iter().all(|times| *times > 100), "{times:?}");
    println!("the main loop was late {times:?} times");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn twenty_boots_of_one_variant_give_one_result() {
    let bench = Bench::new();
    let rest = format!(
        "[[variant]]\nkernel = \"newest\"\n{}",
        autonuma("programs = \"NUMA01\", scale = 0.1")
    );
    let text = exact("twenty", 1, "cpus = 4\nmemory = \"1G\"\nnodes = 4", &rest);
    bench.run(&text).expect(0);
    for _ in 1..20 {
        bench.faultline(&["replay", "b1"]).expect(0);
    }
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn balancing_makes_accesses_more_local() {
    let bench = Bench::new();
    let variant = |name: &str, value: u8| {
        format!(
            "[[variant]]\nname = \"{name}\"\nkernel = \"6.12\"\n\
             sysctl = {{ \"kernel.numa_balancing\" = {value} }}\n"
        )
    };
    let rest = format!(
        "[profile]\naccesses = true\n{}{}{}",
        variant("off", 0),
        variant("on", 1),
        autonuma(
            "programs = \"NUMA01_THREADLOCAL,NUMA02\", bound = \"NUMA01_THREADLOCAL,NUMA02\", \
             scale = 0.5"
        )
    );
    let text = exact("local", 1, "cpus = 4\nmemory = \"1G\"\nnodes = 2", &rest);
    bench.run(&text).expect(0);
    let compared = bench.json(&["compare"]);
    let tables = compared["tables"].as_array().unwrap();
    let rows: Vec<&Value> =
        tables.iter().flat_map(|table| table["rows"].as_array().unwrap()).collect();
    for program in ["NUMA01_THREADLOCAL", "NUMA02"] {
        let metric = format!("True local percent user-{program}");
        let row = rows.iter().find(|row| row["metric"] == *metric).unwrap();
        let share = |column: usize| row["values"][column].as_f64().unwrap();
        println!("{metric}: {:.2} off, {:.2} on, {:+.2}", share(0), share(1), share(1) - share(0));
        assert!(share(1) > share(0) + 10.0, "{metric}: {} off, {} on", share(0), share(1));
    }
}

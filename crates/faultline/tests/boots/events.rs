//! Compares events that perf counts with the kernel's own counters.

use std::collections::BTreeSet;
use std::fs;

use model::{Boot, Outcome};

use crate::common::Bench;

/// A workload whose phase `faults` starts 100 programs. Its notes are what `look` prints.
pub fn faulting(bench: &Bench, look: &str) -> String {
    let shell = kernels::Cache::open().unwrap().shell(&|_| {}).unwrap();
    fs::copy(shell, bench.path("busybox")).unwrap();
    let script = format!(
        "cut() {{ echo phase $1 >&$FAULTLINE_FD; \
         dd bs=1 count=1 of=/dev/null <&$FAULTLINE_ACK_FD; }}; {look}; cut faults; \
         i=0; while [ $i -lt 100 ]; do busybox true; i=$((i + 1)); done; cut after"
    );
    let manifest = format!(
        "name = \"faulting\"\ndescription = \"starts programs\"\nmetrics = []\n\
         command = [\"busybox\", \"sh\", \"-c\", {script:?}]\n"
    );
    bench.write("faulting.toml", &manifest);
    "[[workload]]\nmanifest = \"faulting.toml\"\nprogram = \"busybox\"\n".into()
}

fn experiment(events: &[&str], rest: &str) -> String {
    format!(
        "name = \"events\"\nboots = 1\n\
         [machine]\ncpus = 2\nmemory = \"512M\"\naccel = \"tcg\"\n[sampler]\nevents = {events:?}\n{rest}"
    )
}

/// The growth of a counter of a source in the phase `faults`; `None` if it is missing.
fn growth(boot: &Boot, source: &str, counter: &str) -> Option<i64> {
    let mut chunks = boot.chunks.iter();
    let chunk = chunks.find(|chunk| chunk.source == source && chunk.phase == "faults");
    chunk.unwrap_or_else(|| panic!("no {source}")).difference(counter)
}

/// Whether two counts of the same thing are equal. The kernel also counts faults that it resolves itself, such as for
/// the arguments of a new program. And the agent runs between the readings of files and of events.
fn near(one: i64, other: i64) -> bool {
    (one - other).abs() <= 50 + one / 50
}

#[test]
fn events_agree_with_the_kernels_counters() {
    let bench = Bench::new();
    let workload = faulting(&bench, "true");
    let variant = "[[variant]]\nkernel = \"6.1\"\n";
    let wrong = experiment(&["tlb:tlb_flsh"], &format!("{variant}{workload}"));
    let refused = bench.run(&wrong).expect(2).err;
    assert!(refused.contains("no event tlb:tlb_flsh in 6.1"), "{refused}");
    assert!(refused.contains("near names: tlb:tlb_flush"), "{refused}");
    // The kernel is in the cache now, so a dry run knows too.
    let file = bench.write("wrong.toml", &wrong);
    let dry = bench.faultline(&["run", "--dry-run", file.to_str().unwrap()]).expect(2).err;
    assert!(dry.contains("no event tlb:tlb_flsh in 6.1"), "{dry}");

    let (user, kernel) = ("exceptions:page_fault_user", "exceptions:page_fault_kernel");
    let events = ["page-faults", user, kernel, "tlb:tlb_flush", "context-switches", "cycles"];
    bench.run(&experiment(&events, &format!("{variant}{workload}"))).expect(0);
    let boot = &bench.boots()[0];
    assert_eq!(boot.outcome, Outcome::Complete);
    let event = |name: &str| growth(boot, "events", name);
    let faults = growth(boot, "vmstat", "pgfault").unwrap();
    assert!(faults > 1000, "{faults}");
    let [software, traced] =
        [event("page-faults"), event(user).zip(event(kernel)).map(|(one, other)| one + other)];
    println!("{faults} faults, {software:?} by software, {traced:?} by tracepoints");
    assert!(near(faults, software.unwrap()), "{faults}, {software:?}");
    assert!(near(faults, traced.unwrap()), "{faults}, {traced:?}");
    let switches = growth(boot, "stat", "ctxt").unwrap();
    let counted = event("context-switches").unwrap();
    assert!(near(switches, counted), "{switches}, {counted}");
    assert!(event("tlb:tlb_flush").unwrap() > 0);
    // Both CPUs were counted all the time.
    let [enabled, running] = ["page-faults enabled", "page-faults running"].map(event);
    assert!(enabled == running && enabled.unwrap() > 0, "{enabled:?} {running:?}");
    // Emulated processors have no counters.
    assert_eq!(event("cycles"), None);
    let text = bench.faultline(&["compare", "--full"]).expect(0).out;
    let row = text.lines().find(|line| line.starts_with("cycles-faults")).unwrap();
    assert_eq!(row.split_whitespace().nth(1), Some("-"), "{text}");
    assert!(text.contains("cycles is not counted: the machine has no hardware counter"), "{text}");
    assert!(text.contains("tlb:tlb_flush-faults"), "{text}");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn an_event_that_one_kernel_lacks_is_absent_there() {
    let bench = Bench::new();
    let workload = faulting(&bench, "true");
    let variants = "[[variant]]\nkernel = \"5.10\"\n[[variant]]\nkernel = \"6.1\"\n";
    // The second event exists since Linux 5.18.
    let events = ["tlb:tlb_flush", "migrate:set_migration_pte"];
    bench.run(&experiment(&events, &format!("{variants}{workload}"))).expect(0);
    let boots = bench.boots();
    let of = |name: &str, event| {
        let boot = boots.iter().find(|boot| boot.variant == name).unwrap();
        growth(boot, "events", event)
    };
    assert!(of("5.10", events[0]).unwrap() > 0 && of("6.1", events[0]).unwrap() > 0);
    assert_eq!((of("5.10", events[1]), of("6.1", events[1])), (None, Some(0)));
    let text = bench.faultline(&["compare", "--full"]).expect(0).out;
    assert!(text.contains("5.10  b"), "{text}");
    assert!(text.contains("migrate:set_migration_pte is not counted"), "{text}");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn tracepoints_in_the_image_are_those_of_the_running_kernel() {
    let bench = Bench::new();
    let look = "while read e; do echo note event $e; done \
                < /sys/kernel/tracing/available_events >&$FAULTLINE_FD";
    let workload = faulting(&bench, look);
    let kernels = ["5.10", "6.1", "6.12", "newest"];
    let variants = kernels.map(|kernel| format!("[[variant]]\nkernel = \"{kernel}\"\n")).concat();
    bench.run(&experiment(&["tlb:tlb_flush"], &format!("{variants}{workload}"))).expect(0);
    for boot in bench.boots() {
        let listed = bench.faultline(&["event", "list", &boot.variant, "*:*"]).expect(0).out;
        let listed: BTreeSet<&str> = listed.lines().map(str::trim).collect();
        let running = boot.notes.iter().filter_map(|note| note.text.strip_prefix("event "));
        let running: BTreeSet<&str> = running.collect();
        assert!(running.len() > 500, "{}", boot.variant);
        let missing: Vec<_> = running.difference(&listed).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", boot.variant);
        // The image also has system calls without a number.
        let more = listed.difference(&running).filter(|it| !it.starts_with("syscalls:"));
        let more: Vec<_> = more.filter(|it| it.contains(':') && !it.ends_with(':')).collect();
        assert!(more.is_empty(), "{}: {more:?}", boot.variant);
    }
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_kernel_from_source_has_what_events_need() {
    let bench = Bench::new();
    let workload = faulting(&bench, "true");
    let variant = "[[variant]]\nkernel = \"debian-source:6.1\"\n";
    let events = ["page-faults", "tlb:tlb_flush"];
    bench.run(&experiment(&events, &format!("{variant}{workload}"))).expect(0);
    let boot = &bench.boots()[0];
    for event in events {
        assert!(growth(boot, "events", event).unwrap() > 0, "{event}");
    }
}

/// Without huge pages, NUMA balancing migrates one page in each call, and each call is an event.
#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn migrations_agree_with_the_kernels_counters() {
    let bench = Bench::new();
    let text = "name = \"migrations\"\nboots = 1\n\
        [machine]\ncpus = 4\nmemory = \"1G\"\nnodes = 2\naccel = \"tcg\"\n\
        [sampler]\nevents = [\"migrate:mm_migrate_pages\"]\n\
        [[variant]]\nkernel = \"6.1\"\ncmdline = \"transparent_hugepage=never\"\n\
        [[workload]]\nname = \"autonuma\"\nparameters = { programs = \"NUMA01\" }\n";
    bench.run(text).expect(0);
    let boot = &bench.boots()[0];
    let grown = |source: &str, counter: &str| -> i64 {
        let chunks =
            boot.chunks.iter().filter(|it| it.source == source && it.workload == "autonuma");
        chunks.map(|chunk| chunk.difference(counter).unwrap()).sum()
    };
    let events = grown("events", "migrate:mm_migrate_pages");
    let [success, fail] = ["pgmigrate_success", "pgmigrate_fail"].map(|it| grown("vmstat", it));
    println!("{events} events, {success} pages migrated, {fail} not");
    assert!(success > 1000 && near(success + fail, events), "{events}, {success}, {fail}");
}

/// `perf stat` counts the same events at the same time. It runs a script that cuts the phase itself.
#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn perf_stat_counts_the_same() {
    let bench = Bench::new();
    let events = ["page-faults", "context-switches", "tlb:tlb_flush"];
    let inside = "echo phase faults >&$FAULTLINE_FD; dd bs=1 count=1 of=/dev/null <&$FAULTLINE_ACK_FD; \
        i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i + 1)); done; \
        echo phase after >&$FAULTLINE_FD; dd bs=1 count=1 of=/dev/null <&$FAULTLINE_ACK_FD";
    let script = format!(
        "perf stat -x , -o /tmp/stat -a -e {} -- sh -c '{inside}'; sed 's/^/note stat /' /tmp/stat >&$FAULTLINE_FD",
        events.join(",")
    );
    let manifest = format!(
        "name = \"stat\"\ndescription = \"perf stat\"\nmetrics = []\npackages = [\"linux-perf\", \"sed\"]\n\
         command = [\"sh\", \"-c\", {script:?}]\n"
    );
    bench.write("stat.toml", &manifest);
    let text = "[[variant]]\nkernel = \"6.1\"\n[[workload]]\nmanifest = \"stat.toml\"\n";
    bench.run(&experiment(&events, text)).expect(0);
    let boot = &bench.boots()[0];
    for name in events {
        let counted = growth(boot, "events", name).unwrap();
        let lines = boot.notes.iter().filter_map(|note| note.text.strip_prefix("stat "));
        let fields = lines.map(|line| line.split(',').collect::<Vec<_>>());
        let mut found = fields.filter(|fields| fields.get(2) == Some(&name));
        let fields = found.next().unwrap_or_else(|| panic!("{name}: {:?}", boot.notes));
        let stat: i64 = fields[0].parse().unwrap();
        println!("{name}: {counted}, perf stat {stat}");
        assert!(counted > 0 && stat >= counted && stat - counted <= 200 + stat / 20, "{name}");
    }
}

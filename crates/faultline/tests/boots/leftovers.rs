//! Checks that a workload does not find what an earlier one left.

use model::{Boot, NoteKind, Outcome, StatesFound};

use crate::common::Bench;

/// A program that leaves things or, as another workload, prints what it finds.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
static char block[1 << 20];
static void fill(const char *path, int blocks) {
    int file = open(path, O_CREAT | O_WRONLY, 0644);
    while (blocks--)
        if (write(file, block, sizeof block) < 0) { perror(path); exit(1); }
    close(file);
}
static int lines(const char *path, const char *word) {
    char line[4096];
    int count = 0;
    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof line, file)) count += strstr(line, word) != NULL;
    fclose(file);
    return count;
}
static long number(const char *path, const char *format) {
    char line[4096];
    long value = -1;
    FILE *file = fopen(path, "r");
    while (value < 0 && fgets(line, sizeof line, file)) sscanf(line, format, &value);
    fclose(file);
    return value;
}
static void set(const char *path, const char *value) {
    FILE *file = fopen(path, "w");
    if (!file || fputs(value, file) < 0 || fclose(file)) { perror(path); exit(1); }
}
static void enter_tracing(void) {
    mkdir("/tracing", 0755);
    if (mount("tracefs", "/tracing", "tracefs", 0, "")) { perror("tracefs"); exit(1); }
}
int main(int count, char **words) {
    if (strcmp(words[1], "leave") == 0) {
        enter_tracing();
        set("/tracing/current_tracer", "function");
        set("/tracing/events/enable", "1");
        set("/proc/sys/kernel/pid_max", "5000");
        set("/proc/sys/kernel/sched_schedstats", "1");
        memset(block, 1, sizeof block);
        fill("big", 150);
        fill("/dev/shm/big", 100);
        mkdir("/left", 0755);
        if (mount("tmpfs", "/left", "tmpfs", 0, "")) { perror("mount"); return 1; }
        fill("/left/big", 50);
        set("/proc/sys/vm/swappiness", "7");
        return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) < 0;
    }
    struct statfs root;
    statfs("/", &root);
    printf("tmpfs %d root\n", root.f_type == 0x01021994);
    printf("files %d left\n", !access("/big", F_OK) + !access("/dev/shm/big", F_OK) + !access("/left", F_OK));
    printf("mounts %d mounts\n", lines("/proc/mounts", " /left "));
    printf("swappiness %ld percent\n", number("/proc/sys/vm/swappiness", "%ld"));
    printf("pids %ld pids\n", number("/proc/sys/kernel/pid_max", "%ld"));
    printf("schedstats %ld on\n", number("/proc/sys/kernel/sched_schedstats", "%ld"));
    enter_tracing();
    printf("tracers %d tracers\n", !lines("/tracing/current_tracer", "nop"));
    printf("events %d events\n", !lines("/tracing/events/enable", "0"));
    printf("segments %d segments\n", lines("/proc/sysvipc/shm", "600"));
    printf("free %ld KiB\n", number("/proc/meminfo", "MemFree: %ld"));
    printf("names %ld unused\n", number("/proc/sys/fs/dentry-state", "%*d %ld"));
}
"#;

/// The value of a row of a workload.
fn value(boot: &Boot, workload: &str, label: &str) -> f64 {
    let mut samples = boot.samples.iter();
    let is_it = |it: &&model::Sample| it.workload == workload && it.label == label;
    samples.find(is_it).unwrap_or_else(|| panic!("{workload} has no {label}")).value
}

#[test]
fn a_workload_finds_nothing_of_the_one_before() {
    let bench = Bench::new();
    bench.compile("program", PROGRAM, &["-static"]);
    let mut workloads = String::new();
    for (name, word) in [("before", "look"), ("leave", "leave"), ("after", "look")] {
        let manifest = format!(
            "name = \"{name}\"\ndescription = \"x\"\nprogram = \"program\"\nplain = true\n\
             command = [\"{{program}}\", \"{word}\"]\n\
             [[metrics]]\nname = \"figure\"\nunit = \"\"\nmean = \"amean\"\n"
        );
        bench.write(&format!("{name}.toml"), &manifest);
        workloads += &format!("[[workload]]\nmanifest = \"{name}.toml\"\n");
    }
    let said = bench.run(&format!(
        "name = \"left\"\nmode = \"exact\"\nseeds = 1\n\
         [machine]\ncpus = 1\nnodes = 1\nmemory = \"512M\"\n\
         [[variant]]\nname = \"a\"\nkernel = \"debian:6.1\"\ncmdline = \"root=/dev/none\"\n{workloads}"
    ));
    let said = said.expect(0);
    assert!(said.err.contains("transparent huge pages: off"), "{}", said.err);
    let [boot] = &bench.boots()[..] else { panic!("not one boot") };
    assert_eq!(boot.outcome, Outcome::Complete);
    let left = boot.notes.iter().filter(|note| note.kind == NoteKind::Left);
    let left: Vec<String> = left.map(|note| note.to_string()).collect();
    assert_eq!(left, ["left by leave: the kernel's trace buffers"]);
    assert_eq!(
        (value(boot, "before", "tmpfs-root"), value(boot, "after", "tmpfs-root")),
        (1.0, 1.0)
    );
    for label in [
        "files-left", "mounts-mounts", "swappiness-percent", "pids-pids", "schedstats-on",
        "tracers-tracers", "events-events", "segments-segments",
    ] {
        assert_eq!(value(boot, "after", label), value(boot, "before", label), "{label}");
    }
    let free = |workload| value(boot, workload, "free-KiB");
    assert!(
        (free("after") - free("before")).abs() < 16_384.0,
        "{} {}",
        free("before"),
        free("after")
    );
    // The agent reads all settings before the first workload. Seeds look up fewer names before each.
    let names = |workload| value(boot, workload, "names-unused");
    assert!(
        names("before") > 600.0 && names("after") < 300.0,
        "{} {}",
        names("before"),
        names("after")
    );
    let mut states = boot.notes.iter().filter_map(StatesFound::of_note);
    assert!(states.all(|found| found.states.contains(&("THP", "never"))), "{:?}", boot.notes);
    let shown = bench.faultline(&["show", "b1"]).expect(0).out;
    assert!(shown.contains("\nstates        THP never; "), "{shown}");
}

//! Errors of guest, host and user are reported, and no data is lost.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Bench, LONGEST, experiment, quoted};
use flight::event::Event;
use flight::frame::{Frame, Kind};
use flight::log::Frames;
use machine::RECORDER_FILE;
use model::{Boot, Outcome, ProblemKind};

fn fault(mode: &str) -> String {
    let mut words = mode.splitn(2, ' ');
    let (kind, number) = (words.next().unwrap(), words.next().unwrap_or("3"));
    format!(
        "[[variant]]\nkernel = \"6.1\"\n[[workload]]\nname = \"fault\"\n\
         parameters = {{ fault = \"{kind}\", argument = {number} }}\n"
    )
}

fn samples(boot: &Boot) -> usize {
    boot.samples.iter().filter(|sample| sample.workload == "fault").count()
}

#[test]
fn a_panic_keeps_what_was_recorded() {
    let bench = Bench::new();
    bench.run(&experiment("panic", &fault("panic"))).expect(3);
    let boot = &bench.boots()[0];
    assert!(
        matches!(&boot.outcome, Outcome::Panicked(line) if line.contains("sysrq triggered crash")),
        "{}",
        boot.outcome
    );
    assert!(samples(boot) > 0);
    assert!(boot.problems.iter().any(|problem| problem.kind == ProblemKind::Bug));
    assert!(boot.chunks.iter().any(|chunk| chunk.source == "vmstat" && chunk.times.len() > 1));
    assert!(boot.console.contains("Kernel panic"));
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_hang_times_out_and_keeps_what_was_recorded() {
    let bench = Bench::new();
    bench.run(&experiment("hang", &fault("hang")).replace(LONGEST, "25s")).expect(3);
    let boot = &bench.boots()[0];
    // On a busy host the boot is invalid instead, with the same words.
    let (outcome, late) = (&boot.outcome, "the job was not complete 25s after the agent started");
    assert!(matches!(outcome, Outcome::TimedOut(_) | Outcome::Invalid(_)), "{outcome}");
    assert!(outcome.to_string().contains(late), "{outcome}");
    assert!(samples(boot) > 0);
}

/// Whether a running boot has recorded a sample.
fn samples_flow(bench: &Bench) -> bool {
    let running = bench.path("test.db.running");
    let directories = fs::read_dir(running).into_iter().flatten().flatten();
    let recordings = directories.filter_map(|it| fs::read(it.path().join(RECORDER_FILE)).ok());
    let is_sample = |frame: Frame<'_>| {
        frame.kind == Kind::Event as u16
            && matches!(Event::decode(frame.payload), Ok(Event::Sample { .. }))
    };
    recordings.into_iter().any(|bytes| Frames::new(&bytes).any(is_sample))
}

/// Runs `fault sleep`, and calls `strike` with the process ID of QEMU once it has recorded samples.
fn struck(bench: &Bench, strike: impl FnOnce(&mut std::process::Child, i32)) -> String {
    let text = experiment("struck", &fault("sleep 600")).replace(LONGEST, "20s");
    let file = bench.write("x.toml", &text);
    let mut child = bench.start(&["run", file.to_str().unwrap()]);
    while !samples_flow(bench) {
        assert!(child.try_wait().unwrap().is_none(), "it ends without a sample");
        sleep(Duration::from_millis(100));
    }
    let qemu = bench.qemu().expect("an emulator runs");
    strike(&mut child, qemu);
    String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
}

fn signal(name: &str, process: i32) {
    let sent = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_killed_emulator_keeps_what_was_recorded() {
    let bench = Bench::new();
    let said = struck(&bench, |_, qemu| signal("KILL", qemu));
    // The output says when a boot begins and when it ends, and does not name its phases.
    assert!(said.contains("boot 1 of 1: 6.1: booting\n") && !said.contains(": fault"), "{said}");
    let boots = bench.every_boot();
    let killed =
        |boot: &&Boot| matches!(&boot.outcome, Outcome::Invalid(how) if how.contains("SIGKILL"));
    let killed = boots.iter().find(killed).unwrap_or_else(|| panic!("{said}"));
    assert!(samples(killed) > 0);
    // The repeated boot is not killed.
    assert!(said.contains("Retrying boot 1: QEMU ended with signal: 9 (SIGKILL)"), "{said}");
    assert!(matches!(boots.last().unwrap().outcome, Outcome::TimedOut(_)), "{said}");
}

#[test]
fn a_boot_is_repeated_when_the_emulator_crashes() {
    let bench = Bench::new();
    // The first boot crashes. Only boots have the option `-display`, not queries about QEMU.
    let script = format!(
        "#!/bin/sh\nreal=$(PATH=${{PATH#*:}} command -v qemu-system-x86_64)\n\
         case \"$*\" in *-display*) mkdir {0} 2>/dev/null && kill -ABRT $$ ;; esac\n\
         exec \"$real\" \"$@\"\n",
        quoted(&bench.path("crashed"))
    );
    let emulator = bench.write("qemu-system-x86_64", &script);
    fs::set_permissions(&emulator, Permissions::from_mode(0o755)).unwrap();
    // The check whether KVM works is left out: it would take the crash for a no.
    let rest = format!("accel = \"tcg\"\n{}", fault("exit"));
    let file = bench.write("x.toml", &experiment("crash", &rest));
    let mut command = bench.command(&["run", file.to_str().unwrap()]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bench.directory.path().display()));
    let said = bench.said(command).expect(3);
    assert!(said.err.contains("Retrying boot 1: QEMU ended with"), "{}", said.err);
    let boots = bench.every_boot();
    let (last, invalid) = boots.split_last().unwrap();
    assert!(matches!(&last.outcome, Outcome::Failed(_)), "{}", last.outcome);
    // On a busy host the clock may spoil the second boot too.
    assert!((1..=2).contains(&invalid.len()), "{}", invalid.len());
    for boot in invalid {
        assert!(matches!(&boot.outcome, Outcome::Invalid(_)), "{}", boot.outcome);
    }
    let shown = bench.faultline(&["show", "crash"]).expect(0);
    assert!(shown.out.contains("(superseded)"), "{}", shown.out);
}

#[test]
fn a_stopped_guest_times_out_and_keeps_what_was_recorded() {
    let bench = Bench::new();
    let said = struck(&bench, |_, qemu| signal("STOP", qemu));
    let boot = &bench.boots()[0];
    assert!(matches!(boot.outcome, Outcome::TimedOut(_)), "{}\n{said}", boot.outcome);
    assert!(samples(boot) > 0);
    assert_eq!(bench.qemu(), None);
}

#[test]
fn the_next_run_stores_what_a_killed_run_left() {
    let bench = Bench::new();
    struck(&bench, |child, _| child.kill().unwrap());
    bench.await_no_qemu();
    let text = experiment("after", &fault("exit"));
    let said = bench.run(&text).expect(3);
    assert!(said.err.contains("that an interrupted run left: interrupted"), "{}", said.err);
    let shown = bench.faultline(&["show", "struck"]).expect(0);
    assert!(shown.out.contains("interrupted"), "{}", shown.out);
    let failed = &bench.boots()[0];
    assert!(
        matches!(&failed.outcome, Outcome::Failed(why) if why.contains('3')),
        "{}",
        failed.outcome
    );
}

#[test]
fn an_interrupted_run_says_what_is_kept_and_can_be_resumed() {
    let bench = Bench::new();
    let file = bench.write("x.toml", &experiment("interrupted", &fault("exit")));
    let mut child = bench.start(&["run", file.to_str().unwrap()]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line.contains(": booting")));
    signal("INT", child.id() as i32);
    let said: Vec<String> = lines.collect();
    assert!(
        said.iter().any(|line| line.contains("interrupted. This run stored 0 boots.")),
        "{said:?}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    bench.await_no_qemu();
    bench.faultline(&["run", file.to_str().unwrap()]).expect(3);
    assert!(matches!(&bench.boots().last().unwrap().outcome, Outcome::Failed(_)));
}

#[test]
fn a_kernel_that_panics_at_boot_is_reported_and_others_are_kept() {
    let bench = Bench::new();
    let variants = "[[variant]]\nname = \"no-init\"\nkernel = \"6.1\"\n\
                    cmdline = \"rdinit=/nowhere\"\n\
                    [[variant]]\nname = \"misspelt\"\nkernel = \"6.1\"\n\
                    sysctl = { \"kernel.numa_balncing\" = 0 }\n\
                    [[variant]]\nname = \"moduleless\"\nkernel = \"6.1\"\n\
                    modules = [\"no_such_module\"]\n\
                    [[variant]]\nname = \"garbage\"\nkernel = \"6.1\"\n\
                    [[workload]]\nname = \"fault\"\nparameters = { fault = \"garbage\" }\n";
    let said = bench.run(&experiment("wrong", variants)).expect(3);
    assert!(said.out.contains("4 of them failed"), "{}", said.out);
    let boots = bench.boots();
    let outcome =
        |name: &str| boots.iter().find(|boot| boot.variant == name).unwrap().outcome.to_string();
    assert!(outcome("no-init").starts_with("kernel panic: "), "{}", outcome("no-init"));
    assert!(outcome("misspelt").contains("kernel.numa_balncing"), "{}", outcome("misspelt"));
    assert!(outcome("moduleless").contains("no_such_module"), "{}", outcome("moduleless"));
    assert!(outcome("garbage").contains("phase, sample"), "{}", outcome("garbage"));
    let compared = bench.faultline(&["compare"]).expect(0);
    assert!(compared.out.contains("no-init"), "{}", compared.out);
}

#[test]
fn a_failed_workload_is_reported_and_the_others_count() {
    let bench = Bench::new();
    let manifest = "name = \"gone\"\ndescription = \"\"\ncommand = [\"/nowhere/gone\"]\n\
                    metrics = []\n";
    bench.write("gone.toml", manifest);
    let silent = "name = \"silent\"\ndescription = \"\"\ncommand = [\"busybox\", \"echo\", \"5 MB/s\"]\n\
                  metrics = [{ name = \"Rate\", unit = \"MB/s\", mean = \"hmean\" }]\n";
    bench.write("silent.toml", silent);
    let strange = "name = \"strange\"\ndescription = \"\"\n\
                   command = [\"/faultline/workloads\", \"fault\", \"sleep\", \"1\"]\n\
                   metrics = [{ name = \"Rate\", unit = \"MB/s\", mean = \"hmean\" }]\n";
    bench.write("strange.toml", strange);
    let shell = kernels::Cache::open().unwrap().shell(&|_| {}).unwrap();
    fs::copy(shell, bench.path("busybox")).unwrap();
    let failing = [
        ("manifest = \"gone.toml\"", "/nowhere/gone cannot be started (No such file"),
        (
            "manifest = \"silent.toml\"\nprogram = \"busybox\"",
            "it exited with status 0 but printed no result; its last output was: 5 MB/s",
        ),
        (
            // The disk has 61 MiB, but the file system needs a part of it.
            "name = \"paralleldd\"\nparameters = { size = 3 }",
            "the disk on /disk0 is full: make it larger",
        ),
        (
            "name = \"fault\"\nparameters = { argument = 600 }\ntimeout = \"1s\"",
            "it took longer than 1s",
        ),
    ];
    let mut text = "[[machine.disk]]\nsize = \"64M\"\nfilesystem = \"ext4\"\n\
                    [[variant]]\nkernel = \"6.1\"\n"
        .to_owned();
    for (workload, _) in failing {
        text.push_str(&format!("[[workload]]\n{workload}\n"));
    }
    text.push_str("[[workload]]\nmanifest = \"strange.toml\"\n");
    let said = bench.run(&experiment("stuck", &text).replace("boots = 1", "boots = 2")).expect(3);
    for told in ["does not declare, so they have no verdict: Count", "of its manifest: Rate"] {
        assert_eq!(said.err.matches(told).count(), 1, "{}", said.err);
    }
    let boots = bench.boots();
    assert_eq!(boots.len(), 2);
    for boot in &boots {
        let Outcome::Partial(why) = &boot.outcome else { panic!("{}", boot.outcome) };
        for (_, told) in failing {
            assert!(why.contains(told), "{why}");
        }
        assert!(boot.samples.iter().any(|sample| sample.workload == "strange"));
        assert!(boot.samples.iter().all(|sample| sample.workload == "strange"));
        assert!(boot.chunks.iter().any(|chunk| chunk.workload == "strange"));
    }
    let compared = bench.faultline(&["compare"]).expect(0).out;
    assert!(compared.contains("failed in part"), "{compared}");
    // These boots are done, and have failed.
    let file = bench.path("x.toml");
    bench.faultline(&["run", file.to_str().unwrap()]).expect(3);
    assert_eq!(bench.boots().len(), boots.len());
}

#[test]
fn an_impossible_topology_is_reported_with_its_line() {
    let bench = Bench::new();
    let text = experiment("t", &fault("exit")).replace("nodes = 2", "nodes = 9");
    let said = bench.run(&text).expect(2);
    assert!(said.err.contains("4 CPUs cannot be divided over 9 nodes"), "{}", said.err);
    assert!(said.err.contains("x.toml:4"), "{}", said.err);
}

#[test]
fn an_invalid_parameter_is_reported_before_any_boot() {
    let bench = Bench::new();
    let workload = "[[variant]]\nkernel = \"6.1\"\n[[workload]]\nname = \"autonuma\"\n\
                    parameters = { share = 60 }\n";
    let said = bench.run(&experiment("t", workload)).expect(2);
    assert!(said.err.contains("workload `autonuma` cannot have share = \"60\""), "{}", said.err);
    assert!(said.err.contains("x.toml:12:"), "{}", said.err);
    assert!(said.err.contains("a number above 0, at most 45"), "{}", said.err);
    for (set, told) in [
        (
            &["--set", "scale=fast"][..],
            "`autonuma` cannot have scale = \"fast\": use a number above 0",
        ),
        (&["--set", "scal=1"], "`autonuma` has no parameter `scal`: did you mean `scale`?"),
        (&["--workload", "pgbench"], "`pgbench` needs a disk, and the machine has none"),
        (&["--nodes", "1"], "`autonuma` needs 2 NUMA nodes, but variant"),
    ] {
        for command in [&["run", "--kernels", "6.1"][..], &["selftest", "--kernel", "6.1"]] {
            let said = bench.faultline(&[command, set].concat()).expect(2);
            assert!(said.err.contains(told), "{}", said.err);
        }
    }
    assert!(!bench.store_path().exists());
}

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use flight::event::Hello;
use model::{Disk, DiskKind, Millis, Topology};

use super::testing::{HANG, LONG, SHORT, recording};
use super::*;
use crate::process::testing::script;
use crate::{Emulator, Engine, Exact, Plugin, Time, read_log};

fn limits(boot: Millis, run: Millis, shutdown: Millis) -> Limits {
    Limits { boot, run, shutdown }
}

/// Runs this script as QEMU. Returns the ending and the events.
fn run_fake(directory: &Path, body: &str, limits: &Limits) -> (Ending, Vec<Event>) {
    run_engine(directory, Engine::Tcg, body, limits)
}

/// Runs this script as QEMU of this engine. Returns the ending and the events.
fn run_engine(
    directory: &Path,
    engine: Engine<'_>,
    body: &str,
    limits: &Limits,
) -> (Ending, Vec<Event>) {
    let emulator = Emulator::unchecked(&script(directory, body), 10);
    let mut events = Vec::new();
    let mut watch = |event: &Event| events.push(event.clone());
    let ending = with_vm(directory, &emulator, engine, 1, limits, |vm| run(vm, &mut watch));
    (ending.unwrap(), events)
}

/// The end by this limit, by the host's time.
fn wall(stage: fn(Time) -> Limit) -> How {
    How::TimedOut(stage(Time::Wall(SHORT)))
}

/// Calls a function with a machine that has this number of CPUs.
fn with_vm<T>(
    directory: &Path,
    emulator: &Emulator,
    engine: Engine<'_>,
    cpus: u32,
    limits: &Limits,
    act: impl FnOnce(&Vm<'_>) -> T,
) -> T {
    act(&Vm {
        emulator,
        engine,
        topology: &Topology::even(cpus, Bytes::mib(128), 1).unwrap(),
        disks: &[],
        userspace: None,
        image: Path::new("vmlinux"),
        initramfs: Path::new("initramfs"),
        cmdline: "",
        directory,
        recorder: Bytes::mib(1),
        limits,
    })
}

/// The inputs of an exact machine whose libraries are empty files, and its plugin if requested.
fn exact(directory: &Path, clock: &str, plugin: bool) -> Exact {
    let file = |name: &str| {
        let path = directory.join(name);
        File::create(&path).unwrap();
        path
    };
    let plugin = plugin.then(|| Plugin {
        path: file("libtcg.so"),
        accesses: false,
        stacks: true,
        each: false,
        turn: None,
        memory_model: None,
        transfers: None,
        switch: None,
        functions: vec![7, 8],
    });
    Exact { seed: 1, clock: file(clock), plugin }
}

fn hello() -> Event {
    Event::Hello(Hello::default())
}

#[test]
fn a_failing_emulator_is_quoted() {
    let directory = tempfile::tempdir().unwrap();
    let body = "echo 'qemu: cannot set up guest memory' >&2; exit 1";
    let (ending, events) = run_fake(directory.path(), body, &limits(LONG, LONG, LONG));
    let expected = "QEMU ended with exit status: 1: qemu: cannot set up guest memory";
    assert_eq!(ending.how, How::Died(expected.to_owned()));
    assert!(events.is_empty());
}

#[test]
fn each_stage_has_its_limit() {
    let bye = Event::Bye { tainted: 0 };
    let cases = [
        (vec![], limits(SHORT, LONG, LONG), wall(Limit::Boot)),
        (vec![hello()], limits(LONG, SHORT, LONG), wall(Limit::Run)),
        (vec![hello(), bye], limits(LONG, LONG, SHORT), wall(Limit::Shutdown)),
    ];
    for (recorded, limits, how) in cases {
        let directory = tempfile::tempdir().unwrap();
        let body = format!("{}\n{HANG}", recording(directory.path(), &recorded));
        let (ending, events) = run_fake(directory.path(), &body, &limits);
        assert_eq!(ending.how, how);
        // It slept, so it did not wait for a CPU.
        assert!(ending.time.unwrap().ends_with("so the host is not to blame"));
        assert!(ending.wall >= Duration::from_millis(SHORT.0));
        assert!(how == wall(Limit::Boot) || events == recorded);
    }
}

#[test]
fn the_limits_of_an_exact_machine_are_of_cpu_time() {
    let directory = tempfile::tempdir().unwrap();
    let exact = exact(directory.path(), "libstillclock.so", false);
    let engine = Engine::Exact(&exact);
    let recorded = [hello(), Event::Bye { tainted: 0 }];
    // The script waits longer than its limits, as on a busy host.
    let body = format!(
        r#"sleep 1
        {}
        sleep 1
        echo '{{"event": "SHUTDOWN", "data": {{"guest": true, "reason": "guest-shutdown"}}}}'"#,
        recording(directory.path(), &recorded)
    );
    let limit = Millis(500);
    let (ending, events) =
        run_engine(directory.path(), engine, &body, &limits(limit, limit, limit));
    assert_eq!((ending.how, &*events), (How::PoweredOff, &recorded[..]));

    let spin = "while :; do :; done";
    let (ending, _) = run_engine(directory.path(), engine, spin, &limits(limit, LONG, LONG));
    assert_eq!(ending.how, How::TimedOut(Limit::Boot(Time::Cpu(limit))));
    assert_eq!(ending.how.to_string(), "the agent did not start within 500ms of CPU time");
    assert!(
        ending.time.unwrap().starts_with("the limit is of CPU time, of which QEMU used 0 s in ")
    );
}

#[test]
fn repeated_events_do_not_extend_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let recorded = [hello(), Event::Bye { tainted: 0 }, hello()];
    let body = format!("{}\n{HANG}", recording(directory.path(), &recorded));
    let (ending, _) = run_fake(directory.path(), &body, &limits(LONG, LONG, SHORT));
    assert_eq!(ending.how, wall(Limit::Shutdown));
}

#[test]
fn the_recording_before_a_kill_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let recorded = [hello(), Event::Note("before".into())];
    let body = format!("{}\nkill -KILL $$", recording(directory.path(), &recorded));
    let (ending, events) = run_fake(directory.path(), &body, &limits(LONG, LONG, LONG));
    assert_eq!(ending.how, How::Crashed("QEMU ended with signal: 9 (SIGKILL)".into()));
    assert_eq!(events, recorded);
    let log = read_log(directory.path()).unwrap();
    assert_eq!(log, fs::read(directory.path().join("frames")).unwrap());
}

#[test]
fn a_crash_of_the_emulator_says_nothing_about_the_guest() {
    for signal in ["ABRT", "BUS"] {
        let directory = tempfile::tempdir().unwrap();
        let body = format!("echo 'Assertion failed.' >&2; kill -{signal} $$");
        let (ending, _) = run_fake(directory.path(), &body, &limits(LONG, LONG, LONG));
        let how = ending.how.to_string();
        assert!(matches!(ending.how, How::Crashed(_)), "{how}");
        assert!(how.contains(signal) && how.ends_with(": Assertion failed."), "{how}");
    }
}

/// The error of this script as QEMU.
fn error_of(directory: &Path, body: &str) -> String {
    let emulator = Emulator::unchecked(&script(directory, body), 10);
    let limits = limits(LONG, LONG, LONG);
    let run = |vm: &Vm<'_>| run(vm, &mut |_| {});
    with_vm(directory, &emulator, Engine::Tcg, 1, &limits, run).unwrap_err().to_string()
}

#[test]
fn a_lack_of_memory_or_space_is_the_hosts_failure() {
    let directory = tempfile::tempdir().unwrap();
    let body = "echo \"cannot set up guest memory 'ram': Cannot allocate memory\" >&2; exit 1";
    let error = error_of(directory.path(), body);
    let told = "the host has too little free memory for the machine: ";
    assert!(error.starts_with(told) && error.ends_with("Cannot allocate memory"), "{error}");
    // The plugin reports a full disk, and QEMU continues.
    let body = "echo 'the profile cannot be written and ends here: No space left on device' >&2";
    let error = error_of(directory.path(), body);
    assert!(error.contains("but a machine needs 1M for its recording"), "{error}");
}

#[test]
fn the_cause_of_an_end_comes_from_qmp() {
    let cases = [
        ("guest-shutdown", How::PoweredOff),
        ("guest-reset", How::Reset),
        ("host-signal", How::Crashed("QEMU ended with exit status: 0 (host-signal)".into())),
    ];
    for (cause, how) in cases {
        let directory = tempfile::tempdir().unwrap();
        let body = format!(
            r#"echo '{{"QMP": {{}}}}'
            read command
            echo '{{"return": {{}}}}'
            echo '{{"event": "SHUTDOWN", "data": {{"guest": true, "reason": "{cause}"}}}}'"#
        );
        let (ending, _) = run_fake(directory.path(), &body, &limits(LONG, LONG, LONG));
        assert_eq!(ending.how, how);
    }
}

#[test]
fn a_stopped_guest_has_a_remark() {
    let directory = tempfile::tempdir().unwrap();
    let record = recording(directory.path(), &[hello()]);
    let body = format!("echo '{{\"event\": \"STOP\"}}'\n{record}\n{HANG}");
    let (ending, _) = run_fake(directory.path(), &body, &limits(LONG, SHORT, LONG));
    assert_eq!(ending.how, wall(Limit::Run));
    assert!(ending.remarks[0].contains("stopped"), "{:?}", ending.remarks);
}

#[test]
fn too_much_output_ends_the_machine() {
    let cases = [
        (CONSOLE_FILE, "65M", "the guest wrote more than 64M to its console"),
        (PROFILE_FILE, "2049M", "the plugin wrote a profile of more than 2G"),
    ];
    for (name, size, expected) in cases {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(name);
        let body = format!("truncate -s {size} {}\n{HANG}", file.display());
        let (ending, _) = run_fake(directory.path(), &body, &limits(LONG, LONG, LONG));
        assert_eq!(ending.how, How::Died(expected.into()));
    }
}

#[test]
fn an_earlier_recording_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let body = recording(directory.path(), &[hello()]);
    run_fake(directory.path(), &body, &limits(LONG, LONG, LONG));
    let (_, events) = run_fake(directory.path(), "exit 0", &limits(LONG, LONG, LONG));
    assert!(events.is_empty() && read_log(directory.path()).unwrap().is_empty());
}

#[test]
fn only_an_exact_machine_has_the_still_clock() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let exact = exact(directory, "libstillclock.so", false);
    let said = directory.join("said");
    let body = format!("echo \"$LD_PRELOAD\" >{}", said.display());
    let emulator = Emulator::unchecked(&script(directory, &body), 10);
    let limits = limits(LONG, LONG, LONG);
    for (engine, expected) in
        [(Engine::Exact(&exact), exact.clock.display().to_string()), (Engine::Tcg, String::new())]
    {
        with_vm(directory, &emulator, engine, 2, &limits, |vm| run(vm, &mut |_| {})).unwrap();
        assert_eq!(fs::read_to_string(&said).unwrap().trim_end(), expected);
    }
}

#[test]
fn the_plugins_files_can_have_any_path() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join(OsStr::from_bytes(b"a,\xff"));
    fs::create_dir(&directory).unwrap();
    let exact = exact(place.path(), "libstillclock.so", true);
    let emulator = script(place.path(), "cat \"$FAULTLINE_FUNCTIONS\" >\"$FAULTLINE_PROFILE\"");
    let emulator = Emulator::unchecked(&emulator, 10);
    let limits = limits(LONG, LONG, LONG);
    let ran = |vm: &Vm<'_>| run(vm, &mut |_| {});
    with_vm(&directory, &emulator, Engine::Exact(&exact), 2, &limits, ran).unwrap();
    assert_eq!(fs::read(directory.join(PROFILE_FILE)).unwrap(), pack_functions(&[7, 8]));
}

#[test]
fn exact_machines_have_no_disks_of_host_threads() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let exact = exact(directory, "libstillclock.so", false);
    let emulator = Emulator::unchecked(&script(directory, "exit 0"), 10);
    let limits = limits(LONG, LONG, LONG);
    let ran = |engine, kind| {
        let disk = |kind| Disk { kind, size: Bytes::mib(2), format: None };
        let disks = [disk(DiskKind::Pmem), disk(kind)];
        let run = |vm: &Vm<'_>| run(&Vm { disks: &disks, ..*vm }, &mut |_| {});
        with_vm(directory, &emulator, engine, 1, &limits, run)
    };
    for kind in [DiskKind::VirtioBlk, DiskKind::Nvme] {
        let error = ran(Engine::Exact(&exact), kind).unwrap_err().to_string();
        let expected = format!("disk 1 is {}, which is not exact", kind.name());
        assert!(error.contains(&expected) && error.contains("kind = \"pmem\""), "{error}");
        ran(Engine::Tcg, kind).unwrap();
    }
    for kind in [DiskKind::Pmem, DiskKind::Ram] {
        ran(Engine::Exact(&exact), kind).unwrap();
    }
}

#[test]
fn a_machine_that_cannot_be_exact_is_an_error_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let whole = exact(directory, "libstillclock.so", true);
    let bare = Exact { plugin: None, ..whole.clone() };
    let no_clock = Exact { clock: directory.join("nowhere.so"), ..whole.clone() };
    let split = exact(directory, "still clock.so", false);
    let mut no_plugin = whole.clone();
    no_plugin.plugin.as_mut().unwrap().path = directory.join("nowhere.so");
    let cases = [
        (&bare, 9, 2, "exact mode needs version 10"),
        (&whole, 9, 1, "exact mode needs version 10"),
        (&whole, 11, 1, "exact mode needs version 10"),
        (&no_clock, 10, 1, "nowhere.so does not exist, but QEMU loads it in exact mode"),
        (&no_plugin, 10, 1, "build it with `make build`"),
        (&split, 10, 1, "a colon or a space"),
    ];
    let limits = limits(LONG, LONG, LONG);
    for (exact, major, cpus, complaint) in cases {
        let emulator = Emulator::unchecked(&script(directory, "exit 0"), major);
        let engine = Engine::Exact(exact);
        let refused =
            with_vm(directory, &emulator, engine, cpus, &limits, |vm| run(vm, &mut |_| {}));
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
    let emulator = Emulator::unchecked(&script(directory, "exit 0"), 10);
    let engine = Engine::Exact(&whole);
    let refused = with_vm(directory, &emulator, engine, 1, &limits, run_interactive);
    assert!(matches!(refused, Err(Error::ExactTerminal)));
    let old = Emulator::unchecked(&script(directory, "exit 0"), 7);
    let engine = Engine::Exact(&bare);
    with_vm(directory, &old, engine, 1, &limits, |vm| run(vm, &mut |_| {})).unwrap();
}

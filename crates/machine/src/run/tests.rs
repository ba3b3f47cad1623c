use flight::event::Hello;
use model::{Millis, Topology};

use super::testing::{HANG, LONG, SHORT, recording};
use super::*;
use crate::process::testing::script;
use crate::{Emulator, Engine, read_log};

fn limits(boot: Millis, run: Millis, shutdown: Millis) -> Limits {
    Limits { boot, run, shutdown }
}

/// Runs a fake QEMU of this body; gives the ending and the events seen.
fn run_fake(directory: &Path, body: &str, limits: &Limits) -> (Ending, Vec<Event>) {
    let vm = Vm {
        emulator: &Emulator::unchecked(&script(directory, body), 10),
        engine: Engine::Tcg,
        topology: &Topology::even(1, Bytes::mib(128), 1).unwrap(),
        image: Path::new("vmlinux"),
        initramfs: Path::new("initramfs"),
        cmdline: "",
        directory,
        recorder: Bytes::mib(1),
        limits,
    };
    let mut events = Vec::new();
    let ending = run(&vm, &mut |event| events.push(event.clone())).unwrap();
    (ending, events)
}

fn hello() -> Event {
    Event::Hello(Hello::default())
}

#[test]
fn an_emulator_that_refuses_is_quoted() {
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
        (vec![], limits(SHORT, LONG, LONG), Limit::Boot(SHORT)),
        (vec![hello()], limits(LONG, SHORT, LONG), Limit::Run(SHORT)),
        (vec![hello(), bye], limits(LONG, LONG, SHORT), Limit::Shutdown(SHORT)),
    ];
    for (recorded, limits, limit) in cases {
        let directory = tempfile::tempdir().unwrap();
        let body = format!("{}\n{HANG}", recording(directory.path(), &recorded));
        let (ending, events) = run_fake(directory.path(), &body, &limits);
        assert_eq!(ending.how, How::TimedOut(limit));
        assert!(ending.wall >= Duration::from_millis(SHORT.0));
        assert!(matches!(limit, Limit::Boot(_)) || events == recorded);
    }
}

#[test]
fn a_guest_that_repeats_itself_gains_no_time() {
    let directory = tempfile::tempdir().unwrap();
    let recorded = [hello(), Event::Bye { tainted: 0 }, hello()];
    let body = format!("{}\n{HANG}", recording(directory.path(), &recorded));
    let (ending, _) = run_fake(directory.path(), &body, &limits(LONG, LONG, SHORT));
    assert_eq!(ending.how, How::TimedOut(Limit::Shutdown(SHORT)));
}

#[test]
fn what_was_recorded_before_a_kill_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let recorded = [hello(), Event::Note("before".into())];
    let body = format!("{}\nkill -KILL $$", recording(directory.path(), &recorded));
    let (ending, events) = run_fake(directory.path(), &body, &limits(LONG, LONG, LONG));
    assert_eq!(ending.how, How::Died("QEMU ended with signal: 9 (SIGKILL)".into()));
    assert_eq!(events, recorded);
    let log = read_log(directory.path()).unwrap();
    assert_eq!(log, fs::read(directory.path().join("frames")).unwrap());
}

#[test]
fn the_cause_of_an_end_is_heard() {
    let cases = [
        ("guest-shutdown", How::PoweredOff),
        ("guest-reset", How::Reset),
        ("host-signal", How::Died("QEMU ended with exit status: 0 (host-signal)".into())),
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
fn a_stopped_guest_is_remarked() {
    let directory = tempfile::tempdir().unwrap();
    let record = recording(directory.path(), &[hello()]);
    let body = format!("echo '{{\"event\": \"STOP\"}}'\n{record}\n{HANG}");
    let (ending, _) = run_fake(directory.path(), &body, &limits(LONG, SHORT, LONG));
    assert_eq!(ending.how, How::TimedOut(Limit::Run(SHORT)));
    assert!(ending.remarks[0].contains("stopped"), "{:?}", ending.remarks);
}

#[test]
fn a_flood_on_the_console_ends_the_machine() {
    let directory = tempfile::tempdir().unwrap();
    let console = directory.path().join(CONSOLE_FILE);
    let body = format!("truncate -s 65M {}\n{HANG}", console.display());
    let (ending, _) = run_fake(directory.path(), &body, &limits(LONG, LONG, LONG));
    let expected = "the guest wrote more than 64M to its console";
    assert_eq!(ending.how, How::Died(expected.into()));
}

#[test]
fn an_earlier_recording_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let body = recording(directory.path(), &[hello()]);
    run_fake(directory.path(), &body, &limits(LONG, LONG, LONG));
    let (_, events) = run_fake(directory.path(), "exit 0", &limits(LONG, LONG, LONG));
    assert!(events.is_empty() && read_log(directory.path()).unwrap().is_empty());
}

//! Sessions on this host, without a VM. Tests that write a setting need root, and take one that harms nothing.

mod said;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use said::Said;

/// How often the kernel folds counters of CPUs, in seconds (`vm.stat_interval`).
const SETTING: &str = "/proc/sys/vm/stat_interval";
/// Instants at which a run is killed.
const KILLS: u64 = 20;

/// A directory with a store, a journal and a program.
struct Place {
    directory: TempDir,
    program: PathBuf,
}

impl Place {
    fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("work.sh");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory, program }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
        command.arg("--store").arg(self.directory.path().join("store.db")).args(arguments);
        command.env("XDG_CACHE_HOME", self.directory.path().join("cache"));
        command.env("XDG_STATE_HOME", self.directory.path().join("state"));
        command
    }

    fn faultline(&self, arguments: &[&str]) -> Said {
        Said::of(&mut self.command(arguments))
    }

    /// `try` on this host with these options.
    fn attempt(&self, options: &[&str]) -> Command {
        let program = self.program.to_str().unwrap();
        self.command(&[&["try", "--on", "host", "-q"], options, &["--", program]].concat())
    }
}

/// Tests that write the setting take turns.
static TURN: Mutex<()> = Mutex::new(());

/// The turn of a test that writes the setting. `None` if this user cannot write it: says that the test is skipped.
fn turn() -> Option<MutexGuard<'static, ()>> {
    if let Err(error) = fs::OpenOptions::new().write(true).open(SETTING) {
        eprintln!("skipped: {SETTING}: {error}");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

fn setting() -> String {
    fs::read_to_string(SETTING).unwrap().trim().to_owned()
}

#[test]
fn a_program_runs_in_its_place_with_the_users_environment() {
    let place = Place::new("echo \"here: $(pwd) $OF_USER\"; (sleep 1000000 &) ; test -x \"$0\"");
    let said = Said::of(place.attempt(&[]).env("OF_USER", "yes").current_dir("/usr")).expect(0);
    assert!(said.out.contains("work.sh: pooled over 1 boot"), "{}", said.out);
    let boot = place.faultline(&["show", "b1"]).expect(0).out;
    assert!(boot.contains("here: /usr yes"), "{boot}");
    assert!(boot.contains("(native)") && boot.contains(" vmstat "), "{boot}");
    // The process that the program left in the background did not outlive the session.
    let sleeps = Said::of(Command::new("pgrep").args(["-f", "^sleep 1000000$"])).out;
    let own = |pid: &&str| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(11).any(|it| it == b"OF_USER=yes")
    };
    assert_eq!(sleeps.lines().find(own), None);
}

#[test]
fn what_needs_a_vm_is_refused_by_name() {
    let place = Place::new("exit 0");
    for (options, told) in [
        (&["--cpus", "2"][..], "--cpus: cpus is for VMs, and this machine is a host"),
        (&["--disk", "1G"], "--disk: disk is for VMs"),
        (&["--exact"], "--on host: exact mode needs a VM"),
        (&["6.12"], "`6.12` is a kernel to boot, and this machine is a host"),
        (&["--sysctl", "vm.no_such_thing=1"], "this kernel does not have it"),
        (&["--sysctl", "kernel.ostype=a,b"], "the kernel only lets it be read"),
        (
            &["--sysctl", "vm.swappiness=1", "--sysctl", "vm.swappiness=2"],
            "--sysctl names vm.swappiness twice",
        ),
        (&["--save", "x"], "--save and --with pack files for VMs"),
    ] {
        let said = Said::of(&mut place.attempt(options));
        assert!(said.code == Some(2) && said.err.contains(told), "{options:?}: {}", said.err);
    }
    let run = ["run", "--on", "host", "--workload", "pagealloc"];
    let said = place.faultline(&run);
    assert!(said.err.contains("kernel modules, which Faultline loads only in VMs"), "{}", said.err);
}

#[test]
fn a_comparison_says_that_it_is_of_one_boot() {
    let Some(_turn) = turn() else { return };
    let before = setting();
    let place = Place::new("cat /proc/sys/vm/stat_interval");
    let option = format!("vm.stat_interval=3{before},4{before}");
    let said = Said::of(&mut place.attempt(&["--sysctl", &option, "--at-most", "4"])).expect(0);
    assert_eq!(setting(), before);
    let scope = "within one boot of this host";
    assert!(said.out.contains(scope), "{}", said.out);
    for format in ["text", "mail", "html", "json"] {
        let compared = place.faultline(&["compare", "--format", format]).expect(0).out;
        let flat = compared.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(scope), "{format}: {compared}");
    }
    // Each session ran with its setting.
    for (boot, value) in [("b1", format!("3{before}")), ("b2", format!("4{before}"))] {
        let shown = place.faultline(&["show", boot]).expect(0).out;
        assert!(shown.contains(&format!("note          {value}")) || shown.contains(&value));
    }
    assert_eq!(
        place.faultline(&["machine", "restore"]).expect(0).out,
        "No run left a changed setting.\n"
    );
}

/// A run of a new store that changes the setting again and again.
fn changing(before: &str) -> (Place, Child) {
    let place = Place::new("sleep 0.05");
    let option = format!("vm.stat_interval=5{before},6{before}");
    let mut command = place.attempt(&["--sysctl", &option, "--at-most", "32"]);
    let run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    (place, run)
}

/// Waits until the run has changed the setting, or has ended.
fn await_change(before: &str, run: &mut Child) {
    while setting() == before && run.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_run_killed_at_any_instant_leaves_no_setting() {
    let Some(_turn) = turn() else { return };
    let before = setting();
    let mut changed = 0;
    for kill in 0..KILLS {
        let (place, mut run) = changing(&before);
        // The instants are spread over the start and several sessions. However slow the host is, some are in a session.
        if kill % 2 == 0 {
            await_change(&before, &mut run);
        }
        thread::sleep(Duration::from_millis(kill * 37));
        run.kill().unwrap();
        run.wait().unwrap();
        changed += u64::from(setting() != before);
        place.faultline(&["machine", "restore"]).expect(0);
        assert_eq!(setting(), before, "kill {kill}");
    }
    assert!(changed > 0, "no run was killed while it had changed the setting");
}

#[test]
fn what_somebody_else_set_meanwhile_is_left_alone() {
    let Some(_turn) = turn() else { return };
    let before = setting();
    // A run can end a session between the two looks at the setting.
    for _ in 0..100 {
        let (place, mut run) = changing(&before);
        await_change(&before, &mut run);
        run.kill().unwrap();
        run.wait().unwrap();
        if setting() == before {
            continue;
        }
        let other = format!("7{before}");
        fs::write(SETTING, &other).unwrap();
        let said = place.faultline(&["machine", "restore"]);
        let now = setting();
        fs::write(SETTING, &before).unwrap();
        assert!(now == other && said.out.contains("was left alone"), "{now}: {}", said.out);
        return;
    }
    panic!("no run was killed while it had changed the setting");
}

#[test]
fn a_directory_for_the_journal_is_made_only_for_settings() {
    let place = Place::new("exit 0");
    Said::of(&mut place.attempt(&[])).expect(0);
    assert!(!Path::new(&place.directory.path().join("state")).exists());
}

impl Place {
    /// `record` of the program with these options.
    fn record(&self, options: &[&str]) -> Command {
        let program = self.program.to_str().unwrap();
        self.command(&[&["record"], options, &["--", program, "argument"]].concat())
    }
}

#[test]
fn a_recorded_command_has_our_streams_and_gives_its_status() {
    let place =
        Place::new("cat; echo \"for $1\" >&2; ls /proc/self/fd | grep -cx '[789]'; exit 77");
    let mut command = place.record(&["-q"]);
    let mut run = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    run.stdin.take().unwrap().write_all(b"from here\n").unwrap();
    let ended = run.wait_with_output().unwrap();
    let [out, err] = [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(ended.status.code(), Some(77), "{err}");
    // Nothing is left of the numbers under which the agent had the streams.
    assert_eq!(out, "from here\n0\n");
    let told = "b1: failed: workload work.sh, iteration 0: it exited with status 77";
    assert!(err.starts_with("for argument\n") && err.contains(told), "{err}");
    let killed = Place::new("kill -9 $$");
    Said::of(&mut killed.record(&["-q"])).expect(128 + 9);
}

#[test]
fn records_count_faults_and_are_compared() {
    let place = Place::new("head -c 64M /dev/zero | tail -c 1 >/dev/null; echo out");
    let said = Said::of(&mut place.record(&["--name", "before", "--repeat", "2"])).expect(0);
    assert_eq!(said.out, "out\nout\n");
    let line = |name: &str| {
        let mut lines = said.err.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.find(|words| words.first() == Some(&name)).unwrap_or_else(|| panic!("{}", said.err))
            [1]
        .replace(',', "")
        .parse::<f64>()
        .unwrap()
    };
    // The kernel counts all faults of the command, and those of others.
    assert!(line("pgfault") >= line("minor-faults") && line("minor-faults") > 100.0);
    assert!(
        said.err.contains("2 sessions") && said.err.contains("Kept as b1 to b2"),
        "{}",
        said.err
    );
    // The same name adds sessions, and another one is another record.
    Said::of(&mut place.record(&["--name", "before", "-q"])).expect(0);
    Said::of(&mut place.record(&["--name", "after", "--repeat", "3", "-q"])).expect(0);
    let list = place.faultline(&["list"]).expect(0).out;
    assert_eq!(list.matches("3 complete of 3").count(), 2, "{list}");
    let compared = place.faultline(&["compare", "before", "after"]).expect(0).out;
    assert!(compared.contains("Verdicts on after against before"), "{compared}");
    // Without a name each record is its own.
    Said::of(&mut place.record(&["-q"])).expect(0);
    let said = Said::of(&mut place.record(&[])).expect(0);
    assert!(said.err.contains("Against the record before: faultline"), "{}", said.err);
}

#[test]
fn a_recorded_command_can_report_phases() {
    let phase = "{ echo phase fill >&$FAULTLINE_FD; read ok <&$FAULTLINE_ACK_FD; }";
    let place = Place::new(&format!("{phase}; echo out"));
    let said = Said::of(&mut place.record(&["--phases"])).expect(0);
    assert_eq!(said.out, "out\n");
    let boot = place.faultline(&["show", "b1"]).expect(0).out;
    assert!(boot.contains("work.sh 0 fill"), "{boot}");
}

#[test]
fn what_cannot_be_recorded_is_refused_before_the_command_starts() {
    let place = Place::new("echo started");
    for (options, told) in [
        (&["--name", "7"][..], "--name: `7` cannot be a name"),
        (&["--events", "no:such_tracepoint"], "nothing was started"),
        (&["--events", "nonsense"], "nonsense"),
        (&["--repeat", "0"], "--repeat"),
    ] {
        let said = Said::of(&mut place.record(options));
        assert!(said.code == Some(2) && said.err.contains(told), "{options:?}: {}", said.err);
        assert_eq!(said.out, "", "{options:?}");
    }
    let said = place.faultline(&["record", "--", "./of-nobody"]).expect(2);
    assert!(said.err.contains("./of-nobody"), "{}", said.err);
}

#[test]
fn a_check_of_this_host_fits_and_changes_nothing() {
    let place = Place::new("exit 0");
    let said = place.faultline(&["machine", "check"]).expect(0);
    let mut lines = said.out.lines();
    assert!(said.out.lines().all(|line| line.chars().count() <= 100), "{}", said.out);
    let has = |head: &str| lines.any(|line| line.starts_with(head));
    let heads =
        ["This host:", "  CPU ", "  load ", "What this user can do here:", "  settings ", "Noise:"];
    assert!(heads.into_iter().all(has), "{}", said.out);
    assert!(said.out.contains("20 sessions of the workload pagefault"), "{}", said.out);
    assert!(said.out.contains("1 % takes"), "{}", said.out);
    // Neither a store nor a journal is left.
    assert!(!place.directory.path().join("store.db").exists());
    assert!(!place.directory.path().join("state").exists());
    let other = place.faultline(&["machine", "check", "box"]).expect(2);
    assert!(other.err.contains("host"), "{}", other.err);
}

#[test]
fn a_dry_run_refuses_settings_that_cannot_be_written() {
    let place = Place::new("exit 0");
    let run = ["run", "--on", "host", "--workload", "fork", "--dry-run", "--sysctl"];
    let said = place.faultline(&[&run[..], &["kernel.ostype=a,b"]].concat()).expect(2);
    assert!(said.err.contains("the kernel only lets it be read"), "{}", said.err);
}

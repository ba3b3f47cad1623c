//! Checks that each option applies or is refused before any boot.

mod said;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::Duration;

use model::{Boot, Host, Outcome, Pinned, Reading};
use tempfile::TempDir;

use said::Said;

/// A directory with an experiment file, no store, and an empty cache.
struct Setup {
    directory: TempDir,
    file: PathBuf,
}

impl Setup {
    fn new(mode: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.toml");
        let text = format!(
            "name = \"x\"\n{mode}\n[machine]\ncpus = 2\nmemory = \"512M\"\n\
             [[variant]]\nname = \"old\"\nkernel = \"debian:6.1\"\ncmdline = \"quiet\"\n\
             [[variant]]\nname = \"new\"\nkernel = \"debian:6.12\"\n\
             sysctl = {{ \"vm.swappiness\" = \"10\" }}\n\
             [[workload]]\nname = \"mprotect\"\niterations = 2\n"
        );
        fs::write(&file, text).unwrap();
        Self { directory, file }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
        command.arg("--store").arg(self.directory.path().join("store.db")).args(arguments);
        command.env("XDG_CACHE_HOME", self.directory.path().join("cache"));
        command
    }

    fn faultline(&self, arguments: &[&str]) -> Said {
        Said::of(&mut self.command(arguments))
    }

    /// The error of a command that is refused.
    fn refused(&self, arguments: &[&str]) -> String {
        let Said { code, out, err } = self.faultline(arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {err}");
        assert!(!self.directory.path().join("store.db").exists(), "{arguments:?}");
        err
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn options_that_a_file_sets_are_refused_beside_it() {
    let (measured, exact) = (Setup::new("boots = 3"), Setup::new("mode = \"exact\""));
    for (option, value, key) in [
        ("--kernels", "6.1", "kernel in [[variant]]"),
        ("--workload", "nas", "name in [[workload]]"),
        ("--set", "share=3", "parameters in [[workload]]"),
        ("--boots", "5", "boots"),
        ("--boots", "auto", "boots"),
        ("--at-most", "9", "at_most"),
        ("--margin", "2", "margin"),
        ("--budget", "2h", "budget"),
        ("--events", "cs", "events in [sampler]"),
        ("--iterations", "3", "iterations in [[workload]]"),
        ("--arch", "arm64", "arch in [machine]"),
        ("--cpus", "1", "cpus in [machine]"),
        ("--memory", "1G", "memory in [machine]"),
        ("--nodes", "2", "nodes in [machine]"),
        ("--accel", "tcg", "accel in [machine]"),
    ] {
        for setup in [&measured, &exact] {
            for arguments in [
                ["run", text(&setup.file), option, value],
                ["run", option, value, text(&setup.file)],
            ] {
                let error = setup.refused(&arguments);
                let told = format!("{option} is for runs without a file: set {key} in the file");
                assert!(error.contains(&told), "{option}: {error}");
            }
        }
    }
    for option in [&["--seeds", "3"][..], &["--profile", "stacks"], &["--verify"], &["--jobs", "2"]]
    {
        let error = measured.refused(&[&["run", text(&measured.file)], option].concat());
        assert!(error.contains("--mode exact"), "{error}");
    }
    let error = exact.refused(&["run", text(&exact.file), "--profile", "sampled"]);
    assert!(error.contains("--profile: sampled is only for measured mode"), "{error}");
    let error = exact.refused(&["run", text(&exact.file), "--mode", "measured"]);
    assert!(error.contains("change it there"), "{error}");
}

#[test]
fn a_plan_warns_of_too_few_seeds_to_name_functions() {
    let setup = Setup::new("mode = \"exact\"");
    let planned = |seeds: &str| {
        let run = ["run", "--kernels", "6.1,6.12", "--mode", "exact", "--profile", "stacks"];
        setup.faultline(&[&run[..], &["--seeds", seeds, "--dry-run"]].concat()).expect(0).out
    };
    let told =
        "  seeds: with 3 seeds a side no function, contribution or counter can be told from luck; ";
    assert!(planned("3").contains(told), "{}", planned("3"));
    assert!(!planned("4").contains("  seeds: with"));
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let setup = Setup::new("boots = 3");
    for (arguments, why) in [
        (&["run"][..], "faultline run --kernels"),
        (&["run", "--workload", "nas"], "faultline run --kernels"),
        (&["run", "--kernels", "6.1", "--mode", "exact", "--boots", "3"], "or --seeds 5"),
        (
            &["run", "--kernels", "6.1", "--mode", "exact", "--profile", "lines"],
            "--profile lines needs --lines FUNCTION,...",
        ),
        (
            &["run", "--kernels", "6.1", "--boots", "3", "--lines", "do_wp_page"],
            "--profile: accesses, stacks, transfers and lines are only for exact mode",
        ),
        (
            &["run", "--kernels", "6.1", "--mode", "exact", "--accel", "kvm"],
            "--accel: exact mode cannot use KVM",
        ),
        (
            &["run", "--kernels", "6.1", "--boots", "3", "--margin", "2"],
            "--margin: margin is only for boots = \"auto\": ",
        ),
        (&["run", "--kernels", "6.1,6.12", "--boots", "auto", "--margin", "x%"], "such as 0.5"),
        (&["run", "--kernels", "6.1", "--mode", "exact", "--jobs", "0"], "--jobs"),
        (&["kernel", "add", "debian:6.1", "--name", "mine"], "--name"),
        (&["kernel", "add", "debian:6.1", "--modules", "/lib"], "--modules"),
        (&["kernel", "add", "worktree", "--name", "mine"], "--name does not work with sources"),
        (&["kernel", "add", "6.1", "6.12"], "only packages of one kernel are added together"),
        (&["kernel", "add", "/none/a.deb", "/none/b.deb"], "/none/a.deb: cannot be read"),
        (&["explain", "old", "old"], "the same on both sides"),
        (&["compare", "--full", "--format", "json"], "--full"),
        (&["compare", "--phase", "all", "--phase", "fill"], "--phase all"),
        (&["explain", "old", "new", "--top", "3", "--format", "json"], "--top"),
        (&["diff", "6.1", "6.12", "--full", "--format", "json"], "--full needs --format text"),
        (&["cover", "6.1", "6.12", "--full", "--format", "json"], "--full needs --format text"),
        (&["diff", "6.1", "6.12", "--full", "--disassemble", "fork"], "--disassemble"),
        (&["table", "--check", "--better", "lower"], "--better"),
        (&["run", "--kernels", "6.1", "--set", "share=9", "--set", "share=10"], "twice"),
        (&["compare", "--margin", "101%"], "below 100"),
        (&["compare", "--margin", "-1"], "expected a percentage from 0 to below 100"),
        (&["run", "--kernels", "6.1", "--memory", "500M", "--nodes", "1"], "use 384M or 512M"),
        (&["run", "--kernels", "6.1", "--nodes", "3"], "use 1920M or 2304M"),
        (&["boot", "6.1", "--cpus", "1"], "ask for fewer nodes"),
        (&["boot", "6.1", "--cmdline", "a\nb"], "the command line has a control character"),
        (&["import", "mmtests", "/none", "--name", "5"], "would mean the experiment"),
    ] {
        let error = setup.refused(arguments);
        assert!(error.contains(why), "{arguments:?}: {error}");
    }
}

#[test]
fn an_experiment_can_come_from_a_pipe() {
    let setup = Setup::new("boots = 2");
    let of_file = setup.faultline(&["run", text(&setup.file), "--dry-run"]).expect(0);
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&fs::read(&setup.file).unwrap()).unwrap();
    drop(writer);
    let mut command = setup.command(&["run", "/dev/stdin", "--dry-run"]);
    assert_eq!(Said::of(command.stdin(reader)).expect(0).out, of_file.out);
}

#[test]
fn a_plan_is_printed_and_nothing_is_booted() {
    let setup = Setup::new("boots = 2");
    let said = setup.faultline(&["run", text(&setup.file), "--dry-run"]).expect(0);
    insta::assert_snapshot!(said.out, @r"
    x, measured mode: 2 variants x 2 boots
      old  kernel debian:6.1 (not in the cache: a run fetches it), cmdline quiet
      new  kernel debian:6.12 (not in the cache: a run fetches it), vm.swappiness = 10
    machine: 2 CPUs, 1 node, 512M, 0 disks
      transparent huge pages: off, because Linux turns them off if it has less than 512 MiB when it
      starts, and of 512M it takes a part; 640M is enough
    workload: mprotect rounds=5 share=12.5, 2 iterations
    4 boots: old, new, new, old
    time: unknown, the store has no complete boot of these workloads on such a machine
    ");
    assert!(!setup.directory.path().join("store.db").exists());
    let options = ["run", "--kernels", "6.1,6.12", "--boots", "auto", "--margin", "5", "--dry-run"];
    let said = setup.faultline(&options).expect(0).out;
    assert!(said.contains("2 variants x at most "), "{said}");
}

#[test]
fn a_plan_counts_only_boots_that_the_run_would_not_repeat() {
    let setup = Setup::new("mode = \"exact\"\nseeds = 2");
    let file = fs::read_to_string(&setup.file).unwrap();
    let mut kept = plan::file::parse(&setup.file, &file, None).unwrap().experiment;
    kept.guest_digest = "5e1f".into();
    for variant in &mut kept.variants {
        variant.kernel = Pinned::from("6.1.0-1").with_digest("0a");
    }
    let mut store = store::open(&setup.directory.path().join("store.db")).unwrap();
    let id = store.keep_experiment(&kept, Reading::USUAL).unwrap();
    for (boot_index, outcome) in [(0, Outcome::Complete), (1, Outcome::Died("signal".into()))] {
        let boot = Boot { variant: "old".into(), boot_index, outcome, ..Boot::default() };
        store.keep_boot(id, &boot).unwrap();
    }
    drop(store);
    let plan = |options: &[&str]| {
        let options = [&["run", text(&setup.file), "--dry-run"], options].concat();
        Said::of(setup.command(&options).env("FAULTLINE_GUEST", "/none")).out
    };
    assert!(plan(&[]).contains("\ndone: 2 boots\n"), "{}", plan(&[]));
    assert!(plan(&["--retry-failed"]).contains("\ndone: 1 boot\n"));
    for options in [&["--profile", "stacks"][..], &["--profile", "accesses"]] {
        let plan = plan(options);
        assert!(plan.contains("profile: ") && !plan.contains("done: "), "{plan}");
    }
    let changed = fs::read_to_string(&setup.file).unwrap().replace("\"10\"", "\"20\"");
    fs::write(&setup.file, changed).unwrap();
    assert!(!plan(&[]).contains("done: "));
}

#[test]
fn a_plan_leaves_out_blocks_that_another_host_began() {
    let setup = Setup::new("boots = 2");
    let file = fs::read_to_string(&setup.file).unwrap();
    let kept = plan::file::parse(&setup.file, &file, None).unwrap().experiment;
    let mut store = store::open(&setup.directory.path().join("store.db")).unwrap();
    let id = store.keep_experiment(&kept, Reading::USUAL).unwrap();
    let mut boot = Boot { variant: "old".into(), outcome: Outcome::Complete, ..Boot::default() };
    boot.facts.provenance.host = Host { id: "5".repeat(64), ..Host::default() };
    store.keep_boot(id, &boot).unwrap();
    drop(store);
    let plan = setup.faultline(&["run", text(&setup.file), "--dry-run"]).expect(0).out;
    assert!(
        plan.contains("\ndone: 1 boot\n1 boot left out, of blocks that another host began"),
        "{plan}"
    );
}

#[test]
fn what_does_not_work_on_arm64_is_refused() {
    let setup = Setup::new("boots = 3");
    let run = |options: &[&str]| setup.refused(&[&["run", "--arch", "arm64"], options].concat());
    for (options, told) in [
        (
            &["--kernels", "host"][..],
            "--kernels: `host` is a kernel for x86_64, but the machine is arm64",
        ),
        (&["--kernels", "mainline:6.13"], "`mainline:6.13` is a kernel for x86_64"),
        (&["--kernels", "git:v6.1"], "a commit needs the git repository that has it"),
        (&["--kernels", "6.12", "--accel", "kvm"], "--accel: KVM does not run arm64 machines"),
        (&["--kernels", "6.12", "--disk", "4G"], "--disk: machines for arm64 have no disks yet"),
    ] {
        let error = run(options);
        assert!(error.contains(told), "{error}");
    }
    let both = |options: &[&str]| setup.refused(&[options, &["--arch", "both"]].concat());
    for (options, told) in [
        (&["run", "--kernels", "6.12,host"][..], "`host` is a kernel for x86_64"),
        (
            &["run", "--kernels", "6.12-16k"],
            "`6.12-16k` is a kernel for arm64, but the machine is x86_64",
        ),
        (&["run", "--kernels", "6.12", "--disk", "4G"], "machines for arm64 have no disks yet"),
        (&["boot", "6.12"], "--arch: `6.12` is booted for one architecture"),
        (&["workload", "check", "mprotect"], "--arch: an experiment is for one architecture"),
    ] {
        let error = both(options);
        assert!(error.contains(told), "{error}");
    }
    let error = setup.refused(&["try", "6.12", "--arch", "both", "--", "true"]);
    assert!(error.contains("true is not a static ELF program for arm64"), "{error}");
    let error = setup.refused(&["run", "--kernels", "6.12@arm64,6.1"]);
    assert!(error.contains("`6.1` is a kernel for x86_64, but the machine is arm64"), "{error}");
    let error = setup.refused(&["try", "6.12@arm64", "--", "true"]);
    assert!(error.contains("true is not a static ELF program for arm64"), "{error}");
    let error = setup.refused(&["boot", "--accel", "kvm", "6.12@arm64"]);
    assert!(error.contains("KVM does not run arm64 machines"), "{error}");
}

#[test]
fn a_plan_wants_kernels_that_there_are() {
    let setup = Setup::new("boots = 2");
    for (kernel, why) in [
        ("mine", "`mine` is not a kernel: use debian:6.1"),
        ("/none/x.deb", "/none/x.deb: cannot be read: No such file"),
        ("dir:/none", "/none: cannot be read: No such file"),
        ("dir:/usr", "/usr: it has neither vmlinux nor arch/x86/boot/bzImage: name the directory"),
    ] {
        let options = ["run", "--workload", "mprotect", "--dry-run", "--kernels", kernel];
        let error = setup.refused(&options);
        assert!(error.contains(why), "{error}");
    }
}

/// Empty files as the guest's programs, with their list of digests.
fn no_programs(guest: &Path) {
    let digest = kernels::digest(b"");
    let mut list = String::new();
    for program in ["agent", "workloads", "libstillmkfs.so"] {
        fs::write(guest.join(program), "").unwrap();
        list += &format!("{digest}  {program}\n");
    }
    fs::write(guest.join("sha256sums"), list).unwrap();
}

#[test]
fn programs_of_a_guest_that_have_changed_are_refused() {
    let setup = Setup::new("boots = 2");
    let guest = setup.directory.path();
    let refused = |place: &str, problem: &str| {
        for command in
            [&["run", "--kernels", "6.1", "--workload", "mprotect"][..], &["boot", "6.1"]]
        {
            let said = Said::of(setup.command(command).env("FAULTLINE_GUEST", guest));
            let error = said.expect(1).err;
            let expected = format!("faultline: {}: {problem}", guest.join(place).display());
            assert!(error.starts_with(&expected) && error.contains("`make`"), "{error}");
        }
        no_programs(guest);
    };
    no_programs(guest);
    for program in ["agent", "workloads", "libstillmkfs.so"] {
        fs::write(guest.join(program), "x").unwrap();
        refused(program, "its SHA-256 is not the one in sha256sums beside it");
    }
    fs::remove_file(guest.join("libstillmkfs.so")).unwrap();
    refused("libstillmkfs.so", "it is missing");
    fs::remove_file(guest.join("sha256sums")).unwrap();
    refused("sha256sums", "it is missing, so the files beside it cannot be checked");
    fs::write(guest.join("sha256sums"), "").unwrap();
    refused("agent", "it is not listed in sha256sums");
    assert!(!guest.join("cache").exists(), "nothing was fetched");
}

#[test]
fn a_machine_larger_than_the_host_is_refused() {
    let setup = Setup::new("boots = 2");
    let guest = setup.directory.path();
    no_programs(guest);
    let run = ["run", "--kernels", "6.1", "--workload", "mprotect", "--memory", "100T"];
    for options in [&run[..], &["boot", "6.1", "--memory", "100T"]] {
        let said = Said::of(setup.command(options).env("FAULTLINE_GUEST", guest));
        let error = said.expect(1).err;
        let wants = "faultline: the machine needs 100T of memory, but this host has only";
        assert!(error.starts_with(wants), "{error}");
    }
    assert!(!setup.directory.path().join("cache").exists(), "nothing was fetched");
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let setup = Setup::new("boots = 2");
    for arguments in [&["--help"][..], &["--version"], &["run", "-h"], &["workload", "list"]] {
        let mut closed = Command::new("sh");
        closed.args(["-c", "exec \"$0\" \"$@\" >&-", env!("CARGO_BIN_EXE_faultline")]);
        let closed = Said::of(closed.args(arguments)).expect(1);
        assert!(closed.err.contains("standard output is closed"), "{}", closed.err);
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = setup.command(arguments).stdout(full).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains("No space left on device"), "{error}");
    }
}

#[test]
fn a_shell_needs_a_terminal() {
    let setup = Setup::new("boots = 2");
    for input in [Stdio::null(), Stdio::piped()] {
        let said = Said::of(setup.command(&["boot", "6.1", "--shell"]).stdin(input)).expect(2);
        assert_eq!(said.err, "faultline: --shell needs a terminal as standard input\n");
    }
}

#[test]
fn numbers_are_no_names_of_experiments() {
    let setup = Setup::new("boots = 2");
    let experiment = fs::read_to_string(&setup.file).unwrap();
    for name in ["1", "b12"] {
        fs::write(&setup.file, experiment.replace("\"x\"", &format!("\"{name}\""))).unwrap();
        let error = setup.refused(&["run", text(&setup.file)]);
        assert!(error.contains("use a name with letters, such as \"numa\""), "{error}");
    }
}

#[test]
fn environment_variables_are_documented() {
    let setup = Setup::new("boots = 2");
    let help = setup.faultline(&["--help"]).out;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    for text in [help, fs::read_to_string(page).unwrap()] {
        let (_, section) = text.split_once("Environment").unwrap();
        for name in ["FAULTLINE_STORE", "FAULTLINE_GUEST", "FAULTLINE_LIBRARIES", "XDG_DATA_HOME"] {
            assert!(section.contains(name), "{name}");
        }
        assert!(section.contains("XDG_CACHE_HOME") && section.contains("TMPDIR"));
    }
}

#[test]
fn a_program_that_cannot_be_tried_is_refused_with_a_remedy() {
    let setup = Setup::new("boots = 3");
    let plain = setup.directory.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let plain = text(&plain);
    let home = text(setup.directory.path());
    for (arguments, expected) in [
        (&["6.1"][..], "name a program after --, such as faultline try 6.1 -- ./mytest.sh"),
        (&["6.1", "--"], "name a program after --"),
        (&["6.1", "./x"], "put -- before the program: faultline try 6.1 -- ./x"),
        (
            &["6.1", "6.12", "--", "true"],
            "put a comma between kernels: faultline try 6.1,6.12 -- PROGRAM",
        ),
        (&["6.1", "--", "./nowhere"], "./nowhere: No such file or directory"),
        (&["6.1", "--", "no-such-program"], "`no-such-program` is not a program in $PATH"),
        (&["6.1", "--", home], "is a directory: name a program"),
        (&["6.1", "--", plain], "is not executable: `chmod +x` makes it so"),
        (&["6.1", "--with", "/nowhere", "--", "true"], "/nowhere: No such file or directory"),
        (&["6.1,", "--", "true"], "a kernel has an empty name"),
        (&["6.1,6.1", "--", "true"], "6.1 is named twice"),
        (&["6.1", "--exact", "--measured", "--", "true"], "cannot be used with"),
        (&["6.1", "--exact", "--at-most", "9", "--", "true"], "exact mode has --seeds"),
        (
            &["6.1,6.12", "--measured", "--at-most", "2", "--", "true"],
            "--at-most: at_most = 2 is too small: ",
        ),
        (&["6.1", "--measured", "--seeds", "9", "--", "true"], "--seeds is for exact mode"),
        (&["6.1", "--exact", "--patch", "x", "--", "true"], "built from source"),
        (
            &["debian-source:6.1", "--patch", "/nowhere", "--", "true"],
            "--patch /nowhere cannot be read: No such file",
        ),
        (&["worktree", "--tree", home, "--save", home, "--", "true"], "name packaged ones"),
    ] {
        let error = setup.refused(&[&["try"], arguments].concat());
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

/// A process that this test started, which is killed at the end.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a run, and returns it when it has said that it waits, with what it said and its remaining output.
fn waiting(setup: &Setup, guest: &Path) -> (Started, String, BufReader<ChildStderr>) {
    let kernel = setup.directory.path().join("none-such.deb");
    fs::write(&kernel, "no package").unwrap();
    let mut command = setup.command(&["run", "--workload", "mprotect", "--kernels", text(&kernel)]);
    let mut child = command.env("FAULTLINE_GUEST", guest).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    (Started(child), line, lines)
}

/// The holder of the lock and two runs that wait for it are processes, so this is what users see.
#[test]
fn runs_of_one_store_take_turns() {
    let setup = Setup::new("boots = 2");
    let guest = setup.directory.path().join("guest");
    fs::create_dir(&guest).unwrap();
    no_programs(&guest);
    drop(store::open(&setup.directory.path().join("store.db")).unwrap());
    let lock = setup.directory.path().join("store.db.running/lock");
    fs::create_dir(lock.parent().unwrap()).unwrap();
    assert_eq!(setup.faultline(&["list"]).expect(0).out.matches("under way").count(), 0);
    let mut flock = Command::new("flock");
    flock.arg("--no-fork").arg(&lock).args(["sleep", "1000000"]);
    let holder = Started(flock.stdin(Stdio::null()).spawn().unwrap());
    while lock::Held::now(&lock).is_none() {
        thread::sleep(Duration::from_millis(5));
    }
    let by = format!("process {} (`", holder.0.id());
    let (mut first, line, mut rest) = waiting(&setup, &guest);
    let head = format!("Waiting for another run to end: {} ", lock.display());
    assert!(line.contains(&head) && line.contains(&by), "{line}");
    let (mut second, ..) = waiting(&setup, &guest);
    let listed = setup.faultline(&["list"]).expect(0).out;
    assert!(listed.contains("under way") && listed.contains(&by), "{listed}");
    for run in [&first, &second] {
        let line = listed.lines().find(|line| line.contains(&format!("process {} ", run.0.id())));
        let line = line.unwrap_or_else(|| panic!("{listed}"));
        assert!(line.starts_with("waiting, started ") && line.contains("faultline"), "{line}");
    }
    let refused = |arguments: &[&str]| {
        let arguments = [&["run", "--workload", "mprotect", "--kernels"], arguments].concat();
        Said::of(setup.command(&arguments).env("FAULTLINE_GUEST", &guest))
    };
    let wrong = refused(&["none-such"]).expect(2).err;
    assert!(wrong.contains("`none-such`") && !wrong.contains("Waiting"), "{wrong}");
    let kernel = setup.directory.path().join("none-such.deb");
    let refused = refused(&[text(&kernel), "--no-wait"]).expect(1).err;
    assert!(refused.contains("another run is under way") && refused.contains(&by), "{refused}");
    let kill = |signal: &str, run: &Started| {
        let status = Command::new("kill").args([signal, &run.0.id().to_string()]).status();
        assert!(status.unwrap().success());
    };
    kill("-INT", &second);
    assert_eq!(second.0.wait().unwrap().code(), Some(130));
    // The next run goes on when the holder was killed, and finds no such kernel.
    kill("-KILL", &holder);
    let ended = first.0.wait().unwrap().code();
    let mut said = String::new();
    rest.read_to_string(&mut said).unwrap();
    assert!(ended == Some(2) || ended == Some(1), "{said}");
    assert!(said.contains("none-such") && !said.contains("another run"), "{said}");
    let listed = setup.faultline(&["list"]).expect(0).out;
    assert!(!listed.contains("under way") && !listed.contains("waiting"), "{listed}");
}

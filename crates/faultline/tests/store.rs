//! Tests of stores: damage, notes, names, removal, read-only stores, several experiments.

mod said;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use model::{
    Boot, Execution, Experiment, MailAddress, Mode, Outcome, PatchMail, Patched, Pinned, Reading,
    Sample,
};
use results::{Analysis, Question};
use tempfile::TempDir;

use said::Said;

const EXPERIMENT: &str = "name = \"numa\"\nboots = 1\n[machine]\ncpus = 2\nmemory = \"512M\"\n\
                          [[variant]]\nname = \"old\"\nkernel = \"debian:6.1\"\n\
                          [[variant]]\nname = \"new\"\nkernel = \"debian:6.1\"\n\
                          [[workload]]\nname = \"autonuma\"\niterations = 1\n";

fn experiment() -> Experiment {
    parsed(EXPERIMENT)
}

fn parsed(text: &str) -> Experiment {
    plan::file::parse(Path::new("numa.toml"), text, None).unwrap().experiment
}

fn boot(variant: &str, value: f64) -> Boot {
    let sample = Sample { label: "NUMA01".into(), ..Sample::new("autonuma", "Elapsed", value) };
    let outcome = Outcome::Complete;
    let mut boot =
        Boot { variant: variant.into(), outcome, samples: vec![sample], ..Boot::default() };
    let made = &mut boot.facts.provenance;
    (made.emulator, made.execution) = ("QEMU 10.0.2".into(), Some(Execution::Kvm));
    boot
}

fn faultline(store: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    Said::of(command.arg("--store").arg(store).args(arguments))
}

/// Checks that a store with one experiment has no damage.
fn is_whole(store: &Path) {
    let Said { out, err, .. } = faultline(store, &["store", "check"]).expect(0);
    let whole = "1 experiment, 2 boots, 2 samples and 0 series: no damage found\n";
    assert_eq!((&*out, &*err), (whole, ""));
}

#[test]
fn damage_is_reported_by_the_check_and_by_every_reader() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let mut store = store::open(&path).unwrap();
    let id = store.keep_experiment(&experiment(), Reading::USUAL).unwrap();
    for (variant, value) in [("old", 0.54), ("new", 0.71)] {
        store.keep_boot(id, &boot(variant, value)).unwrap();
    }
    drop(store);
    is_whole(&path);
    faultline(&path, &["compare"]).expect(0);

    // In the boot that was kept last, `Elapsed` becomes `Elepsed`.
    let mut bytes = fs::read(&path).unwrap();
    let sample = b"\x07Elapsed\x06NUMA01";
    let at = bytes.windows(sample.len()).position(|window| window == sample).unwrap();
    bytes[at + 3] ^= 4;
    fs::write(&path, bytes).unwrap();
    let said = faultline(&path, &["store", "check"]).expect(1);
    insta::assert_snapshot!(said.out, @r"
    EXPERIMENT  VARIANT  BOOT  DAMAGED
    numa        new      b2    the samples of boot b2: the checksum does not match
    ");
    assert!(said.err.contains("results.db: 1 part damaged: restore"), "{}", said.err);
    for arguments in
        [&["compare"][..], &["show"], &["show", "b2"], &["export", "numa", "--format", "csv"]]
    {
        let Said { out, err, .. } = faultline(&path, arguments).expect(1);
        assert!(!out.contains("0.71"), "{arguments:?}: {out}");
        assert!(err.contains("damage in the samples of boot b2"), "{arguments:?}: {err}");
    }
    faultline(&path, &["show", "b1"]).expect(0);
    faultline(&path, &["list"]).expect(0);
}

#[test]
fn without_a_store_lists_are_empty_and_names_are_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let told = format!(
        "there is no store {}; `faultline try` and `faultline run` create it\n",
        path.display()
    );
    for command in ["list", "show"] {
        let Said { out, err, .. } = faultline(&path, &[command]).expect(0);
        assert_eq!((out, &*err), (format!("Nothing yet: {told}"), ""));
    }
    for arguments in [&["show", "numa"][..], &["show", "b1"], &["compare"], &["store", "check"]] {
        let Said { out, err, .. } = faultline(&path, arguments).expect(2);
        assert_eq!((&*out, err), ("", format!("faultline: {told}")));
    }
    assert!(!path.exists());
}

/// A store with two experiments of one name, each with two boots, in a directory.
fn namesakes() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let mut store = store::open(&path).unwrap();
    let other = EXPERIMENT.replace("iterations = 1", "iterations = 4");
    let other = parsed(&other.replace("\"new\"\n", "\"new\"\ncmdline = \"mitigations=off\"\n"));
    for experiment in [experiment(), other] {
        let id = store.keep_experiment(&experiment, Reading::USUAL).unwrap();
        for (variant, value) in [("old", 0.54), ("new", 0.71)] {
            store.keep_boot(id, &boot(variant, value)).unwrap();
        }
    }
    (directory, path)
}

#[test]
fn the_latest_experiment_is_the_latest_with_a_complete_boot() {
    let (_directory, path) = namesakes();
    let mut store = store::open(&path).unwrap();
    let empty =
        store.keep_experiment(&Experiment { name: "empty".into(), ..experiment() }, Reading::USUAL);
    let interrupted = Boot { outcome: Outcome::Interrupted, ..boot("old", 0.1) };
    store.keep_boot(empty.unwrap(), &interrupted).unwrap();
    drop(store);
    let said = "experiment 3 has no complete boot: experiment 2 (numa) is used\n";
    for arguments in [&["compare"][..], &["export", "--format", "csv"]] {
        let Said { out, err, .. } = faultline(&path, arguments).expect(0);
        assert_eq!(err, said, "{arguments:?}");
        assert!(out.contains("0.71"), "{arguments:?}: {out}");
    }
    let Said { out, err, .. } = faultline(&path, &["show"]);
    assert!(out.starts_with("experiment 3: empty\n") && err.is_empty(), "{out}{err}");
    assert!(faultline(&path, &["list"]).out.lines().last().unwrap().contains("empty"));
}

#[test]
fn output_does_not_replace_the_store() {
    let (directory, path) = namesakes();
    let before = fs::read(&path).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for output in [&path, &link] {
        let said = faultline(&path, &["compare", "-o", output.to_str().unwrap()]).expect(2);
        assert!(said.err.contains("is a database"), "{}", said.err);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn an_error_that_cannot_be_printed_has_its_exit_code() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    let command = command.args(["--store", "/none/results.db", "compare"]).stderr(full);
    assert_eq!(command.status().unwrap().code(), Some(2));
}

/// A text without the times at which experiments were stored.
fn timeless(text: &str) -> String {
    let today = model::date(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(),
    );
    let mut parts = text.split(&today);
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        whole.push_str("DAY HH:MM");
        whole.push_str(&part[6..]);
    }
    whole
}

#[test]
fn experiments_of_one_name_are_distinguished() {
    let (_directory, path) = namesakes();
    let Said { out, err, .. } = faultline(&path, &["list"]).expect(0);
    assert_eq!(err, "");
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    insta::assert_snapshot!(timeless(&out));
    let Said { out, err, .. } = faultline(&path, &["compare", "numa"]).expect(0);
    assert!(out.contains("compare 2 --full"), "{out}");
    insta::assert_snapshot!(timeless(&err), @"numa means number 2, created DAY HH:MM UTC; others: numa~2 (number 1, DAY HH:MM UTC)");
    for named in ["numa~2", "1"] {
        let Said { out, err, .. } = faultline(&path, &["show", named]).expect(0);
        assert!(out.starts_with("experiment 1: numa\n") && err.is_empty(), "{out}{err}");
    }
    let error = faultline(&path, &["show", "numa~3"]).expect(2).err;
    assert!(error.contains("existing names: numa (2 of that name)"), "{error}");
}

/// A text with single spaces.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A comparison has the user's note, escaped, in every format but a mail, which others read.
#[test]
fn notes_are_in_every_comparison() {
    let (_directory, path) = namesakes();
    let note = "<script>alert(1)</script>\u{202e}&amp; caf\u{e9}";
    let said = |arguments: &[&str]| faultline(&path, arguments).expect(0).out;
    said(&["note", "1", note]);
    let format = |format| said(&["compare", "1", "--format", format]);
    let shown = report::escape(note);
    assert!(shown.is_ascii(), "{shown}");
    for text in [format("text"), said(&["compare", "1", "--full"])] {
        assert!(words(&text).contains(&format!("user's note {shown} machine")), "{text}");
    }
    assert!(!format("mail").contains("script"));
    let json: serde_json::Value = serde_json::from_str(&format("json")).unwrap();
    assert_eq!(json["user_notes"], serde_json::json!([{ "text": note }]));
    let page = format("html");
    let shown = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    assert!(page.contains(&shown) && !page.contains("<script>alert"), "{shown}");
    said(&["note", "1", ""]);
    assert!(!format("json").contains("user_notes"));
}

/// `--attach` writes what a mail leaves out, and the mail names the files.
#[test]
fn files_beside_a_mail_have_what_it_leaves_out() {
    let (directory, path) = namesakes();
    let beside = directory.path().join("beside");
    let mail = ["compare", "1", "--format", "mail", "--attach", beside.to_str().unwrap()];
    let Said { out, err, .. } = faultline(&path, &mail).expect(0);
    assert_eq!(err, "");
    let names = "comparison.txt, comparison.json, comparison.html, numa.toml";
    assert!(words(&out).ends_with(&format!("On request: {names}.")), "{out}");
    let said = |arguments: &[&str]| faultline(&path, arguments).expect(0).out;
    let file = |name: &str| std::fs::read_to_string(beside.join(name)).unwrap();
    assert_eq!(file("comparison.txt"), said(&["compare", "1", "--full"]));
    assert_eq!(file("comparison.json"), said(&["compare", "1", "--format", "json"]));
    assert_eq!(file("comparison.html"), said(&["compare", "1", "--format", "html"]));
    assert!(file("numa.toml").starts_with("name = \"numa\"\n"), "{}", file("numa.toml"));
    assert_eq!(std::fs::read_dir(&beside).unwrap().count(), 4);

    let Said { out, err, .. } = faultline(&path, &mail).expect(2);
    assert!(out.is_empty() && err.contains("it is not empty"), "{err}");
    let nowhere = ["compare", "1", "--format", "mail", "--attach", "/proc/x"];
    let err = faultline(&path, &nowhere).expect(2).err;
    assert!(err.starts_with("faultline: --attach /proc/x: it cannot be created ("), "{err}");
    let other = ["compare", "1", "--attach", "x"];
    assert!(faultline(&path, &other).expect(2).err.contains("--attach needs --format mail"));
}

/// The experiment's file names the program, so the program goes beside the mail too.
#[test]
fn programs_go_beside_a_mail() {
    let directory = tempfile::tempdir().unwrap();
    let (path, program) = (directory.path().join("results.db"), directory.path().join("own"));
    let mut experiment = experiment();
    let pinned = Pinned::from(program.to_str().unwrap().to_owned());
    experiment.workloads[0].program = Some(pinned.with_digest(kernels::digest(b"\x7fELF")));
    let mut store = store::open(&path).unwrap();
    let id = store.keep_experiment(&experiment, Reading::USUAL).unwrap();
    store.keep_boot(id, &boot("old", 0.5)).unwrap();
    store.keep_boot(id, &boot("new", 0.7)).unwrap();
    drop(store);
    is_whole(&path);
    let mail = |beside: &str| {
        let beside = directory.path().join(beside);
        let mail = ["compare", "--format", "mail", "--attach", beside.to_str().unwrap()];
        (faultline(&path, &mail).expect(0), beside.join("own"))
    };
    fs::write(&program, b"\x7fELF").unwrap();
    let (said, beside) = mail("same");
    assert!(said.err.is_empty() && words(&said.out).ends_with(", own."), "{}", said.out);
    assert_eq!(fs::read(beside).unwrap(), b"\x7fELF");
    fs::write(&program, b"other").unwrap();
    let (said, beside) = mail("changed");
    let gone = format!("own is not attached: {} is gone or was changed\n", program.display());
    assert_eq!(said.err, gone);
    assert!(!beside.exists());
}

/// A mail on a patch that came in a mail is a reply to it.
#[test]
fn a_mail_answers_the_mail_of_the_patch() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let mut store = store::open(&path).unwrap();
    let id = store.keep_experiment(&experiment(), Reading::USUAL).unwrap();
    let to = vec![MailAddress { name: "A B".into(), address: "a@b".into() }];
    let mail = PatchMail { message_id: "<1@b>".into(), to, ..PatchMail::default() };
    let subject = "[PATCH v2] mm: x".to_owned();
    let patched = Patched { subject, patches: 1, mail: Some(mail), ..Patched::default() };
    store.keep_boot(id, &boot("old", 0.5)).unwrap();
    let mut new = boot("new", 0.7);
    new.facts.patched = Some(patched);
    store.keep_boot(id, &new).unwrap();
    drop(store);
    is_whole(&path);
    let out = faultline(&path, &["compare", "--format", "mail"]).expect(0).out;
    let headers =
        "To: A B <a@b>\nSubject: Re: [PATCH v2] mm: x\nIn-Reply-To: <1@b>\nReferences: <1@b>\n\n";
    assert!(out.starts_with(headers), "{out}");
}

#[test]
fn experiments_are_renamed_and_get_notes() {
    let (_directory, path) = namesakes();
    let said = |arguments: &[&str]| faultline(&path, arguments).expect(0).out;
    said(&["rename", "1", "before"]);
    said(&["note", "before", "  without the patch\u{202e} "]);
    for arguments in [&["list"][..], &["show", "before"], &["compare", "before"]] {
        let told = words(&said(arguments)).replace("user's note ", "note: ");
        assert!(told.contains("note: without the patch"), "{arguments:?}");
    }
    said(&["note", "before", ""]);
    assert!(!said(&["list"]).contains("note:"));
    let whole = said(&["store", "check"]);
    assert!(whole.ends_with("no damage found\n"), "{whole}");
    for arguments in [
        &["rename", "before", "12"][..],
        &["rename", "before", "b12"],
        &["rename", "before", " "],
        &["rename", "none", "x"],
        &["note", "before", "two\nlines"],
        &["note", "before", &"x".repeat(1001)],
    ] {
        faultline(&path, arguments).expect(2);
    }
    said(&["rename", "numa", "after"]);
    faultline(&path, &["show", "numa"]).expect(2);
}

#[test]
fn experiments_are_removed_after_consent_and_not_during_a_run() {
    let (directory, path) = namesakes();
    let before = fs::read(&path).unwrap();
    let Said { out, err, .. } = faultline(&path, &["rm", "numa~2", "numa"]).expect(2);
    assert_eq!(out, "");
    assert!(err.contains("confirm with --yes") && err.contains("experiment 1 (numa) with 2 boots"));
    faultline(&path, &["rm", "1", "none", "--yes"]).expect(2);
    let running = lab::lock(&directory.path().join("results.db.running")).unwrap();
    for arguments in [&["rm", "1", "--yes"][..], &["rename", "1", "x"]] {
        let error = faultline(&path, arguments).expect(1).err;
        assert!(error.contains("another run is under way"), "{error}");
    }
    drop(running);
    assert!(fs::read(&path).unwrap() == before);
    let removed = faultline(&path, &["rm", "1", "numa~2", "--yes"]).expect(0).out;
    assert_eq!(removed, "removed experiment 1 (numa) with 2 boots\n");
    faultline(&path, &["show", "b1"]).expect(2);
    faultline(&path, &["show", "numa"]).expect(0);
    is_whole(&path);
}

/// Root may write everything, so the test reads as another user.
#[test]
fn a_store_that_cannot_be_written_is_read_by_every_command() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let (directory, path) = namesakes();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    // Another user can execute the program from here.
    let program = tempfile::tempdir().unwrap();
    fs::set_permissions(program.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let faultline = program.path().join("faultline");
    // Another process makes the copy. If this process did, children of other tests would hold it open for writing,
    // and it could not be executed.
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_faultline")).arg(&faultline);
    assert!(copy.status().unwrap().success());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&faultline);
        if is_root() {
            command.uid(65534);
        }
        Said::of(command.arg("--store").arg(&path).args(arguments))
    };
    let frozen = format!(
        "{} is read-only and is read without locks: do not write to it meanwhile\n",
        path.display()
    );
    for arguments in [
        &["list"][..],
        &["show", "1"],
        &["show", "b1"],
        &["compare", "1"],
        &["export", "1", "--format", "csv"],
        &["store", "check"],
    ] {
        assert_eq!(run(arguments).expect(0).err, frozen, "{arguments:?}");
    }
    for mode in [0o555, 0o777] {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        for arguments in [&["rm", "1", "--yes"][..], &["rename", "1", "x"], &["note", "1", "x"]] {
            let error = run(arguments).expect(1).err;
            let expected = format!("faultline: {}: it cannot be written: make", path.display());
            assert!(error.starts_with(&expected), "{error}");
        }
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn variants_of_several_experiments_are_compared_if_all_ran_the_same() {
    let (_directory, path) = namesakes();
    let mut store = store::open(&path).unwrap();
    let other =
        parsed(&EXPERIMENT.replace("\"numa\"", "\"later\"").replace("\"new\"", "\"newer\""));
    let id = store.keep_experiment(&other, Reading::USUAL).unwrap();
    for (variant, value) in [("old", 0.55), ("newer", 0.42)] {
        store.keep_boot(id, &boot(variant, value)).unwrap();
    }
    store.note_experiment(id, "with the patch").unwrap();
    drop(store);
    let Said { out, err, .. } = faultline(&path, &["compare", "1", "later", "--full"]).expect(0);
    assert_eq!(err, "");
    insta::assert_snapshot!(timeless(&out));
    let names = ["compare", "1", "later", "--names", "mmtests:2023-05"];
    let out = faultline(&path, &names).out;
    assert!(out.contains("elsp-NUMA01") && !out.contains("Elapsed-NUMA01"), "{out}");
    assert!(out.contains(&format!("--store {} compare 1 3 --full", path.display())), "{out}");
    let Said { out, err, .. } = faultline(&path, &["compare", "1", "2"]).expect(2);
    assert_eq!(out, "");
    insta::assert_snapshot!(err);
    for arguments in [&["compare", "1", "1"][..], &["compare", "1", "3", "--format", "mail"]] {
        faultline(&path, arguments).expect(2);
    }
    let baseline = ["compare", "1", "3", "--baseline", "newer", "--format", "json"];
    let Said { out, err, .. } = faultline(&path, &baseline).expect(0);
    assert!(err.contains("form no pairs") && out.contains("old@1"), "{err}");
}

/// `try` answers after 3 of 5 seeds, before the other two. `compare` says the same then, and when one more boot is
/// done.
#[test]
fn compare_says_during_a_run_what_the_first_answer_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let mut store = store::open(&path).unwrap();
    let counted = Experiment { mode: Mode::Exact, boots: 3, ..experiment() };
    let id = store.keep_experiment(&counted, Reading::USUAL).unwrap();
    let keep = |store: &mut dyn store::Archive, variant: &str, boot_index: u32| {
        let level = if variant == "old" { 1e6 } else { 1.2e6 };
        let value = level + 100.0 * f64::from(boot_index * 7 % 5);
        let sample = Sample::new("autonuma", "instructions", value);
        let (label, phase) = ("kernel".into(), "run".into());
        let samples = vec![Sample { label, phase, ..sample }];
        store.keep_boot(id, &Boot { boot_index, samples, ..boot(variant, value) }).unwrap();
    };
    for seed in 0..3 {
        keep(&mut *store, "old", seed);
        keep(&mut *store, "new", seed);
    }
    let first = Analysis::of(&*store, &[id], &Question::default()).unwrap().comparison;
    let first = report::verdicts(&first);
    assert!(first.contains("regression ") && first.contains("luck floor 0."), "{first}");
    let wanted = Experiment { boots: 5, ..counted };
    assert_eq!(store.keep_experiment(&wanted, Reading::USUAL).unwrap(), id);
    let during = |note: &str| {
        let said = faultline(&path, &["compare"]).expect(0).out;
        assert!(first.lines().all(|line| said.contains(line)), "{said}\n{first}");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(note), "{said}");
    };
    during("3 of 5 seeds are complete on both sides; seeds 3, 4 of both are missing: not booted");
    keep(&mut *store, "old", 3);
    during("3 of 5 seeds are complete on both sides; seed 4 of old is missing: not booted;");
}

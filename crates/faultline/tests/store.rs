//! What `faultline` says of a store that is damaged.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use model::{Boot, Experiment, Outcome, Sample};
use store::Store;

const EXPERIMENT: &str = "name = \"numa\"\nboots = 1\n[machine]\ncpus = 2\nmemory = \"512M\"\n\
                          [[variant]]\nname = \"old\"\nkernel = \"debian:6.1\"\n\
                          [[variant]]\nname = \"new\"\nkernel = \"debian:6.1\"\n\
                          [[workload]]\nname = \"autonuma\"\niterations = 1\n";

fn experiment() -> Experiment {
    lab::file::parse(Path::new("numa.toml"), EXPERIMENT, None).unwrap()
}

fn boot(variant: &str, value: f64) -> Boot {
    let sample = Sample {
        workload: "autonuma".into(),
        iteration: 0,
        phase: String::new(),
        metric: "Elapsed".into(),
        label: "NUMA01".into(),
        value,
        count: model::ONCE,
        ended: None,
    };
    let outcome = Outcome::Complete;
    Boot { variant: variant.into(), outcome, samples: vec![sample], ..Boot::default() }
}

fn faultline(store: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
    let Output { status, stdout, stderr } =
        command.arg("--store").arg(store).args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_store_is_checked_and_damage_is_told_wherever_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let mut store = Store::open(&path).unwrap();
    let id = store.keep_experiment(&experiment()).unwrap();
    for (variant, value) in [("old", 0.54), ("new", 0.71)] {
        store.keep_boot(id, &boot(variant, value)).unwrap();
    }
    drop(store);
    let whole = "1 experiment, 2 boots, 2 samples and 0 series: all are whole\n";
    assert_eq!(faultline(&path, &["store", "check"]), (Some(0), whole.into(), String::new()));
    assert_eq!(faultline(&path, &["compare"]).0, Some(0));

    // `Elapsed` becomes `Elepsed` in the boot that was kept last.
    let mut bytes = fs::read(&path).unwrap();
    let row = b"autonumaElapsedNUMA01";
    let at = bytes.windows(row.len()).position(|window| window == row).unwrap();
    bytes[at + 10] ^= 4;
    fs::write(&path, bytes).unwrap();
    let (code, out, error) = faultline(&path, &["store", "check"]);
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(out, @r"
    EXPERIMENT  VARIANT  BOOT  DAMAGED
    numa        new      b2    the samples of boot b2: the checksum does not match
    ");
    assert!(error.contains("results.db: 1 part damaged: take a copy"), "{error}");
    for arguments in
        [&["compare"][..], &["show"], &["show", "b2"], &["export", "numa", "--format", "csv"]]
    {
        let (code, out, error) = faultline(&path, arguments);
        assert_eq!((code, out.contains("0.71")), (Some(1), false), "{arguments:?}: {out}{error}");
        assert!(error.contains("damage in the samples of boot b2"), "{arguments:?}: {error}");
    }
    assert_eq!(faultline(&path, &["show", "b1"]).0, Some(0));
    assert_eq!(faultline(&path, &["list"]).0, Some(0));
}

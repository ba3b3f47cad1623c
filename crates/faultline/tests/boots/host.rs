//! The host: kernels of the user's own, and a full disk.

use std::fs;
use std::process::Command;

use kernels::Cache;

use crate::common::{Bench, experiment};

/// Boots a copy of an image, the only kernel in the cache of this test, without modules.
#[test]
fn a_user_kernel_is_added_used_and_removed() {
    let bench = Bench::new();
    let packaged = Cache::open().unwrap().obtain("6.1", &|_| {}).unwrap();
    let own = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("XDG_CACHE_HOME", bench.path("cache"));
        bench.said(command)
    };
    let image = packaged.image.to_str().unwrap();
    own(&["kernel", "add", "--image", image, "--name", "mine"]).expect(0);
    let listed = own(&["kernel", "list"]).expect(0).out;
    assert!(listed.contains("mine") && listed.contains("image only"), "{listed}");
    let variant = "[[variant]]\nkernel = \"mine\"\nmodules = [\"xfs\"]\n\
                   [[workload]]\nname = \"fault\"\n";
    let file =
        bench.write("x.toml", &experiment("own", variant).replace("cpus", "accel = \"tcg\"\ncpus"));
    own(&["run", file.to_str().unwrap()]).expect(3);
    let outcome = bench.boots()[0].outcome.to_string();
    assert!(outcome.contains("mine") && outcome.contains("xfs"), "{outcome}");
    own(&["kernel", "remove", "mine"]).expect(0);
    let said = own(&["kernel", "remove", "mine"]).expect(2);
    assert!(said.err.contains("mine"), "{}", said.err);
}

/// A small file system for one test. It is unmounted when this is dropped.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(path: std::path::PathBuf) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=96m", "none"])
            .arg(&path)
            .status()
            .is_ok_and(|status| status.success());
        mounted.then_some(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_reported_and_stored_boots_stay() {
    let bench = Bench::new();
    let Some(disk) = SmallDisk::mount(bench.path("disk")) else {
        println!("skipped: only root can mount a small file system to fill");
        return;
    };
    let store = disk.0.join("small.db");
    let store = store.to_str().unwrap();
    let text =
        experiment("full", "[[variant]]\nkernel = \"6.1\"\n[[workload]]\nname = \"fault\"\n");
    let file = bench.write("x.toml", &text);
    let file = file.to_str().unwrap();
    bench.faultline(&["--store", store, "run", file]).expect(0);

    let filler = disk.0.join("filler");
    fs::write(&filler, vec![1; 60 << 20]).unwrap();
    bench.write("x.toml", &text.replace("boots = 1", "boots = 2"));
    let said = bench.faultline(&["--store", store, "run", file]).expect(1);
    assert!(said.err.contains("small.db.running"), "{}", said.err);
    assert!(said.err.contains("free"), "{}", said.err);
    let shown = bench.faultline(&["--store", store, "show", "full"]).expect(0).out;
    assert_eq!(shown.matches("complete").count(), 1, "{shown}");

    fs::remove_file(filler).unwrap();
    bench.faultline(&["--store", store, "run", file]).expect(0);
    let shown = bench.faultline(&["--store", store, "show", "full"]).expect(0).out;
    assert_eq!(shown.matches("complete").count(), 2, "{shown}");
}

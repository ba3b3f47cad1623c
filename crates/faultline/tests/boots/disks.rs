//! Boots real kernels with disks of every kind: file systems are mounted and keep what is written. Errors of
//! disks are reported.

use std::fs;

use crate::common::{Bench, experiment, quoted};
use model::Boot;

/// One disk of each kind, and so many raw disks that the kernel does not find them in order.
const DISKS: &str = r#"
[[machine.disk]]
kind = "pmem"
size = "512M"
filesystem = "ext4"
mkfs = ["-O", "^has_journal"]
mount = "/mnt/data"
options = "noatime,nodev,errors=panic"

[[machine.disk]]
size = "320M"
filesystem = "xfs"

[[machine.disk]]
kind = "nvme"
size = "256M"
filesystem = "btrfs"

[[machine.disk]]
kind = "ram"
size = "128M"
filesystem = "ext4"

[[machine.disk]]
kind = "pmem"
size = "34M"

[[machine.disk]]
kind = "pmem"
size = "36M"
"#;

/// Writes a file to each disk, drops the page cache, and compares the file.
const SCRIPT: &str = r#"set -e
busybox=/faultline/programs/writer/busybox
for name in dd grep cat cmp df tail; do eval "$name() { $busybox $name \"\$@\"; }"; done
for place in "$1" /disk1 /disk2 /disk3; do
    grep " $place " /proc/mounts | while read -r line; do echo "note mount $line" >&$FAULTLINE_FD; done
    dd if=/faultline/workloads of=$place/file bs=64k conv=fsync
    echo 3 >/proc/sys/vm/drop_caches
    cmp /faultline/workloads $place/file
    df -k $place | tail -n 1 | while read -r device size rest; do
        echo "sample Size $size" >&$FAULTLINE_FD
    done
done
dd if=/faultline/workloads of=/dev/disk4 bs=64k conv=fsync
cmp -n 65536 /faultline/workloads /dev/disk4
"#;

fn manifest(bench: &Bench) -> String {
    let shell = kernels::Cache::open().unwrap().shell(&|_| {}).unwrap();
    fs::copy(shell, bench.path("busybox")).unwrap();
    let manifest = format!(
        "name = \"writer\"\ndescription = \"writes and compares\"\n\
         command = [\"busybox\", \"sh\", \"-c\", {SCRIPT:?}, \"sh\", \"{{disk}}\"]\n\
         [[metrics]]\nname = \"Size\"\nunit = \"KiB\"\nmean = \"amean\"\n"
    );
    let manifest = bench.write("writer.toml", &manifest);
    format!("[[workload]]\nmanifest = {}\nprogram = \"busybox\"\n", quoted(&manifest))
}

#[test]
fn every_kind_of_disk_keeps_what_is_written() {
    let bench = Bench::new();
    let variants = "[[variant]]\nkernel = \"6.1\"\n[[variant]]\nkernel = \"newest\"\n";
    let text = experiment("disks", &format!("{DISKS}{variants}{}", manifest(&bench)));
    bench.run(&text).expect(0);
    let boots = bench.boots();
    assert_eq!(boots.len(), 2);
    boots.iter().for_each(are_as_asked);
    let shown = bench.faultline(&["show", "disks"]).expect(0).out;
    let expected = "disk 0: pmem 512M, ext4 (-O ^has_journal) on /mnt/data \
                    (noatime,nodev,errors=panic)";
    assert!(shown.contains(expected), "{shown}");
}

fn are_as_asked(boot: &Boot) {
    let mounts: Vec<Vec<&str>> = boot
        .notes
        .iter()
        .filter_map(|note| note.text.strip_prefix("mount "))
        .map(|line| line.split(' ').collect())
        .collect();
    let expected =
        [("/mnt/data", "ext4"), ("/disk1", "xfs"), ("/disk2", "btrfs"), ("/disk3", "ext4")];
    let found: Vec<_> = mounts.iter().map(|words| (words[1], words[2])).collect();
    assert_eq!(found, expected, "{:?}", boot.notes);
    let options: Vec<_> = mounts[0][3].split(',').collect();
    for option in ["rw", "noatime", "nodev", "errors=panic"] {
        assert!(options.contains(&option), "{options:?}");
    }
    // File systems need some space for themselves.
    let sizes = boot.samples.iter().filter(|sample| sample.metric == "Size");
    let sizes: Vec<f64> = sizes.map(|sample| sample.value / 1024.0).collect();
    for (size, disk) in sizes.iter().zip([512.0, 320.0, 256.0, 128.0]) {
        assert!((0.6 * disk..=disk).contains(size), "{sizes:?}");
    }
    assert_eq!(sizes.len(), 4);
    let complaints = &boot.problems;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[test]
fn a_disk_that_cannot_be_mounted_fails_its_boot_and_says_why() {
    let bench = Bench::new();
    let disk = "[[machine.disk]]\nkind = \"pmem\"\nsize = \"64M\"\nfilesystem = \"ext4\"\n\
                options = \"noatime,no-such\"\n";
    let rest = "[[variant]]\nkernel = \"6.1\"\n[[workload]]\nname = \"fault\"\n";
    bench.run(&experiment("wrong", &format!("{disk}{rest}"))).expect(3);
    let outcome = bench.boots()[0].outcome.to_string();
    let expected = "/dev/disk0 cannot be mounted on /disk0 as ext4 with noatime,no-such (Invalid \
                    argument); the kernel's messages: [";
    assert!(outcome.contains(expected), "{outcome}");
    // Other parts of the kernel may have logged something too.
    assert!(outcome.contains("] ext4: Unknown parameter 'no-such'"), "{outcome}");
}

#[test]
fn a_file_system_that_cannot_be_made_is_reported_before_any_boot() {
    let bench = Bench::new();
    for (format, told) in [
        ("filesystem = \"ext4\"\nmkfs = [\"-b\", \"3\"]", "mkfs.ext4: invalid block size"),
        ("filesystem = \"xfs\"", "Filesystem must be larger than 300MB"),
    ] {
        let disk = format!("[[machine.disk]]\nsize = \"64M\"\n{format}\n");
        // The error comes before the kernel is fetched.
        let rest = "[[variant]]\nkernel = \"debian:6.1\"\n[[workload]]\nname = \"fault\"\n";
        let file = bench.write("x.toml", &experiment("unmade", &format!("{disk}{rest}")));
        let said = bench.faultline(&["run", file.to_str().unwrap()]).expect(2);
        let problem = "faultline: the file system of disk 0 cannot be made: mkfs.";
        assert!(said.err.contains(problem) && said.err.contains(told), "{}", said.err);
    }
}

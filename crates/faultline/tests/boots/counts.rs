//! Compares the plugin's counts with QEMU's own. QEMU reports how many instructions it has executed only while it
//! records a machine of one CPU for a replay (`docs/system/replay.rst`). Faultline never does that, so this test
//! starts QEMU itself.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use flight::job::{self, Job, Workload};
use flight::profile::{self, Privilege};
use kernels::Cache;
use kernels::initramfs::Archive;
use model::Millis;
use serde_json::Value;

use crate::common::Bench;

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn the_plugin_counts_what_qemu_counts() {
    let bench = Bench::new();
    fs::write(bench.path("initramfs.cpio"), initramfs()).unwrap();
    for kernel in ["6.1", "newest"] {
        let kernel = Cache::open().unwrap().obtain(kernel, &|_| ()).unwrap();
        let image = kernel.vmlinux.as_deref().unwrap_or(&kernel.image);
        let mut emulator = Recording::start(&bench, image);
        let executed = emulator.executed();
        emulator.quit();
        let profile = profile::read(&fs::read(bench.path("profile.bin")).unwrap()).unwrap();
        assert!(profile.whole, "{}", kernel.name);
        let counted = |privilege| -> u64 {
            profile.slices.iter().map(|slice| slice.instructions(privilege)).sum()
        };
        let [in_kernel, by_users, in_firmware] = Privilege::ALL.map(counted);
        println!("{}: QEMU executed {executed} instructions", kernel.name);
        assert_eq!(in_kernel + by_users + in_firmware, executed, "{}", kernel.name);
        let console = fs::read_to_string(bench.path("console.log")).unwrap();
        assert!(!console.contains("faultline:"), "{console}");
        assert!(in_kernel > 0 && by_users > 10_000_000, "{in_kernel}, {by_users}");
    }
}

/// A guest that runs one program, which causes faults and shares memory, and then powers off.
fn initramfs() -> Vec<u8> {
    let guest = PathBuf::from(std::env::var_os("FAULTLINE_GUEST").unwrap());
    let words = "autonuma --programs NUMA02 --passes 1,1,20,1 --scale 1 --share 20 \
                 --first-node 0 --bound NUMA01 --interval 100 --cpus 1 --memory 536870912";
    let arguments = words.split_whitespace().map(String::from);
    let job = Job {
        workloads: vec![Workload {
            name: "autonuma".into(),
            command: [job::WORKLOADS_PATH.to_owned()].into_iter().chain(arguments).collect(),
            iterations: 1,
            timeout: Millis(600_000),
            metrics: true,
            userspace: false,
            plain: false,
            directory: String::new(),
        }],
        ..Job::default()
    };
    let mut archive = Archive::new();
    for directory in ["/dev", "/proc", "/sys", "/tmp"] {
        archive.directory(directory);
    }
    archive.console();
    for (path, program) in [(job::AGENT_PATH, "agent"), (job::WORKLOADS_PATH, "workloads")] {
        archive.program(path, &fs::read(guest.join(program)).unwrap());
    }
    archive.file(job::JOB_PATH, &serde_json::to_vec(&job).unwrap());
    archive.finish()
}

/// A QEMU that records, controlled by QMP (`docs/interop/qmp-spec.rst`).
struct Recording {
    process: Child,
    said: Lines<BufReader<ChildStdout>>,
    to: ChildStdin,
}

impl Recording {
    fn start(bench: &Bench, image: &Path) -> Self {
        let libraries =
            std::env::var_os("FAULTLINE_LIBRARIES").expect("`make check-long` names it");
        let plugin = Path::new(&libraries).join("libtcg.so");
        let file = |name: &str| bench.path(name).to_str().unwrap().to_owned();
        // When the guest ends, with or without an error, QEMU pauses, and the count is final.
        let mut command = Command::new("qemu-system-x86_64");
        command
            .args("-nodefaults -no-user-config -display none -qmp stdio -smp 1 -m 512M".split(' '))
            .args(["-action", "reboot=shutdown,shutdown=pause"])
            .args(["-machine", "q35,sata=off", "-accel", "tcg,thread=single"])
            .args(["-cpu", "max,-erms,-fsrm,-fzrm,-fsrs,-fsrc,-rdrand,-rdseed"])
            .args(["-icount", &format!("shift=1,sleep=off,rr=record,rrfile={}", file("replay"))])
            .args(["-rtc", "base=2020-01-01,clock=vm", "-seed", "1"])
            .env(flight::profile::PATH_VARIABLE, file("profile.bin"))
            .args(["-plugin", plugin.to_str().unwrap()])
            .args(["-kernel", image.to_str().unwrap(), "-initrd", &file("initramfs.cpio")])
            .args(["-append", "console=ttyS0 panic=-1 quiet tsc=reliable no_timer_check nokaslr"])
            .args(["-chardev", &format!("file,id=console,path={}", file("console.log"))])
            .args(["-serial", "chardev:console", "-device", "ivshmem-plain,memdev=recorder"])
            .arg("-object")
            .arg(format!(
                "memory-backend-file,id=recorder,share=on,size=64M,mem-path={}",
                file("flight.bin")
            ))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // There is a node without a CPU, so that there are two nodes.
        for (node, cpus) in [(0, ",cpus=0"), (1, "")] {
            command
                .args(["-object", &format!("memory-backend-ram,id=memory{node},size=256M")])
                .args(["-numa", &format!("node,nodeid={node},memdev=memory{node}{cpus}")]);
        }
        let mut process = command.spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap()).lines();
        let to = process.stdin.take().unwrap();
        let mut recording = Self { process, said, to };
        recording.ask("qmp_capabilities");
        recording
    }

    /// How many instructions the guest executed until its end.
    fn executed(&mut self) -> u64 {
        self.hear(|said| said["event"] == "STOP");
        let replay = self.ask("query-replay");
        assert_eq!(replay["mode"], "record");
        replay["icount"].as_u64().unwrap()
    }

    fn quit(mut self) {
        self.ask("quit");
        assert!(self.process.wait().unwrap().success());
    }

    fn ask(&mut self, command: &str) -> Value {
        writeln!(self.to, "{{\"execute\": \"{command}\"}}").unwrap();
        self.hear(|said| said.get("return").is_some())["return"].take()
    }

    /// Waits for a message that `is_wanted` accepts. Events may come at any time.
    fn hear(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let lines = self.said.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        lines.into_iter().find(is_wanted).expect("QEMU goes on")
    }
}

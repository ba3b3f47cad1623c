//! Composes QEMU's command line for a machine.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use model::Topology;

use crate::arch::{self, CONSOLE, EMULATED_WORDS, EXACT_MACHINE, MACHINE, TIMER_CPU};
use crate::exact::SHIFT;
use crate::option::with_path;
use crate::{CONSOLE_FILE, Emulator, Engine, Exact, RECORDER_FILE, Vm, disks};

/// The connection of the guest's serial console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Console {
    /// To a file. QMP uses QEMU's standard input and output.
    File,
    /// To the terminal, shared with QEMU's monitor (C-a c), with a copy in the file.
    Terminal,
}

/// The largest number of words that a seed draws, each shorter than the limit below. With the longest command
/// line of a variant they fit into the kernel's (`COMMAND_LINE_SIZE`, 2048).
const MOST_WORDS: u32 = 8;
const MOST_LETTERS: usize = 24;

/// The words that a machine adds to the kernel's command line, before the words of the variant
/// (`Documentation/admin-guide/kernel-parameters.txt`).
///
/// - `console`: the serial port that is captured.
/// - `panic=-1`: a panic resets at once, and a reset ends QEMU.
/// - `quiet`: the emulated UART is slow, and the agent records the whole log. Errors, oopses and panics are
///   still printed.
/// - `cryptomgr.notests`: saves a seventh of the boot time under emulation.
/// - `nokaslr` (exact): the kernel is at the addresses of its symbols.
/// - `page_alloc.shuffle` (exact): the order of free memory is random and depends on the seed
///   (`mm/shuffle.c`). Kernels without this option ignore it.
/// - `faultline.seed` (exact): an option of a module that does not exist. Kernels ignore it, except that
///   `random_init_early` (`drivers/char/random.c`) mixes in the whole command line.
///
/// The words of the architecture are described in [`arch`]. Some of them depend on the `own` words of the variant.
fn boot_parameters(engine: Engine<'_>, cpus: u32, own: &str) -> String {
    let all = format!("console={CONSOLE} panic=-1 quiet cryptomgr.notests");
    match engine {
        Engine::Kvm => all,
        Engine::Tcg => format!("{all} {EMULATED_WORDS}"),
        Engine::Exact(exact) => {
            let drawn = drawn_words(exact.seed);
            let exact = arch::exact_words(cpus, own);
            format!("{all} {EMULATED_WORDS} nokaslr {exact} page_alloc.shuffle=1 {drawn}")
        }
    }
}

/// QEMU's options of all exact machines, besides the machine, the CPU and its timers.
const EXACT_FLAGS: &str = "-accel tcg,thread=single -rtc base=2020-01-01,clock=vm -seed 1";

/// What decides the counts of exact machines besides their size: QEMU's options, the CPU, and the words for the kernel, of
/// one seed and one CPU. Boots of machines of which this differs have other counts.
pub fn exact_machine(emulator: &Emulator) -> String {
    let exact = Exact { seed: 0, clock: PathBuf::new(), plugin: None };
    let words = boot_parameters(Engine::Exact(&exact), 1, "");
    let cpu = arch::emulated_cpu(emulator.major());
    let timers = arch::hpet(1, "").unwrap_or_default().join(" ");
    let options = format!("{MACHINE},{EXACT_MACHINE} {EXACT_FLAGS} {SHIFT}");
    format!("{options} {cpu}{TIMER_CPU} {timers} {words}")
}

/// The words that a seed draws: the seed itself, then a random number of words of random length. Words with a dot
/// name a module that does not exist. The others reach the environment of PID 1 (`init/main.c`,
/// `unknown_bootoption`). So the effect of one more unknown word of a variant is within the range of effects of
/// seeds.
fn drawn_words(seed: u32) -> String {
    let mut rng = Rng::with_seed(seed.into());
    let mut words = format!("faultline.seed={seed:08x}");
    for number in 0..rng.u32(..MOST_WORDS) {
        let separator = if rng.bool() { '.' } else { '_' };
        let value: String = (0..rng.usize(..MOST_LETTERS)).map(|_| rng.lowercase()).collect();
        words += &format!(" faultline{separator}{number}={value}");
    }
    words
}

/// All arguments of QEMU.
pub fn arguments(vm: &Vm<'_>, console: Console) -> Vec<OsString> {
    let mut arguments = Arguments::default();
    arguments.flags("-nodefaults -no-user-config -no-reboot -display none");
    arguments.engine(vm);
    arguments.topology(vm.topology);
    arguments.0.extend(disks::arguments(vm));
    arguments.option("-kernel", vm.image);
    arguments.option("-initrd", vm.initramfs);
    let parameters = boot_parameters(vm.engine, vm.topology.cpus(), vm.cmdline);
    let of_disks = disks::boot_parameters(vm);
    let words = [&*parameters, &of_disks, vm.cmdline];
    let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
    arguments.option("-append", words.join(" "));
    arguments.console(console, &vm.directory.join(CONSOLE_FILE));
    let recorder = format!("memory-backend-file,id=recorder,share=on,size={}", vm.recorder.0);
    let path = vm.directory.join(RECORDER_FILE);
    arguments.option("-object", with_path(&recorder, "mem-path", &path));
    arguments.option("-device", "ivshmem-plain,memdev=recorder");
    arguments.0
}

/// Latency in nanoseconds and bandwidth in MiB/s that kernels are told, for the memory of nodes with CPUs and
/// without.
const FAST: [u32; 2] = [100, 10_000];
const SLOW: [u32; 2] = [300, 2_000];

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn flags(&mut self, words: &str) {
        self.0.extend(words.split_whitespace().map(OsString::from));
    }

    fn option(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.0.extend([name.into(), value.as_ref().to_owned()]);
    }

    /// The accelerator. In exact machines guest time counts instructions and does not wait for the host; the
    /// clock and random numbers (also those of the CPU) start with constant values.
    fn engine(&mut self, vm: &Vm<'_>) {
        let cpu = arch::emulated_cpu(vm.emulator.major());
        match vm.engine {
            Engine::Kvm => {
                self.option("-machine", MACHINE);
                self.flags("-accel kvm -cpu host");
            }
            Engine::Tcg => {
                self.option("-machine", MACHINE);
                self.flags("-accel tcg,thread=multi");
                self.option("-cpu", cpu);
            }
            Engine::Exact(exact) => {
                self.option("-machine", format!("{MACHINE},{EXACT_MACHINE}"));
                self.option("-icount", format!("shift={SHIFT},sleep=off"));
                self.flags(EXACT_FLAGS);
                match arch::hpet(vm.topology.cpus(), vm.cmdline) {
                    None => self.option("-cpu", cpu),
                    Some(timers) => {
                        self.option("-cpu", format!("{cpu}{TIMER_CPU}"));
                        timers.iter().for_each(|it| self.option("-global", it));
                    }
                }
                if let Some(plugin) = &exact.plugin {
                    self.option("-plugin", plugin.option(vm));
                }
            }
        }
    }

    /// CPUs, memory, nodes and distances (`qemu(1)`, `-smp` and `-numa`).
    fn topology(&mut self, topology: &Topology) {
        let (cpus, sockets) = (topology.cpus(), sockets(topology));
        let cores = cpus / sockets;
        self.option("-smp", format!("cpus={cpus},sockets={sockets},cores={cores},threads=1"));
        self.option("-m", format!("{}M", topology.memory().0 >> 20));
        for (number, node) in topology.nodes.iter().enumerate() {
            let size = node.memory.0 >> 20;
            self.option("-object", format!("memory-backend-ram,id=memory{number},size={size}M"));
            let mut numa = format!("node,nodeid={number},memdev=memory{number}");
            for range in node.cpus.to_string().split(',').filter(|range| !range.is_empty()) {
                numa += &format!(",cpus={range}");
            }
            if node.cpus.0.is_empty() {
                numa += &format!(",initiator={}", nearest(topology, number));
            }
            self.option("-numa", numa);
        }
        self.distances(topology);
        self.speeds(topology);
    }

    /// Adds all distances if any is given, because QEMU requires all or none. Without them the machine has no SLIT,
    /// and the kernel uses 10 and 20.
    fn distances(&mut self, topology: &Topology) {
        if topology.nodes.iter().all(|node| node.distances.is_empty()) {
            return;
        }
        let count = topology.nodes.len();
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            if from != to {
                let distance = topology.distance(from, to);
                self.option("-numa", format!("dist,src={from},dst={to},val={distance}"));
            }
        }
    }

    /// Tells the kernel that nodes with memory only are slow (ACPI's HMAT), which makes them a memory tier of their
    /// own. They are not really slower, because emulated memory has no speed.
    fn speeds(&mut self, topology: &Topology) {
        let is_slow = |node: usize| topology.nodes[node].cpus.0.is_empty();
        let nodes = 0..topology.nodes.len();
        if !nodes.clone().any(is_slow) {
            return;
        }
        self.option("-machine", "hmat=on");
        for from in nodes.clone().filter(|node| !is_slow(*node)) {
            for to in nodes.clone() {
                let [latency, bandwidth] = if is_slow(to) { SLOW } else { FAST };
                let place = format!("hmat-lb,initiator={from},target={to},hierarchy=memory");
                let latency = format!("{place},data-type=access-latency,latency={latency}");
                self.option("-numa", latency);
                let bandwidth =
                    format!("{place},data-type=access-bandwidth,bandwidth={bandwidth}M");
                self.option("-numa", bandwidth);
            }
        }
    }

    fn console(&mut self, console: Console, path: &Path) {
        match console {
            Console::File => {
                self.option("-chardev", with_path("file,id=console", "path", path));
                self.flags("-qmp stdio");
            }
            Console::Terminal => {
                let terminal = "stdio,id=console,mux=on,signal=off";
                self.option("-chardev", with_path(terminal, "logfile", path));
                self.flags("-mon chardev=console,mode=readline");
            }
        }
        self.flags("-serial chardev:console");
    }
}

/// The nearest node with CPUs.
fn nearest(topology: &Topology, node: usize) -> usize {
    let with_cpus = |other: &usize| !topology.nodes[*other].cpus.0.is_empty();
    let others = (0..topology.nodes.len()).filter(with_cpus);
    others.min_by_key(|other| topology.distance(node, *other)).unwrap_or_default()
}

/// The number of sockets, chosen so that no socket spans nodes. If one did, the kernel would warn about last-level
/// caches shared between nodes, and build wrong scheduling domains. There is one socket for each node with CPUs if
/// these nodes are alike and in order, else one for each CPU.
fn sockets(topology: &Topology) -> u32 {
    let with_cpus: Vec<&[u32]> = topology
        .nodes
        .iter()
        .map(|node| node.cpus.0.as_slice())
        .filter(|cpus| !cpus.is_empty())
        .collect();
    let alike = with_cpus.windows(2).all(|pair| pair[0].len() == pair[1].len());
    let in_order = with_cpus.iter().copied().flatten().is_sorted();
    if alike && in_order { with_cpus.len() as u32 } else { topology.cpus() }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Limits, Node};

    use super::*;
    use crate::{Plugin, Switch};

    fn node(cpus: &str, mib: u64, distances: &[u8]) -> Node {
        Node { cpus: cpus.parse().unwrap(), memory: Bytes::mib(mib), distances: distances.into() }
    }

    /// The command line with an option and its value on each line.
    fn written(
        topology: &Topology,
        engine: Engine<'_>,
        directory: &str,
        console: Console,
    ) -> String {
        let vm = Vm {
            emulator: &Emulator::unchecked(Path::new(arch::PROGRAM), 10),
            engine,
            topology,
            disks: &[],
            userspace: None,
            image: Path::new("/cache/6.1/vmlinux"),
            initramfs: Path::new("/run/initramfs.cpio"),
            cmdline: "numa_balancing=disable",
            directory: Path::new(directory),
            recorder: Bytes::mib(256),
            limits: &Limits::default(),
        };
        let words = arguments(&vm, console);
        let words = words.iter().map(|word| word.to_str().unwrap());
        words.collect::<Vec<_>>().join(" ").replace(" -", "\n-")
    }

    /// The command line of a machine with one node.
    fn plain() -> String {
        let topology = Topology::even(2, Bytes::mib(512), 1).unwrap();
        written(&topology, Engine::Tcg, "/run", Console::File)
    }

    /// The lines that [`plain`] does not have.
    fn changed(written: &str) -> String {
        let plain = plain();
        let is_new = |line: &&str| !plain.lines().any(|it| it == *line);
        written.lines().filter(is_new).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn one_node() {
        insta::assert_snapshot!(plain(), @r"
        -nodefaults
        -no-user-config
        -no-reboot
        -display none
        -machine q35,dump-guest-core=off
        -accel tcg,thread=multi
        -cpu max,-erms,-fsrm,-fzrm,-fsrs,-fsrc
        -smp cpus=2,sockets=1,cores=2,threads=1
        -m 512M
        -object memory-backend-ram,id=memory0,size=512M
        -numa node,nodeid=0,memdev=memory0,cpus=0-1
        -kernel /cache/6.1/vmlinux
        -initrd /run/initramfs.cpio
        -append console=ttyS0 panic=-1 quiet cryptomgr.notests tsc=reliable no_timer_check numa_balancing=disable
        -chardev file,id=console,path=/run/console.log
        -qmp stdio
        -serial chardev:console
        -object memory-backend-file,id=recorder,share=on,size=268435456,mem-path=/run/flight.bin
        -device ivshmem-plain,memdev=recorder
        ");
    }

    #[test]
    fn two_nodes_under_kvm_on_the_terminal() {
        let topology = Topology::even(4, Bytes::mib(2048), 2).unwrap();
        let written = written(&topology, Engine::Kvm, "/run/a,b", Console::Terminal);
        insta::assert_snapshot!(changed(&written), @r"
        -accel kvm
        -cpu host
        -smp cpus=4,sockets=2,cores=2,threads=1
        -m 2048M
        -object memory-backend-ram,id=memory0,size=1024M
        -object memory-backend-ram,id=memory1,size=1024M
        -numa node,nodeid=1,memdev=memory1,cpus=2-3
        -append console=ttyS0 panic=-1 quiet cryptomgr.notests numa_balancing=disable
        -chardev stdio,id=console,mux=on,signal=off,logfile=/run/a,,b/console.log
        -mon chardev=console,mode=readline
        -object memory-backend-file,id=recorder,share=on,size=268435456,mem-path=/run/a,,b/flight.bin
        ");
    }

    #[test]
    fn a_node_with_memory_only_and_distances() {
        let nodes = vec![
            node("0,2", 256, &[10, 21, 31]),
            node("1,3", 256, &[21, 10, 31]),
            node("", 512, &[31, 31, 10]),
        ];
        let topology = Topology { nodes };
        insta::assert_snapshot!(changed(&written(&topology, Engine::Tcg, "/run", Console::File)), @r"
        -smp cpus=4,sockets=4,cores=1,threads=1
        -m 1024M
        -object memory-backend-ram,id=memory0,size=256M
        -numa node,nodeid=0,memdev=memory0,cpus=0,cpus=2
        -object memory-backend-ram,id=memory1,size=256M
        -numa node,nodeid=1,memdev=memory1,cpus=1,cpus=3
        -object memory-backend-ram,id=memory2,size=512M
        -numa node,nodeid=2,memdev=memory2,initiator=0
        -numa dist,src=0,dst=1,val=21
        -numa dist,src=0,dst=2,val=31
        -numa dist,src=1,dst=0,val=21
        -numa dist,src=1,dst=2,val=31
        -numa dist,src=2,dst=0,val=31
        -numa dist,src=2,dst=1,val=31
        -machine hmat=on
        -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=100
        -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=10000M
        -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=100
        -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=10000M
        -numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-latency,latency=300
        -numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth=2000M
        -numa hmat-lb,initiator=1,target=0,hierarchy=memory,data-type=access-latency,latency=100
        -numa hmat-lb,initiator=1,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=10000M
        -numa hmat-lb,initiator=1,target=1,hierarchy=memory,data-type=access-latency,latency=100
        -numa hmat-lb,initiator=1,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=10000M
        -numa hmat-lb,initiator=1,target=2,hierarchy=memory,data-type=access-latency,latency=300
        -numa hmat-lb,initiator=1,target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth=2000M
        ");
    }

    #[test]
    fn an_exact_machine_with_its_plugin() {
        let topology = Topology { nodes: vec![node("0", 3072, &[]), node("1", 3072, &[])] };
        let exact = Exact {
            seed: 0x1f,
            clock: "/lib/libstillclock.so".into(),
            plugin: Some(Plugin {
                path: "/li,b/libtcg.so".into(),
                accesses: true,
                stacks: true,
                each: false,
                switch: Some(Switch { address: 0xffff_ffff_8100_2000, tgid: 2456, comm: 3032 }),
                functions: vec![],
            }),
        };
        let written = written(&topology, Engine::Exact(&exact), "/run/a,b", Console::File);
        insta::assert_snapshot!(changed(&written), @r"
        -machine q35,dump-guest-core=off,sata=off
        -icount shift=1,sleep=off
        -accel tcg,thread=single
        -rtc base=2020-01-01,clock=vm
        -seed 1
        -cpu max,-erms,-fsrm,-fzrm,-fsrs,-fsrc,-arat
        -global hpet.msi=on
        -global hpet.timers=5
        -plugin file=/li,,b/libtcg.so,node=0:0x0-0x80000000,node=0:0x100000000-0x140000000,node=1:0x140000000-0x200000000,stacks=on,switch=0xffffffff81002000:2456:3032
        -smp cpus=2,sockets=2,cores=1,threads=1
        -m 6144M
        -object memory-backend-ram,id=memory0,size=3072M
        -numa node,nodeid=0,memdev=memory0,cpus=0
        -object memory-backend-ram,id=memory1,size=3072M
        -numa node,nodeid=1,memdev=memory1,cpus=1
        -append console=ttyS0 panic=-1 quiet cryptomgr.notests tsc=reliable no_timer_check nokaslr cpu_init_udelay=0 initcall_blacklist=jent_mod_init,trace_eval_init,trace_eval_sync,ecdsa_init,ecdh_init nolapic_timer page_alloc.shuffle=1 faultline.seed=0000001f faultline.0=rkcqlsjjcnew faultline.1=kbimlgnxoilqvkmwob faultline_2=gehbknhlioqhaqr faultline.3= numa_balancing=disable
        -chardev file,id=console,path=/run/a,,b/console.log
        -object memory-backend-file,id=recorder,share=on,size=268435456,mem-path=/run/a,,b/flight.bin
        ");
    }

    #[test]
    fn no_socket_spans_nodes() {
        let sockets = |lists: &[&str]| {
            let nodes = lists.iter().map(|cpus| node(cpus, 128, &[])).collect();
            sockets(&Topology { nodes })
        };
        assert_eq!(sockets(&["0-3"]), 1);
        assert_eq!(sockets(&["0-1", "2-3", ""]), 2);
        assert_eq!(sockets(&["0-2", "3"]), 4);
        assert_eq!(sockets(&["2-3", "0-1"]), 4);
    }

    /// The variant's command line has the largest length that `lab` allows.
    #[test]
    fn the_words_of_a_seed_fit_into_the_command_line() {
        const VARIANT: usize = 1536;
        const LINE: usize = 2048;
        let exact = |seed| Exact { seed, clock: "/x".into(), plugin: None };
        let lines = (0..1000).map(|seed| boot_parameters(Engine::Exact(&exact(seed)), 1, "").len());
        assert!(lines.max().unwrap() + VARIANT + 16 < LINE);
        assert_ne!(drawn_words(1).len(), drawn_words(2).len());
    }
}

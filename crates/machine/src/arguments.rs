//! Composes QEMU's command line for a machine.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use model::Topology;

use crate::arch::Platform;
use crate::exact::SHIFT;
use crate::option::with_path;
use crate::{CONSOLE_FILE, Emulator, Engine, Exact, RECORDER_FILE, Vm, disks};

/// The connection of the guest's serial console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Console {
    /// To a file. QMP uses QEMU's standard input and output, and starts the guest.
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
/// - `cryptomgr.notests`: saves a seventh of the boot time under emulation, on arm64 a third and more. There tests also
///   run on in threads of the kernel while the workload does.
/// - `nokaslr` (exact): the kernel is at the addresses of its symbols.
/// - `page_alloc.shuffle` (exact): the order of free memory is random and depends on the seed
///   (`mm/shuffle.c`). Kernels without this option ignore it.
/// - `faultline.seed` (exact): an option of a module that does not exist. Kernels ignore it, except that
///   `random_init_early` (`drivers/char/random.c`) mixes in the whole command line.
///
/// The words of the architecture are described in [`crate::arch`]. Some of them depend on the `own` words of the
/// variant.
fn boot_parameters(platform: &Platform, engine: Engine<'_>, cpus: u32, own: &str) -> String {
    let all = format!("console={} panic=-1 quiet cryptomgr.notests", platform.console);
    match engine {
        Engine::Kvm => all,
        Engine::Tcg => joined(&[&all, platform.emulated_words]),
        Engine::Exact(exact) => {
            let drawn = drawn_words(exact.seed);
            let emulated = platform.emulated_words;
            let counts = exact.plugin.as_ref().is_some_and(|it| it.transfers.is_some());
            let has_word = own.split_whitespace().any(|word| word == SLABS_APART);
            let apart = if counts && !has_word { SLABS_APART } else { "" };
            let own = (platform.exact_words)(cpus, own);
            joined(&[&all, emulated, "nokaslr", &own, "page_alloc.shuffle=1", apart, &drawn])
        }
    }
}

/// A word for the kernel's command line if transfers of lines are counted. Otherwise the kernel uses one slab cache for
/// several types of the same size, so the type of an object is not known.
const SLABS_APART: &str = "slab_nomerge";

/// Words without the empty ones.
fn joined(words: &[&str]) -> String {
    let words = words.iter().filter(|words| !words.is_empty());
    words.copied().collect::<Vec<_>>().join(" ")
}

/// QEMU's options of all exact machines, besides the machine, the CPU and its timers.
const EXACT_FLAGS: &str = "-accel tcg,thread=single -rtc base=2020-01-01,clock=vm -seed 1";

/// What decides the counts of exact machines besides their size: QEMU's options, the CPU, and the words for the kernel, of
/// one seed and one CPU. Boots of machines of which this differs have other counts.
pub fn exact_machine(emulator: &Emulator) -> String {
    let exact = Exact { seed: 0, clock: PathBuf::new(), plugin: None };
    let platform = emulator.platform();
    let words = boot_parameters(platform, Engine::Exact(&exact), 1, "");
    let cpu = (platform.cpu)(emulator.major());
    let (addition, timers) = (platform.timers)(1, "").unwrap_or_default();
    let options = format!("{} {EXACT_FLAGS} {SHIFT} {cpu}{addition}", exact_value(platform));
    joined(&[&options, &timers.join(" "), &words])
}

/// The value of `-machine` of exact machines.
fn exact_value(platform: &Platform) -> String {
    match platform.exact_machine {
        "" => platform.machine.to_owned(),
        addition => format!("{},{addition}", platform.machine),
    }
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
    arguments.topology(vm.topology, vm.emulator.platform());
    arguments.0.extend(disks::arguments(vm));
    arguments.option("-kernel", vm.image);
    arguments.option("-initrd", vm.initramfs);
    let (platform, cpus) = (vm.emulator.platform(), vm.topology.cpus());
    let parameters = boot_parameters(platform, vm.engine, cpus, vm.cmdline);
    let of_disks = disks::boot_parameters(vm);
    arguments.option("-append", joined(&[&parameters, &of_disks, vm.cmdline]));
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
        let platform = vm.emulator.platform();
        let cpu = (platform.cpu)(vm.emulator.major());
        match vm.engine {
            Engine::Kvm => {
                self.option("-machine", platform.machine);
                self.flags("-accel kvm -cpu host");
            }
            Engine::Tcg => {
                self.option("-machine", platform.machine);
                self.flags("-accel tcg,thread=multi");
                self.option("-cpu", cpu);
            }
            Engine::Exact(exact) => {
                self.option("-machine", exact_value(platform));
                self.option("-icount", format!("shift={SHIFT},sleep=off"));
                self.flags(EXACT_FLAGS);
                match (platform.timers)(vm.topology.cpus(), vm.cmdline) {
                    None => self.option("-cpu", cpu),
                    Some((addition, timers)) => {
                        self.option("-cpu", format!("{cpu}{addition}"));
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
    fn topology(&mut self, topology: &Topology, platform: &Platform) {
        let (cpus, sockets) = (topology.cpus(), sockets(topology));
        let cores = cpus / sockets;
        let clusters = if platform.places_cpus { ",clusters=1" } else { "" };
        let smp = format!("cpus={cpus},sockets={sockets}{clusters},cores={cores},threads=1");
        self.option("-smp", smp);
        self.option("-m", format!("{}M", topology.memory().0 >> 20));
        for (number, node) in topology.nodes.iter().enumerate() {
            let size = node.memory.0 >> 20;
            self.option("-object", format!("memory-backend-ram,id=memory{number},size={size}M"));
            let mut numa = format!("node,nodeid={number},memdev=memory{number}");
            let ranges = node.cpus.to_string();
            let ranges = ranges.split(',').filter(|it| !it.is_empty() && !platform.places_cpus);
            ranges.for_each(|range| numa += &format!(",cpus={range}"));
            if node.cpus.0.is_empty() {
                numa += &format!(",initiator={}", nearest(topology, number));
            }
            self.option("-numa", numa);
            for cpu in node.cpus.0.iter().filter(|_| platform.places_cpus) {
                let (socket, core) = (cpu / cores, cpu % cores);
                let place = format!("socket-id={socket},cluster-id=0,core-id={core},thread-id=0");
                self.option("-numa", format!("cpu,node-id={number},{place}"));
            }
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
                // The monitor starts the guest once it hears events.
                self.flags("-S -qmp stdio");
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

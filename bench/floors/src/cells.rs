//! The cells: a machine and parameters for each built-in workload without packages but `fault`.

/// The kernel of both variants.
const KERNEL: &str = "debian:6.12";
/// Seeds of each variant.
pub const SEEDS: u32 = 5;
/// The memory of the machine in MiB.
const MEMORY: u32 = 512;

/// A workload and what it runs on: 2 CPUs, 512 MiB, one node if it needs no more.
pub struct Cell {
    pub workload: &'static str,
    /// Parameters by which it takes seconds, as an inline table of TOML without braces.
    pub parameters: &'static str,
    machine: Machine,
}

/// What a workload needs besides CPUs and memory.
enum Machine {
    Plain,
    /// Two nodes, each with a CPU.
    Nodes,
    /// Two nodes, one of them with memory alone.
    Tier,
    /// Persistent memory with ext4.
    Disk,
    /// Swap space in compressed memory.
    Swap,
}

const fn cell(workload: &'static str, machine: Machine, parameters: &'static str) -> Cell {
    Cell { workload, parameters, machine }
}

pub const CELLS: [Cell; 19] = [
    cell("autonuma", Machine::Nodes, r#"programs = "NUMA01", scale = 0.1"#),
    cell("compaction", Machine::Plain, "share = 10"),
    cell("filemap", Machine::Disk, "tasks = 2, share = 110"),
    cell("filereclaim", Machine::Disk, "share = 10"),
    cell("fork", Machine::Plain, "rounds = 2"),
    cell("memcg", Machine::Nodes, "operations = 2000, share = 2, rounds = 2"),
    cell("mglru", Machine::Disk, r#"limit = 4, sets = "80,110", passes = 1"#),
    cell("mmap", Machine::Plain, "tasks = 2, operations = 10000, rounds = 1"),
    cell("mprotect", Machine::Plain, "share = 5"),
    cell("nas", Machine::Plain, r#"benchmarks = "is""#),
    cell(
        "pagealloc",
        Machine::Plain,
        r#"orders = "0,3", batches = "1,64", rounds = 3, warm_up = 1"#,
    ),
    cell("pagefault", Machine::Plain, "tasks = 2, share = 10, rounds = 1"),
    cell("paralleldd", Machine::Disk, "size = 25, readers = 2"),
    cell("stutter", Machine::Disk, "hog = 50, file = 25, probe = 8"),
    cell("thp", Machine::Plain, "share = 5, rounds = 1"),
    cell("tier", Machine::Tier, "share = 10, seconds = 1"),
    cell("truncate", Machine::Disk, "files = 16, rounds = 2, share = 20"),
    cell("usemem", Machine::Swap, "tasks = 2, share = 20, limit = 15"),
    cell("vmalloc", Machine::Plain, "areas = 100, rounds = 1"),
];

impl Cell {
    /// The machine in words.
    pub fn machine(&self) -> String {
        let more = match self.machine {
            Machine::Plain => "",
            Machine::Nodes => " on 2 nodes",
            Machine::Tier => " on 2 nodes, one of them without CPUs",
            Machine::Disk => ", ext4 on persistent memory",
            Machine::Swap => ", swap in zram",
        };
        format!("2 CPUs, {MEMORY} MiB{more}")
    }

    /// The file of the experiment. It has the name of the workload.
    pub fn experiment(&self) -> String {
        let machine = match self.machine {
            Machine::Plain => format!("memory = \"{MEMORY}M\"\ncpus = 2\n"),
            Machine::Nodes => format!("memory = \"{MEMORY}M\"\ncpus = 2\nnodes = 2\n"),
            Machine::Tier => {
                let half = format!("memory = \"{}M\"\n", MEMORY / 2);
                format!("[[machine.node]]\ncpus = \"0-1\"\n{half}[[machine.node]]\n{half}")
            }
            Machine::Disk => format!(
                "memory = \"{MEMORY}M\"\ncpus = 2\n[[machine.disk]]\nkind = \"pmem\"\n\
                 size = \"{MEMORY}M\"\nfilesystem = \"ext4\"\n"
            ),
            Machine::Swap => format!(
                "memory = \"{MEMORY}M\"\ncpus = 2\n[machine.swap]\nkind = \"zram\"\nsize = \"256M\"\n"
            ),
        };
        let Self { workload, parameters, .. } = self;
        format!(
            "name = \"{workload}\"\nmode = \"exact\"\nseeds = {SEEDS}\n[machine]\n{machine}\
             [[variant]]\nname = \"plain\"\nkernel = \"{KERNEL}\"\n\
             [[variant]]\nname = \"word\"\nkernel = \"{KERNEL}\"\ncmdline = \"x=1\"\n\
             [[workload]]\nname = \"{workload}\"\nparameters = {{ {parameters} }}\n"
        )
    }
}

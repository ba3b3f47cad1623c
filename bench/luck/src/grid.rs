//! The grid: machines, kernels, workloads, and differences that do not matter.

use std::fmt::Write;
use std::path::Path;

/// A difference that does not matter: its name, and its addition to a variant.
type Harmless = (&'static str, &'static str);

/// The directory of the patches.
const PATCHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/planted");
/// The directory of the sources and manifests of the grid's own workloads.
pub const OWN_WORKLOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads");
/// The names of these workloads: system calls that only some boots make, and reads of files in `/proc` and `/sys`.
const OWN: [&str; 2] = ["rare", "files"];
/// Seeds of each variant.
pub const SEEDS: u32 = 5;
/// Variants besides the plain one in a cell.
const OTHERS: usize = 3;

/// Differences that do not matter: words that the kernel does not know, options set to their defaults, work before
/// the workload.
const HARMLESS: [Harmless; 10] = [
    ("word", "cmdline = \"x=1\""),
    ("sysctl", "sysctl = { \"vm.swappiness\" = \"60\" }"),
    ("again", "cmdline = \"quiet\""),
    ("dotted", "cmdline = \"foo.x=1\""),
    ("module", "modules = [\"loop\"]"),
    ("long", "cmdline = \"a_word_of_sixty_letters_that_no_kernel_has_ever_known_so_far=1\""),
    ("sysctls", "sysctl = { \"vm.stat_interval\" = \"1\", \"vm.overcommit_ratio\" = \"50\" }"),
    ("words", "cmdline = \"a=1 b=2 c=3 d=4\""),
    ("loglevel", "cmdline = \"loglevel=4\""),
    ("sysfs", "sysfs = { \"/sys/kernel/mm/transparent_hugepage/khugepaged/defrag\" = \"1\" }"),
];

/// One machine, kernel and set of workloads.
pub struct Cell {
    /// The kernel of all variants, as `faultline` names it.
    pub kernel: &'static str,
    /// Harmless patches in `scripts/planted`. The kernel with each is a variant too.
    pub rebuilt: &'static [&'static str],
    /// CPUs, nodes, and memory in MiB.
    pub machine: [u32; 3],
    /// The workloads' names. Each boot runs all of them in turn.
    pub workloads: &'static [&'static str],
}

const fn cell(kernel: &'static str, machine: [u32; 3], workloads: &'static [&'static str]) -> Cell {
    Cell { kernel, rebuilt: &[], machine, workloads }
}

/// The cells. The first few already have most kernels, machines and workloads.
pub const CELLS: [Cell; 20] = [
    cell("debian:6.1", [1, 1, 384], &["truncate", "pagealloc", "stutter"]),
    cell("debian:6.12", [4, 4, 1024], &["autonuma", "truncate"]),
    cell("debian:newest", [2, 1, 512], &["nas", "pagealloc", "paralleldd"]),
    cell("debian:5.10", [1, 1, 384], &["paralleldd", "truncate", "stutter"]),
    Cell {
        kernel: "debian-source:6.1",
        rebuilt: &["harmless", "moved"],
        machine: [2, 2, 512],
        workloads: &["autonuma"],
    },
    cell("debian:6.1", [2, 2, 512], &["autonuma", "pagealloc", "nas"]),
    cell("debian:newest", [4, 2, 768], &["truncate", "stutter", "pagealloc"]),
    cell("debian:6.12", [1, 1, 384], &["stutter", "pagealloc", "truncate", "paralleldd"]),
    cell("debian:5.10", [4, 2, 768], &["autonuma", "pagealloc"]),
    cell("debian:6.1", [8, 2, 1024], &["nas", "truncate"]),
    cell("debian:newest", [1, 1, 384], &["paralleldd", "truncate", "pagealloc"]),
    cell("debian:6.12", [2, 1, 512], &["truncate", "paralleldd", "stutter"]),
    cell("debian:5.10", [2, 1, 512], &["pagealloc", "truncate", "stutter"]),
    cell("debian:6.1", [4, 3, 768], &["autonuma", "paralleldd"]),
    cell("debian:newest", [8, 4, 1024], &["autonuma", "pagealloc"]),
    cell("debian:6.12", [4, 1, 512], &["paralleldd", "nas", "stutter"]),
    cell("debian:6.12", [1, 1, 512], &["files", "rare"]),
    cell("debian:newest", [1, 1, 384], &["files", "rare"]),
    cell("debian:6.1", [2, 2, 512], &["files", "rare"]),
    cell("debian:5.10", [1, 1, 256], &["files", "rare"]),
];

impl Cell {
    /// The name of the cell in one word, which identifies its experiment. Only the first workload is named.
    pub fn name(&self) -> String {
        let [cpus, nodes, memory] = self.machine;
        let kernel = self.kernel.trim_start_matches("debian:").replace(':', "-");
        format!("{kernel}-{cpus}-{nodes}-{memory}-{}", self.workloads[0])
    }

    /// The grid's own workloads in it.
    pub fn own(&self) -> impl Iterator<Item = &'static str> {
        self.workloads.iter().copied().filter(|name| OWN.contains(name))
    }

    /// The file of the experiment. `number` is the cell's number, by which the differences are taken in turn.
    /// `programs` is the directory with the programs of the grid's own workloads.
    pub fn experiment(&self, number: usize, programs: &Path) -> String {
        let [cpus, nodes, memory] = self.machine;
        let workloads: String =
            self.workloads.iter().map(|name| workload(name, programs)).collect();
        let disk = match self.workloads.iter().any(|name| NEED_DISK.contains(name)) {
            true => format!(
                "[[machine.disk]]\nkind = \"pmem\"\nsize = \"{memory}M\"\nfilesystem = \"ext4\"\n"
            ),
            false => String::new(),
        };
        let mut text = format!(
            "name = \"{}\"\nmode = \"exact\"\nseeds = {SEEDS}\n\
             [machine]\ncpus = {cpus}\nnodes = {nodes}\nmemory = \"{memory}M\"\n{disk}{workloads}",
            self.name()
        );
        let mut variant = |name: &str, kernel: &str, more: &str| {
            let _ = write!(text, "[[variant]]\nname = \"{name}\"\nkernel = \"{kernel}\"\n{more}\n");
        };
        variant("plain", self.kernel, "");
        for name in self.rebuilt {
            variant(name, self.kernel, &format!("patches = [\"{PATCHES}/{name}.patch\"]"));
        }
        for other in 0..OTHERS - self.rebuilt.len() {
            let (name, more) = HARMLESS[(number * OTHERS + other) % HARMLESS.len()];
            variant(name, self.kernel, more);
        }
        text
    }
}

/// Workloads that write files, and the disk for them.
const NEED_DISK: [&str; 3] = ["truncate", "paralleldd", "stutter"];

/// A workload with parameters for a few seconds.
fn workload(name: &str, programs: &Path) -> String {
    if OWN.contains(&name) {
        let program = programs.join(name);
        return format!(
            "[[workload]]\nmanifest = \"{OWN_WORKLOADS}/{name}.toml\"\nprogram = \"{}\"\n",
            program.display()
        );
    }
    let parameters = match name {
        "truncate" => "files = 16, rounds = 2, share = 20",
        "paralleldd" => "size = 25, readers = \"2\"",
        "stutter" => "hog = 50, file = 25, probe = 8",
        "pagealloc" => "orders = \"0\", batches = \"1,64\", rounds = 3, warm_up = 1",
        "nas" => "benchmarks = \"is\", class = \"S\"",
        _ => "programs = \"NUMA01\", scale = 0.1",
    };
    format!("[[workload]]\nname = \"{name}\"\nparameters = {{ {parameters} }}\n")
}

//! Reads the states of memory management that change figures. They depend on the kernel's version and configuration,
//! the machine, the variant's settings, and what earlier workloads did.

use std::fs;
use std::path::Path;

use guest::chosen;

/// Each state with its file, in the order of [`model::STATES`]. Functions read those that have several files.
const FILES: [(&str, Read); 10] = [
    ("THP", Read::File("sys/kernel/mm/transparent_hugepage/enabled")),
    ("THP defrag", Read::File("sys/kernel/mm/transparent_hugepage/defrag")),
    ("THP of shmem", Read::File("sys/kernel/mm/transparent_hugepage/shmem_enabled")),
    ("mTHP", Read::By(sizes)),
    ("MGLRU", Read::File("sys/kernel/mm/lru_gen/enabled")),
    ("NUMA balancing", Read::File("proc/sys/kernel/numa_balancing")),
    ("swap", Read::By(swap)),
    ("zswap", Read::File("sys/module/zswap/parameters/enabled")),
    ("KSM", Read::File("sys/kernel/mm/ksm/run")),
    ("DAMON", Read::By(damon)),
];

enum Read {
    File(&'static str),
    By(fn(&Path) -> Option<String>),
}

/// The states that this kernel has, with their values. `root` is `/` except in tests.
pub fn states(root: &Path) -> Vec<(String, String)> {
    let state = |(name, read): &(&str, Read)| {
        let value = match read {
            Read::File(file) => value(&root.join(file)),
            Read::By(read) => read(root),
        };
        Some(((*name).to_owned(), value?))
    };
    FILES.iter().filter_map(state).collect()
}

fn value(file: &Path) -> Option<String> {
    Some(chosen(&fs::read_to_string(file).ok()?).to_owned())
}

/// The value of each size of huge pages, with equal values joined: `16 to 1024 kB never, 2048 kB inherit`
/// (`Documentation/admin-guide/mm/transhuge.rst`).
fn sizes(root: &Path) -> Option<String> {
    let directories = fs::read_dir(root.join("sys/kernel/mm/transparent_hugepage")).ok()?;
    let size = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let size: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        Some((size, value(&entry.path().join("enabled"))?))
    };
    let mut sizes: Vec<(u64, String)> = directories.flatten().filter_map(size).collect();
    sizes.sort_unstable();
    let groups = sizes.chunk_by(|(_, one), (_, other)| one == other).map(|group| {
        let (least, value) = &group[0];
        match group[group.len() - 1].0 {
            most if most == *least => format!("{least} kB {value}"),
            most => format!("{least} to {most} kB {value}"),
        }
    });
    let groups: Vec<String> = groups.collect();
    (!groups.is_empty()).then(|| groups.join(", "))
}

/// The total size of all swap spaces (proc_swaps(5)), and the compression algorithm of zram if one is there
/// (`Documentation/admin-guide/blockdev/zram.rst`): `127 MiB, zram lz4`.
fn swap(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/swaps")).ok()?;
    let spaces = || text.lines().skip(1);
    let size = |line: &str| line.split_whitespace().nth(2)?.parse::<u64>().ok();
    let size = match spaces().filter_map(size).sum::<u64>() {
        0 => return Some("none".to_owned()),
        kib => format!("{} MiB", kib >> 10),
    };
    let algorithm = value(&root.join("sys/block/zram0/comp_algorithm"));
    let algorithm = algorithm.filter(|_| spaces().any(|line| line.starts_with("/dev/zram0 ")));
    Some(size + &algorithm.map(|it| format!(", zram {it}")).unwrap_or_default())
}

/// The modules of DAMON that monitor memory on their own (`Documentation/admin-guide/mm/damon/`).
const MONITORS: [&str; 3] = ["damon_stat", "damon_reclaim", "damon_lru_sort"];

/// The modules of DAMON that are enabled, or `off`.
fn damon(root: &Path) -> Option<String> {
    let file = |module: &str| root.join("sys/module").join(module).join("parameters/enabled");
    let known = MONITORS.iter().filter_map(|module| Some((*module, value(&file(module))?)));
    let known: Vec<(&str, String)> = known.collect();
    let enabled = known.iter().filter(|(_, value)| value.trim() == "Y").map(|(module, _)| *module);
    let enabled: Vec<&str> = enabled.collect();
    let said = if enabled.is_empty() { "off".to_owned() } else { enabled.join(", ") };
    (!known.is_empty()).then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn states_have_the_names_that_the_host_knows() {
        assert_eq!(FILES.each_ref().map(|(name, _)| *name), model::STATES);
    }

    #[test]
    fn a_kernel_reports_the_states_that_it_has() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(states(root), []);
        let thp = "sys/kernel/mm/transparent_hugepage";
        write(root, &format!("{thp}/enabled"), "always [madvise] never\n");
        for (size, text) in
            [(16, "[never]"), (64, "[never]"), (1024, "[never]"), (2048, "[inherit]")]
        {
            let text = format!("always inherit madvise {text}\n").replace(" inherit", "");
            write(root, &format!("{thp}/hugepages-{size}kB/enabled"), &text);
        }
        write(root, &format!("{thp}/khugepaged/defrag"), "1\n");
        write(root, "sys/kernel/mm/lru_gen/enabled", "0x0007\n");
        write(root, "sys/module/damon_reclaim/parameters/enabled", "N\n");
        let head = "Filename\tType\tSize\tUsed\tPriority\n";
        write(root, "proc/swaps", head);
        let found = |root: &Path| {
            let found = states(root).into_iter().map(|(name, value)| format!("{name} {value}"));
            found.collect::<Vec<_>>()
        };
        let mut expected = vec![
            "THP madvise",
            "mTHP 16 to 1024 kB never, 2048 kB inherit",
            "MGLRU 0x0007",
            "swap none",
            "DAMON off",
        ];
        assert_eq!(found(root), expected);
        let spaces = "/dev/zram0 partition 262140 0 -2\n/swap file 262140 12 -3\n";
        write(root, "proc/swaps", &format!("{head}{spaces}"));
        write(root, "sys/module/damon_stat/parameters/enabled", "Y\n");
        (expected[3], expected[4]) = ("swap 511 MiB", "DAMON damon_stat");
        assert_eq!(found(root), expected);
        write(root, "sys/block/zram0/comp_algorithm", "lzo lzo-rle [lz4] zstd\n");
        expected[3] = "swap 511 MiB, zram lz4";
        assert_eq!(found(root), expected);
    }
}

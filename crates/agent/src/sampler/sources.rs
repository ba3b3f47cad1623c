//! Lists the files of each source on this kernel.

use std::fs;
use std::path::{Path, PathBuf};

use flight::event::File;
use model::Source;

/// The files of `source` below `root`, in a fixed order. They include files that the kernel lacks, unless a directory
/// lists them.
pub fn files(root: &Path, source: Source) -> Vec<(File, PathBuf)> {
    let one = |path: &str| vec![(file(source, String::new()), root.join(path))];
    match source {
        Source::Vmstat => one("proc/vmstat"),
        Source::Zoneinfo => one("proc/zoneinfo"),
        Source::NodeVmstat => of_nodes(root, source, "vmstat"),
        Source::NodeNumastat => of_nodes(root, source, "numastat"),
        Source::NodeMeminfo => of_nodes(root, source, "meminfo"),
        Source::Meminfo => one("proc/meminfo"),
        Source::Stat => one("proc/stat"),
        Source::Schedstat => one("proc/schedstat"),
        Source::Pressure => pressure(root, source),
        Source::Interrupts => one("proc/interrupts"),
        Source::Softirqs => one("proc/softirqs"),
        Source::Diskstats => one("proc/diskstats"),
        Source::Buddyinfo => one("proc/buddyinfo"),
        Source::Pagetypeinfo => one("proc/pagetypeinfo"),
        Source::Slabinfo => one("proc/slabinfo"),
        // Not a file: see `events`.
        Source::Events => Vec::new(),
    }
}

fn file(source: Source, part: String) -> File {
    File { source: source.name().into(), part }
}

/// The file `name` of each node's directory, ordered by node.
fn of_nodes(root: &Path, source: Source, name: &str) -> Vec<(File, PathBuf)> {
    let directory = root.join("sys/devices/system/node");
    let number = |entry: &String| entry.strip_prefix("node")?.parse::<u32>().ok();
    let mut nodes: Vec<u32> = names(&directory).iter().filter_map(number).collect();
    nodes.sort_unstable();
    let path = |node: String| (file(source, node.clone()), directory.join(node).join(name));
    nodes.into_iter().map(|node| path(format!("node{node}"))).collect()
}

fn pressure(root: &Path, source: Source) -> Vec<(File, PathBuf)> {
    let directory = root.join("proc/pressure");
    let mut parts = names(&directory);
    parts.sort_unstable();
    let path = |part: String| (file(source, part.clone()), directory.join(part));
    parts.into_iter().map(path).collect()
}

/// The names in a directory; empty if it does not exist.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_sorted_by_number() {
        let root = tempfile::tempdir().unwrap();
        for name in ["node10", "node2", "power", "nodes"] {
            fs::create_dir_all(root.path().join("sys/devices/system/node").join(name)).unwrap();
        }
        let files = files(root.path(), Source::NodeVmstat);
        let parts: Vec<_> = files.iter().map(|(file, _)| file.part.as_str()).collect();
        assert_eq!(parts, ["node2", "node10"]);
        assert!(files[0].1.ends_with("sys/devices/system/node/node2/vmstat"));
    }

    #[test]
    fn every_source_is_found_on_a_kernel_that_has_it() {
        for source in [Source::Vmstat, Source::Stat, Source::Interrupts, Source::NodeMeminfo] {
            let files = files(Path::new("/"), source);
            assert!(files.iter().all(|(_, path)| path.exists()), "{source:?}");
        }
    }
}

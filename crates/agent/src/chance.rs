//! Makes random draws in the guest before each iteration of exact mode. A seed draws everything that may differ
//! between two variants without mattering: free lists, slabs, process numbers and the phases of timers. The settings
//! and the command line of a variant shift these. Because all of them are drawn, such a shift is just another draw,
//! and the spread over seeds covers it.
//!
//! Anything that the kernel does not support is skipped.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;
use memmap2::{Advice, MmapMut};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::system::sysinfo;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use guest::arch::page;

/// Periodic timers with a shorter period than this have a random phase after the wait: the tick, the folding
/// of counters (`vm.stat_interval`), the flusher threads (`vm.dirty_writeback_centisecs`).
const WAIT: Duration = Duration::from_secs(5);
/// The largest number of pages, files and threads that are made on each CPU, and of mounts in all.
const PAGES: usize = 768;
const FILES: usize = 96;
const THREADS: usize = 24;
const MOUNTS: usize = 24;
/// The largest number of pages and files on each CPU that are kept while the iteration runs.
const KEPT: usize = 64;

/// While the iteration runs, anonymous pages hold at most the free memory divided by this, and a file holds as much
/// again. That is too little to change what a workload can do.
const SHARE: u64 = 128;
/// The number of pages that are mapped at once.
const CHUNK: usize = 64;
/// Files are written in pieces of this many bytes for each page, the size of the smallest page.
const PIECE: usize = 4096;
static ZEROES: [u8; CHUNK * PIECE] = [0; CHUNK * PIECE];
/// The largest number of names that are looked up in vain.
const NAMES: usize = 64;
/// The largest number of page faults on each CPU that are made only to move counters.
const FAULTS: usize = 4096;

/// Files of settings below `/proc/sys/vm` and `/sys/kernel/mm`. The settings of a variant stay in the inode
/// and dentry caches until memory is short, where shrinkers and RCU handle them.
const SETTINGS: [(&str, &[&str]); 2] = [
    (
        "/proc/sys/vm",
        &[
            "admin_reserve_kbytes", "dirty_background_bytes", "dirty_background_ratio",
            "dirty_bytes", "dirty_expire_centisecs", "dirty_ratio", "dirty_writeback_centisecs",
            "dirtytime_expire_seconds", "extfrag_threshold", "laptop_mode", "lowmem_reserve_ratio",
            "max_map_count", "min_free_kbytes", "mmap_min_addr", "nr_hugepages", "oom_dump_tasks",
            "oom_kill_allocating_task", "overcommit_kbytes", "overcommit_memory",
            "overcommit_ratio", "page-cluster", "panic_on_oom", "stat_interval", "swappiness",
            "user_reserve_kbytes", "vfs_cache_pressure", "watermark_boost_factor",
            "watermark_scale_factor", "zone_reclaim_mode",
        ],
    ),
    (
        "/sys/kernel/mm/transparent_hugepage",
        &["defrag", "enabled", "hpage_pmd_size", "shmem_enabled", "use_zero_page"],
    ),
];

/// Objects that are kept while an iteration runs. They are released when this is dropped.
#[derive(Debug, Default)]
pub struct Kept {
    pages: Vec<MmapMut>,
    files: Vec<PathBuf>,
    mounts: Vec<PathBuf>,
    threads: Vec<(Sender<()>, JoinHandle<()>)>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        for (sender, thread) in self.threads.drain(..) {
            drop(sender);
            let _ = thread.join();
        }
        self.files.iter().for_each(remove);
        self.mounts.iter().for_each(end_mount);
    }
}

/// Draws for an iteration of workload number `workload`.
pub fn draw(seed: u32, workload: u16, iteration: u32) -> Kept {
    let number = u64::from(workload) << 32 | u64::from(iteration);
    let mut rng = Rng::with_seed(u64::from(seed) << 48 ^ number);
    let mut kept = Kept::default();
    let Ok(allowed) = sched_getaffinity(None) else { return kept };
    let mut cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    rng.shuffle(&mut cpus);
    let memory = sysinfo();
    let free = memory.freeram as u64 * u64::from(memory.mem_unit) / SHARE;
    let pages = free as usize / page() / cpus.len().max(1);
    for &cpu in &cpus {
        run_on(cpu);
        move_counters(&mut rng, pages, &mut kept);
        take_pages(&mut rng, &mut kept.pages);
        make_files(&mut rng, &mut kept.files);
        (0..rng.usize(..THREADS)).for_each(|_| start_thread());
    }
    make_mounts(&mut rng, &mut kept.mounts);
    open_settings(&mut rng);
    // The scheduler starts the workload near the agent's CPU.
    if let Some(&cpu) = rng.choice(&cpus) {
        run_on(cpu);
    }
    thread::sleep(WAIT.mul_f64(rng.f64()));
    look_up_names(&mut rng);
    let _ = sched_setaffinity(None, &allowed);
    kept
}

fn run_on(cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu);
    let _ = sched_setaffinity(None, &only);
}

/// Allocates pages one by one and frees most of them in another order. They are populated at once, because
/// the agent's memory is locked.
fn take_pages(rng: &mut Rng, kept: &mut Vec<MmapMut>) {
    let mut pages: Vec<MmapMut> =
        (0..rng.usize(..PAGES)).map_while(|_| MmapMut::map_anon(1).ok()).collect();
    keep_some(rng, &mut pages).for_each(drop);
    kept.append(&mut pages);
}

/// Moves the kernel's counters, such as those of `/proc/meminfo` and `/proc/vmstat`, by small and by large amounts
/// alike: the cost of printing a counter depends on its number of digits. Holds free memory, memory of a file and
/// sleeping threads, and faults pages in and frees them.
fn move_counters(rng: &mut Rng, pages: usize, kept: &mut Kept) {
    for chunk in chunks(any_size(rng, pages)) {
        let Ok(chunk) = MmapMut::map_anon(chunk * page()) else { break };
        // Otherwise khugepaged could change these pages.
        let _ = chunk.advise(Advice::NoHugePage);
        kept.pages.push(chunk);
    }
    let path: PathBuf = format!("/tmp/{:016x}", rng.u64(..)).into();
    if let Ok(mut file) = File::create(&path) {
        kept.files.push(path);
        let mut write = |pages: usize| file.write_all(&ZEROES[..pages * PIECE]).is_ok();
        let written = |chunk| (0..page() / PIECE).all(|_| write(chunk));
        let _ = chunks(any_size(rng, pages)).all(written);
    }
    for _ in 0..any_size(rng, THREADS) {
        let (sender, receiver) = channel();
        // The thread sleeps until the sender is dropped.
        let sleep = move || receiver.recv().unwrap_or_default();
        if let Ok(thread) = thread::Builder::new().stack_size(16 << 10).spawn(sleep) {
            kept.threads.push((sender, thread));
        }
    }
    (0..any_size(rng, FAULTS)).for_each(|_| drop(MmapMut::map_anon(1)));
}

/// A random number from 1 to `most`. Each order of magnitude is equally likely. The result is 0 if `most` is 0.
fn any_size(rng: &mut Rng, most: usize) -> usize {
    ((most as f64 + 1.0).powf(rng.f64()) as usize).min(most)
}

/// The sizes of chunks that together have this many pages.
fn chunks(pages: usize) -> impl Iterator<Item = usize> {
    (0..pages).step_by(CHUNK).map(move |first| CHUNK.min(pages - first))
}

/// Creates files, and removes most of them in another order.
fn make_files(rng: &mut Rng, kept: &mut Vec<PathBuf>) {
    let mut files: Vec<PathBuf> =
        (0..rng.usize(..FILES)).map(|_| format!("/tmp/{:016x}", rng.u64(..)).into()).collect();
    files.retain(|path| File::create(path).is_ok());
    keep_some(rng, &mut files).for_each(|path| remove(&path));
    kept.append(&mut files);
}

/// Mounts file systems, and unmounts most of them in another order. Each mount allocates per-CPU memory in
/// chunks of several sizes (`mm/percpu.c`).
fn make_mounts(rng: &mut Rng, kept: &mut Vec<PathBuf>) {
    let mut mounts: Vec<PathBuf> =
        (0..rng.usize(..MOUNTS)).map(|_| format!("/tmp/{:016x}", rng.u64(..)).into()).collect();
    mounts.retain(|path| fs::create_dir(path).is_ok());
    for path in &mounts {
        let _ = mount("tmpfs", path, "tmpfs", MountFlags::empty(), None);
    }
    keep_some(rng, &mut mounts).for_each(|path| end_mount(&path));
    kept.append(&mut mounts);
}

/// Opens some of the files of settings, in a random order.
fn open_settings(rng: &mut Rng) {
    let mut paths: Vec<String> = SETTINGS
        .iter()
        .flat_map(|(directory, names)| names.iter().map(move |name| format!("{directory}/{name}")))
        .collect();
    rng.shuffle(&mut paths);
    for path in paths.iter().take(rng.usize(..=paths.len())) {
        let _ = File::open(path);
    }
}

/// Looks up names that sysfs does not have, in half of the iterations. The kernel keeps each as a dentry that was used
/// once. How many such dentries there are decides how often `drop_slab` (`mm/vmscan.c`) goes over all caches when a
/// workload drops them, and so whether it frees those that were used twice.
fn look_up_names(rng: &mut Rng) {
    let most = if rng.bool() { NAMES } else { 0 };
    for _ in 0..any_size(rng, most) {
        let _ = File::open(format!("/sys/kernel/{:016x}", rng.u64(..)));
    }
}

fn end_mount(path: &PathBuf) {
    let _ = unmount(path, UnmountFlags::empty());
    let _ = fs::remove_dir(path);
}

/// Keeps some elements of `all`, in a random order, and returns the others.
fn keep_some<'a, T>(rng: &mut Rng, all: &'a mut Vec<T>) -> std::vec::Drain<'a, T> {
    rng.shuffle(all);
    let keep = rng.usize(..KEPT).min(all.len());
    all.drain(keep..)
}

fn remove(path: &PathBuf) {
    let _ = fs::remove_file(path);
}

/// Starts a thread, which takes a process number, and ends it.
fn start_thread() {
    if let Ok(thread) = thread::Builder::new().stack_size(16 << 10).spawn(|| ()) {
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_kept_and_the_others_returned() {
        let mut rng = Rng::with_seed(3);
        for number in [0, 1, 50, 500] {
            let mut all: Vec<usize> = (0..number).collect();
            let given: Vec<usize> = keep_some(&mut rng, &mut all).collect();
            assert!(all.len() < KEPT);
            all.extend(given);
            all.sort_unstable();
            assert_eq!(all, (0..number).collect::<Vec<_>>());
        }
    }

    /// Of the numbers from 1 to 1,000,000, one in six has each number of digits.
    #[test]
    fn sizes_have_any_number_of_digits() {
        let mut rng = Rng::with_seed(1);
        let mut digits = [0; 7];
        for _ in 0..6000 {
            let size = any_size(&mut rng, 999_999);
            assert!((1..1_000_000).contains(&size));
            digits[size.ilog10() as usize] += 1;
        }
        assert!(digits[..6].iter().all(|count| (900..1100).contains(count)), "{digits:?}");
        assert_eq!((any_size(&mut rng, 0), any_size(&mut rng, 1)), (0, 1));
        assert_eq!(chunks(150).collect::<Vec<_>>(), [64, 64, 22]);
        assert_eq!(chunks(0).count(), 0);
    }

    #[test]
    fn kept_objects_are_released_at_the_end() {
        let mut kept = Kept::default();
        move_counters(&mut Rng::with_seed(2), 100, &mut kept);
        assert!(!kept.pages.is_empty() && !kept.threads.is_empty());
        make_files(&mut Rng::with_seed(1), &mut kept.files);
        take_pages(&mut Rng::with_seed(1), &mut kept.pages);
        let files = kept.files.clone();
        assert!(!files.is_empty() && files.iter().all(|path| path.exists()));
        drop(kept);
        assert!(files.iter().all(|path| !path.exists()));
    }
}

//! Undoes what a workload left, so that the next one starts from the same state, and says what is still left. Its
//! processes are dead by then (`run::child`).
//!
//! Workloads have no memory cgroup of their own: charging pages to it would add instructions to every figure.

mod cgroups;
mod files;
mod memory;
mod mounts;
mod settings;
mod tracing;

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::path::Path;

use guest::caches::drop_caches;
use guest::{cut, sys};
use model::NoteKind;

use files::Known;
use memory::Memory;
use mounts::Mounts;
use settings::Settings;

/// The largest number of notes on what a workload left; the others are counted. Below, the longest note in bytes.
const MOST: usize = 8;
const LONGEST: usize = 300;

/// The state before a workload.
pub struct Survey {
    settings: Settings,
    swaps: BTreeSet<String>,
    mounts: Mounts,
    files: Known,
    memory: Memory,
}

impl Survey {
    /// Reads the state of this machine.
    pub fn take() -> Self {
        let mounts = Mounts::read();
        let files = Known::in_memory(&mounts);
        let settings = Settings::read(Path::new("/"));
        Self { settings, swaps: swaps(), mounts, files, memory: Memory::read() }
    }

    /// Undoes what `workload` left. Returns a note on each thing that is left; from then on it counts as part of the
    /// state.
    pub fn restore(&mut self, workload: &str) -> Vec<String> {
        let mut left = self.settings.restore(Path::new("/"));
        left.extend(self.end_swap());
        left.extend(cgroups::remove());
        left.extend(tracing::disable());
        remove_ipc();
        left.extend(self.mounts.restore());
        self.files.remove_others(&self.mounts);
        let _ = drop_caches();
        let memory = Memory::read();
        left.extend(memory.since(&self.memory));
        self.memory = memory;
        if left.len() > MOST {
            let more = format!("{} more such things", left.len() - MOST);
            left.truncate(MOST);
            left.push(more);
        }
        left.iter()
            .map(|what| format!("{}{workload}: {}", NoteKind::Left.head(), cut(what, LONGEST)))
            .collect()
    }

    /// Disables swap spaces that the workload enabled.
    fn end_swap(&mut self) -> Vec<String> {
        for path in swaps().difference(&self.swaps) {
            // If this fails, the list below shows it.
            let _ = CString::new(path.as_str()).map(|path| sys::swap_off(&path));
        }
        let now = swaps();
        let more = now.difference(&self.swaps).map(|path| format!("swap space {path} is in use"));
        let fewer =
            self.swaps.difference(&now).map(|path| format!("swap space {path} is not in use"));
        let notes = more.chain(fewer).collect();
        self.swaps = now;
        notes
    }
}

/// The swap spaces in use (proc_swaps(5)).
fn swaps() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let lines = text.lines().skip(1);
    lines.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

/// Removes all System V IPC objects (sysvipc(7)). The agent has none.
fn remove_ipc() {
    // If this fails, the memory report shows what is left.
    ipc("shm").for_each(|id| drop(sys::remove_shared_memory(id)));
    ipc("sem").for_each(|id| drop(sys::remove_semaphores(id)));
    ipc("msg").for_each(|id| drop(sys::remove_messages(id)));
}

/// The IDs of all objects of a kind.
fn ipc(kind: &str) -> impl Iterator<Item = i32> {
    let text = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
    let id = |line: &str| line.split_whitespace().nth(1)?.parse().ok();
    text.lines().skip(1).filter_map(id).collect::<Vec<i32>>().into_iter()
}

//! Orphans of workloads on a host. As PID 1 of a guest the agent is the parent of all orphans; on a host it asks for
//! those of its own descendants (prctl(2), `PR_SET_CHILD_SUBREAPER`), so that none outlives its workload.

use std::fs;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};

/// The most rounds of killing. A round fails to end all processes only if they start others meanwhile.
const ROUNDS: usize = 1000;

static OURS: AtomicBool = AtomicBool::new(false);
static STARTING: Mutex<()> = Mutex::new(());

/// Makes orphans of the agent's descendants its children. On a kernel that refuses, they stay those of PID 1.
pub fn take() {
    OURS.store(set_child_subreaper(Some(getpid())).is_ok(), Relaxed);
}

/// Whether they are its children.
pub fn are_ours() -> bool {
    OURS.load(Relaxed)
}

/// While it is held, [`end`] waits.
pub fn starting() -> MutexGuard<'static, ()> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all children and their descendants, and ends the agent. No program can start any more.
pub fn end() -> ! {
    let _for_ever = starting();
    kill();
    process::exit(1)
}

/// Kills all children and reaps them, until none is left: the children of a killed one are next. Does nothing unless
/// orphans are children of the agent.
pub fn kill() {
    for _ in 0..ROUNDS {
        let children = if are_ours() { children() } else { Vec::new() };
        if children.is_empty() {
            return;
        }
        for child in children {
            // Either fails if it has ended and was reaped, which is the goal.
            let _ = kill_process(child, Signal::KILL);
            let _ = waitpid(Some(child), WaitOptions::empty());
        }
    }
}

/// The children of this process (proc_pid_stat(5)).
fn children() -> Vec<Pid> {
    let own = process::id().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let child = |entry: fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name is in brackets and may have any character.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        (parent == own).then(|| Pid::from_raw(pid)).flatten()
    };
    entries.filter_map(child).collect()
}

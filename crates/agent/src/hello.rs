//! Collects the guest's facts about itself.

use std::fs;

use flight::event::Hello;
use model::CpuSet;
use rustix::system::{sysinfo, uname};

/// Collects the facts of the running kernel. Facts that a kernel does not report are empty.
pub fn hello() -> Hello {
    let names = uname();
    let memory = sysinfo();
    Hello {
        release: names.release().to_string_lossy().into_owned(),
        version: names.version().to_string_lossy().into_owned(),
        banner: text("/proc/version"),
        cmdline: text("/proc/cmdline"),
        preemption: text("/sys/kernel/debug/sched/preempt"),
        cpus: count("/sys/devices/system/cpu/online"),
        nodes: count("/sys/devices/system/node/online"),
        memory: memory.totalram as u64 * u64::from(memory.mem_unit),
        page_size: rustix::param::page_size() as u64,
    }
}

/// The kernel's taint flags (`Documentation/admin-guide/tainted-kernels.rst`).
pub fn tainted() -> u64 {
    text("/proc/sys/kernel/tainted").parse().unwrap_or(0)
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The number of elements of a list such as `0-3`; 1 for a kernel without the file.
fn count(path: &str) -> u32 {
    text(path).parse::<CpuSet>().map_or(1, |set| set.0.len().max(1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_facts() {
        let hello = hello();
        assert!(hello.banner.contains(&hello.release), "{hello:?}");
        assert!(hello.cpus >= 1 && hello.nodes >= 1 && hello.memory > 1 << 20);
    }
}

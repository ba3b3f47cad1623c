//! Disables tracing that a workload left enabled: tracers and events outlive their mount, and add instructions to
//! all code that they trace.

use std::fs;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Where tracefs is mounted while tracing is disabled.
const PLACE: &str = "/faultline/tracing";
/// A file, the value it has while nothing is traced, and the value that sets this (`Documentation/trace/ftrace.rst`).
const OFF: [(&str, &str, &str); 5] = [
    ("current_tracer", "nop", "nop"),
    ("events/enable", "0", "0"),
    ("kprobe_events", "", ""),
    ("uprobe_events", "", ""),
    ("tracing_on", "1", "1"),
];

/// Disables all tracing. Returns what is left.
pub fn disable() -> Vec<String> {
    let place = Path::new(PLACE);
    let _ = fs::create_dir_all(place);
    // A kernel without tracefs traces nothing.
    if mount("tracefs", place, "tracefs", MountFlags::empty(), None).is_err() {
        return Vec::new();
    }
    let left = restore(place);
    let _ = unmount(place, UnmountFlags::DETACH);
    left
}

/// Disables all tracing below `place`, where tracefs is mounted. Returns what is left.
fn restore(place: &Path) -> Vec<String> {
    for instance in fs::read_dir(place.join("instances")).into_iter().flatten().flatten() {
        let _ = fs::remove_dir(instance.path());
    }
    let value =
        |file: &str| fs::read_to_string(place.join(file)).ok().map(|it| it.trim().to_owned());
    let mut left = Vec::new();
    for (file, off, sets) in OFF {
        let Some(found) = value(file).filter(|found| found != off) else { continue };
        // If this fails, the value below shows it.
        let _ = fs::write(place.join(file), sets);
        match value(file) {
            Some(now) if now == off => left.push("the kernel's trace buffers".to_owned()),
            _ => left.push(format!("tracing: {file} = {found}")),
        }
    }
    left.dedup();
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracers_and_events_are_disabled() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str| root.path().join(name);
        fs::create_dir(file("events")).unwrap();
        for (name, off, _) in OFF {
            fs::write(file(name), format!("{off}\n")).unwrap();
        }
        assert_eq!(restore(root.path()), [""; 0]);
        fs::write(file("current_tracer"), "function\n").unwrap();
        fs::write(file("events/enable"), "X\n").unwrap();
        fs::write(file("kprobe_events"), "p:kprobes/p do_exit\n").unwrap();
        assert_eq!(restore(root.path()), ["the kernel's trace buffers"]);
        let now = OFF.map(|(name, ..)| fs::read_to_string(file(name)).unwrap().trim().to_owned());
        assert_eq!(now, OFF.map(|(_, off, _)| off));
    }
}

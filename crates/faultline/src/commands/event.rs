//! `faultline event`: the events that can be counted.

use std::process::ExitCode;

use kernels::{Cache, tracepoints};
use model::{PerfEvent, matches};
use report::escape;

use super::{print, say};
use crate::args::EventCommand;
use crate::failure::Failure;

pub fn event(command: &EventCommand) -> Result<ExitCode, Failure> {
    let EventCommand::List { kernel, pattern } = command;
    let kernel = Cache::open()?.obtain(kernel, &say)?;
    let Some(tracepoints) = tracepoints(&kernel)? else {
        let name = escape(&kernel.name);
        return Err(Failure::Usage(format!(
            "the tracepoints of {name} are not known: no vmlinux of it can be read"
        )));
    };
    let listed = list(&tracepoints, pattern.as_deref().unwrap_or_default());
    if listed.is_empty() {
        let (pattern, name) = (pattern.clone().unwrap_or_default(), escape(&kernel.name));
        return Err(Failure::Usage(format!("{name} has no event `{}`", escape(&pattern))));
    }
    print(&listed)?;
    Ok(ExitCode::SUCCESS)
}

/// The events that the pattern selects, by kind.
fn list(tracepoints: &[String], pattern: &str) -> String {
    let is_selected = |name: &&String| match pattern.contains('*') {
        true => matches(pattern, name),
        false => name.contains(pattern),
    };
    let kinds = [
        ("tracepoints", tracepoints.to_vec()),
        ("software", PerfEvent::names(true)),
        ("hardware, if the machine has counters", PerfEvent::names(false)),
    ];
    let lists = kinds.iter().filter_map(|(title, names)| {
        let names: String =
            names.iter().filter(is_selected).map(|it| format!("  {it}\n")).collect();
        (!names.is_empty()).then(|| format!("{title}:\n{names}"))
    });
    lists.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_listed_by_kind_and_pattern() {
        let tracepoints = ["tlb:tlb_flush", "vmscan:mm_shrink_slab_end"].map(String::from);
        let flush = "tracepoints:\n  tlb:tlb_flush\n";
        assert_eq!(list(&tracepoints, "flush"), flush);
        assert_eq!(list(&tracepoints, "tlb:*"), flush);
        assert_eq!(list(&tracepoints, "lb:*"), "");
        assert_eq!(list(&[], "minor"), "software:\n  minor-faults\n");
        let all = list(&tracepoints, "");
        assert!(all.contains("counters:\n  cycles\n") && all.contains("\n\nsoftware:\n"), "{all}");
    }
}

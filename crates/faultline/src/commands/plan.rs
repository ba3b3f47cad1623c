//! `faultline run --dry-run`: prints the plan.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use boot::provenance::counted_by;
use boot::{Guest, Libraries};
use kernels::{Cache, STANDARD_INPUT, Source};
use lab::{GivenUp, Known, RunOptions, check_tracepoints, known, remarks};
use model::{Build, Experiment, MachineKind, Mode, Outcome, Profiling, Setting, Variant, count};
use plan::Request;
use plan::schedule::schedule;
use report::{escape, excerpt};
use store::Archive;

use crate::failure::Failure;
use crate::list;
use crate::progress::span;

/// The longest name, in characters, that is followed by its meaning on the same line.
const WIDEST: usize = 30;
/// The largest number of boots whose order is printed.
const MOST: usize = 40;

/// The plan: variants, the kernels that `cache` lacks, machine, workloads, boots in order, and an estimate of
/// the time from similar boots in `store`.
pub fn plan(
    request: &Request,
    cache: &Cache,
    store: Option<&dyn Archive>,
    options: RunOptions,
) -> Result<String, Failure> {
    let experiment = &request.experiment;
    let Experiment { name, variants, machine, workloads, boots, .. } = experiment;
    let each = match experiment.mode {
        Mode::Measured => "boot",
        Mode::Exact => "seed",
    };
    let most = if experiment.sequential.is_some() { "at most " } else { "" };
    let mut text = unbuildable(request, cache)?;
    check_events(request, cache)?;
    text += &format!(
        "{}, {} mode: {} x {most}{}\n",
        escape(name),
        experiment.mode.name(),
        count(variants.len(), "variant"),
        count(*boots as usize, each)
    );
    let width = variants.iter().map(|variant| escape(&variant.name).len()).max().unwrap_or(0);
    for variant in variants {
        let build = request.build(variant);
        let fetched = match build {
            Some(_) => " (built from source unless the cache has it)",
            None if !machine.kind.is_vm() => " (the one that runs)",
            None if cache.would_fetch(&variant.kernel.name)? => {
                " (not in the cache: a run fetches it)"
            }
            None => "",
        };
        let mut words = vec![format!("kernel {}{fetched}", variant.kernel)];
        words.extend(build.map(changes).unwrap_or_default());
        words.extend(
            Some(format!("cmdline {}", variant.cmdline)).filter(|_| !variant.cmdline.is_empty()),
        );
        words.extend(variant.settings.iter().map(|setting| match setting {
            Setting::Sysctl { name, value } => format!("{name} = {value}"),
            Setting::Sysfs { path, value } => format!("{path} = {value}"),
        }));
        words.extend(variant.modules.iter().map(|module| format!("module {module}")));
        let (mut begin, mut indent) =
            (format!("  {:<width$}  ", escape(&variant.name)), " ".repeat(width + 4));
        if width > WIDEST {
            let _ = writeln!(text, "{}", begin.trim_end());
            (begin, indent) = ("      ".into(), "      ".into());
        }
        text += &list::wrapped(&begin, &indent, words.join(", ").split_whitespace());
    }
    let points = experiment.points();
    let sweep = if points.is_empty() { "" } else { " at the first point" };
    let topology = &machine.topology;
    let _ = writeln!(
        text,
        "machine{sweep}: {}{}, {}, {}, {}",
        match (machine.kind, machine.arch.is_usual()) {
            (MachineKind::Host, _) => "this host, ".to_owned(),
            (_, true) => String::new(),
            _ => format!("{}, ", machine.arch.name()),
        },
        count(topology.cpus() as usize, "CPU"),
        count(topology.nodes.len(), "node"),
        topology.memory(),
        count(machine.disks.len(), "disk")
    );
    for remark in remarks(experiment) {
        text += &list::wrapped("  ", "  ", remark.split_whitespace());
    }
    if !points.is_empty() {
        let _ = writeln!(text, "sweep: {}", escape(&points.join(", ")));
    }
    for used in workloads {
        let parameters = used.manifest.parameters.iter();
        let parameters: Vec<String> =
            parameters.map(|(name, it)| format!("{name}={}", it.value)).collect();
        let words = format!("{} {}", used.manifest.name, parameters.join(" "));
        let iterations = count(used.iterations as usize, "iteration");
        let _ = writeln!(text, "workload{sweep}: {}, {iterations}", escape(words.trim()));
    }
    let slots = schedule(variants.len(), *boots);
    let order: Vec<String> =
        slots.iter().take(MOST).map(|slot| escape(&variants[slot.variant].name)).collect();
    let more = slots.len() - order.len();
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    let boots = format!("{}: ", count(slots.len(), "boot"));
    let order = order.join(",\n") + &more;
    text += &list::wrapped(&boots, "    ", order.lines());
    let Known { done, of_other_hosts, given_up } = match store {
        Some(store) => {
            let guest = Guest::find().and_then(|it| it.of(machine.arch));
            let guest = guest.ok().filter(|_| experiment.mode == Mode::Exact);
            let counted_by = || counted_by(&Libraries::find(), machine.arch).ok();
            let own = guest.as_ref().and_then(|it| Some((it, counted_by()?)));
            let host = machine::host::describe(Path::new("/"));
            known(experiment, store, cache, own.as_ref(), &host, options)?
        }
        None => Known::default(),
    };
    if done > 0 {
        let _ = writeln!(text, "done: {}", count(done, "boot"));
    }
    if let Some(line) = of_other_hosts.why {
        text += &list::wrapped("", "    ", line.split_whitespace());
    }
    if !given_up.is_empty() {
        let _ = writeln!(text, "{}", left_out(&given_up));
    }
    let done = done + of_other_hosts.boots + given_up.iter().map(|it| it.boots).sum::<usize>();
    let left = slots.len().saturating_sub(done);
    let jobs = options.side_by_side(experiment);
    if jobs > 1 {
        let _ = writeln!(text, "in parallel: {}", count(jobs, "boot"));
    }
    if options.verify {
        text.push_str("verify: each boot twice\n");
    }
    let Profiling { accesses, stacks, transfers, ref memory_model, ref lines, .. } =
        experiment.profile;
    for (is_wanted, what) in [
        (accesses, "loads and stores"),
        (stacks, "call paths"),
        (transfers, "lines that CPUs take from each other"),
    ] {
        if is_wanted {
            let _ = writeln!(text, "profile: {what}");
        }
    }
    if let Some(model) = memory_model {
        let _ = writeln!(text, "memory model: {}", escape(&model.name));
    }
    if !lines.is_empty() {
        let _ = writeln!(text, "profile: lines of {}", lines.join(", "));
    }
    if let Some(frequency) = experiment.profile.samples() {
        let _ = writeln!(text, "profile: {frequency} samples per second and CPU");
    }
    let time = store.map(|it| lab::time(experiment, left, options, it)).transpose()?;
    text.push_str(&match time.flatten() {
        Some(time) => format!("time: about {}, estimated from earlier boots\n", span(time)),
        None => {
            "time: unknown, the store has no complete boot of these workloads on such a machine\n"
                .to_owned()
        }
    });
    Ok(text)
}

/// Checks the tracepoints if the cache has all kernels, in which nothing changes. Fails when no kernel can have one of them.
fn check_events(request: &Request, cache: &Cache) -> Result<(), Failure> {
    let experiment = &request.experiment;
    if experiment.sampler.events.is_empty() || !experiment.machine.kind.is_vm() {
        return Ok(());
    }
    let mut kernels = Vec::new();
    for variant in &experiment.variants {
        match (request.build(variant), cache.get(&variant.kernel.name)?) {
            (None, Some(kernel)) => kernels.push(kernel),
            _ => return Ok(()),
        }
    }
    Ok(check_tracepoints(experiment, &kernels)?)
}

/// A line for each variant whose source cannot be patched as asked. If another process is building a kernel, the line
/// says that this is not known. A source that cannot be read is an error.
fn unbuildable(request: &Request, cache: &Cache) -> Result<String, Failure> {
    let mut text = String::new();
    let variants = &request.experiment.variants;
    for (number, variant) in variants.iter().enumerate() {
        let Some(build) = request.build(variant) else { continue };
        let is_same = |it: &Variant| {
            it.kernel.name == variant.kernel.name && request.build(it) == Some(build)
        };
        if variants[..number].iter().any(is_same) {
            continue;
        }
        let source: Source = variant.kernel.name.parse()?;
        cache.check_request(build)?;
        let line = match cache.try_patches(&source, build, &|line| eprintln!("{line}")) {
            Ok(Ok(())) => continue,
            Ok(Err(unbuilt)) => format!("{} {}", variant.name, unbuilt.problem()),
            Err(kernels::Error::Locked(held)) => {
                text += &format!(
                    "whether the sources can be read and patched is not known yet: {held}\n"
                );
                break;
            }
            Err(error) => return Err(error.into()),
        };
        let _ = writeln!(text, "{}", escape(&line));
    }
    Ok(text)
}

/// The changes to a source before it is built.
fn changes(build: &Build) -> Vec<String> {
    let file = |path: &PathBuf| match path == Path::new(STANDARD_INPUT) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let files: Vec<String> = build.patches.iter().map(file).collect();
    let patches = match build.first {
        None => files.iter().map(|file| format!("patch {file}")).collect(),
        Some(0) => Vec::new(),
        Some(1) => vec![format!("the first patch of the series {}", files.join(", "))],
        Some(first) => {
            vec![format!("the first {first} patches of the series {}", files.join(", "))]
        }
    };
    let reverts = build.revert.iter().map(|commit| format!("revert {commit}"));
    let picks = build.pick.iter().map(|commit| format!("pick {commit}"));
    reverts.chain(picks).chain(patches).collect()
}

/// The number of boots that were left out, and the failures that caused this, each reason once.
pub fn left_out(given_up: &[GivenUp]) -> String {
    let boots = count(given_up.iter().map(|it| it.boots).sum(), "boot");
    let mut reasons: Vec<(&Outcome, Vec<String>)> = Vec::new();
    for GivenUp { variant, outcome, .. } in given_up {
        let variant = escape(variant);
        match reasons.iter_mut().find(|(other, _)| *other == outcome) {
            Some((_, variants)) => variants.push(variant),
            None => reasons.push((outcome, vec![variant])),
        }
    }
    let reasons: Vec<String> = reasons
        .iter()
        .map(|(outcome, variants)| {
            format!("{}: {}", variants.join(", "), excerpt(&outcome.to_string()))
        })
        .collect();
    format!("{boots} left out after a failure ({}): --keep-going makes them", reasons.join("; "))
}

//! `faultline import perf`: makes an experiment of files that `perf script` or `perf data convert --to-json` wrote.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::import::{MAX_PERF, PerfSamples, perf_json, perf_script};
use kernels::digest;
use model::{
    Boot, BootFacts, Experiment, HostLoad, Imported, Limits, Machine, Manifest, Millis, Outcome,
    Place, Profile, Profiling, Reading, Sampler, Topology, Variant, WorkloadUse, count,
};
use report::escape;
use sha2::{Digest, Sha256};

use crate::args::ImportPerfArgs;
use crate::commands::{print, store_option, store_path};
use crate::failure::Failure;

/// The name of the tool, and of the workload.
pub const TOOL: &str = "perf";

pub fn import(store: Option<PathBuf>, args: &ImportPerfArgs) -> Result<ExitCode, Failure> {
    plan::file::check_name(&args.name).map_err(Failure::Usage)?;
    let named = store_option(store.as_ref());
    let mut files = Vec::new();
    for (variant, path) in &args.files {
        plan::file::check_name(variant).map_err(Failure::Usage)?;
        let (digest, samples) = read(path, args.event.as_deref())?;
        describe(path, &samples)?;
        files.push(PerfFile { variant, path, digest, samples });
    }
    check_together(&files)?;
    let mut variants: Vec<&str> = Vec::new();
    for PerfFile { variant, .. } in &files {
        if !variants.contains(variant) {
            variants.push(variant);
        }
    }
    let digests: Vec<u8> = files.iter().flat_map(|file| file.digest.bytes()).collect();
    let directory = args.files.first().and_then(|(_, path)| path.parent()).unwrap_or(Path::new(""));
    let boots = variants.iter().map(|name| files.iter().filter(|it| it.variant == *name).count());
    let boots = boots.max().unwrap_or(0) as u32;
    let imported = Imported {
        tool: TOOL.to_owned(),
        directory: directory.to_owned(),
        digest: digest(&digests),
    };
    let experiment = experiment(&args.name, &variants, boots, imported);
    let mut store = store::open(&store_path(store)?)?;
    let id = store.keep_experiment(&experiment, Reading::USUAL)?;
    let done = store.done(id)?;
    let mut boot_indices = vec![0; variants.len()];
    let mut kept = 0;
    for (block, PerfFile { variant, path, samples, .. }) in (0..).zip(files) {
        let place = variants.iter().position(|name| *name == variant).unwrap_or(0);
        let boot_index = boot_indices[place];
        boot_indices[place] += 1;
        if !done.iter().any(|it| (&*it.0, it.1) == (variant, boot_index)) {
            store.keep_boot(id, &boot(variant, (block, boot_index), path, samples))?;
            kept += 1;
        }
    }
    let name = escape(&args.name);
    let end = match (kept, variants.as_slice()) {
        (0, _) => format!("experiment {id}, {name}, already has all of this: nothing was added\n"),
        (_, [base, new, ..]) => format!(
            "added {} to experiment {id}, {name}: see `faultline{named} explain {} {} {id}`\n",
            count(kept, "boot"),
            escape(base),
            escape(new),
        ),
        _ => format!("added {} to experiment {id}, {name}\n", count(kept, "boot")),
    };
    print(&end)?;
    Ok(ExitCode::SUCCESS)
}

/// A file that perf wrote.
struct PerfFile<'a> {
    variant: &'a str,
    path: &'a Path,
    /// The digest of its bytes.
    digest: String,
    samples: PerfSamples,
}

/// Fails if two files are the same, which would count as independent boots, or have samples of different events.
fn check_together(files: &[PerfFile<'_>]) -> Result<(), Failure> {
    let shown = |path: &Path| escape(&path.display().to_string());
    let event = |samples: &PerfSamples| samples.profile.sampled.as_ref().map(|it| it.event.clone());
    for (place, PerfFile { path, samples, .. }) in files.iter().enumerate() {
        let PerfFile { path: first, samples: of_first, .. } = &files[0];
        if event(samples) != event(of_first) {
            let of = |samples| escape(&event(samples).unwrap_or_default());
            let message = format!(
                "{} has samples of {}, but {} of {}: give files of one event",
                shown(path),
                of(samples),
                shown(first),
                of(of_first)
            );
            return Err(Failure::Usage(message));
        }
        let mut before = files[..place].iter();
        if let Some(same) = before.find(|it| is_same_recording(&it.samples, samples)) {
            let message = format!(
                "{} and {} are the same: give a file for each boot",
                shown(same.path),
                shown(path)
            );
            return Err(Failure::Usage(message));
        }
    }
    Ok(())
}

/// Whether two files have the same samples in the same period. Times in text have microseconds, those in JSON
/// nanoseconds.
fn is_same_recording(one: &PerfSamples, other: &PerfSamples) -> bool {
    let microseconds = |it: &PerfSamples| {
        it.profile.sampled.as_ref().map(|sampled| [sampled.begun / 1000, sampled.ended / 1000])
    };
    let functions = |it: &PerfSamples| {
        let rows = it.profile.costs.rows();
        let rows = rows.filter(|it| matches!(it.place, Place::Function { .. } | Place::All(_)));
        rows.map(|row| (row.place.clone(), row.sum(Some(0)))).collect::<Vec<_>>()
    };
    microseconds(one) == microseconds(other) && functions(one) == functions(other)
}

/// Reads a file. Fails if it has no samples of the event.
fn read(path: &Path, event: Option<&str>) -> Result<(String, PerfSamples), Failure> {
    let shown = || escape(&path.display().to_string());
    let wrong = |why: &str| Failure::Usage(format!("{}: {why}", shown()));
    let unreadable = |error: std::io::Error| wrong(&error.to_string());
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(wrong("it is not a regular file: write the output to a file first"));
    }
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.len() > MAX_PERF {
        return Err(wrong("the file is larger than 1 GiB"));
    }
    let mut input = BufReader::new(Hashed { input: file.take(MAX_PERF), hash: Sha256::new() });
    let begin = input.fill_buf().map_err(unreadable)?;
    if begin.starts_with(b"PERFILE2") {
        return Err(wrong(
            "this is perf's own file: give the output of `perf script`, or of `perf data convert --to-json`",
        ));
    }
    if begin.starts_with(b"\xff\xfe") || begin.starts_with(b"\xfe\xff") {
        return Err(wrong("it is UTF-16: convert it to UTF-8"));
    }
    if begin.starts_with(b"\xef\xbb\xbf") {
        input.consume(3);
    }
    let first = input.buffer().iter().find(|byte| !byte.is_ascii_whitespace());
    let samples = match first {
        Some(b'{') => perf_json(&mut input, event).map_err(|error| wrong(&error))?,
        _ => perf_script(&mut input, event).map_err(unreadable)?,
    };
    if samples.of_counts {
        return Err(wrong(
            "faultline wrote it from counts of instructions, with one record for each call path: those are no samples",
        ));
    }
    let digest = format!("{:x}", input.into_inner().hash.finalize());
    let of = samples.profile.sampled.as_ref().map_or("", |sampled| &sampled.event);
    let others = || samples.others.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let found = match event {
        Some(event) if event != of => Some(of.to_owned()),
        Some(_) if samples.profile.totals().total() == 0 => Some(others()),
        _ => None,
    };
    if let Some(found) = found.filter(|found| !found.is_empty()) {
        let message = format!("{}: its samples are of {}: change --event", shown(), escape(&found));
        return Err(Failure::Usage(message));
    }
    let total = samples.profile.totals().total();
    if total > 0 && samples.nowhere == total {
        let message = format!(
            "{}: no sample has a function, so nothing tells the kernel from programs: print the fields `ip`, `sym` and \
             `dso` too, as `perf script` does by default",
            shown()
        );
        return Err(Failure::Usage(message));
    }
    if total == 0 {
        let message = format!(
            "{}: no sample is in it: it must be the output of `perf script` with command, process, time, event and \
             symbols, which it prints by default, or that of `perf data convert --to-json`",
            shown()
        );
        return Err(Failure::Usage(message));
    }
    Ok((digest, samples))
}

/// A file, and the digest of the bytes that were read.
struct Hashed {
    input: Take<File>,
    hash: Sha256,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

/// Prints what was read of a file, and what was not.
fn describe(path: &Path, samples: &PerfSamples) -> Result<(), Failure> {
    let PerfSamples { profile, others, idle, dropped, nowhere, unread, .. } = samples;
    let event = profile.sampled.as_ref().map_or("", |it| &it.event);
    let samples = profile.totals().total() as usize;
    let mut text = format!(
        "{}: {} of {}\n",
        escape(&path.display().to_string()),
        count(samples, "sample"),
        escape(event)
    );
    for (event, samples) in others {
        text.push_str(&format!(
            "  left out: {} of {}\n",
            count(*samples as usize, "sample"),
            escape(event)
        ));
    }
    for (samples, why) in [(idle, "of idle CPUs"), (dropped, "with further call paths")] {
        if *samples > 0 {
            text.push_str(&format!("  left out: {} {why}\n", count(*samples as usize, "sample")));
        }
    }
    if *nowhere > 0 {
        let samples = count(*nowhere as usize, "sample");
        text.push_str(&format!("  without a function: {samples}, counted as those of programs\n"));
    }
    if let Some((first, lines)) = unread {
        text.push_str(&format!(
            "  not read: {}, the first is line {first}\n",
            count(*lines, "line")
        ));
    }
    print(&text)
}

fn experiment(name: &str, variants: &[&str], boots: u32, imported: Imported) -> Experiment {
    let manifest = Manifest {
        name: TOOL.to_owned(),
        description: "what perf sampled".to_owned(),
        ..Manifest::default()
    };
    let variant = |name: &&str| Variant { name: (*name).to_owned(), ..Variant::default() };
    Experiment {
        name: name.to_owned(),
        profile: Profiling { sampled: true, ..Profiling::default() },
        variants: variants.iter().map(variant).collect(),
        machine: Machine {
            topology: Topology { nodes: Vec::new() },
            limits: Limits { boot: Millis(0), run: Millis(0), shutdown: Millis(0) },
            ..Machine::default()
        },
        workloads: vec![WorkloadUse::new(manifest, 1, Millis(0))],
        sampler: Sampler { interval: Millis(0), sources: Vec::new(), events: Vec::new() },
        boots,
        imported: Some(imported),
        ..Experiment::default()
    }
}

/// Makes a boot with one iteration of a file. Each boot is in a block of its own, because nothing pairs files.
fn boot(variant: &str, (block, boot_index): (u32, u32), path: &Path, samples: PerfSamples) -> Boot {
    Boot {
        variant: variant.to_owned(),
        boot_index,
        block,
        outcome: Outcome::Complete,
        facts: BootFacts {
            release: samples.release,
            kernel_origin: format!("imported from {} ({TOOL})", path.display()),
            ..BootFacts::default()
        },
        host: HostLoad {
            load_before: f64::NAN,
            load_after: f64::NAN,
            steal: f64::NAN,
            wall: f64::NAN,
        },
        profiles: vec![Profile { workload: TOOL.to_owned(), ..samples.profile }],
        ..Boot::default()
    }
}

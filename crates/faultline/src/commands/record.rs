//! `faultline record`: counters and events around a command on this host, kept as an experiment of one variant.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use bundle::ProgramBundle;
use compare::{Kind, Table, counter_growth};
use kernelfiles::catalogue;
use lab::{Lab, Progress, RunOptions};
use model::{
    Boot, BootId, Experiment, Kept, MachineKind, Manifest, Metric, Millis, Mode, Note, NoteKind,
    Outcome, RUNNING_KERNEL, Sampler, Source, WorkloadUse, count, date,
};
use plan::Request;
use plan::file::{
    self, BootsForm, FileForm, Input, MachineForm, VariantForm, WorkloadForm, placeless,
};
use report::escape;
use results::{Analysis, Question};
use store::{Archive, Detail, ExperimentId};

use super::attempt::find_in_place;
use super::chosen::older;
use super::run::laboratory;
use super::store_option;
use crate::args::RecordArgs;
use crate::failure::{BOOTS_FAILED, Failure, INTERRUPTED};
use crate::list::{Moved, moved};

/// A command may take as long as it likes: ten years.
const NO_LIMIT: Millis = Millis(10 * 365 * 24 * 3_600_000);

pub fn record(store: Option<PathBuf>, args: &RecordArgs) -> Result<ExitCode, Failure> {
    let mut request = request(args, &find_in_place(&args.command)?)?;
    lab::check(&request.experiment)?;
    let named = store_option(store.as_ref());
    let mut lab = Lab { streams: true, ..laboratory(store, args.turn)? };
    let sessions = Arc::new(AtomicUsize::new(0));
    on_interrupt(&sessions)?;
    // The terminal is the command's, so there is no progress.
    let mut watch = |progress: Progress<'_>| match progress {
        Progress::Message(text) => eprintln!("{}", escape(text)),
        Progress::Kept { .. } => drop(sessions.fetch_add(1, Relaxed)),
        _ => {}
    };
    lab.check_kernels(&request)?;
    let _turn = lab.lock(&mut watch)?;
    let options = RunOptions::default();
    let last = last_boot(&*lab.store, &request.experiment.name)?;
    request.experiment.boots =
        done(&lab, &request.experiment, options)?.saturating_add(args.repeat);
    let id = lab.run_locked(&request, options, &mut watch)?.experiment;
    let mut new = lab.store.boots(id, Detail::Ends(&[Source::Vmstat.name()]))?;
    new.retain(|it| {
        Some(it.id) > last && !it.superseded && it.boot.outcome != Outcome::Interrupted
    });
    if !args.quiet {
        eprintln!("{}", table(&*lab.store, id, &request.experiment.workloads[0], &new)?);
        eprintln!("{}", kept(&*lab.store, id, &named, &new)?);
    }
    for line in lacks(&new) {
        eprintln!("{line}");
    }
    let failed = new.iter().find(|it| !it.boot.outcome.is_complete());
    Ok(failed.map_or(ExitCode::SUCCESS, |it| ExitCode::from(exit_code(&it.boot.outcome))))
}

/// How many sessions the record has already.
fn done(lab: &Lab, experiment: &Experiment, options: RunOptions) -> Result<u32, Failure> {
    // As many as any record of this name wanted, of which some may be missing.
    let wanted = lab.store.rows(Some(&experiment.name))?.iter().map(|row| row.boots).max();
    let all = Experiment { boots: wanted.unwrap_or(1), ..experiment.clone() };
    let known = lab::known(&all, &*lab.store, &lab.cache, None, &lab.host, options)?;
    Ok(u32::try_from(known.done).unwrap_or(u32::MAX))
}

/// The latest boot of the experiments of this name.
fn last_boot(store: &dyn Archive, name: &str) -> Result<Option<BootId>, Failure> {
    let mut last = None;
    for row in store.rows(Some(name))? {
        last = last.max(store.boots(row.id, Detail::Summary)?.iter().map(|it| it.id).max());
    }
    Ok(last)
}

/// The experiment that records the command, with one session. The program's digest is no part of it, so a program that
/// was built again is compared with the former one.
fn request(args: &RecordArgs, program: &ProgramBundle) -> Result<Request, Failure> {
    let mut input = Input::default();
    let mut workload = WorkloadForm::default();
    workload.made = Some(manifest(args, program));
    workload.timeout = Some(placeless(NO_LIMIT));
    let mut machine = MachineForm::default();
    machine.kind = Some(placeless(MachineKind::Host));
    let variant = VariantForm::new(placeless(RUNNING_KERNEL.to_owned()));
    let mut form = FileForm::new(machine, vec![variant], workload);
    form.mode = Mode::Measured;
    form.boots = Some(placeless(BootsForm::Number(1)));
    if !args.events.is_empty() {
        let events = args.events.iter().map(|name| name.trim().to_owned()).collect();
        form.sampler = Some(input.option("--events", Sampler { events, ..Sampler::default() }));
    }
    let mut request = input.request(form)?;
    let Request { experiment, reading, .. } = &mut request;
    let workload = &experiment.workloads[0].manifest.name;
    experiment.name = args.name.clone().unwrap_or_else(|| format!("record-{workload}"));
    file::check_name(&experiment.name)
        .map_err(|problem| Failure::Usage(format!("--name: {problem}")))?;
    // Each record without a name is an experiment of its own, and this heads its column.
    let column = args.name.clone().unwrap_or_else(now);
    let variant = &mut experiment.variants[0];
    if let Some(read) = reading.variants.remove(&variant.name) {
        reading.variants.insert(column.clone(), read);
    }
    variant.name = column;
    Ok(request)
}

/// The command as a workload. One that reports phases has its counters cut there, and no figures of the agent.
fn manifest(args: &RecordArgs, program: &ProgramBundle) -> Manifest {
    let manifest = program.manifest();
    match args.phases {
        true => Manifest { plain: false, metrics: Vec::new(), ..manifest },
        false => manifest,
    }
}

/// The present moment in UTC.
fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (now.as_secs(), now.subsec_millis());
    let [hours, minutes] = [seconds / 3600 % 24, seconds / 60 % 60];
    format!("{} {hours:02}:{minutes:02}:{:02}.{millis:03}", date(seconds), seconds % 60)
}

/// Handles Ctrl-C. The agent ends the command when this process has ended.
fn on_interrupt(sessions: &Arc<AtomicUsize>) -> Result<(), Failure> {
    let sessions = Arc::clone(sessions);
    let end = move || {
        let kept = count(sessions.load(Relaxed), "session");
        eprintln!(
            "\nfaultline: interrupted. This record kept {kept}. The next run keeps what the unfinished session \
             recorded, as `interrupted`; comparisons leave it out."
        );
        exit(INTERRUPTED);
    };
    ctrlc::set_handler(end).map_err(|error| Failure::Host(error.to_string()))
}

/// What the command used, the events, and the counters that moved, over these sessions.
fn table(
    store: &dyn Archive,
    id: ExperimentId,
    used: &WorkloadUse,
    sessions: &[Kept],
) -> Result<String, Failure> {
    let boots: Vec<&Boot> = sessions.iter().map(|it| &it.boot).collect();
    let mut rows = figures(used, &boots);
    if boots.iter().any(|boot| boot.outcome.counts()) {
        let analysis = Analysis::of(store, &[id], &Question::default())?;
        rows.extend(analysis.comparison.tables.iter().flat_map(events));
    }
    Ok(moved(&rows, &counters(used, &boots)))
}

/// The numbers of events, each the mean over all sessions of the record.
fn events(table: &Table) -> impl Iterator<Item = Moved> {
    let rows = table.rows.iter().filter(|_| table.kind == Kind::Events);
    rows.filter(|row| !row.metric.ends_with("/s")).filter_map(|row| {
        let name = row.metric.strip_suffix("-run").unwrap_or(&row.metric).to_owned();
        Some(Moved { name, unit: row.unit.clone(), values: vec![row.value(0)?] })
    })
}

/// What the command used: a row for each figure that all sessions have.
fn figures(used: &WorkloadUse, boots: &[&Boot]) -> Vec<Moved> {
    let complete: Vec<&&Boot> = boots.iter().filter(|boot| boot.outcome.counts()).collect();
    let row = |metric: &Metric| {
        let value = |boot: &&&Boot| {
            let own = boot.samples.iter().find(|it| it.metric == metric.name)?;
            Some(own.value)
        };
        let values: Vec<f64> = complete.iter().filter_map(value).collect();
        let (name, unit) = (metric.name.clone(), metric.unit.clone());
        (!values.is_empty()).then_some(Moved { name, unit, values })
    };
    used.manifest.metrics.iter().filter_map(row).collect()
}

/// The counters of `/proc/vmstat` that grew or shrank in some session. Gauges are left out, since what they show is the
/// whole host's memory at two moments.
fn counters(used: &WorkloadUse, boots: &[&Boot]) -> Vec<Moved> {
    let grown: Vec<BTreeMap<&str, i128>> =
        boots.iter().map(|boot| counter_growth(boot, used)).collect();
    let names: BTreeSet<&str> = grown.iter().flat_map(BTreeMap::keys).copied().collect();
    let rows = names.into_iter().filter(|name| is_count(name)).filter_map(|name| {
        let values = grown.iter().filter_map(|it| Some(*it.get(name)? as f64));
        let values: Vec<f64> = values.collect();
        let has_moved = values.iter().any(|value| *value != 0.0);
        let unit = catalogue::find(name).map_or(String::new(), |it| it.unit.clone());
        has_moved.then_some(Moved { name: name.to_owned(), unit, values })
    });
    rows.collect()
}

fn is_count(name: &str) -> bool {
    catalogue::find(name).map_or(!name.starts_with("nr_"), |it| !it.gauge)
}

/// What failed, and what was not counted: a line for each different text.
fn lacks(sessions: &[Kept]) -> Vec<String> {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Kept { id, boot, .. } in sessions {
        let failed = (!boot.outcome.is_complete())
            .then(|| format!("{}. Counters are kept; comparisons leave it out.", boot.outcome));
        let missing = boot.notes.iter().filter(|it| it.kind == NoteKind::NotCounted);
        for text in failed.into_iter().chain(missing.map(Note::to_string)) {
            by_text.entry(text).or_default().push(id.to_string());
        }
    }
    by_text.into_iter().map(|(text, of)| format!("{}: {}", of.join(", "), escape(&text))).collect()
}

/// Where the sessions are kept, and what compares them with the record before.
fn kept(
    store: &dyn Archive,
    id: ExperimentId,
    named: &str,
    sessions: &[Kept],
) -> Result<String, Failure> {
    let row = store.row(id)?;
    let own = match sessions {
        [] => "nothing".to_owned(),
        [one] => one.id.to_string(),
        [first, .., last] => format!("{} to {}", first.id, last.id),
    };
    let name = escape(&row.name);
    let text =
        format!("Kept as {own} of experiment {id}, {name}: faultline{named} compare {id} --full");
    let older = older(&store.rows(Some(&row.name))?, &row).map(|it| it.id);
    // Records of other commands have the same name.
    let is_alike = |older: &ExperimentId| {
        let both = Analysis::of(store, &[*older, id], &Question::default());
        both.is_ok_and(|it| it.comparison.variants.iter().all(|it| it.complete > 0))
    };
    Ok(match older.filter(is_alike) {
        Some(older) => {
            format!("{text}\nAgainst the record before: faultline{named} compare {older} {id}")
        }
        None => text,
    })
}

/// The exit status by which a shell tells how the command ended.
fn exit_code(outcome: &Outcome) -> u8 {
    const SIGNALLED: u8 = 128;
    let text = outcome.to_string();
    let how = text.rsplit(": ").next().unwrap_or_default();
    let status = how.strip_prefix("it exited with status ").and_then(|it| it.parse().ok());
    let signal = || {
        let signal: u8 = how.strip_prefix("signal ")?.strip_suffix(" killed it")?.parse().ok()?;
        Some(signal.saturating_add(SIGNALLED))
    };
    status.or_else(signal).unwrap_or(BOOTS_FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_is_that_of_a_shell() {
        let code =
            |text: &str| exit_code(&Outcome::Failed(format!("workload a: b, iteration 0: {text}")));
        assert_eq!(code("it exited with status 77"), 77);
        assert_eq!(code("signal 9 killed it"), 137);
        assert_eq!(code("it cannot be watched (No such process)"), BOOTS_FAILED);
        assert_eq!(exit_code(&Outcome::Interrupted), BOOTS_FAILED);
    }

    #[test]
    fn gauges_are_no_counts() {
        assert!(is_count("pgfault") && is_count("thp_fault_alloc") && is_count("of_the_future"));
        assert!(!is_count("nr_free_pages") && !is_count("nr_of_the_future"));
    }
}

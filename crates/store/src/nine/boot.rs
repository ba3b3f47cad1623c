//! Reads and verifies the rows of a boot, and makes parts of them. Packed data remains as it is.

use model::{
    Boot, BootFacts, BootId, Execution, HostLoad, Note, Outcome, Problem, ProblemKind, Provenance,
    Sample, Usage,
};
use rusqlite::{Connection, Row};

use super::sums::{BootEntry, BootSums, Digest, Digester, verified};
use super::{float, unsigned};
use crate::parts::{Kind, Label, Parts};
use crate::record::{differs, digest, in_part};
use crate::{ExperimentId, Trouble, packed, samples};

/// The columns of the boot's own row, except the console.
const ROW: &str = "SELECT id, experiment, variant, replicate, block, started, outcome, detail,
        superseded, release, version, banner, cmdline, preemption, cpus, nodes, memory, page_size,
        accel, emulator, kernel_origin, kernel_digest, initramfs_digest, recording_digest,
        userspace_digest, userspace, config, load_before, load_after, steal, wall
    FROM nine_boots WHERE id = ?";
const CONFIG: &str =
    "SELECT packed FROM nine_texts WHERE id = (SELECT config FROM nine_boots WHERE id = ?)";
const USERSPACE: &str =
    "SELECT packed FROM nine_texts WHERE id = (SELECT userspace FROM nine_boots WHERE id = ?)";
const CONSOLE: &str = "SELECT console FROM nine_boots WHERE id = ?";
const PROBLEMS: &str = "SELECT place, kind, text FROM problems WHERE boot = ? ORDER BY place";
const NOTES: &str = "SELECT place, text FROM notes WHERE boot = ? ORDER BY place";
const SAMPLES: &str = "SELECT place, workload, iteration, phase, metric, label, value, ended, count
    FROM samples WHERE boot = ? ORDER BY place";
const USAGE: &str = "SELECT place, workload, iteration, user, system, elapsed
    FROM usage WHERE boot = ? ORDER BY place";
const CHUNKS: &str = "SELECT chunks.place AS place, workload, iteration, phase, source, samples,
        chunks.packed, chunk_ends.packed
    FROM chunks LEFT JOIN chunk_ends USING (boot, place) WHERE boot = ? ORDER BY place";
/// Number of columns of a chunk before the packed data.
const CHUNK_COLUMNS: usize = 6;
const PROFILES: &str = "SELECT place, workload, iteration, phase, packed
    FROM profiles WHERE boot = ? ORDER BY place";

/// A boot of version 9.
pub struct Old {
    /// The boot without its other parts.
    pub boot: Boot,
    pub parts: Parts,
    pub superseded: bool,
}

/// Reads a boot.
pub fn read(
    connection: &Connection,
    experiment: ExperimentId,
    entry: &BootEntry,
) -> Result<Old, Trouble> {
    let reader =
        Reader { connection, id: BootId(entry.id), sums: BootSums::read(connection, entry)? };
    let (boot, superseded) = reader.head(experiment)?;
    let mut parts = Parts::default();
    parts.head(&boot)?;
    for (kind, part, expected) in [
        (Kind::Config, ("the configuration", CONFIG), &reader.sums.config),
        (Kind::Userspace, ("the list of packages", USERSPACE), &reader.sums.userspace),
    ] {
        for text in reader.texts(part, expected)? {
            parts.push(kind, text);
        }
    }
    let samples = reader.part(("the samples", SAMPLES), &reader.sums.samples, sample)?;
    let usage = reader.part(("the usage", USAGE), &reader.sums.usage, usage)?;
    let samples = samples::encode(&samples, &usage);
    parts.push(Kind::Samples, samples.map_err(|error| Trouble::unkeepable("the samples", error))?);
    reader.chunks(&mut parts)?;
    let profile =
        |row: &Row| -> Result<_, Trouble> { Ok((label(row, false)?, row.get("packed")?)) };
    for (of, packed) in reader.part(("the profiles", PROFILES), &reader.sums.profiles, profile)? {
        parts.push_of(Kind::Profile, of, packed);
    }
    for console in reader.texts(("the console", CONSOLE), &reader.sums.console)? {
        parts.push(Kind::Console, console);
    }
    Ok(Old { boot, parts, superseded })
}

struct Reader<'a> {
    connection: &'a Connection,
    id: BootId,
    sums: BootSums,
}

impl Reader<'_> {
    /// The verified rows of a part.
    fn part<T>(
        &self,
        (part, sql): (&str, &str),
        expected: &Digest,
        read: impl FnMut(&Row) -> Result<T, Trouble>,
    ) -> Result<Vec<T>, Trouble> {
        let what = || format!("{part} of boot {}", self.id);
        verified(self.connection, sql, self.id.0, (expected, what), read)
    }

    /// The head, and whether the boot is superseded.
    fn head(&self, experiment: ExperimentId) -> Result<(Boot, bool), Trouble> {
        let mut rows = self.part(("the row", ROW), &self.sums.row, |row| {
            let own: i64 = row.get("experiment")?;
            Ok((own == experiment.0).then_some((boot(row)?, row.get("superseded")?)))
        })?;
        let damaged = |why| Trouble::damaged(format!("the row of boot {}", self.id), why);
        let row = rows.pop().ok_or_else(|| damaged("it is missing"))?;
        let (boot, superseded) = row.ok_or_else(|| damaged("it is of another experiment"))?;
        let problems = self.part(("the problems", PROBLEMS), &self.sums.problems, problem)?;
        let note = |row: &Row| Ok(Note::from(&*row.get::<_, String>("text")?));
        let notes = self.part(("the notes", NOTES), &self.sums.notes, note)?;
        Ok((Boot { problems, notes, ..boot }, superseded))
    }

    /// A packed text as a list, which is empty if the text is.
    fn texts(&self, part: (&str, &str), expected: &Digest) -> Result<Vec<Vec<u8>>, Trouble> {
        let mut texts = self.part(part, expected, |row| {
            let packed: Vec<u8> = row.get(0)?;
            match packed::unpack_text(&packed) {
                Ok(text) => Ok((packed, text.is_empty())),
                Err(error) => Err(Trouble::damaged("the text", error)),
            }
        })?;
        texts.retain(|(_, is_empty)| !is_empty);
        Ok(texts.into_iter().map(|(packed, _)| packed).collect())
    }

    /// Adds all chunks.
    fn chunks(&self, parts: &mut Parts) -> Result<(), Trouble> {
        let what = || format!("the list of series of boot {}", self.id);
        let named = |error| in_part(what, error);
        let mut statement = self.connection.prepare_cached(CHUNKS)?;
        let mut rows = statement.query([self.id.0])?;
        let mut digester = Digester::default();
        let mut place = 0;
        while let Some(row) = rows.next().map_err(named)? {
            digester.add(row, CHUNK_COLUMNS).map_err(named)?;
            let of = label(row, true).map_err(named)?;
            let packed: Vec<u8> = row.get(CHUNK_COLUMNS).map_err(named)?;
            let ends: Option<Vec<u8>> = row.get(CHUNK_COLUMNS + 1).map_err(named)?;
            let is_series = self.sums.series.get(place) == Some(&digest(&packed));
            let expected = self.sums.ends.get(place).copied().flatten();
            if !is_series || expected != ends.as_deref().map(digest) {
                return Err(differs(format!("chunk {place} of boot {}", self.id)));
            }
            if let Some(ends) = ends {
                parts.push_of(Kind::Ends, of.clone(), ends);
            }
            parts.push_of(Kind::Series, of, packed);
            place += 1;
        }
        match digester.finish() == self.sums.chunks && place == self.sums.series.len() {
            true => Ok(()),
            false => Err(differs(what())),
        }
    }
}

/// The label of a chunk or a profile.
fn label(row: &Row, has_source: bool) -> rusqlite::Result<Label> {
    Ok(Label {
        workload: row.get("workload")?,
        iteration: row.get("iteration")?,
        phase: row.get("phase")?,
        source: if has_source { row.get("source")? } else { String::new() },
    })
}

fn boot(row: &Row) -> Result<Boot, Trouble> {
    let word: String = row.get("outcome")?;
    let outcome = outcome(&word, row.get("detail")?)
        .ok_or_else(|| Trouble::damaged("the outcome", format!("`{word}` is unknown")))?;
    Ok(Boot {
        variant: row.get("variant")?,
        boot_index: row.get("replicate")?,
        block: row.get("block")?,
        started: unsigned(row, "started")?,
        outcome,
        facts: facts(row)?,
        host: HostLoad {
            load_before: float(row, "load_before")?,
            load_after: float(row, "load_after")?,
            steal: float(row, "steal")?,
            wall: float(row, "wall")?,
        },
        ..Boot::default()
    })
}

/// The outcome for a word and a detail; `None` for an unknown word.
fn outcome(word: &str, detail: String) -> Option<Outcome> {
    Some(match word {
        "complete" => Outcome::Complete,
        "partial" => Outcome::Partial(detail),
        "failed" => Outcome::Failed(detail),
        "panicked" => Outcome::Panicked(detail),
        "timed-out" => Outcome::TimedOut(detail),
        "died" => Outcome::Died(detail),
        // The oldest stores have the word `spoilt`.
        "invalid" | "spoilt" => Outcome::Invalid(detail),
        "interrupted" => Outcome::Interrupted,
        _ => return None,
    })
}

fn facts(row: &Row) -> Result<BootFacts, Trouble> {
    let word: String = row.get("accel")?;
    let execution = Execution::of_name(&word);
    if execution.is_none() && !word.is_empty() {
        return Err(Trouble::damaged("the accelerator", format!("`{word}` is unknown")));
    }
    Ok(BootFacts {
        release: row.get("release")?,
        version: row.get("version")?,
        banner: row.get("banner")?,
        cmdline: row.get("cmdline")?,
        preemption: row.get("preemption")?,
        cpus: row.get("cpus")?,
        nodes: row.get("nodes")?,
        memory: unsigned(row, "memory")?,
        page_size: unsigned(row, "page_size")?,
        provenance: Provenance {
            execution,
            emulator: row.get("emulator")?,
            ..Provenance::default()
        },
        kernel_origin: row.get("kernel_origin")?,
        kernel_digest: row.get("kernel_digest")?,
        initramfs_digest: row.get("initramfs_digest")?,
        recording_digest: row.get("recording_digest")?,
        userspace_digest: row.get("userspace_digest")?,
        ..BootFacts::default()
    })
}

fn problem(row: &Row) -> Result<Problem, Trouble> {
    let word: String = row.get("kind")?;
    let kind = ProblemKind::of_name(&word)
        .ok_or_else(|| Trouble::damaged("a problem", format!("unknown kind `{word}`")))?;
    Ok(Problem { kind, text: row.get("text")? })
}

fn sample(row: &Row) -> Result<Sample, Trouble> {
    Ok(Sample {
        workload: row.get("workload")?,
        iteration: row.get("iteration")?,
        phase: row.get("phase")?,
        metric: row.get("metric")?,
        label: row.get("label")?,
        value: float(row, "value")?,
        count: row.get("count")?,
        ended: row.get::<_, Option<i64>>("ended")?.map(i64::cast_unsigned),
    })
}

fn usage(row: &Row) -> Result<Usage, Trouble> {
    Ok(Usage {
        workload: row.get("workload")?,
        iteration: row.get("iteration")?,
        user: float(row, "user")?,
        system: float(row, "system")?,
        elapsed: float(row, "elapsed")?,
    })
}

//! Reads and verifies the rows of a boot.

use std::io;

use model::{
    Boot, BootFacts, Chunk, Execution, HostLoad, Note, Problem, ProblemKind, Profile, Sample, Usage,
};
use rusqlite::{Connection, Row, params};

use super::{BootId, Detail, Kept, words};
use crate::checksums::{BootEntry, BootSums, Digest, Digester, differs, digest, in_part, rows};
use crate::packed::unpack_text;
use crate::{Trouble, checksums, chunk, profile};

/// The columns of the boot's own row, except the console.
const ROW: &str = "SELECT id, experiment, variant, replicate, block, started, outcome, detail,
        superseded, release, version, banner, cmdline, preemption, cpus, nodes, memory, page_size,
        accel, emulator, kernel_origin, kernel_digest, initramfs_digest, recording_digest,
        userspace_digest, userspace, config, load_before, load_after, steal, wall
    FROM boots WHERE id = ?";
const CONFIG: &str = "SELECT packed FROM texts WHERE id = (SELECT config FROM boots WHERE id = ?)";
const USERSPACE: &str =
    "SELECT packed FROM texts WHERE id = (SELECT userspace FROM boots WHERE id = ?)";
const CONSOLE: &str = "SELECT console FROM boots WHERE id = ?";
const PROBLEMS: &str = "SELECT place, kind, text FROM problems WHERE boot = ? ORDER BY place";
const NOTES: &str = "SELECT place, text FROM notes WHERE boot = ? ORDER BY place";
const SAMPLES: &str = "SELECT place, workload, iteration, phase, metric, label, value, ended, count
    FROM samples WHERE boot = ? ORDER BY place";
const USAGE: &str = "SELECT place, workload, iteration, user, system, elapsed
    FROM usage WHERE boot = ? ORDER BY place";
const PROFILES: &str = "SELECT place, workload, iteration, phase, packed
    FROM profiles WHERE boot = ? ORDER BY place";

/// Number of columns of a chunk before the packed data.
const CHUNK_COLUMNS: usize = 6;

/// Query for the chunks of a boot. `packed` is read for the sources in `?2`, or for all if `?2` is NULL.
fn select_chunks(packed: &str) -> String {
    format!(
        "SELECT chunks.place AS place, workload, iteration, phase, source, samples,
            CASE WHEN ?2 IS NULL OR source IN (SELECT value FROM json_each(?2)) THEN {packed} END
        FROM chunks LEFT JOIN chunk_ends USING (boot, place) WHERE boot = ?1 ORDER BY place"
    )
}

/// The checksums of the parts of a boot.
pub fn sums(connection: &Connection, id: BootId) -> Result<BootSums, Trouble> {
    let of = |sql| Ok::<_, Trouble>(rows(connection, sql, id.0, |_| Ok(()))?.1);
    let mut chunks = Digester::default();
    let (mut series, mut ends) = (Vec::new(), Vec::new());
    let sql = "SELECT chunks.place, workload, iteration, phase, source, samples, chunks.packed,
            chunk_ends.packed
        FROM chunks LEFT JOIN chunk_ends USING (boot, place) WHERE boot = ? ORDER BY chunks.place";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id.0])?;
    while let Some(row) = rows.next()? {
        chunks.add(row, CHUNK_COLUMNS)?;
        series.push(digest(&row.get::<_, Vec<u8>>(CHUNK_COLUMNS)?));
        ends.push(row.get::<_, Option<Vec<u8>>>(CHUNK_COLUMNS + 1)?.map(|packed| digest(&packed)));
    }
    Ok(BootSums {
        row: row_digest(connection, id)?,
        config: of(CONFIG)?,
        userspace: of(USERSPACE)?,
        console: of(CONSOLE)?,
        problems: of(PROBLEMS)?,
        notes: of(NOTES)?,
        samples: of(SAMPLES)?,
        usage: of(USAGE)?,
        chunks: chunks.finish(),
        series,
        ends,
        profiles: of(PROFILES)?,
    })
}

/// The checksum of the boot's own row.
pub fn row_digest(connection: &Connection, id: BootId) -> Result<Digest, Trouble> {
    Ok(rows(connection, ROW, id.0, |_| Ok(()))?.1)
}

/// Reads a boot at the given level of detail.
pub fn boot(connection: &Connection, entry: &BootEntry, detail: Detail) -> Result<Kept, Trouble> {
    let reader = BootReader::new(connection, entry)?;
    let mut kept = reader.row()?;
    let boot = &mut kept.boot;
    boot.facts.config = reader.config()?;
    boot.facts.userspace = reader.userspace()?;
    boot.problems = reader.problems()?;
    boot.notes = reader.notes()?;
    boot.samples = reader.samples()?;
    boot.usage = reader.usage()?;
    match detail {
        Detail::Summary => {}
        Detail::Series(sources) => boot.chunks = reader.chunks(Some(sources))?,
        Detail::AllSeries => boot.chunks = reader.chunks(None)?,
        Detail::Profiles(sources) => {
            boot.chunks = reader.chunks(Some(sources))?;
            boot.profiles = reader.profiles(profile::decode)?;
        }
        Detail::Ends(sources) => {
            boot.chunks = reader.ends(Some(sources))?;
            boot.profiles = reader.profiles(accesses)?;
        }
        Detail::Whole => {
            boot.chunks = reader.chunks(None)?;
            boot.profiles = reader.profiles(profile::decode)?;
            boot.console = reader.console()?;
        }
    }
    Ok(kept)
}

/// Reads every part of a boot. Returns the readable parts, and an error for each other part.
pub fn check(connection: &Connection, entry: &BootEntry) -> (Boot, Vec<Trouble>) {
    let reader = match BootReader::new(connection, entry) {
        Ok(reader) => reader,
        Err(trouble) => return (Boot::default(), vec![trouble]),
    };
    let mut troubles = Vec::new();
    let boot = Boot {
        problems: or_empty(reader.problems(), &mut troubles),
        notes: or_empty(reader.notes(), &mut troubles),
        samples: or_empty(reader.samples(), &mut troubles),
        usage: or_empty(reader.usage(), &mut troubles),
        chunks: or_empty(reader.chunks(None), &mut troubles),
        profiles: or_empty(reader.profiles(profile::decode), &mut troubles),
        console: or_empty(reader.console(), &mut troubles),
        ..Boot::default()
    };
    troubles.extend(reader.row().err());
    troubles.extend(reader.config().err());
    troubles.extend(reader.userspace().err());
    troubles.extend(reader.ends(None).err());
    (boot, troubles)
}

fn or_empty<T: Default>(part: Result<T, Trouble>, troubles: &mut Vec<Trouble>) -> T {
    part.unwrap_or_else(|trouble| {
        troubles.push(trouble);
        T::default()
    })
}

/// Reads a boot, part by part.
struct BootReader<'a> {
    connection: &'a Connection,
    id: BootId,
    sums: BootSums,
}

impl<'a> BootReader<'a> {
    fn new(connection: &'a Connection, entry: &BootEntry) -> Result<Self, Trouble> {
        let sums = BootSums::read(connection, entry)?;
        Ok(Self { connection, id: entry.boot(), sums })
    }

    /// The verified rows of a part.
    fn part<T>(
        &self,
        (part, sql): (&str, &str),
        expected: &Digest,
        read: impl FnMut(&Row) -> Result<T, Trouble>,
    ) -> Result<Vec<T>, Trouble> {
        let what = || format!("{part} of boot {}", self.id);
        checksums::verified(self.connection, sql, self.id.0, (expected, what), read)
    }

    /// The boot's own row, without the packed parts.
    fn row(&self) -> Result<Kept, Trouble> {
        let mut found = self.part(("the row", ROW), &self.sums.row, |row| kept(row, self.id))?;
        let missing = || Trouble::damaged(format!("the row of boot {}", self.id), "it is missing");
        found.pop().ok_or_else(missing)
    }

    fn config(&self) -> Result<String, Trouble> {
        self.text(("the configuration", CONFIG), &self.sums.config)
    }

    fn userspace(&self) -> Result<Vec<String>, Trouble> {
        let text = self.text(("the list of packages", USERSPACE), &self.sums.userspace)?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn console(&self) -> Result<String, Trouble> {
        self.text(("the console", CONSOLE), &self.sums.console)
    }

    /// A packed text; empty if there is none.
    fn text(&self, part: (&str, &str), expected: &Digest) -> Result<String, Trouble> {
        let texts = self.part(part, expected, |row| {
            unpack_text(&row.get::<_, Vec<u8>>(0)?)
                .map_err(|error| Trouble::damaged("the text", error))
        })?;
        Ok(texts.concat())
    }

    fn problems(&self) -> Result<Vec<Problem>, Trouble> {
        self.part(("the problems", PROBLEMS), &self.sums.problems, problem)
    }

    fn notes(&self) -> Result<Vec<Note>, Trouble> {
        self.part(("the notes", NOTES), &self.sums.notes, |row| {
            Ok(Note::from(&*row.get::<_, String>("text")?))
        })
    }

    fn samples(&self) -> Result<Vec<Sample>, Trouble> {
        self.part(("the samples", SAMPLES), &self.sums.samples, |row| Ok(sample(row)?))
    }

    fn usage(&self) -> Result<Vec<Usage>, Trouble> {
        self.part(("the usage", USAGE), &self.sums.usage, |row| Ok(usage(row)?))
    }

    /// The profiles, each decoded by `decode`.
    fn profiles(&self, decode: fn(&[u8]) -> io::Result<Profile>) -> Result<Vec<Profile>, Trouble> {
        self.part(("the profiles", PROFILES), &self.sums.profiles, |row| {
            let place: u32 = row.get("place")?;
            let profile = decode(&row.get::<_, Vec<u8>>("packed")?)
                .map_err(|error| Trouble::damaged(format!("profile {place}"), error))?;
            Ok(Profile {
                workload: row.get("workload")?,
                iteration: row.get("iteration")?,
                phase: row.get("phase")?,
                ..profile
            })
        })
    }

    /// The chunks of some or all sources.
    fn chunks(&self, sources: Option<&[&str]>) -> Result<Vec<Chunk>, Trouble> {
        let expected = |place: usize| self.sums.series.get(place);
        self.read_chunks(&select_chunks("chunks.packed"), sources, expected)
    }

    /// The chunks with only the first and last sample of each.
    fn ends(&self, sources: Option<&[&str]>) -> Result<Vec<Chunk>, Trouble> {
        // Old stores have no ends. Their complete series are read.
        let sql = select_chunks("ifnull(chunk_ends.packed, chunks.packed)");
        let ends = |place: usize| self.sums.ends.get(place).and_then(Option::as_ref);
        let expected = |place: usize| ends(place).or(self.sums.series.get(place));
        let mut chunks = self.read_chunks(&sql, sources, expected)?;
        for chunk in &mut chunks {
            (chunk.times, chunk.columns) = chunk::ends(&chunk.times, &chunk.columns);
        }
        Ok(chunks)
    }

    fn read_chunks<'s>(
        &self,
        sql: &str,
        sources: Option<&[&str]>,
        expected: impl Fn(usize) -> Option<&'s Digest>,
    ) -> Result<Vec<Chunk>, Trouble> {
        let what = || format!("the list of series of boot {}", self.id);
        let named = |error| in_part(what, error);
        let listed = sources.map(|sources| serde_json::Value::from(sources).to_string());
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.id.0, listed])?;
        let mut digester = Digester::default();
        let mut chunks = Vec::new();
        let mut place = 0;
        while let Some(row) = rows.next().map_err(named)? {
            digester.add(row, CHUNK_COLUMNS).map_err(named)?;
            let chunk = chunk(row).map_err(named)?;
            if sources.is_none_or(|sources| sources.contains(&&*chunk.source)) {
                chunks.push(self.filled(chunk, (row, place), expected(place))?);
            }
            place += 1;
        }
        if digester.finish() != self.sums.chunks {
            return Err(differs(what()));
        }
        Ok(chunks)
    }

    /// A chunk with its packed data.
    fn filled(
        &self,
        chunk: Chunk,
        (row, place): (&Row, usize),
        expected: Option<&Digest>,
    ) -> Result<Chunk, Trouble> {
        let what = || {
            format!(
                "chunk {place} of boot {} ({} in iteration {} of `{}`, phase `{}`)",
                self.id, chunk.source, chunk.iteration, chunk.workload, chunk.phase
            )
        };
        let packed: Vec<u8> = row.get(CHUNK_COLUMNS).map_err(|error| in_part(what, error))?;
        if expected != Some(&digest(&packed)) {
            return Err(differs(what()));
        }
        let (times, columns) =
            chunk::decode(&packed).map_err(|error| Trouble::damaged(what(), error))?;
        Ok(Chunk { times, columns, ..chunk })
    }
}

fn kept(row: &Row, id: BootId) -> Result<Kept, Trouble> {
    let word: String = row.get("outcome")?;
    let outcome = words::outcome(&word, row.get("detail")?)
        .ok_or_else(|| Trouble::damaged("the outcome", format!("`{word}` is unknown")))?;
    let boot = Boot {
        variant: row.get("variant")?,
        replicate: row.get("replicate")?,
        block: row.get("block")?,
        started: unsigned(row, "started")?,
        outcome,
        facts: facts(row)?,
        host: host(row)?,
        ..Boot::default()
    };
    Ok(Kept { id, superseded: row.get("superseded")?, boot })
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
        execution,
        emulator: row.get("emulator")?,
        kernel_origin: row.get("kernel_origin")?,
        kernel_digest: row.get("kernel_digest")?,
        initramfs_digest: row.get("initramfs_digest")?,
        recording_digest: row.get("recording_digest")?,
        userspace_digest: row.get("userspace_digest")?,
        userspace: Vec::new(),
        config: String::new(),
    })
}

fn host(row: &Row) -> rusqlite::Result<HostLoad> {
    Ok(HostLoad {
        load_before: float(row, "load_before")?,
        load_after: float(row, "load_after")?,
        steal: float(row, "steal")?,
        wall: float(row, "wall")?,
    })
}

fn problem(row: &Row) -> Result<Problem, Trouble> {
    let word: String = row.get("kind")?;
    let kind = ProblemKind::of_name(&word)
        .ok_or_else(|| Trouble::damaged("a problem", format!("unknown kind `{word}`")))?;
    Ok(Problem { kind, text: row.get("text")? })
}

fn sample(row: &Row) -> rusqlite::Result<Sample> {
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

fn usage(row: &Row) -> rusqlite::Result<Usage> {
    Ok(Usage {
        workload: row.get("workload")?,
        iteration: row.get("iteration")?,
        user: float(row, "user")?,
        system: float(row, "system")?,
        elapsed: float(row, "elapsed")?,
    })
}

/// A chunk without its packed data.
fn chunk(row: &Row) -> rusqlite::Result<Chunk> {
    Ok(Chunk {
        workload: row.get("workload")?,
        iteration: row.get("iteration")?,
        phase: row.get("phase")?,
        source: row.get("source")?,
        times: Vec::new(),
        columns: Vec::new(),
    })
}

/// A profile with only its accesses.
fn accesses(packed: &[u8]) -> io::Result<Profile> {
    Ok(Profile { accesses: profile::decode_accesses(packed)?, ..Profile::default() })
}

/// A u64 that is stored as the i64 with the same bits.
fn unsigned(row: &Row, column: &str) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

/// A number; NaN for NULL.
fn float(row: &Row, column: &str) -> rusqlite::Result<f64> {
    Ok(row.get::<_, Option<f64>>(column)?.unwrap_or(f64::NAN))
}

//! Turns a boot into parts and back. A part is bytes, which the store keeps unchanged. Its SHA-256 is computed before
//! a database sees the bytes. The list of a boot's parts names them with their digests. This module does not depend
//! on a database.

use model::{Boot, BootId, Profile};
use serde::{Deserialize, Serialize};

use crate::record::{Digest, digest, encoded};
use crate::{Deltas, Series, Trouble, chunk, packed, profile, samples};

/// The parts of a boot to read. Series and consoles are large.
#[derive(Clone, Copy, Debug)]
pub enum Detail<'a> {
    /// Everything except chunks, profiles and console, which are empty.
    Summary,
    /// The summary, and the chunks of the named sources.
    Series(&'a [&'a str]),
    /// The summary, and the chunks of all sources.
    AllSeries,
    /// The summary, the chunks of the named sources, and the profiles.
    Profiles(&'a [&'a str]),
    /// The summary, the memory accesses of the profiles, and the first and last sample of each chunk of the
    /// named sources. This is enough for differences.
    Ends(&'a [&'a str]),
    /// All parts of the boot.
    Whole,
}

/// The kind of a part's content. The order of kinds is part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// The boot without its other parts, as JSON.
    Head,
    /// The kernel's configuration, packed.
    Config,
    /// The list of packages, packed: `package=version`, a line each.
    Userspace,
    /// Samples and times of iterations ([`samples`]).
    Samples,
    /// The text of the console, packed.
    Console,
    /// The first and the last sample of the series that follows in the list. Differences need only these two, and
    /// series may be long. Series of up to two samples and series of old stores have no ends.
    Ends,
    /// A series ([`chunk`]).
    Series,
    /// A profile ([`profile`]).
    Profile,
}

/// A part in the list of a boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub kind: Kind,
    /// The label of a series or a profile; empty for other parts.
    pub of: Label,
    pub digest: Digest,
}

/// The workload, iteration, phase and source of a series or a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    pub workload: String,
    pub iteration: u32,
    pub phase: String,
    /// The name of the source; empty for profiles.
    pub source: String,
}

/// All parts of a boot, in the order of their list.
#[derive(Default)]
pub struct Parts {
    pub list: Vec<Part>,
    pub bytes: Vec<Vec<u8>>,
}

impl Part {
    /// Whether the part is a text that boots share.
    pub fn is_text(&self) -> bool {
        matches!(self.kind, Kind::Config | Kind::Userspace)
    }
}

impl Parts {
    /// The parts of a boot: those of its own chunks, then of `series`. Fails when something in it is too large.
    pub fn of(boot: &Boot, series: &[Series]) -> Result<Self, Trouble> {
        let mut parts = Self::default();
        parts.head(boot)?;
        parts.text(Kind::Config, &boot.facts.config)?;
        parts.text(Kind::Userspace, &boot.facts.userspace.join("\n"))?;
        let samples = samples::encode(&boot.samples, &boot.usage);
        parts.push(Kind::Samples, samples.map_err(|it| Trouble::unkeepable("the samples", it))?);
        for chunk in &boot.chunks {
            parts.series(&chunk.into())?;
        }
        for series in series {
            parts.series(series)?;
        }
        for profile in &boot.profiles {
            let Profile { workload, iteration, phase, .. } = profile;
            let packed = profile::encode(profile)
                .map_err(|error| Trouble::unkeepable("the exact profile", error))?;
            let of = Label {
                workload: workload.clone(),
                iteration: *iteration,
                phase: phase.clone(),
                source: String::new(),
            };
            parts.push_of(Kind::Profile, of, packed);
        }
        parts.text(Kind::Console, &boot.console)?;
        Ok(parts)
    }

    /// Adds the head of a boot.
    pub fn head(&mut self, boot: &Boot) -> Result<(), Trouble> {
        let mut facts = boot.facts.clone();
        facts.config.clear();
        facts.userspace.clear();
        let head = Boot {
            variant: boot.variant.clone(),
            boot_index: boot.boot_index,
            block: boot.block,
            started: boot.started,
            outcome: boot.outcome.clone(),
            facts,
            host: boot.host.clone(),
            problems: boot.problems.clone(),
            notes: boot.notes.clone(),
            ..Boot::default()
        };
        let head = serde_json::to_vec(&head);
        self.push(Kind::Head, head.map_err(|it| Trouble::unkeepable("the head", it))?);
        Ok(())
    }

    /// Adds a text, unless it is empty.
    fn text(&mut self, kind: Kind, text: &str) -> Result<(), Trouble> {
        if !text.is_empty() {
            let packed = packed::pack(text.as_bytes(), packed::LEVEL)
                .map_err(|error| Trouble::unkeepable(name(kind), error))?;
            self.push(kind, packed);
        }
        Ok(())
    }

    fn series(&mut self, series: &Series) -> Result<(), Trouble> {
        let pack = |times: &[u64], columns: &[Deltas]| {
            chunk::encode(times, columns).map_err(|error| {
                Trouble::unkeepable(format!("the series of {}", series.source), error)
            })
        };
        let of = Label {
            workload: series.workload.clone(),
            iteration: series.iteration,
            phase: series.phase.clone(),
            source: series.source.clone(),
        };
        if let [first, _, .., last] = *series.times {
            let columns: Vec<Deltas> = series.columns.iter().map(Deltas::ends).collect();
            self.push_of(Kind::Ends, of.clone(), pack(&[first, last], &columns)?);
        }
        self.push_of(Kind::Series, of, pack(&series.times, &series.columns)?);
        Ok(())
    }

    /// Adds a part that is no series or profile.
    pub fn push(&mut self, kind: Kind, bytes: Vec<u8>) {
        self.push_of(kind, Label::default(), bytes);
    }

    /// Adds a series or a profile.
    pub fn push_of(&mut self, kind: Kind, of: Label, bytes: Vec<u8>) {
        self.list.push(Part { kind, of, digest: digest(&bytes) });
        self.bytes.push(bytes);
    }

    /// The size in bytes of all parts that boots do not share.
    pub fn size(&self) -> u64 {
        let own = self.list.iter().zip(&self.bytes).filter(|(part, _)| !part.is_text());
        own.map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// The encoded list of parts.
    pub fn contents(&self) -> Result<Vec<u8>, Trouble> {
        encoded(&self.list, || "the list of parts".into())
    }
}

/// Whether a part is read at a level of detail. `previous` is the part before it in the list.
pub fn is_wanted(part: &Part, previous: Option<&Part>, detail: Detail) -> bool {
    let source = &*part.of.source;
    match (part.kind, detail) {
        (Kind::Head | Kind::Config | Kind::Userspace | Kind::Samples, _) => true,
        (Kind::Console, detail) => matches!(detail, Detail::Whole),
        (Kind::Ends, Detail::Ends(sources)) => sources.contains(&source),
        (Kind::Ends, _) | (Kind::Series | Kind::Profile, Detail::Summary) => false,
        (Kind::Series, Detail::AllSeries | Detail::Whole) => true,
        (Kind::Series, Detail::Series(sources) | Detail::Profiles(sources)) => {
            sources.contains(&source)
        }
        // A series whose ends are not kept is read whole.
        (Kind::Series, Detail::Ends(sources)) => {
            sources.contains(&source) && previous.is_none_or(|it| it.kind != Kind::Ends)
        }
        (Kind::Profile, Detail::Series(_) | Detail::AllSeries) => false,
        (Kind::Profile, Detail::Profiles(_) | Detail::Ends(_) | Detail::Whole) => true,
    }
}

/// Decodes a part and adds it to a boot. The first part must be the head, which replaces the boot.
pub fn add(boot: &mut Boot, part: &Part, bytes: &[u8], detail: Detail) -> std::io::Result<()> {
    match part.kind {
        Kind::Head => *boot = serde_json::from_slice(bytes)?,
        Kind::Config => boot.facts.config = packed::unpack_text(bytes)?,
        Kind::Userspace => {
            let packages = packed::unpack_text(bytes)?;
            boot.facts.userspace = packages.lines().map(str::to_owned).collect();
        }
        Kind::Samples => (boot.samples, boot.usage) = samples::decode(bytes)?,
        Kind::Console => boot.console = packed::unpack_text(bytes)?,
        Kind::Ends | Kind::Series => {
            let (mut times, mut columns) = chunk::decode(bytes)?;
            if matches!(detail, Detail::Ends(_)) {
                (times, columns) = chunk::ends(&times, &columns);
            }
            let Label { workload, iteration, phase, source } = part.of.clone();
            boot.chunks.push(model::Chunk { workload, iteration, phase, source, times, columns });
        }
        Kind::Profile => {
            let profile = match detail {
                Detail::Ends(_) => profile::decode_accesses(bytes)?,
                _ => profile::decode(bytes)?,
            };
            let Label { workload, iteration, phase, .. } = part.of.clone();
            boot.profiles.push(Profile { workload, iteration, phase, ..profile });
        }
    }
    Ok(())
}

/// Names a part of a boot in messages.
pub fn what(list: &[Part], place: usize, id: BootId) -> String {
    let Part { kind, of, .. } = &list[place];
    let number = || list[..place].iter().filter(|it| it.kind == *kind).count();
    let Label { workload, iteration, phase, source } = of;
    let chunk = |number: usize| {
        format!(
            "chunk {number} of boot {id} ({source} in iteration {iteration} of `{workload}`, phase `{phase}`)"
        )
    };
    match kind {
        Kind::Series => chunk(number()),
        Kind::Ends => {
            let number = list[..place].iter().filter(|it| it.kind == Kind::Series).count();
            format!("the ends of {}", chunk(number))
        }
        Kind::Profile => format!("profile {} of boot {id}", number()),
        kind => format!("{} of boot {id}", name(*kind)),
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Head => "the head",
        Kind::Config => "the configuration",
        Kind::Userspace => "the list of packages",
        Kind::Samples => "the samples",
        Kind::Console => "the console",
        Kind::Ends => "the ends of a series",
        Kind::Series => "a series",
        Kind::Profile => "a profile",
    }
}

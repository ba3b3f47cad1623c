//! Reads a profile. Its bytes are untrusted, like those of a guest: every number is checked against its limit before
//! use, and memory is proportional to the number of bytes. A profile takes at most 32 times as many bytes of memory.

use super::record::{
    ClassStep, MissStep, NodeStep, Record, StackStep, TransferStep, VERSION, address,
};
use super::{
    Accesses, CallSite, Cpu, Executed, MAX_BYTES, MAX_CACHES, MAX_CALL_SITES, MAX_CLASSES,
    MAX_CPUS, MAX_DEPTH, MAX_MISSES, MAX_NODES, MAX_SLICES, MAX_STACKS, MAX_TICKS, MAX_TRANSFERS,
    MissCount, Misses, Object, PathCount, Phase, Privilege, Profile, Scope, Target, Tick,
    TransferCount,
};
use crate::frame::Kind;
use crate::log::Frames;

/// The reason why bytes are not a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The plugin did not start.
    #[error("the plugin wrote no profile: see QEMU's messages")]
    Empty,
    /// The format is of another version, which has this number.
    #[error("the profile has format {0}, not {VERSION}: use the plugin built with this program")]
    Version(u16),
    /// No machine has this scope.
    #[error("the profile has {} CPUs and {} nodes, which is impossible", .0.cpus, .0.nodes)]
    Scope(Scope),
    /// It is longer than the plugin writes.
    #[error("the profile has more than {MAX_BYTES} bytes, the limit of the plugin")]
    Long,
    /// An undamaged frame with invalid content.
    #[error("the profile is damaged before byte {0}")]
    Damaged(usize),
}

/// Reads a profile up to its end, or to the first torn frame.
///
/// The result takes at most 32 bytes of memory for each byte read. One frame ([`crate::frame::MAX_PAYLOAD`]) is
/// decoded at a time, into at most 72 bytes for each byte. Fails when it has no start, complete frames have invalid
/// content, or there are more than [`MAX_BYTES`]. A caller need not pass more than [`MAX_BYTES`] + 1 bytes.
pub fn read(bytes: &[u8]) -> Result<Profile, ProfileError> {
    if bytes.len() > MAX_BYTES {
        return Err(ProfileError::Long);
    }
    let mut frames = Frames::new(bytes);
    let start = frames.next().filter(|frame| frame.kind == Kind::Profile as u16);
    let record = start.and_then(|frame| postcard::from_bytes(frame.payload).ok());
    let Some(Record::Start(version, scope)) = record else {
        return Err(ProfileError::Empty);
    };
    if version != VERSION {
        return Err(ProfileError::Version(version));
    }
    if scope.cpus == 0 || scope.cpus > MAX_CPUS || scope.nodes > MAX_NODES {
        return Err(ProfileError::Scope(scope));
    }
    let mut reader = ProfileReader::new(scope);
    while let Some(frame) = frames.next() {
        let record = postcard::from_bytes(frame.payload).ok();
        let applied = record.and_then(|record| reader.apply(record));
        if frame.kind != Kind::Profile as u16 || applied.is_none() {
            return Err(ProfileError::Damaged(frames.offset()));
        }
    }
    Ok(reader.profile)
}

struct ProfileReader {
    profile: Profile,
    slice: Phase,
    ticks: usize,
    /// Number of call sites of each node's path.
    depths: Vec<usize>,
}

impl ProfileReader {
    fn new(scope: Scope) -> Self {
        let profile = Profile::new(scope);
        Self { profile, slice: Phase::default(), ticks: 0, depths: Vec::new() }
    }

    /// Applies a record; `None` if it is invalid at this place.
    fn apply(&mut self, record: Record) -> Option<()> {
        if self.profile.whole {
            return None;
        }
        match record {
            Record::Start(..) => None,
            Record::Kernel(cpu, steps) => kernel(&mut self.cpu(cpu)?.kernel, &steps),
            Record::Totals(cpu, totals) => {
                self.cpu(cpu)?.totals = totals;
                Some(())
            }
            Record::Processes(cpu, processes) => {
                self.cpu(cpu)?.processes.extend(processes);
                Some(())
            }
            Record::Accesses(cpu, rows) => {
                let nodes = self.profile.scope.nodes;
                let accesses = &mut self.cpu(cpu)?.accesses;
                let fits = accesses.is_empty() && are_in(&rows, nodes);
                fits.then(|| *accesses = rows)
            }
            Record::Tick(tick) => self.tick(tick),
            Record::Nodes(steps) => self.nodes(&steps),
            Record::Stacks(steps) => self.stacks(&steps),
            Record::Intruder(process) => {
                self.profile.intruder.replace(process).is_none().then_some(())
            }
            Record::Classes(steps) => self.classes(&steps),
            Record::Caches(names) => {
                self.profile.caches.extend(names);
                (self.profile.caches.len() <= MAX_CACHES).then_some(())
            }
            Record::Transfers(cpu, steps) => self.transfers(cpu, &steps),
            Record::Misses(cpu, steps) => self.misses(cpu, &steps),
            Record::Cut => self.cut(),
            Record::End => {
                self.profile.whole = true;
                (!self.profile.slices.is_empty()).then_some(())
            }
        }
    }

    /// The CPU with this number, if this slice already has it, or if it is the next one. So memory for a CPU is taken
    /// only by a record.
    fn cpu(&mut self, number: u16) -> Option<&mut Cpu> {
        let (cpus, number) = (&mut self.slice.cpus, usize::from(number));
        if number == cpus.len() && number < usize::from(self.profile.scope.cpus) {
            cpus.push(Cpu::default());
        }
        cpus.get_mut(number)
    }

    fn tick(&mut self, tick: Tick) -> Option<()> {
        let Scope { cpus, nodes, .. } = self.profile.scope;
        let later = self.slice.ticks.last().is_none_or(|last| last.time < tick.time);
        let fits = tick.accesses.len() == usize::from(cpus)
            && tick.accesses.iter().all(|rows| are_in(rows, nodes));
        self.ticks += 1;
        (nodes > 0 && later && fits && self.ticks <= MAX_TICKS).then(|| self.slice.ticks.push(tick))
    }

    fn nodes(&mut self, steps: &[NodeStep]) -> Option<()> {
        let mut before = 0;
        for &(parent, distance) in steps {
            let parent = parent.checked_sub(1);
            let depth = match parent {
                Some(parent) => self.depths.get(parent as usize)? + 1,
                None => 1,
            };
            if !self.profile.scope.stacks
                || depth > MAX_DEPTH
                || self.depths.len() >= MAX_CALL_SITES
            {
                return None;
            }
            self.depths.push(depth);
            self.profile.nodes.push(CallSite { parent, address: address(&mut before, distance) });
        }
        Some(())
    }

    fn classes(&mut self, steps: &[ClassStep]) -> Option<()> {
        let (mut before, classes) = (0, &mut self.profile.classes);
        for &(distance, class) in steps {
            let address = address(&mut before, distance);
            match class {
                Some(class) => classes.insert(address, class),
                None => classes.remove(&address),
            };
        }
        (classes.len() <= MAX_CLASSES).then_some(())
    }

    /// Appends transfers; `None` unless they ascend, and every count and cache is valid.
    fn transfers(&mut self, cpu: u16, steps: &[TransferStep]) -> Option<()> {
        let caches = self.profile.caches.len();
        let counted = self.profile.scope.transfers;
        let transfers = &mut self.cpu(cpu)?.transfers;
        let mut before = transfers.last().map_or(0, |last| last.address);
        for &(distance, object, counts) in steps {
            let address = address(&mut before, distance);
            let order = |it: &TransferCount| (it.address, it.object);
            let rises = transfers.last().is_none_or(|last| order(last) < (address, object));
            let is_known = !matches!(object, Object::Slab(cache, _) if cache as usize >= caches);
            let most = counts.upgrades.max(counts.disjoint).max(counts.remote);
            let is_some = counts.all > 0 || counts.pairs > 0;
            let fits = is_some && most <= counts.all && transfers.len() < MAX_TRANSFERS;
            if !(counted && rises && is_known && fits) {
                return None;
            }
            transfers.push(TransferCount { address, object, transfers: counts });
        }
        Some(())
    }

    /// Appends misses; `None` unless they ascend and every count is valid.
    fn misses(&mut self, cpu: u16, steps: &[MissStep]) -> Option<()> {
        let counted = self.profile.scope.misses;
        let all = &mut self.cpu(cpu)?.misses;
        let mut before = all.last().map_or(0, |last| last.address);
        for &(distance, misses) in steps {
            let address = address(&mut before, distance);
            let rises = all.last().is_none_or(|last| last.address < address);
            let fits = misses != Misses::default() && all.len() < MAX_MISSES;
            if !(counted && rises && fits) {
                return None;
            }
            all.push(MissCount { address, misses });
        }
        Some(())
    }

    fn stacks(&mut self, steps: &[StackStep]) -> Option<()> {
        let (nodes, stacks) = (self.profile.nodes.len(), &mut self.slice.stacks);
        let (mut node, mut before) = match stacks.last() {
            Some(last) => (last.node.map_or(0, |node| node + 1), last.address),
            None => (0, 0),
        };
        for &(up, distance, count) in steps {
            node = node.checked_add(up).filter(|node| *node as usize <= nodes)?;
            let (own, address) = (node.checked_sub(1), address(&mut before, distance));
            let rises = stacks.last().is_none_or(|last| (last.node, last.address) < (own, address));
            if !rises || count == 0 || stacks.len() >= MAX_STACKS {
                return None;
            }
            stacks.push(PathCount { node: own, address, count });
        }
        Some(())
    }

    /// Ends the slice; `None` if CPUs are missing, its paths do not add up, or there are too many slices.
    fn cut(&mut self) -> Option<()> {
        let scope = self.profile.scope;
        let mut slice = std::mem::take(&mut self.slice);
        slice.cpus.shrink_to_fit();
        if slice.cpus.len() != usize::from(scope.cpus) || self.profile.slices.len() >= MAX_SLICES {
            return None;
        }
        let counts = slice.stacks.iter().map(|it| it.count);
        let kernel = if scope.stacks { slice.instructions(Privilege::Kernel) } else { 0 };
        (counts.fold(0, u64::saturating_add) == kernel).then(|| self.profile.slices.push(slice))
    }
}

/// Appends instructions; `None` unless addresses ascend and every count is valid.
fn kernel(instructions: &mut Vec<Executed>, steps: &[(u64, u64)]) -> Option<()> {
    for &(distance, count) in steps {
        let address = match instructions.last() {
            Some(last) if distance > 0 => last.address.checked_add(distance)?,
            Some(_) => return None,
            None => distance,
        };
        if count == 0 {
            return None;
        }
        instructions.push(Executed { address, count });
    }
    Some(())
}

/// Whether all rows refer to existing nodes. If accesses were not counted, there must be no rows.
fn are_in(rows: &[Accesses], nodes: u16) -> bool {
    let is_in = |row: &Accesses| !matches!(row.target, Target::Node(node) if node >= nodes);
    rows.is_empty() || nodes > 0 && rows.iter().all(is_in)
}

#[cfg(test)]
mod tests;

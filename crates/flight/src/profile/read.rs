//! Reading a profile. Its bytes are checked as those from a guest are: no number in them is
//! believed before it was compared with its bounds, and memory grows with the bytes that are there.

use super::record::{NodeStep, Record, StackStep, VERSION, address};
use super::{
    Accesses, CallSite, Cpu, Executed, MAX_CALL_SITES, MAX_CPUS, MAX_DEPTH, MAX_NODES, MAX_STACKS,
    MAX_TICKS, Phase, Privilege, Profile, Scope, Target, Tick,
};
use crate::frame::Kind;
use crate::log::Frames;

/// Why bytes are not a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The plugin did not even begin.
    #[error("the plugin wrote no profile: see what QEMU said")]
    Empty,
    /// Of another version of this program.
    #[error(
        "the profile has format {0}, and not {VERSION}: use the plugin built with this program"
    )]
    Version(u16),
    /// No such machine.
    #[error("the profile is of {} CPUs and {} nodes, which no machine has", .0.cpus, .0.nodes)]
    Scope(Scope),
    /// A frame that was not damaged, but makes no sense.
    #[error("the profile is damaged before byte {0}")]
    Damaged(usize),
}

/// Reads a profile up to its end, or to the first frame that is torn.
///
/// # Errors
/// When it has no beginning, or frames that are whole make no sense.
pub fn read(bytes: &[u8]) -> Result<Profile, ProfileError> {
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
    let mut reader = Reader::new(scope);
    while let Some(frame) = frames.next() {
        let record = postcard::from_bytes(frame.payload).ok();
        let taken = record.and_then(|record| reader.take(record));
        if frame.kind != Kind::Profile as u16 || taken.is_none() {
            return Err(ProfileError::Damaged(frames.offset()));
        }
    }
    Ok(reader.profile)
}

struct Reader {
    profile: Profile,
    slice: Phase,
    ticks: usize,
    /// How many call sites the path of each node has.
    depths: Vec<usize>,
}

impl Reader {
    fn new(scope: Scope) -> Self {
        let profile = Profile { scope, nodes: Vec::new(), slices: Vec::new(), whole: false };
        Self { profile, slice: empty(scope), ticks: 0, depths: Vec::new() }
    }

    /// Takes a record in; none if it makes no sense here.
    fn take(&mut self, record: Record) -> Option<()> {
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
            Record::Cut => self.cut(),
            Record::End => {
                self.profile.whole = true;
                (!self.profile.slices.is_empty()).then_some(())
            }
        }
    }

    fn cpu(&mut self, number: u16) -> Option<&mut Cpu> {
        self.slice.cpus.get_mut(usize::from(number))
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

    fn stacks(&mut self, steps: &[StackStep]) -> Option<()> {
        let (nodes, stacks) = (self.profile.nodes.len(), &mut self.slice.stacks);
        let (mut node, mut before) = match stacks.last() {
            Some(&(node, address, _)) => (node.map_or(0, |node| node + 1), address),
            None => (0, 0),
        };
        for &(up, distance, count) in steps {
            node = node.checked_add(up).filter(|node| *node as usize <= nodes)?;
            let stack = (node.checked_sub(1), address(&mut before, distance), count);
            let rises = stacks.last().is_none_or(|last| (last.0, last.1) < (stack.0, stack.1));
            if !rises || count == 0 || stacks.len() >= MAX_STACKS {
                return None;
            }
            stacks.push(stack);
        }
        Some(())
    }

    /// Ends the slice; none if its paths do not add up.
    fn cut(&mut self) -> Option<()> {
        let scope = self.profile.scope;
        let slice = std::mem::replace(&mut self.slice, empty(scope));
        let counts = slice.stacks.iter().map(|(.., count)| *count);
        let kernel = if scope.stacks { slice.instructions(Privilege::Kernel) } else { 0 };
        (counts.fold(0, u64::saturating_add) == kernel).then(|| self.profile.slices.push(slice))
    }
}

fn empty(scope: Scope) -> Phase {
    Phase { cpus: vec![Cpu::default(); usize::from(scope.cpus)], ..Phase::default() }
}

/// Adds instructions to those before; none unless addresses rise and every count is a count.
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

/// True if accesses were counted, and all of these to nodes that are there.
fn are_in(rows: &[Accesses], nodes: u16) -> bool {
    let is_in = |row: &Accesses| !matches!(row.target, Target::Node(node) if node >= nodes);
    rows.is_empty() || nodes > 0 && rows.iter().all(is_in)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record::CHUNK;
    use super::super::{BEYOND, Process, Totals, Writer};
    use super::*;
    use crate::frame;

    fn written(profile: &Profile) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, profile.scope).unwrap();
        writer.nodes(&profile.nodes).unwrap();
        for slice in &profile.slices {
            for tick in &slice.ticks {
                writer.tick(tick.clone()).unwrap();
            }
            writer.slice(slice).unwrap();
        }
        if profile.whole {
            writer.end().unwrap();
        }
        bytes
    }

    fn frames(records: &[Record]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (sequence, record) in (0..).zip(records) {
            let payload = postcard::to_stdvec(record).unwrap();
            bytes.extend(frame::header(Kind::Profile, sequence, 0, &payload));
            bytes.extend(payload);
            bytes.resize(bytes.len().next_multiple_of(frame::ALIGNMENT), 0);
        }
        bytes
    }

    fn refused(scope: Scope, records: Vec<Record>) -> bool {
        let mut all = vec![Record::Start(VERSION, scope)];
        all.extend(records);
        matches!(read(&frames(&all)), Err(ProfileError::Damaged(_)))
    }

    const SCOPE: Scope = Scope { cpus: 2, nodes: 1, stacks: false };
    const STACKS: Scope = Scope { stacks: true, ..SCOPE };

    #[test]
    fn long_lists_take_several_frames() {
        let count = CHUNK as u64 + 7;
        let kernel = (0..count).map(|n| Executed { address: n * 3, count: n + 1 });
        let cpu = Cpu { kernel: kernel.collect(), ..Cpu::default() };
        let nodes = (0..count).map(|n| CallSite { parent: None, address: n * 5 });
        let stacks = (0..count).map(|n| ((n as u32).checked_sub(1), u64::MAX - n, n + 1));
        let slice =
            Phase { cpus: vec![Cpu::default(), cpu], stacks: stacks.collect(), ticks: vec![] };
        let profile =
            Profile { scope: STACKS, nodes: nodes.collect(), slices: vec![slice], whole: true };
        assert_eq!(read(&written(&profile)), Ok(profile));
    }

    #[test]
    fn only_what_ended_with_a_cut_is_a_phase() {
        let slice = |user| {
            let mut slice = empty(SCOPE);
            slice.cpus[0].totals.user = user;
            slice
        };
        let slices: Vec<_> = (0..5).map(slice).collect();
        let phases = |slices: &[Phase], whole| {
            let profile = Profile { scope: SCOPE, nodes: vec![], slices: slices.into(), whole };
            let phases = (0..).map_while(|cuts| profile.phase(cuts));
            phases.map(|phase| phase.cpus[0].totals.user).collect::<Vec<_>>()
        };
        assert_eq!(phases(&slices, false), [0, 2, 4]);
        assert_eq!(phases(&slices, true), [0, 2]);
        assert_eq!(phases(&slices[..4], true), [0, 2]);
        assert_eq!(phases(&slices[..1], true), []);
        assert_eq!(phases(&[], false), []);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |record: Record| refused(SCOPE, vec![record]);
        assert!(!refused(Record::Kernel(1, vec![(5, 1), (1, 1)])));
        assert!(refused(Record::Kernel(1, vec![(5, 1), (0, 1)])));
        assert!(refused(Record::Kernel(1, vec![(5, 1), (u64::MAX, 1)])));
        assert!(refused(Record::Kernel(1, vec![(5, 0)])));
        assert!(refused(Record::Totals(2, Totals::default())));
        assert!(!refused(Record::Accesses(0, vec![row(0)])));
        assert!(refused(Record::Accesses(0, vec![row(1)])));
        assert!(refused(Record::Start(VERSION, SCOPE)));
        assert!(refused(Record::End));
        assert!(refused(Record::Nodes(vec![(0, 1)])));
    }

    #[test]
    fn ticks_are_of_all_cpus_and_in_order() {
        let tick = |time, rows: Vec<_>| Record::Tick(Tick { time, accesses: rows });
        let rows = || vec![vec![row(0)], vec![]];
        assert!(!refused(SCOPE, vec![tick(7, rows()), tick(8, rows())]));
        assert!(!refused(SCOPE, vec![tick(7, rows()), Record::Cut, tick(7, rows())]));
        assert!(refused(SCOPE, vec![tick(7, rows()), tick(7, rows())]));
        assert!(refused(SCOPE, vec![tick(7, vec![vec![row(0)]])]));
        assert!(refused(SCOPE, vec![tick(7, vec![vec![row(1)], vec![]])]));
        let uncounted = Scope { nodes: 0, ..SCOPE };
        assert!(refused(uncounted, vec![tick(7, vec![vec![], vec![]])]));
    }

    #[test]
    fn paths_end_and_add_up() {
        let stacks = |nodes: Vec<_>, kernel, stacks: Vec<_>| {
            let nodes = Record::Nodes(nodes);
            let kernel = Record::Kernel(0, vec![(9, kernel)]);
            refused(STACKS, vec![nodes, kernel, Record::Stacks(stacks), Record::Cut])
        };
        assert!(!stacks(vec![(0, 5), (1, -1)], 7, vec![(0, 5, 2), (0, 1, 2), (2, -4, 3)]));
        assert!(stacks(vec![(2, 5), (1, 1)], 1, vec![(0, 5, 1)]), "a child before its parent");
        assert!(stacks(vec![(1, 5)], 1, vec![(0, 5, 1)]), "its own parent");
        assert!(stacks(vec![(0, 5)], 1, vec![(2, 5, 1)]), "no such node");
        assert!(stacks(vec![(0, 5)], 2, vec![(1, 5, 1), (0, 0, 1)]), "twice the same");
        assert!(stacks(vec![(0, 5)], 1, vec![(1, 5, 1), (0, 1, 0)]), "a count of nothing");
        assert!(stacks(vec![(0, 5)], 2, vec![(1, 5, 1)]), "less than was executed");
        let deep: Vec<_> = (0..MAX_DEPTH as u32).map(|parent| (parent, 1)).collect();
        assert!(!stacks(deep.clone(), 1, vec![(0, 5, 1)]));
        let deeper = [deep, vec![(MAX_DEPTH as u32, 1)]].concat();
        assert!(stacks(deeper, 1, vec![(0, 5, 1)]));
    }

    #[test]
    fn a_file_that_is_no_profile_is_told() {
        assert_eq!(read(b""), Err(ProfileError::Empty));
        assert_eq!(read(&frames(&[Record::Cut])), Err(ProfileError::Empty));
        let newer = frames(&[Record::Start(VERSION + 1, SCOPE)]);
        assert_eq!(read(&newer), Err(ProfileError::Version(VERSION + 1)));
        let scope = Scope { cpus: MAX_CPUS + 1, nodes: 0, stacks: false };
        assert_eq!(
            read(&frames(&[Record::Start(VERSION, scope)])),
            Err(ProfileError::Scope(scope))
        );
    }

    fn row(node: u16) -> Accesses {
        let (privilege, target) = (Privilege::User, Target::Node(node));
        Accesses { privilege, target, loads: 1, stores: 1 }
    }

    fn accesses() -> impl Strategy<Value = Vec<Accesses>> {
        let target = prop_oneof![
            (0..2_u16).prop_map(Target::Node),
            Just(Target::Device),
            Just(Target::Elsewhere)
        ];
        let row = (prop::sample::select(&Privilege::ALL), target, any::<u64>(), any::<u64>());
        let row = row.prop_map(|(privilege, target, loads, stores)| Accesses {
            privilege,
            target,
            loads,
            stores,
        });
        prop::collection::vec(row, 0..4)
    }

    fn cpu() -> impl Strategy<Value = Cpu> {
        let process = (any::<u32>(), any::<[u8; 16]>()).prop_map(|(id, name)| Process { id, name });
        let processes = prop::collection::vec((process, any::<u64>()), 0..4);
        (any::<[u64; 2]>(), processes, accesses()).prop_map(
            |([user, firmware], processes, accesses)| Cpu {
                kernel: vec![],
                totals: Totals { user, firmware, kernel_other: 0 },
                processes,
                accesses,
            },
        )
    }

    fn ticks() -> impl Strategy<Value = Vec<Tick>> {
        let accesses = prop::collection::vec(accesses(), 2);
        let ticks = prop::collection::btree_map(any::<u64>(), accesses, 0..3);
        ticks.prop_map(|ticks| {
            ticks.into_iter().map(|(time, accesses)| Tick { time, accesses }).collect()
        })
    }

    /// A slice whose paths, through any of `nodes`, add up to its kernel instructions.
    fn slice(nodes: u32) -> impl Strategy<Value = Phase> {
        let node = (0..=nodes).prop_map(|node| node.checked_sub(1));
        let address = prop_oneof![Just(BEYOND), any::<u64>()];
        let stacks = prop::collection::btree_map((node, address), 1..u64::MAX >> 8, 0..20);
        (prop::collection::vec(cpu(), 2), ticks(), stacks).prop_map(|(mut cpus, ticks, stacks)| {
            let stacks = stacks.into_iter().map(|((node, address), count)| (node, address, count));
            let stacks: Vec<_> = stacks.collect();
            for &(node, address, count) in &stacks {
                let cpu = &mut cpus[usize::from(node.is_some())];
                match cpu.kernel.last() {
                    Some(last) if last.address >= address => cpu.totals.kernel_other += count,
                    _ => cpu.kernel.push(Executed { address, count }),
                }
            }
            Phase { cpus, ticks, stacks }
        })
    }

    fn profile() -> impl Strategy<Value = Profile> {
        let nodes = prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..10);
        let nodes = nodes.prop_map(|nodes| {
            let numbered = nodes.into_iter().enumerate();
            let site = |(number, (parent, address)): (usize, (prop::sample::Index, _))| {
                let parent = (parent.index(number + 1) as u32).checked_sub(1);
                CallSite { parent, address }
            };
            numbered.map(site).collect::<Vec<_>>()
        });
        nodes.prop_flat_map(|nodes| {
            let slices = prop::collection::vec(slice(nodes.len() as u32), 0..4);
            (Just(nodes), slices, any::<bool>()).prop_map(|(nodes, slices, whole)| Profile {
                scope: Scope { cpus: 2, nodes: 2, stacks: true },
                nodes,
                whole: whole && !slices.is_empty(),
                slices,
            })
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(profile in profile()) {
            prop_assert_eq!(read(&written(&profile)), Ok(profile));
        }

        #[test]
        fn a_torn_end_spares_the_slices_before(profile in profile(), at in any::<prop::sample::Index>()) {
            let bytes = written(&profile);
            match read(&bytes[..at.index(bytes.len())]) {
                Ok(torn) => {
                    prop_assert!(!torn.whole || torn == profile, "only padding was cut off");
                    prop_assert_eq!(&torn.slices[..], &profile.slices[..torn.slices.len()]);
                }
                Err(error) => prop_assert_eq!(error, ProfileError::Empty),
            }
        }

        #[test]
        fn garbage_in_whole_frames_is_survived(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8)) {
            let mut bytes = frames(&[Record::Start(VERSION, STACKS)]);
            for (sequence, payload) in (1..).zip(&payloads) {
                bytes.extend(frame::header(Kind::Profile, sequence, 0, payload));
                bytes.extend(payload);
                bytes.resize(bytes.len().next_multiple_of(frame::ALIGNMENT), 0);
            }
            let _ = read(&bytes);
        }

        #[test]
        fn garbage_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_changed_record_never_breaks_the_promises(
            profile in profile(), number in any::<prop::sample::Index>(),
            place in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let bytes = written(&profile);
            let mut payloads: Vec<_> =
                Frames::new(&bytes).map(|frame| frame.payload.to_vec()).collect();
            let payload = number.get_mut(&mut payloads);
            *place.get_mut(payload) = byte;
            let mut changed = Vec::new();
            for (sequence, payload) in (0..).zip(&payloads) {
                changed.extend(frame::header(Kind::Profile, sequence, 0, payload));
                changed.extend(payload);
                changed.resize(changed.len().next_multiple_of(frame::ALIGNMENT), 0);
            }
            let Ok(read) = read(&changed) else { return Ok(()) };
            for (number, node) in read.nodes.iter().enumerate() {
                prop_assert!(node.parent.is_none_or(|parent| (parent as usize) < number));
            }
            for slice in &read.slices {
                prop_assert!(slice.stacks.is_sorted());
                for (node, ..) in &slice.stacks {
                    prop_assert!(node.is_none_or(|node| (node as usize) < read.nodes.len()));
                }
                let sum = slice.stacks.iter().map(|stack| stack.2).fold(0, u64::saturating_add);
                prop_assert!(!read.scope.stacks || sum == slice.instructions(Privilege::Kernel));
            }
        }
    }
}

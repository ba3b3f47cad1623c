//! Reading a profile. Its bytes are checked as those from a guest are: no number in them is
//! believed before it was compared with its bounds, and memory grows with the bytes that are there.

use super::record::{Record, VERSION};
use super::{Accesses, Cpu, Executed, MAX_CPUS, MAX_NODES, Phase, Profile, Scope, Target};
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
    phase: Phase,
}

impl Reader {
    fn new(scope: Scope) -> Self {
        let profile = Profile { scope, phases: Vec::new(), whole: false };
        Self { profile, phase: empty(scope) }
    }

    /// Takes a record in; none if it makes no sense here.
    fn take(&mut self, record: Record) -> Option<()> {
        if self.profile.whole {
            return None;
        }
        match record {
            Record::Start(..) => return None,
            Record::Kernel(cpu, steps) => kernel(&mut self.cpu(cpu)?.kernel, &steps)?,
            Record::Totals(cpu, totals) => self.cpu(cpu)?.totals = totals,
            Record::Processes(cpu, processes) => self.cpu(cpu)?.processes.extend(processes),
            Record::Accesses(cpu, rows) => {
                let nodes = self.profile.scope.nodes;
                let cpu = self.cpu(cpu)?;
                if !cpu.accesses.is_empty() || !rows.iter().all(|row| is_in(row, nodes)) {
                    return None;
                }
                cpu.accesses = rows;
            }
            Record::Cut => {
                let next = empty(self.profile.scope);
                self.profile.phases.push(std::mem::replace(&mut self.phase, next));
            }
            Record::End => self.profile.whole = true,
        }
        Some(())
    }

    fn cpu(&mut self, number: u16) -> Option<&mut Cpu> {
        self.phase.cpus.get_mut(usize::from(number))
    }
}

fn empty(scope: Scope) -> Phase {
    Phase { cpus: vec![Cpu::default(); usize::from(scope.cpus)] }
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

fn is_in(row: &Accesses, nodes: u16) -> bool {
    nodes > 0 && !matches!(row.target, Target::Node(node) if node >= nodes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record::CHUNK;
    use super::super::{Privilege, Process, Totals, Writer};
    use super::*;
    use crate::frame;

    fn written(profile: &Profile) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, profile.scope).unwrap();
        for phase in &profile.phases {
            writer.phase(phase).unwrap();
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

    const SCOPE: Scope = Scope { cpus: 2, nodes: 1 };

    #[test]
    fn long_lists_take_several_frames() {
        let kernel = (0..CHUNK as u64 + 7).map(|n| Executed { address: n * 3, count: n + 1 });
        let cpu = Cpu { kernel: kernel.collect(), ..Cpu::default() };
        let phase = Phase { cpus: vec![Cpu::default(), cpu] };
        let profile = Profile { scope: SCOPE, phases: vec![phase], whole: true };
        assert_eq!(read(&written(&profile)), Ok(profile));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |record: Record| {
            let bytes = frames(&[Record::Start(VERSION, SCOPE), record]);
            matches!(read(&bytes), Err(ProfileError::Damaged(_)))
        };
        let row = |node| Accesses {
            privilege: Privilege::User,
            target: Target::Node(node),
            loads: 1,
            stores: 1,
        };
        assert!(!refused(Record::Kernel(1, vec![(5, 1), (1, 1)])));
        assert!(refused(Record::Kernel(1, vec![(5, 1), (0, 1)])));
        assert!(refused(Record::Kernel(1, vec![(5, 1), (u64::MAX, 1)])));
        assert!(refused(Record::Kernel(1, vec![(5, 0)])));
        assert!(refused(Record::Totals(2, Totals::default())));
        assert!(!refused(Record::Accesses(0, vec![row(0)])));
        assert!(refused(Record::Accesses(0, vec![row(1)])));
        assert!(refused(Record::Start(VERSION, SCOPE)));
    }

    #[test]
    fn a_file_that_is_no_profile_is_told() {
        assert_eq!(read(b""), Err(ProfileError::Empty));
        assert_eq!(read(&frames(&[Record::Cut])), Err(ProfileError::Empty));
        let newer = frames(&[Record::Start(VERSION + 1, SCOPE)]);
        assert_eq!(read(&newer), Err(ProfileError::Version(VERSION + 1)));
        let scope = Scope { cpus: MAX_CPUS + 1, nodes: 0 };
        assert_eq!(
            read(&frames(&[Record::Start(VERSION, scope)])),
            Err(ProfileError::Scope(scope))
        );
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
        let kernel = prop::collection::btree_map(any::<u64>(), 1..u64::MAX, 0..20);
        let process = (any::<u32>(), any::<[u8; 16]>()).prop_map(|(id, name)| Process { id, name });
        let processes = prop::collection::vec((process, any::<u64>()), 0..4);
        (kernel, any::<[u64; 3]>(), processes, accesses()).prop_map(
            |(kernel, [user, kernel_other, firmware], processes, accesses)| Cpu {
                kernel: kernel
                    .into_iter()
                    .map(|(address, count)| Executed { address, count })
                    .collect(),
                totals: Totals { user, kernel_other, firmware },
                processes,
                accesses,
            },
        )
    }

    fn profile() -> impl Strategy<Value = Profile> {
        let phase = prop::collection::vec(cpu(), 2).prop_map(|cpus| Phase { cpus });
        (prop::collection::vec(phase, 0..4), any::<bool>()).prop_map(|(phases, whole)| Profile {
            scope: Scope { cpus: 2, nodes: 2 },
            phases,
            whole,
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(profile in profile()) {
            prop_assert_eq!(read(&written(&profile)), Ok(profile));
        }

        #[test]
        fn a_torn_end_spares_the_phases_before(profile in profile(), at in any::<prop::sample::Index>()) {
            let bytes = written(&profile);
            match read(&bytes[..at.index(bytes.len())]) {
                Ok(torn) => {
                    prop_assert!(!torn.whole || torn == profile, "only padding was cut off");
                    prop_assert_eq!(&torn.phases[..], &profile.phases[..torn.phases.len()]);
                }
                Err(error) => prop_assert_eq!(error, ProfileError::Empty),
            }
        }

        #[test]
        fn garbage_in_whole_frames_is_survived(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8)) {
            let mut bytes = frames(&[Record::Start(VERSION, SCOPE)]);
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
    }
}

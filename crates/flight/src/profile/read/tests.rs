use proptest::prelude::*;

use super::super::record::CHUNK;
use super::super::{Architecture, BEYOND, Class, Process, Totals, Transfers, Writer};
use super::*;
use crate::frame;

fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, profile.scope).unwrap();
    if let Some(process) = &profile.intruder {
        writer.intruder(process.clone()).unwrap();
    }
    writer.nodes(&profile.nodes).unwrap();
    let classes: Vec<_> = profile.classes.iter().map(|(at, class)| (*at, Some(*class))).collect();
    writer.classes(&classes).unwrap();
    writer.caches(&profile.caches).unwrap();
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

const SCOPE: Scope = Scope {
    arch: Architecture::X86_64,
    cpus: 2,
    nodes: 1,
    stacks: false,
    transfers: true,
    misses: true,
};
const STACKS: Scope = Scope { stacks: true, ..SCOPE };

#[test]
fn long_lists_take_several_frames() {
    let count = CHUNK as u64 + 7;
    let kernel = (0..count).map(|n| Executed { address: n * 3, count: n + 1 });
    let cpu = Cpu { kernel: kernel.collect(), ..Cpu::default() };
    let nodes = (0..count).map(|n| CallSite { parent: None, address: n * 5 });
    let stacks = (0..count).map(|n| PathCount {
        node: (n as u32).checked_sub(1),
        address: u64::MAX - n,
        count: n + 1,
    });
    let slice = Phase { cpus: vec![Cpu::default(), cpu], stacks: stacks.collect(), ticks: vec![] };
    let profile = Profile {
        nodes: nodes.collect(),
        slices: vec![slice],
        classes: (0..count).map(|n| (n * 7, Class::ALL[n as usize % Class::ALL.len()])).collect(),
        whole: true,
        ..Profile::new(STACKS)
    };
    assert_eq!(read(&written(&profile)), Ok(profile));
}

#[test]
fn only_slices_that_end_with_a_cut_are_phases() {
    let slice = |user| {
        let mut slice = Phase { cpus: vec![Cpu::default(); 2], ..Phase::default() };
        slice.cpus[0].totals.user = user;
        slice
    };
    let slices: Vec<_> = (0..5).map(slice).collect();
    let phases = |slices: &[Phase], whole| {
        let profile = Profile { slices: slices.into(), whole, ..Profile::new(SCOPE) };
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
fn invalid_counts_are_errors() {
    let refused = |record: Record| refused(SCOPE, vec![record]);
    assert!(!refused(Record::Kernel(0, vec![(5, 1), (1, 1)])));
    assert!(refused(Record::Kernel(0, vec![(5, 1), (0, 1)])));
    assert!(refused(Record::Kernel(0, vec![(5, 1), (u64::MAX, 1)])));
    assert!(refused(Record::Kernel(0, vec![(5, 0)])));
    assert!(!refused(Record::Accesses(0, vec![row(0)])));
    assert!(refused(Record::Accesses(0, vec![row(1)])));
    assert!(refused(Record::Start(VERSION, SCOPE)));
    assert!(refused(Record::End));
    assert!(refused(Record::Nodes(vec![(0, 1)])));
    let counts = |all, upgrades| Transfers { all, upgrades, ..Transfers::default() };
    let transfers = |steps: &[_]| Record::Transfers(0, steps.to_vec());
    let user = Object::User;
    assert!(!refused(transfers(&[(5, Object::Unknown, counts(2, 2)), (0, user, counts(1, 0))])));
    assert!(refused(transfers(&[(5, user, counts(2, 2)), (0, user, counts(1, 0))])));
    assert!(refused(transfers(&[(5, user, counts(2, 3))])));
    assert!(refused(transfers(&[(5, user, counts(0, 0))])));
    let pairs = |upgrades| Transfers { pairs: 1, ..counts(0, upgrades) };
    assert!(!refused(transfers(&[(5, user, pairs(0))])));
    assert!(refused(transfers(&[(5, user, pairs(1))])));
    assert!(refused(transfers(&[(5, Object::Slab(0, 8), counts(1, 0))])));
    let misses = |steps: &[_]| Record::Misses(0, steps.to_vec());
    let some = Misses { stlb: 1, ..Misses::default() };
    assert!(!refused(misses(&[(5, some), (1, some)])));
    assert!(refused(misses(&[(5, some), (0, some)])));
    assert!(refused(misses(&[(5, Misses::default())])));
    let uncounted = Scope { misses: false, ..SCOPE };
    assert!(self::refused(uncounted, vec![misses(&[(5, some)])]));
}

#[test]
fn a_slice_has_each_cpu_in_order() {
    let refused = |records: Vec<Record>| refused(SCOPE, records);
    assert!(!refused(vec![totals(0), totals(1), totals(0), Record::Cut]));
    assert!(refused(vec![totals(1)]));
    assert!(refused(vec![totals(0), totals(1), totals(2)]));
    assert!(refused(vec![Record::Cut]));
    assert!(refused(vec![totals(0), Record::Cut]));
    assert!(refused(vec![totals(0), totals(1), Record::Cut, totals(1)]));
}

#[test]
fn a_profile_has_one_intruder() {
    let process = Process { id: 7, name: *b"forger\0\0\0\0\0\0\0\0\0\0" };
    let profile = Profile { intruder: Some(process.clone()), ..Profile::new(SCOPE) };
    assert_eq!(read(&written(&profile)), Ok(profile));
    assert!(refused(SCOPE, vec![Record::Intruder(process); 2]));
}

#[test]
fn a_class_is_the_last_one_of_its_address() {
    let fence = Some(Class::Fence);
    let classes = [vec![(9, fence), (5, Some(Class::Locked))], vec![(9, None)]];
    let start = [Record::Start(VERSION, SCOPE)];
    let records = [&start[..], &classes.map(Record::Classes)].concat();
    assert_eq!(read(&frames(&records)).unwrap().classes, [(14, Class::Locked)].into());
    let chunk = |first: i64| {
        let others = std::iter::repeat_n((1, fence), CHUNK - 1);
        Record::Classes([(first, fence)].into_iter().chain(others).collect())
    };
    let mut records: Vec<Record> =
        (0..MAX_CLASSES / CHUNK).map(|it| chunk((it * CHUNK) as i64)).collect();
    assert!(!refused(SCOPE, records.clone()));
    records.push(Record::Classes(vec![(-1, fence)]));
    assert!(refused(SCOPE, records));
}

#[test]
fn slices_and_bytes_have_a_limit() {
    let slice = Phase { cpus: vec![Cpu::default()], ..Phase::default() };
    let scope = Scope { cpus: 1, ..SCOPE };
    let slices =
        |count| Profile { slices: vec![slice.clone(); count], whole: true, ..Profile::new(scope) };
    assert_eq!(read(&written(&slices(MAX_SLICES))), Ok(slices(MAX_SLICES)));
    let beyond = read(&written(&slices(MAX_SLICES + 1)));
    assert!(matches!(beyond, Err(ProfileError::Damaged(_))));
    // The pages are never touched.
    assert_eq!(read(&vec![0; MAX_BYTES + 1]), Err(ProfileError::Long));
}

/// The memory of a profile in bytes.
fn held(profile: &Profile) -> usize {
    fn room<T>(list: &Vec<T>) -> usize {
        list.capacity() * size_of::<T>()
    }
    let slices = profile.slices.iter().map(|slice| {
        let cpus = slice.cpus.iter().map(|cpu| {
            room(&cpu.kernel) + room(&cpu.processes) + room(&cpu.accesses) + room(&cpu.misses)
        });
        let ticks = slice
            .ticks
            .iter()
            .map(|tick| room(&tick.accesses) + tick.accesses.iter().map(room).sum::<usize>());
        let lists = room(&slice.cpus) + room(&slice.ticks) + room(&slice.stacks);
        lists + cpus.sum::<usize>() + ticks.sum::<usize>()
    });
    // A map takes at most twice the size of its entries.
    let classes = 2 * profile.classes.len() * size_of::<(u64, Class)>();
    room(&profile.nodes) + room(&profile.slices) + classes + slices.sum::<usize>()
}

#[test]
fn memory_is_proportional_to_the_bytes() {
    let slice = |cpus: u16, records: &[Record]| -> Vec<Record> {
        let whole = (0..cpus).map(totals).chain(records.iter().cloned());
        whole.chain([Record::Cut]).collect()
    };
    let many = |count: usize, records: Vec<Record>| vec![records; count].concat();
    let counts = (1 << 16) + 1;
    let process = (Process { id: 1, name: [0; 16] }, 1);
    let wide = Scope { cpus: MAX_CPUS, ..STACKS };
    let narrow = Scope { cpus: 1, ..SCOPE };
    let followed = Scope { cpus: 1, ..STACKS };
    let ticks = |cpus: u16, rows: Vec<Accesses>| {
        let tick = |time| Record::Tick(Tick { time, accesses: vec![rows.clone(); cpus.into()] });
        slice(cpus, &(0..65).map(tick).collect::<Vec<_>>())
    };
    let stacks =
        [Record::Kernel(0, vec![(1, counts as u64)]), Record::Stacks(vec![(0, 1, 1); counts])];
    let cases = [
        (wide, many(33, slice(MAX_CPUS, &[]))),
        (narrow, many(1025, slice(1, &[]))),
        (narrow, many(1025, slice(1, &[Record::Kernel(0, vec![(1, 1)])]))),
        (narrow, slice(1, &[Record::Kernel(0, vec![(1, 1); counts])])),
        (narrow, slice(1, &[Record::Processes(0, vec![process; counts])])),
        (narrow, slice(1, &[Record::Accesses(0, vec![row(0); counts])])),
        (
            narrow,
            slice(
                1,
                &[Record::Misses(0, vec![(1, Misses { l1d: 1, ..Misses::default() }); counts])],
            ),
        ),
        (followed, slice(1, &stacks)),
        (followed, vec![Record::Nodes(vec![(0, 1); counts])]),
        (narrow, vec![Record::Classes(vec![(1, Some(Class::Fence)); counts])]),
        (narrow, ticks(1, vec![])),
        (narrow, ticks(1, vec![row(0)])),
        (wide, ticks(MAX_CPUS, vec![])),
        (wide, ticks(MAX_CPUS, vec![row(0)])),
    ];
    for (number, (scope, records)) in cases.into_iter().enumerate() {
        let mut all = vec![Record::Start(VERSION, scope)];
        all.extend(records);
        let bytes = frames(&all);
        let profile = read(&bytes).unwrap_or_else(|error| panic!("case {number}: {error}"));
        let factor = held(&profile) as f64 / bytes.len() as f64;
        println!("case {number}: {factor:.1}");
        assert!(factor <= 32.0, "case {number}: {factor}");
    }
}

#[test]
fn ticks_are_of_all_cpus_and_in_order() {
    let tick = |time, rows: Vec<_>| Record::Tick(Tick { time, accesses: rows });
    let rows = || vec![vec![row(0)], vec![]];
    assert!(!refused(SCOPE, vec![tick(7, rows()), tick(8, rows())]));
    let cut = vec![tick(7, rows()), totals(0), totals(1), Record::Cut, tick(7, rows())];
    assert!(!refused(SCOPE, cut));
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
        refused(STACKS, vec![nodes, kernel, totals(1), Record::Stacks(stacks), Record::Cut])
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
fn a_file_that_is_not_a_profile_is_an_error() {
    assert_eq!(read(b""), Err(ProfileError::Empty));
    assert_eq!(read(&frames(&[Record::Cut])), Err(ProfileError::Empty));
    let newer = frames(&[Record::Start(VERSION + 1, SCOPE)]);
    assert_eq!(read(&newer), Err(ProfileError::Version(VERSION + 1)));
    let scope = Scope { cpus: MAX_CPUS + 1, nodes: 0, ..SCOPE };
    assert_eq!(read(&frames(&[Record::Start(VERSION, scope)])), Err(ProfileError::Scope(scope)));
}

fn totals(cpu: u16) -> Record {
    Record::Totals(cpu, Totals::default())
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
    (any::<[u64; 2]>(), processes, accesses(), transfers(), misses()).prop_map(
        |([user, firmware], processes, accesses, transfers, misses)| Cpu {
            kernel: vec![],
            totals: Totals { user, firmware, kernel_other: 0 },
            processes,
            accesses,
            transfers,
            misses,
        },
    )
}

fn misses() -> impl Strategy<Value = Vec<MissCount>> {
    let counts = (1..u64::MAX, any::<[u64; 4]>()).prop_map(|(l1d, [l2, llc, dtlb, stlb])| Misses {
        l1d,
        l2,
        llc,
        dtlb,
        stlb,
    });
    prop::collection::btree_map(any::<u64>(), counts, 0..5).prop_map(|counts| {
        counts.into_iter().map(|(address, misses)| MissCount { address, misses }).collect()
    })
}

fn transfers() -> impl Strategy<Value = Vec<TransferCount>> {
    let object = prop_oneof![
        Just(Object::Unknown),
        Just(Object::Other),
        any::<u64>().prop_map(Object::PerCpu),
        (0..2_u32, any::<u32>()).prop_map(|(cache, offset)| Object::Slab(cache, offset)),
        any::<(u64, u32, u32)>().prop_map(|(site, size, offset)| Object::Allocated {
            site,
            size,
            offset
        }),
    ];
    let counts = (1..u64::MAX, any::<[u64; 3]>(), any::<u64>()).prop_map(|(all, some, pairs)| {
        let [upgrades, disjoint, remote] = some.map(|it| it % all);
        Transfers { all, upgrades, disjoint, remote, pairs }
    });
    prop::collection::btree_map((any::<u64>(), object), counts, 0..5).prop_map(|counts| {
        let counts = counts.into_iter();
        counts
            .map(|((address, object), transfers)| TransferCount { address, object, transfers })
            .collect()
    })
}

fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    let accesses = prop::collection::vec(accesses(), 2);
    let ticks = prop::collection::btree_map(any::<u64>(), accesses, 0..3);
    ticks.prop_map(|ticks| {
        ticks.into_iter().map(|(time, accesses)| Tick { time, accesses }).collect()
    })
}

/// A slice whose paths add up to its kernel instructions, with any of `nodes`.
fn slice(nodes: u32) -> impl Strategy<Value = Phase> {
    let node = (0..=nodes).prop_map(|node| node.checked_sub(1));
    let address = prop_oneof![Just(BEYOND), any::<u64>()];
    let stacks = prop::collection::btree_map((node, address), 1..u64::MAX >> 8, 0..20);
    (prop::collection::vec(cpu(), 2), ticks(), stacks).prop_map(|(mut cpus, ticks, stacks)| {
        let stacks =
            stacks.into_iter().map(|((node, address), count)| PathCount { node, address, count });
        let stacks: Vec<_> = stacks.collect();
        for &PathCount { node, address, count } in &stacks {
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
        let class = prop::sample::select(Class::ALL.to_vec());
        let classes = prop::collection::btree_map(any::<u64>(), class, 0..9);
        let parts = (Just(nodes), slices, classes, any::<bool>());
        parts.prop_map(|(nodes, slices, classes, whole)| Profile {
            nodes,
            whole: whole && !slices.is_empty(),
            slices,
            classes,
            caches: vec!["a".to_owned(), String::new()],
            ..Profile::new(Scope { nodes: 2, ..STACKS })
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
            for PathCount { node, .. } in &slice.stacks {
                prop_assert!(node.is_none_or(|node| (node as usize) < read.nodes.len()));
            }
            let sum = slice.stacks.iter().map(|stack| stack.count).fold(0, u64::saturating_add);
            prop_assert!(!read.scope.stacks || sum == slice.instructions(Privilege::Kernel));
            prop_assert_eq!(slice.cpus.len(), usize::from(read.scope.cpus));
        }
    }
}

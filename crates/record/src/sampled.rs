//! Turns recorded samples into the sampled profile of each phase. What the guest recorded is
//! untrusted: samples that refer to an unlisted path or process are ignored.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use flight::event::{MAX_FRAMES, MAX_PATHS, MAX_USER_PATHS, Samples, UserPath};
use kernelfiles::kallsyms::Symbols;
use model::{Name, Place, Profile, Sampled, Slice};

use crate::fields::UNKNOWN;
use crate::span::Span;

/// The largest number of counts of a boot. A count is the number of samples of one path in one
/// slice.
const MAX_COUNTS: usize = 16 << 20;

/// The largest number of names of functions and processes in all profiles of a boot.
const MAX_NAMES: usize = 1 << 22;
/// The longest name of a process, in characters; the kernel's `TASK_COMM_LEN` is 16.
const MAX_NAME: usize = 64;
/// The longest name of a function in a program, in characters.
const MAX_FUNCTION: usize = 256;

/// All samples of a boot, as the guest recorded them.
#[derive(Debug, Default)]
pub struct Sampling {
    event: String,
    frequency: u32,
    paths: Vec<Vec<u64>>,
    frames: usize,
    functions: Vec<String>,
    processes: Vec<UserPath>,
    user_frames: usize,
    counts: usize,
    /// Samples by the index of their span. Each slice has the time at which it ended, in
    /// nanoseconds.
    spans: BTreeMap<usize, Vec<(u64, Samples)>>,
}

impl Sampling {
    /// Starts without samples. `event` triggers them; `frequency` is in samples per second for each
    /// CPU.
    pub fn new(event: String, frequency: u32) -> Self {
        Self { event, frequency, ..Self::default() }
    }

    /// Adds the samples of a slice that ended at `time`. `span` is the index of the span in which
    /// they were taken. False if the boot now exceeds a limit.
    pub fn add(&mut self, span: usize, time: u64, mut samples: Samples) -> bool {
        let paths = std::mem::take(&mut samples.paths);
        self.frames += paths.iter().map(Vec::len).sum::<usize>();
        let unsigned = |path: Vec<i64>| path.into_iter().map(i64::cast_unsigned).collect();
        self.paths.extend(paths.into_iter().map(unsigned));
        let functions = std::mem::take(&mut samples.functions);
        self.functions.extend(functions.iter().map(|name| demangled(name)));
        let processes = std::mem::take(&mut samples.processes);
        self.user_frames += processes.iter().map(|it| it.functions.len()).sum::<usize>();
        let short =
            |it: UserPath| UserPath { name: it.name.chars().take(MAX_NAME).collect(), ..it };
        self.processes.extend(processes.into_iter().map(short));
        self.counts += samples.kernel.len() + samples.user.len();
        self.spans.entry(span).or_default().push((time, samples));
        self.paths.len() <= MAX_PATHS
            && self.frames <= MAX_FRAMES
            && self.functions.len() <= MAX_USER_PATHS
            && self.processes.len() <= MAX_USER_PATHS
            && self.user_frames <= MAX_FRAMES
            && self.counts <= MAX_COUNTS
    }

    /// Returns the sampled profile of each phase of each iteration.
    pub fn profiles(&self, spans: &[Span], symbols: &Symbols) -> Vec<Profile> {
        let name = |begin: &u64| symbols.find(*begin).map_or(UNKNOWN, |symbol| &symbol.name);
        let paths: Vec<Vec<&str>> =
            self.paths.iter().map(|path| path.iter().map(name).collect()).collect();
        let modules: BTreeMap<&str, &str> = self
            .paths
            .iter()
            .filter_map(|path| symbols.find(*path.last()?))
            .map(|symbol| (&*symbol.name, &*symbol.module))
            .collect();
        let mut room = MAX_NAMES;
        let spans = spans.iter().enumerate();
        spans.filter_map(|of| self.profile(of, &paths, &modules, &mut room)).collect()
    }

    fn profile(
        &self,
        (place, span): (usize, &Span),
        paths: &[Vec<&str>],
        modules: &BTreeMap<&str, &str>,
        room: &mut usize,
    ) -> Option<Profile> {
        let id = span.phase.as_ref()?;
        let taken = self.spans.get(&place).map_or(&[][..], Vec::as_slice);
        let places = |counts: fn(&Samples) -> &[(u32, u32)]| {
            taken.iter().flat_map(move |(_, samples)| counts(samples))
        };
        // Different addresses can have the same function name, so different paths can become equal.
        let mut kernel: BTreeMap<&[&str], u64> = BTreeMap::new();
        let mut beyond: u64 = 0;
        for (number, samples) in places(|it| &it.kernel) {
            let path = paths.get(*number as usize).filter(|path| !path.is_empty());
            let Some(path) = path else { continue };
            if kernel.contains_key(&**path) || reserve(room, path.len()) {
                let sum = kernel.entry(path).or_default();
                *sum = sum.saturating_add((*samples).into());
            } else {
                beyond = beyond.saturating_add((*samples).into());
            }
        }
        let mut processes: BTreeMap<u32, u64> = BTreeMap::new();
        for (number, samples) in places(|it| &it.user) {
            let Some(path) = self.processes.get(*number as usize) else { continue };
            if processes.contains_key(number) || reserve(room, 1 + path.functions.len()) {
                let sum = processes.entry(*number).or_default();
                *sum = sum.saturating_add((*samples).into());
            } else {
                beyond = beyond.saturating_add((*samples).into());
            }
        }
        let place_of: BTreeMap<&[&str], u32> = kernel.keys().copied().zip(0..).collect();
        let first_process = kernel.len() as u32;
        let process_of: BTreeMap<u32, u32> =
            processes.keys().copied().zip(first_process..).collect();
        let slices = taken.iter().map(|(time, samples)| {
            let kernel = samples.kernel.iter().filter_map(|(number, samples)| {
                Some((*place_of.get(&**paths.get(*number as usize)?)?, *samples))
            });
            let user = samples.user.iter();
            let user =
                user.filter_map(|(number, samples)| Some((*process_of.get(number)?, *samples)));
            Slice { ended: *time, samples: kernel.chain(user).collect() }
        });
        let sum = |of: fn(&Samples) -> u64| {
            taken.iter().fold(0, |sum: u64, (_, samples)| sum.saturating_add(of(samples)))
        };
        let owned = |path: &[&str]| path.iter().map(|&name| name.into()).collect();
        let kernel = kernel.iter().map(|(path, samples)| (Place::Path(owned(path)), *samples));
        let user = processes.iter();
        let user =
            user.map(|(it, samples)| (self.process(&self.processes[*it as usize]), *samples));
        let module = |name: &str| modules.get(name).map_or(Name::default(), |&it| it.into());
        Some(Profile {
            workload: id.workload.clone(),
            iteration: id.iteration,
            phase: id.phase.clone(),
            costs: Profile::sampled_costs(kernel.chain(user), module),
            sampled: Some(Sampled {
                event: self.event.clone(),
                frequency: self.frequency,
                begun: span.begun,
                ended: span.ended,
                lost: sum(|it| it.lost),
                dropped: sum(|it| it.dropped).saturating_add(beyond),
                slices: slices.collect(),
            }),
        })
    }

    fn process(&self, path: &UserPath) -> Place {
        let name = |number: &u32| self.functions.get(*number as usize);
        Place::Process {
            id: path.id,
            name: path.name.as_str().into(),
            functions: path
                .functions
                .iter()
                .filter_map(name)
                .map(|it| it.as_str().into())
                .collect(),
        }
    }
}

/// Returns the first [`MAX_FUNCTION`] characters of a function's name, demangled if it is a Rust
/// name.
fn demangled(name: &str) -> String {
    let mut short = Short(String::new());
    // `{:#}` leaves out the hash. An error means that the name was cut.
    let _ = write!(short, "{:#}", rustc_demangle::demangle(name));
    short.0
}

/// A text of at most [`MAX_FUNCTION`] characters. A short mangled name can stand for a very long
/// one.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_FUNCTION.saturating_sub(self.0.chars().count());
        self.0.extend(text.chars().take(room));
        if room == 0 { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Reserves room for `names` names; false if there is not enough. `room` does not change then.
fn reserve(room: &mut usize, names: usize) -> bool {
    let left = room.checked_sub(names);
    *room = left.unwrap_or(*room);
    left.is_some()
}

#[cfg(test)]
mod tests {
    use model::Totals;
    use proptest::prelude::*;

    use super::*;
    use crate::span::PhaseId;

    const F: i64 = 0x1000;
    const G: i64 = 0x2000;

    fn symbols() -> Symbols {
        Symbols::parse("1000 T f\n2000 t g\t[m]\n3000 T _etext\n")
    }

    fn spans(phases: &[&str]) -> Vec<Span> {
        let span = |(place, phase): (u64, &&str)| Span {
            phase: Some(PhaseId { workload: "w".into(), iteration: 0, phase: (*phase).into() }),
            begun: 100 * place,
            ended: 100 * (place + 1),
        };
        std::iter::once(Span::default()).chain((1..).zip(phases).map(span)).collect()
    }

    #[test]
    fn samples_are_of_the_phase_in_which_they_were_taken() {
        let mut sampling = Sampling::new("cpu-clock".into(), 99);
        let before = Samples { paths: vec![vec![F]], kernel: vec![(0, 50)], ..Samples::default() };
        assert!(sampling.add(0, 99, before));
        let first = Samples {
            paths: vec![vec![F, G], vec![0]],
            functions: vec!["main".into(), "_ZN5guest5touch17h0123456789abcdefE".into()],
            processes: vec![
                UserPath { id: 7, name: "p".into(), functions: vec![0, 1, 9] },
                UserPath { id: 8, name: "q".into(), functions: vec![] },
            ],
            kernel: vec![(1, 2), (2, 1)],
            user: vec![(0, 3), (1, 1), (2, 9)],
            lost: 5,
            dropped: 6,
        };
        assert!(sampling.add(1, 150, first));
        let later = Samples { kernel: vec![(0, 1), (1, 1)], ..Samples::default() };
        assert!(sampling.add(1, 200, later.clone()));
        assert!(sampling.add(2, 300, later));
        let profiles = sampling.profiles(&spans(&["a", "b"]), &symbols());
        let [a, b] = &profiles[..] else { panic!("{profiles:?}") };
        assert_eq!(a.totals(), Totals { user: 4, kernel: 5, firmware: 0 });
        let rows = |of: fn(&Place) -> Option<String>| {
            let rows = a.costs.rows().filter_map(|row| Some((of(row.place)?, row.sum(Some(0)))));
            rows.map(|(name, samples)| format!("{name} {samples}")).collect::<Vec<_>>()
        };
        let functions = rows(|place| match place {
            Place::Function { name, module } => Some(format!("{name} [{module}]")),
            _ => None,
        });
        assert_eq!(functions, ["[unknown] [] 1", "f [] 1", "g [m] 3"]);
        let sampled = a.sampled.as_ref().unwrap();
        assert_eq!((sampled.lost, sampled.dropped, sampled.seconds()), (5, 6, 100e-9));
        assert_eq!(a.since(150).unwrap().totals().kernel, 2);
        let programs = rows(|place| match place {
            Place::Process { id, name, functions } => {
                Some(format!("{id} {name} {}", functions.join(";")))
            }
            _ => None,
        });
        assert_eq!(programs, ["7 p main;guest::touch 3", "8 q  1"]);
        assert_eq!((&*b.phase, b.totals()), ("b", Totals { kernel: 2, ..Totals::default() }));
    }

    #[test]
    fn more_than_an_agent_records_is_refused() {
        let mut sampling = Sampling::default();
        let paths = vec![vec![F]; MAX_PATHS];
        assert!(sampling.add(0, 1, Samples { paths, ..Samples::default() }));
        assert!(!sampling.add(0, 1, Samples { paths: vec![vec![F]], ..Samples::default() }));
        let mut sampling = Sampling::default();
        let paths = vec![vec![F; MAX_FRAMES + 1]];
        assert!(!sampling.add(0, 1, Samples { paths, ..Samples::default() }));
        let functions = vec![String::new(); MAX_USER_PATHS + 1];
        assert!(!Sampling::default().add(0, 1, Samples { functions, ..Samples::default() }));
        let path = UserPath { functions: vec![0; MAX_FRAMES + 1], ..UserPath::default() };
        let processes = vec![path];
        assert!(!Sampling::default().add(0, 1, Samples { processes, ..Samples::default() }));
    }

    #[test]
    fn long_names_of_functions_are_cut() {
        assert_eq!(demangled("_ZN1a1b17h0123456789abcdefE"), "a::b");
        assert_eq!(demangled("memset"), "memset");
        assert_eq!(demangled(&"ä".repeat(1000)), "ä".repeat(MAX_FUNCTION));
    }

    #[test]
    fn paths_without_room_are_counted_as_dropped() {
        let mut sampling = Sampling::new("cpu-clock".into(), 99);
        let paths = vec![vec![F; 2], vec![G; 3]];
        let kernel = vec![(0, 5), (1, 7)];
        sampling.add(1, 150, Samples { paths, kernel, dropped: 1, ..Samples::default() });
        let paths = [vec!["f"; 2], vec!["g"; 3]];
        let spans = spans(&["a"]);
        let profile = sampling.profile((1, &spans[1]), &paths, &BTreeMap::new(), &mut 4).unwrap();
        assert_eq!(profile.totals().total(), 5);
        assert_eq!(profile.sampled.as_ref().unwrap().dropped, 8);
        assert_eq!(profile.since(0).as_ref(), Some(&profile));
    }

    proptest! {
        /// Profiles are consistent, whatever the guest recorded.
        #[test]
        fn hostile_samples_are_survived(
            paths in prop::collection::vec(prop::collection::vec(any::<i64>(), 0..4), 0..4),
            kernel in prop::collection::vec((0..6u32, any::<u32>()), 0..6),
            user in prop::collection::vec((0..3u32, any::<u32>()), 0..6),
            names in prop::collection::vec("_R.*|_ZN.*", 0..2),
            numbers in prop::collection::vec(0..3u32, 0..4),
        ) {
            let processes = vec![
                UserPath { id: 1, name: "a".into(), functions: numbers },
                UserPath { id: 2, name: "\n".into(), functions: Vec::new() },
            ];
            let functions = names;
            let samples =
                Samples { paths, functions, processes, kernel, user, lost: u64::MAX, dropped: 1 };
            let mut sampling = Sampling::new("x".into(), 1);
            sampling.add(1, 150, samples);
            for profile in sampling.profiles(&spans(&["a"]), &symbols()) {
                prop_assert_eq!(profile.since(0).unwrap(), profile);
            }
        }
    }
}

//! Profiles in the formats that flame graph tools read. Exact profiles have instructions, sampled ones have
//! samples.
//!
//! In both formats the outermost frame says who executes: `kernel`, `firmware`, or a process. Only samples
//! distinguish the functions of a process. [`frame`] replaces characters that have a meaning for these
//! tools; symbols keep the suffixes that compilers add. If calls were not followed, a kernel path is a
//! single function. Instructions of no function or process have a frame in brackets, so the counts add up
//! to all instructions.

use std::collections::BTreeMap;

use model::{Name, Place, Profile, USER, program_frames};

const KERNEL: &str = "kernel";
const FIRMWARE: &str = "firmware";
const OTHER_PROCESSES: &str = "[other_processes]";
/// Most samples of a phase that are printed one by one; a guest takes hours for so many. With more, equal
/// samples are printed as one sample with a larger period.
const MOST_SAMPLES: u64 = 1 << 22;
/// The event of perf whose period is a time, in nanoseconds.
const CLOCK: &str = "cpu-clock";
/// Printed at the end of a perf script of sampled profiles. Every reader skips comments there.
const SAMPLED: &str = "\
# Written by faultline from samples. Addresses, offsets and CPUs are made up. Times are those of the sampler's readings,
# between which samples are spread evenly.
";
/// Printed at the end of a perf script of exact profiles.
const MADE_UP: &str = "\
# Written by faultline from counts of instructions: one sample a path, its period the instructions.
# Addresses, offsets and CPUs are made up. Times are sums of instructions, one as a nanosecond.
";

/// Returns instructions as Brendan Gregg's collapsed stacks. Each line is a path: its frames, the outermost
/// first, separated by `;`, then a space and the count. Counts are sums over `profiles`; lines are sorted.
pub fn collapsed<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> String {
    let mut lines = BTreeMap::<String, u128>::new();
    for (sample, instructions) in samples(profiles) {
        let line = format!("{};{}", sample.who, sample.frames.join(";"));
        *lines.entry(line).or_default() += instructions;
    }
    lines.iter().map(|(path, count)| format!("{path} {count}\n")).collect()
}

/// Returns profiles as `perf script` prints samples. Exact profiles have a sample for each path and
/// process, with the instructions as its period. The collapsers of FlameGraph (stackcollapse-perf.pl) and
/// inferno weigh samples by their period. Speedscope and the Firefox Profiler open the text, but count
/// every sample as one; [`collapsed`] keeps the weights for them. Sampled profiles are printed sample by
/// sample, so that every tool weighs them correctly.
pub fn perf_script<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> String {
    let profiles: Vec<&Profile> = profiles.into_iter().collect();
    let mut text = String::new();
    let mut passed: u128 = 0;
    for profile in profiles.iter().filter(|it| it.sampled.is_some()) {
        print_samples(profile, &mut text);
    }
    if !text.is_empty() {
        return text + SAMPLED;
    }
    for (sample, instructions) in samples(profiles) {
        sample.print(passed, instructions, "instructions", &mut text);
        passed += instructions;
    }
    text + MADE_UP
}

/// Prints the samples of a sampled profile. They are spread over the slice in which they were taken.
fn print_samples(profile: &Profile, text: &mut String) {
    let Some(sampled) = &profile.sampled else { return };
    let event = frame(&sampled.event);
    let period = match sampled.frequency {
        1.. if event == CLOCK => 1_000_000_000 / u128::from(sampled.frequency),
        _ => 1,
    };
    let paths = kernel_paths(profile).into_iter();
    let mut all: Vec<Sample> =
        paths.map(|(frames, _)| Sample { who: KERNEL.to_owned(), id: 0, frames }).collect();
    all.extend(profile.costs.places().iter().filter_map(|place| match place {
        Place::Process { id, name, functions } => {
            Some(Sample { who: process_frame(name), id: *id, frames: user_path(functions) })
        }
        _ => None,
    }));
    let all_samples = sampled.slices.iter().flat_map(|slice| &slice.samples);
    let is_short = all_samples.map(|(_, samples)| u64::from(*samples)).sum::<u64>() <= MOST_SAMPLES;
    let mut begun = u128::from(sampled.begun);
    for slice in &sampled.slices {
        let ended = u128::from(slice.ended).max(begun);
        let times = |samples: u32| if is_short { samples } else { samples.min(1) };
        let count: u128 =
            slice.samples.iter().map(|(_, samples)| u128::from(times(*samples))).sum();
        let own = slice.samples.iter().filter_map(|(place, samples)| {
            let weight = u128::from(*samples / times(*samples).max(1));
            let times = times(*samples) as usize;
            Some(std::iter::repeat_n((all.get(*place as usize)?, weight), times))
        });
        for ((sample, weight), number) in own.flatten().zip(0..) {
            let time = begun + (ended - begun) * number / count;
            sample.print(time, period * weight, &event, text);
        }
        begun = ended;
    }
}

/// A path, and who executes it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Sample {
    who: String,
    /// The process ID; 0 for the kernel.
    id: u32,
    /// The frames, the outermost first. There is at least one.
    frames: Vec<String>,
}

impl Sample {
    /// Prints the sample as `perf script` does. `time` is in nanoseconds.
    fn print(&self, time: u128, period: u128, event: &str, text: &mut String) {
        let Self { who, id, frames } = self;
        let object = if who == KERNEL { "[kernel.kallsyms]" } else { who };
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        text.push_str(&format!("{who} {id:>5} [000] {seconds}.{rest:09}: {period:>10} {event}:\n"));
        for frame in frames.iter().rev() {
            text.push_str(&format!("\t{:>16} {frame}+0x0 ({object})\n", 0));
        }
        text.push('\n');
    }
}

/// Returns all paths of `profiles` with their instructions. Paths without instructions are left out.
fn samples<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> BTreeMap<Sample, u128> {
    let mut samples = BTreeMap::new();
    let mut add = |who: &str, id, frames: Vec<String>, instructions: u128| {
        if instructions > 0 {
            *samples.entry(Sample { who: frame(who), id, frames }).or_default() += instructions;
        }
    };
    for profile in profiles {
        let all = profile.totals();
        let mut kernel = u128::from(all.kernel);
        for (path, instructions) in kernel_paths(profile) {
            kernel = kernel.saturating_sub(instructions);
            add(KERNEL, 0, path, instructions);
        }
        add(KERNEL, 0, vec!["[other_functions]".into()], kernel);
        let mut user = u128::from(all.user);
        let cost = profile.costs.number(profile.main_cost());
        for row in profile.costs.rows() {
            let Place::Process { id, name, functions } = row.place else { continue };
            let sum = row.sum(cost);
            user = user.saturating_sub(sum);
            add(&process_frame(name), *id, user_path(functions), sum);
        }
        add(OTHER_PROCESSES, 0, vec![USER.into()], user);
        add(FIRMWARE, 0, vec!["[firmware]".into()], all.firmware.into());
    }
    samples
}

/// Returns the paths in the kernel, the outermost function first. They are single functions if calls were
/// not followed.
fn kernel_paths(profile: &Profile) -> Vec<(Vec<String>, u128)> {
    let cost = profile.costs.number(profile.main_cost());
    let has_paths = profile.costs.places().iter().any(|it| matches!(it, Place::Path(_)));
    let paths = profile.costs.rows().filter_map(|row| {
        let path = match row.place {
            Place::Path(names) if names.is_empty() => vec![frame("")],
            Place::Path(names) => names.iter().map(|name| frame(name)).collect(),
            Place::Function { name, .. } if !has_paths => vec![frame(name)],
            _ => return None,
        };
        Some((path, row.sum(cost)))
    });
    paths.collect()
}

/// Returns the outermost frame of a process. A program named `kernel` or `firmware` gets another name.
fn process_frame(name: &str) -> String {
    match name {
        KERNEL | FIRMWARE => format!("{name}_"),
        name => frame(name),
    }
}

/// Returns a path in user mode, the outermost function first.
fn user_path(functions: &[Name]) -> Vec<String> {
    program_frames(functions).map(frame).collect()
}

/// Returns `name` as a frame. Letters, digits and `_.:@$/[]-` stay, everything else becomes `_`, because
/// tools use other characters to separate frames, counts, arguments, offsets and inlined functions. Symbols
/// of a kernel have only characters that stay. Tools replace `[unknown]` by the name of its object, so it
/// is renamed.
pub(crate) fn frame(name: &str) -> String {
    let plain = |letter: char| match letter {
        '_' | '.' | ':' | '@' | '$' | '/' | '[' | ']' | '-' => letter,
        _ if letter.is_ascii_alphanumeric() => letter,
        _ => '_',
    };
    match name {
        "" => "_".to_owned(),
        "[unknown]" => "[unknown_function]".to_owned(),
        name => name.chars().map(plain).collect(),
    }
}

#[cfg(test)]
mod tests {
    use model::{ALL_CPUS, Cell, Cost, CostTable, INSTRUCTIONS, Privilege, Sampled, Slice};
    use proptest::prelude::*;

    use super::*;

    /// Builds a profile of paths, processes with IDs, and functions. The totals of kernel and user are
    /// larger by 3 each.
    fn profile(
        stacks: &[(&[&str], u64)],
        processes: &[(&str, u32, u64)],
        functions: &[(&str, u64)],
    ) -> Profile {
        let mut costs = CostTable::new([Cost::new(INSTRUCTIONS)]);
        let [mut user, mut kernel] = [3_u64; 2];
        for &(functions, instructions) in stacks {
            let path = functions.iter().map(|&name| name.into()).collect();
            costs.push(Place::Path(path), [Cell::new(0, ALL_CPUS, instructions)]);
            kernel = kernel.saturating_add(instructions);
        }
        for &(name, id, instructions) in processes {
            let process = Place::Process { id, name: name.into(), functions: Vec::new() };
            costs.push(process, [Cell::new(0, 0, instructions)]);
            user = user.saturating_add(instructions);
        }
        for &(name, instructions) in functions {
            let function = Place::Function { name: name.into(), module: "".into() };
            costs.push(function, [Cell::new(0, 0, instructions)]);
            kernel = kernel.saturating_add(instructions);
        }
        let all = [Privilege::User, Privilege::Kernel, Privilege::Firmware].map(Place::All);
        for (place, instructions) in all.into_iter().zip([user, kernel, 3]) {
            costs.push(place, [Cell::new(0, 0, instructions)]);
        }
        Profile { costs, ..Profile::default() }
    }

    /// Returns the collapsed stacks of a perf script, sorted. They are read as the collapsers of FlameGraph
    /// read them: a sample has a line with the command before `PID [CPU] TIME:` and the period after it,
    /// then a line for each frame, the innermost first, in which the name is between the address and the
    /// offset.
    fn collapsed_by_reading(script: &str) -> String {
        let mut sums = BTreeMap::<String, u128>::new();
        for sample in script.split("\n\n").filter(|it| !it.starts_with('#')) {
            let mut lines = sample.lines();
            let (head, event) = lines.next().unwrap().rsplit_once(": ").unwrap();
            let words: Vec<&str> = head.split_whitespace().collect();
            let [who, pid, cpu, _] = words[..] else { panic!("{head}") };
            assert!(pid.parse::<u32>().is_ok() && cpu == "[000]", "{head}");
            let period: u128 =
                event.trim().strip_suffix(" instructions:").unwrap().parse().unwrap();
            let names = lines.map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let [address, symbol, object] = words[..] else { panic!("{line}") };
                assert!(
                    address == "0" && object.starts_with('(') && object.ends_with(')'),
                    "{line}"
                );
                symbol.strip_suffix("+0x0").unwrap()
            });
            let mut frames: Vec<&str> = names.collect();
            frames.push(who);
            frames.reverse();
            *sums.entry(frames.join(";")).or_default() += period;
        }
        let lines = sums.iter().map(|(path, sum)| format!("{path} {sum}\n"));
        in_order(&lines.collect::<String>())
    }

    fn in_order(text: &str) -> String {
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    #[test]
    fn paths_processes_and_remainders_add_up() {
        let profiles = [
            profile(
                &[(&["asm_exc_page_fault", "handle_mm_fault.isra.0"], 70), (&["schedule"], 5)],
                &[("numa01", 7, 10), ("numa01", 8, 10), ("V8 Worker", 9, 1), ("kernel", 10, 2)],
                &[],
            ),
            profile(&[], &[], &[("schedule", 4), ("memset", 0)]),
        ];
        let expected = "\
            V8_Worker;[user] 1\n\
            [other_processes];[user] 6\n\
            firmware;[firmware] 6\n\
            kernel;[other_functions] 6\n\
            kernel;asm_exc_page_fault;handle_mm_fault.isra.0 70\n\
            kernel;schedule 9\n\
            kernel_;[user] 2\n\
            numa01;[user] 20\n";
        assert_eq!(collapsed(&profiles), expected);
    }

    #[test]
    fn a_sample_is_printed_as_perf_does() {
        let processes = [("numa01", 77, 5), ("numa01", 78, 6)];
        let unknown = profile(&[(&["a", "b"], 4_000_000_000)], &processes, &[]);
        let mut costs = CostTable::new([Cost::new(INSTRUCTIONS)]);
        for row in unknown.costs.rows() {
            let mut place = row.place.clone();
            if let Place::Process { id: 78, functions, .. } = &mut place {
                *functions = vec!["main".into(), "touch<T>".into()];
            }
            costs.push(place, row.cells.iter().copied());
        }
        let profiles = [Profile { costs, ..unknown }];
        let script = perf_script(&profiles);
        let expected = "\
kernel     0 [000] 0.000000009: 4000000000 instructions:
\t               0 b+0x0 ([kernel.kallsyms])
\t               0 a+0x0 ([kernel.kallsyms])

numa01    77 [000] 4.000000009:          5 instructions:
\t               0 [user]+0x0 (numa01)

numa01    78 [000] 4.000000014:          6 instructions:
\t               0 touch_T_+0x0 (numa01)
\t               0 main+0x0 (numa01)

";
        assert!(script.contains(expected), "{script}");
    }

    #[test]
    fn a_sampled_profile_is_printed_sample_by_sample() {
        let path = |names: &[&str]| Place::Path(names.iter().map(|&it| it.into()).collect());
        let process = Place::Process { id: 77, name: "numa01".into(), functions: Vec::new() };
        let taken = [(path(&["a", "b"]), 3), (path(&["c"]), 1), (process, 1)];
        let costs = Profile::sampled_costs(taken, |_| "".into());
        let mut sampled = Profile { costs, ..Profile::default() };
        sampled.sampled = Some(Sampled {
            event: "cpu-clock".into(),
            frequency: 100,
            begun: 1_000_000_000,
            ended: 3_000_000_000,
            slices: vec![
                Slice { ended: 2_000_000_000, samples: vec![(0, 2), (1, 1), (2, 1)] },
                Slice { ended: 3_000_000_000, samples: vec![(0, 1), (9, 1)] },
            ],
            ..Sampled::default()
        });
        let script = perf_script([&sampled]);
        let heads: Vec<&str> = script.lines().filter(|line| line.contains("cpu-clock:")).collect();
        assert_eq!(
            heads,
            [
                "kernel     0 [000] 1.000000000:   10000000 cpu-clock:",
                "kernel     0 [000] 1.250000000:   10000000 cpu-clock:",
                "kernel     0 [000] 1.500000000:   10000000 cpu-clock:",
                "numa01    77 [000] 1.750000000:   10000000 cpu-clock:",
                "kernel     0 [000] 2.000000000:   10000000 cpu-clock:",
            ]
        );
        // Equal samples are printed once, spread over the slice. Those that were never taken are not printed.
        let slices = &mut sampled.sampled.as_mut().unwrap().slices;
        slices[0].samples = vec![(0, u32::MAX), (1, 0), (2, 1)];
        slices[1].samples = vec![(0, 0), (1, 0)];
        let huge = perf_script([&sampled]);
        let heads: Vec<&str> = huge.lines().filter(|line| line.contains("cpu-clock:")).collect();
        assert_eq!(
            heads,
            [
                "kernel     0 [000] 1.000000000: 42949672950000000 cpu-clock:",
                "numa01    77 [000] 1.500000000:   10000000 cpu-clock:",
            ]
        );
        let first = "\t               0 b+0x0 ([kernel.kallsyms])\n\t               0 a+0x0";
        assert_eq!(script.matches(first).count(), 3);
        assert_eq!(collapsed([&sampled]), "kernel;a;b 3\nkernel;c 1\nnuma01;[user] 1\n");
    }

    #[test]
    fn without_instructions_there_are_no_stacks() {
        assert_eq!(collapsed(&[]), "");
        assert_eq!(perf_script(&[]), MADE_UP);
    }

    #[test]
    fn hostile_names_are_one_frame_each() {
        let names = ["<script>", "a;b", "a b 7", "(x)", "f+0x1f", "x->y", "", "\n\t12 f (z)", "#"];
        let processes = names.map(|name| (name, 5, 2));
        let paths: Vec<_> = names.iter().map(std::slice::from_ref).map(|path| (path, 9)).collect();
        let profiles = [profile(&paths, &processes, &[])];
        let collapsed = collapsed(&profiles);
        for line in collapsed.lines() {
            assert_eq!((line.matches(';').count(), line.matches(' ').count()), (1, 1), "{line}");
        }
        assert_eq!(collapsed_by_reading(&perf_script(&profiles)), in_order(&collapsed));
    }

    proptest! {
        /// A perf script keeps the counts of collapsed stacks.
        #[test]
        fn a_perf_script_holds_what_is_collapsed(
            stacks in prop::collection::vec(
                (prop::collection::vec("[a-c_.;( )>+-]{0,3}|\\PC{0,4}", 0..4), 0..u64::MAX / 64), 0..8),
            processes in prop::collection::vec(("[a-c 1]{0,3}|\\PC{0,6}", 0..3u32, 0..9u64), 0..4),
        ) {
            let paths: Vec<Vec<&str>> =
                stacks.iter().map(|(path, _)| path.iter().map(|it| &**it).collect()).collect();
            let stacks: Vec<_> = paths.iter().zip(&stacks).map(|(it, (_, n))| (&**it, *n)).collect();
            let processes: Vec<_> = processes.iter().map(|(name, id, n)| (&**name, *id, *n)).collect();
            let profiles = [profile(&stacks, &processes, &[])];
            let collapsed = collapsed(&profiles);
            prop_assert_eq!(collapsed_by_reading(&perf_script(&profiles)), in_order(&collapsed));
            let counted: u128 = collapsed
                .lines()
                .map(|line| line.rsplit(' ').next().unwrap().parse::<u128>().unwrap())
                .sum();
            prop_assert_eq!(counted, u128::from(profiles[0].totals().total()));
        }
    }
}

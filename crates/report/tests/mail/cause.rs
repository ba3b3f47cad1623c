//! The cause in a mail.

#[path = "../explain/kernels.rs"]
pub mod kernels;

use code::CodeDifference;
use compare::{
    Asked, BuildDifference, Difference, Divided, Explanation, FunctionByKernel, Headline, Holder,
    KernelThread, Reason, Section, Subject,
};
use model::{INSTRUCTIONS, Millis, WorkloadUse};

use super::*;

/// The headline of a phase that spent 1000 instructions. The function of this name holds its change.
fn headline(phase: &str, new: f64, name: Option<&str>) -> Headline {
    let holder = |name: &str| Holder {
        name: name.into(),
        inclusive: true,
        within: None,
        instructions: [2_369_514.0, 5_716_350.0],
        without_loops: None,
        entries: Some([1.0, 1.0]),
        share: 1.0,
        parts: Vec::new(),
        parts_per_entry: true,
        callee: None,
        moved: None,
        inner: None,
    };
    let kernel = Difference { base: 1000.0, new, floor: Some(10.0) };
    common::headline(phase, kernel, name.map(holder))
}

#[test]
fn the_function_behind_a_verdict_is_named() {
    let headlines =
        [headline("protect", 2400.4, Some("change_protection")), headline("end", 900.0, None)];
    let explained = |variant: &str| Explained {
        workload: "mprotect".into(),
        variant: variant.into(),
        headlines: headlines.to_vec(),
        ..Explained::default()
    };
    let mut case = two(Mode::Exact, 1.2);
    assert!(!case.mail(|_| {}).0.contains("\nPhase "));
    case.explained = vec![explained("6.12")];
    let (mail, _) = case.mail(|_| {});
    let said = "Phase protect: 140.04 % more kernel instructions, 100.0 % of the change in change_protection \
                and what it calls: 2,369,514 before, 5,716,350 now (141.25 % more); 1 entry.";
    let mut parts = mail.split("\n\n").map(common::words);
    assert!(parts.any(|part| part == said) && !mail.contains("Phase end"), "{mail}");
    case.explained.push(explained("7.3"));
    let (mail, _) = case.mail(|_| {});
    assert!(mail.contains("\n6.12: Phase") && !mail.contains("7.3: Phase"), "{mail}");
    case.explained[1].headlines[0].function.as_mut().unwrap().name = "other".into();
    let (mail, _) = case.mail(|_| {});
    assert!(mail.contains("\n7.3: Phase protect: 140.04 % more"), "{mail}");
    let headlines = report::headlines(&case.explained);
    assert!(headlines.contains("\n7.3: Phase protect: 140.04 % more"), "{headlines}");
    assert!(report::headlines(&case.explained[..1]).starts_with("Phase protect: 140.04 % more"));
}

#[test]
fn the_phases_with_the_largest_changes_are_explained() {
    let mut case = two(Mode::Exact, 1.2);
    let timer = "asm_sysvec_apic_timer_interrupt";
    let phases = [("small", 1100.0, "a"), ("wait", 1300.0, timer), ("large", 2000.0, "b")];
    let headlines = phases.map(|(phase, new, name)| headline(phase, new, Some(name)));
    let explained = Explained { headlines: headlines.to_vec(), ..Explained::default() };
    case.explained = vec![explained.clone()];
    let words = common::words(&case.mail(|_| {}).0);
    assert!(!words.contains("Phase small"), "{words}");
    let [wait, large] = ["Phase wait: 30.00 % more", "Phase large: 100.00 % more"]
        .map(|said| words.find(said).unwrap_or_else(|| panic!("{words}")));
    assert!(large < wait && words.contains("Ticks interrupt by guest time"), "{words}");
    case.explained[0].headlines.remove(1);
    assert!(!case.mail(|_| {}).0.contains("Ticks interrupt"));
}

/// A change between two kernels. The code of one function differs.
pub fn explained() -> Explained {
    let used = WorkloadUse::new(common::manifest(), 1, Millis(1));
    let variants = ["6.1", "6.12"].map(variant);
    let (old, new) = (kernels::old(), kernels::new());
    let columns = columns(&variants, &[&old, &new]);
    let explanation = compare::explain(&columns[0], &columns[1], &used, 5, INSTRUCTIONS);
    let same = std::collections::BTreeSet::from(["vmstat_update".to_owned()]);
    let explanation = explanation
        .with_code(Ok(CodeDifference { functions: vec![common::changed(kernels::PLANTED)], same }));
    Explained { explanation, plain: true, ..Explained::default() }
}

#[test]
fn how_kernels_were_built_and_what_code_differs_is_said() {
    let mut case = two(Mode::Exact, 1.2);
    let open = "What the source alone changed was not measured (`try --split`).";
    let words = |case: &Case, builds: &[BuildDifference]| {
        let change = |comparison: &mut Comparison| comparison.notes.builds = builds.to_vec();
        common::words(&case.mail(change).0)
    };
    assert!(!words(&case, &[]).contains("the source alone"));
    case.explained = vec![explained()];
    let said = format!(
        "The code of 1 of the 2 functions executed differs: {}, 577,689 entries before",
        kernels::PLANTED
    );
    assert!(words(&case, &[]).contains(&said), "{}", words(&case, &[]));
    let compilers = Some(["gcc-12".into(), "gcc-14".into()]);
    let build = BuildDifference {
        variant: "6.12".into(),
        compilers,
        hz: None,
        preemption: None,
        checks: Default::default(),
        options: 3,
        of_both: 2,
    };
    let text = words(&case, &[build]);
    let said = "6.12 was also built differently: the compiler is gcc-14 instead of gcc-12; 3";
    assert!(text.contains(said) && text.contains(open), "{text}");
}

/// The total is the same on both sides.
#[test]
fn parts_that_offset_each_other_are_named() {
    let mut it = explained();
    let used = WorkloadUse::new(common::manifest(), 1, Millis(1));
    let variants = ["6.1", "6.12"].map(variant);
    let old = kernels::old();
    let columns = columns(&variants, &[&old, &old]);
    it.explanation = compare::explain(&columns[0], &columns[1], &used, 5, INSTRUCTIONS);
    let total = it.explanation.section(None).unwrap().totals.kernel.base;
    let reason = |name: &str, change: f64| Reason {
        name: name.into(),
        cost: Difference { base: total / 2.0, new: total / 2.0 + change, floor: Some(1.0) },
    };
    it.explanation.reasons =
        Some(vec![reason("system call a", 0.02 * total), reason("interrupt b", -0.001 * total)]);
    let said = common::words(&report::headlines(&[it.clone()]));
    assert!(said.contains("changed beyond luck, the total did not: system call a +"), "{said}");
    assert!(!said.contains("interrupt b"), "{said}");
    it.explanation.reasons = Some(vec![reason("interrupt b", -0.001 * total)]);
    assert_eq!(report::headlines(&[it]), "");
}

#[test]
fn functions_that_wait_for_a_lock_are_named() {
    let mut it = explained();
    let section = it.explanation.phases.iter_mut().find(|it| it.phase.as_deref() != Some(""));
    let section = section.unwrap();
    let phase = section.phase.clone().unwrap();
    let largest = section.contributions.first_mut().unwrap();
    largest.subject =
        Subject::Function { name: "rwsem_down_read_slowpath".into(), module: String::new() };
    let entries = &mut largest.calls.as_mut().unwrap().entries;
    (entries.base, entries.new) = (9414.0, 9.0);
    it.headlines = vec![headline(&phase, 2000.0, None)];
    let said = |it: &Explained| common::words(&report::headlines(std::slice::from_ref(it)));
    let words =
        "entries of functions that wait for a lock: rwsem_down_read_slowpath 9,414 before, 9 now.";
    assert!(said(&it).contains(words), "{}", said(&it));
    let section = it.explanation.phases.iter_mut().find(|it| it.phase.as_deref() == Some(&phase));
    let entries = &mut section.unwrap().contributions[0].calls.as_mut().unwrap().entries;
    (entries.base, entries.new) = (90.0, 9.0);
    assert!(!said(&it).contains("wait for a lock"));
}

#[test]
fn loops_that_a_real_machine_does_not_run_are_named() {
    let mut it = explained();
    let section = it.explanation.phases.iter_mut().find(|it| it.phase.as_deref() != Some(""));
    let section = section.unwrap();
    let phase = section.phase.clone().unwrap();
    let largest = section.contributions.first_mut().unwrap();
    let Subject::Function { name, .. } = &mut largest.subject else { panic!("{largest:?}") };
    *name = "clear_page_orig".into();
    it.headlines = vec![headline("other", 2000.0, None)];
    assert!(!report::headlines(&[it.clone()]).contains("fast string instructions"));
    it.headlines = vec![headline(&phase, 2000.0, None)];
    let said = common::words(&report::headlines(&[it]));
    let words = format!(
        "Phase {phase}: loops that copy and clear memory (clear_page_orig) take 44,999,269 instructions before, 54,627,686 now: they clear more pages. A \
         real machine usually does long ones by fast string instructions. Without them: "
    );
    assert!(said.contains(&words), "{said}");
}

fn section_of<'a>(it: &'a Explained, phase: &str) -> &'a Section {
    it.explanation.section(Some(phase)).unwrap()
}

#[test]
fn the_instructions_of_ibt_are_counted() {
    let mut it = explained();
    let section = it.explanation.phases.iter_mut().find(|it| it.phase.as_deref() != Some(""));
    let section = section.unwrap();
    let phase = section.phase.clone().unwrap();
    let change = section.totals.kernel.change();
    it.headlines = vec![headline(&phase, 2000.0, None)];
    let said = |it: &Explained| common::words(&report::headlines(std::slice::from_ref(it)));
    assert!(!said(&it).contains("IBT"));
    let section = it.explanation.phases.iter_mut().find(|it| it.phase.as_ref() == Some(&phase));
    let largest = section.unwrap().contributions.first_mut().unwrap();
    let entries = &mut largest.calls.as_mut().unwrap().entries;
    // Its own entries are too small a part of the change to be named.
    (entries.base, entries.new) = (change / 2.0, change / 4.0);
    let entries = *entries;
    largest.instrumentation.gained.insert(code::IBT);
    let base = section_of(&it, &phase).totals.kernel.base;
    let without = |entries: f64, base: f64| 100.0 * (change - entries) / base;
    let words = |entries: f64, more: &str, base: f64| {
        format!(
            "Phase {phase}: the endbr64 of IBT, one at each entry, is {} {more}, {:.1} % of the change; without it: {:.2} % \
             more.",
            model::grouped(&format!("{:.0}", entries.abs())),
            100.0 * entries / change,
            without(entries, base)
        )
    };
    let gained = words(entries.new, "more", base);
    assert!(said(&it).contains(&gained), "{gained}: {}", said(&it));
    let mut case = two(Mode::Exact, 1.2);
    let mut of_subject = section_of(&it, &phase).clone();
    of_subject.phase = Some("System-NUMA01".into());
    case.explained = vec![Explained {
        workload: "autonuma".into(),
        variant: "6.12".into(),
        explanation: Explanation { phases: vec![of_subject], ..it.explanation.clone() },
        ..it.clone()
    }];
    let subject = case.subject(|it| judge(it, Verdict::Regression, EVIDENCE));
    let in_subject = format!("({:.1} % more without endbr64)", without(entries.new, base));
    assert!(subject.contains(&in_subject), "{subject}");
    let section = it.explanation.phases.iter_mut().find(|it| it.phase.as_ref() == Some(&phase));
    let largest = section.unwrap().contributions.first_mut().unwrap();
    std::mem::swap(&mut largest.instrumentation.gained, &mut largest.instrumentation.lost);
    let lost = words(-entries.base, "fewer", base - entries.base);
    assert!(said(&it).contains(&lost), "{lost}: {}", said(&it));
    // Another cost has no such instructions.
    it.explanation.cost.name = "cr3-writes".into();
    assert!(!said(&it).contains("IBT"));
}

#[test]
fn functions_are_given_in_all_kernels_of_a_split() {
    let mut case = two(Mode::Exact, 1.2);
    let headline = headline("run", 2000.0, Some("change_protection"));
    let holder = headline.function.clone().unwrap();
    let kernels = [("6.1", 10e6), ("6.12 as 6.1", 20e6), ("6.1 as 6.12", 12e6), ("6.12", 22e6)];
    let kernels = kernels.map(|(name, cost)| (name.to_owned(), cost)).into();
    let by_kernel = vec![FunctionByKernel { phase: "run".into(), holder, kernels }];
    case.explained = vec![Explained { by_kernel, ..explained() }];
    let text = common::words(&case.mail(|_| {}).0);
    let said = "Phase run, change_protection and what it calls: 10,000,000 in 6.1.174, 20,000,000 in 6.12 as \
                6.1.174, 12,000,000 in 6.1.174 as 6.12, 22,000,000 in 6.12.";
    assert!(text.contains(said), "{text}");
}

#[test]
fn system_calls_are_listed_where_no_function_holds_the_change() {
    let reason = |name: &str, new, floor| Reason {
        name: name.into(),
        cost: Difference { base: 1000.0, new, floor: Some(floor) },
    };
    let mut explained =
        Explained { headlines: vec![headline("run", 2000.0, None)], ..Explained::default() };
    explained.explanation.reasons = Some(vec![
        reason("system call clone", 1640.0, 1.0),
        reason("system call mprotect", 1920.0, 1000.0),
        reason("system call execve", 900.0, 1.0),
        reason("interrupt timer", 950.0, 1.0),
        reason("exception page_fault", 960.0, 1.0),
        reason("system call exit", 980.0, 1.0),
        reason("kernel thread kswapd", 990.0, 1.0),
    ]);
    let monitor = Difference { base: 0.0, new: 5.0, floor: Some(1.0) };
    let reasons = explained.explanation.reasons.as_mut().unwrap();
    reasons.push(Reason { name: "kernel thread kdamond_fn".into(), cost: monitor });
    let mut case = two(Mode::Exact, 1.2);
    case.explained = vec![explained.clone()];
    let words = common::words(&case.mail(|_| {}).0);
    let said =
        "system call clone 1,000 1,640 64.00 % more system call execve 1,000 900 10.00 % fewer";
    assert!(words.contains(said) && !words.contains("mprotect 1,000"), "{words}");
    // A thread that only one kernel has is listed, however small it is.
    assert!(
        words.contains("page_fault 1,000 960 4.00 % fewer kernel thread kdamond_fn 0 5 - 2 more."),
        "{words}"
    );
    explained.headlines = vec![headline("run", 2000.0, Some("copy_process"))];
    case.explained = vec![explained];
    assert!(!case.mail(|_| {}).0.contains("system call"));
}

#[test]
fn the_start_of_the_program_has_its_share() {
    let mut case = two(Mode::Exact, 1.2);
    let mut it = explained();
    it.headlines = vec![headline("run", 2000.0, None)];
    let change = it.explanation.section(None).unwrap().totals.kernel.change();
    let reason = |name: &str, share: f64| Reason {
        name: name.into(),
        cost: Difference { base: 1e6, new: 1e6 + share * change, floor: Some(1.0) },
    };
    let said = "25.0 % of the change is in execve, which starts the program.";
    for (share, is_said) in [(0.25, true), (0.001, false)] {
        let reasons = vec![reason("system call execve", share), reason("system call clone", 0.5)];
        it.explanation.reasons = Some(reasons);
        case.explained = vec![it.clone()];
        let words = common::words(&case.mail(|_| {}).0);
        assert_eq!(words.contains(said), is_said, "{words}");
        let headlines = common::words(&report::headlines(&case.explained));
        assert_eq!(headlines.contains(said), is_said, "{headlines}");
        case.explained[0].plain = false;
        assert!(!report::headlines(&case.explained).contains("execve"));
    }
}

/// The workload's own module calls the functions that are asked for.
#[test]
fn functions_of_the_workloads_module_are_not_the_finding() {
    let mut case = two(Mode::Exact, 1.2);
    let whole = headline("System-NUMA01", 2400.4, Some("run"));
    let mut headline = whole.clone();
    let part = |name: &str, share| {
        let function = whole.function.clone().unwrap();
        Holder { name: name.into(), share, ..function }
    };
    let parts = vec![part("alloc", 0.499), part("free", 0.475)];
    headline.divided =
        Some(Divided { parts, complete: true, elsewhere: 0.026, offset_elsewhere: 0.0 });
    let mut explained = explained();
    let mut section = explained.explanation.all.clone().unwrap();
    section.phase = Some("System-NUMA01".into());
    section.contributions[0].subject =
        Subject::Function { name: "run".into(), module: "pagealloc".into() };
    (explained.workload, explained.variant) = ("autonuma".into(), "6.12".into());
    explained.headlines = vec![headline];
    explained.explanation.phases = vec![section];
    case.explained = vec![explained];
    let judged = |it: &mut Comparison| judge(it, Verdict::Regression, EVIDENCE);
    let is_said = |case: &Case, names: &str| {
        case.subject(judged).contains(&format!(", mostly in {names}, 1 other worse"))
    };
    assert!(is_said(&case, "run"));
    case.experiment.workloads[0].manifest.modules = vec!["pagealloc".into()];
    assert!(is_said(&case, "alloc and free"));
    // Nothing is the finding where others offset most of it.
    let offset = |case: &mut Case, shares: [f64; 2]| {
        let divided = case.explained[0].headlines[0].divided.as_mut().unwrap();
        for (part, share) in divided.parts.iter_mut().zip(shares) {
            part.share = share;
        }
    };
    offset(&mut case, [1.3, -0.3]);
    assert!(is_said(&case, "alloc"));
    offset(&mut case, [1.9, -0.9]);
    assert!(!case.subject(judged).contains("mostly"));
}

/// A change between two kernels with these page faults and calls of `mmap`, each with its instructions.
fn with_work(faults: [[f64; 2]; 2], calls: [[f64; 2]; 2]) -> Explained {
    let kernel =
        [0, 1].map(|side| faults[side][0] * faults[side][1] + calls[side][0] * calls[side][1]);
    let kernel = Difference { base: kernel[0], new: kernel[1], floor: Some(10.0) };
    let asked = |name: &str, [base, new]: [[f64; 2]; 2]| Asked {
        name: name.into(),
        entries: Difference { base: base[0], new: new[0], floor: Some(0.0) },
        instructions: Some([base[0] * base[1], new[0] * new[1]]),
    };
    let asked = vec![asked("exception page_fault", faults), asked("system call mmap", calls)];
    let headline = Headline { asked, ..common::headline("System-NUMA01", kernel, None) };
    Explained {
        workload: "autonuma".into(),
        variant: "6.12".into(),
        headlines: vec![headline],
        ..Explained::default()
    }
}

#[test]
fn other_work_is_said_beside_the_verdict() {
    let mut case = two(Mode::Exact, 1.2);
    let mut said = |explained: Explained| {
        case.explained = vec![explained];
        let (mail, _) = case.mail(|it| judge(it, Verdict::Improvement, EVIDENCE));
        let row = mail.lines().find(|line| line.starts_with("System-NUMA01 ")).unwrap().to_owned();
        (common::words(&mail), row)
    };
    let (same, row) = said(with_work([[200.0, 100.0]; 2], [[1.0, 90_000.0], [1.0, 50_000.0]]));
    let work = "Phase System-NUMA01, the same work on both sides: 1 call of mmap and 200 page faults; one call of \
                mmap with what it calls: 90,000 instructions before, 50,000 now.";
    assert!(same.contains(work) && row.ends_with("improvement"), "{same}");
    assert!(same.contains(", 1 other better") && !same.contains("other work"), "{same}");
    let (other, row) = said(with_work([[226.0, 100.0], [174.0, 90.0]], [[1.0, 5000.0]; 2]));
    let work = "Phase System-NUMA01, not the same work: 226 page faults before, 174 now (71.2 % of the change); one \
                page fault with what it calls: 100 instructions before, 90 now.";
    assert!(other.contains(work) && row.ends_with("improvement"), "{other}");
    assert!(other.contains(", with 23.0 % fewer page faults, 1 other better"), "{other}");
    let note = "Other work in System-NUMA01: a part of the change comes from how often a call ran.";
    assert!(other.contains(note), "{other}");
}

/// A monitor that one kernel runs is named however small its part is, a thread of both only with a part of the change.
#[test]
fn kernel_threads_beside_a_phase_are_named() {
    let thread =
        |function: &str, instructions| KernelThread { function: function.into(), instructions };
    let threads = vec![
        thread("ksmd", [100.0, 220.0]),
        thread("kdamond_fn", [0.0, 2.0]),
        thread("kswapd", [50.0, 55.0]),
    ];
    let headline = Headline { threads, ..headline("run", 2000.0, Some("change")) };
    let mut section = section_of(&explained(), "steady").clone();
    section.phase = Some("run".into());
    section.totals.kernel = headline.kernel;
    let cost = model::Cost::new(INSTRUCTIONS);
    let mut it = Explained {
        explanation: Explanation { cost, phases: vec![section], ..Explanation::default() },
        headlines: vec![headline],
        ..Explained::default()
    };
    let said = |it: &Explained| common::words(&report::headlines(std::slice::from_ref(it)));
    let told = "Phase run: kernel threads ran beside it: ksmd 100 instructions before, 220 now (12.0 % of the change), \
                kdamond_fn 0 instructions before, 2 now (0.2 % of the change).";
    assert!(said(&it).contains(told), "{}", said(&it));
    it.headlines[0].function.as_mut().unwrap().name = "kernel thread ksmd".into();
    let told = "kernel threads ran beside it: kdamond_fn 0 instructions before";
    assert!(said(&it).contains(told), "{}", said(&it));
}

#[test]
fn the_counters_of_the_phase_of_the_subject_are_listed() {
    let mut case = two(Mode::Exact, 1.2);
    let mut it = explained();
    let mut section = section_of(&it, "steady").clone();
    section.phase = Some("System-NUMA01".into());
    it.explanation.phases = vec![section];
    (it.workload, it.variant) = ("autonuma".into(), "6.12".into());
    case.explained = vec![it];
    let (mail, _) = case.mail(|it| judge(it, Verdict::Regression, EVIDENCE));
    insta::assert_snapshot!(common::section(&mail, "Event counters"));
    assert!(!mail.contains("changes of counters can be told"), "{mail}");
    // Gauges and changes within the margin are left out.
    let counters = &mut case.explained[0].explanation.phases[0].counters;
    counters.truncate(1);
    counters[0].name = "nr_dirty".into();
    let (mail, _) = case.mail(|it| judge(it, Verdict::Regression, EVIDENCE));
    let said = "No event counter of /proc/vmstat changed in phase System-NUMA01 beyond luck by more than 1 %.";
    assert!(common::words(&mail).contains(said), "{mail}");
}

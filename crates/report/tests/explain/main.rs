//! Tests of explanations of exact mode.

#[path = "../common/mod.rs"]
mod common;
mod headline;
mod kernels;
mod layout;
mod lists;
mod marked;
mod sampled;

use common::{boot, columns, variant, words};
use compare::{Difference, Explanation, Headline, Paths};
use model::{
    ALL_CPUS, Boot, Cell, Cost, CostTable, ENTRIES, INSTRUCTIONS, Millis, Place, Privilege,
    Profile, WorkloadUse,
};

const WORKLOAD: &str = "autonuma";

/// Explains the instructions of two kernels. The number of seeds asked for is that of the longer side.
fn explained(base: &[Boot], new: &[Boot]) -> (Explanation, Paths) {
    explained_cost(base, new, INSTRUCTIONS)
}

/// Explains a cost of two kernels.
fn explained_cost(base: &[Boot], new: &[Boot], cost: &str) -> (Explanation, Paths) {
    let wanted = base.len().max(new.len()) as u32;
    let variants = ["6.1", "6.12"].map(variant);
    let columns = columns(&variants, &[base, new]);
    let used = WorkloadUse::new(common::manifest(), 1, Millis(1));
    (
        compare::explain(&columns[0], &columns[1], &used, wanted, cost),
        compare::paths(&columns[0], &columns[1], &used, (None, cost)),
    )
}

/// Returns the text of an explanation, after the checks that every text must pass.
fn text(explanation: &Explanation, phase: Option<&str>) -> String {
    let text = report::explain(explanation, &[], phase, 10);
    common::assert_plain(&text);
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    text
}

/// Returns the signed numbers at the beginnings of lines, from the line that begins with `from` to the line
/// that contains `to`.
fn column(text: &str, from: &str, to: &str) -> Vec<i128> {
    let lines = text.lines().skip_while(|line| !line.starts_with(from));
    let lines = lines.take_while(|line| !line.contains(to));
    let first = |line: &str| line.split_whitespace().next()?.parse().ok();
    lines.filter_map(first).collect()
}

#[test]
fn the_planted_delay_is_the_first_by_instructions_per_entry() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let all = explanation.all.as_ref().unwrap();
    let first = &all.contributions[all.per_entry[0]];
    assert_eq!(first.subject.to_string(), kernels::PLANTED);
    let cost = first.calls.as_ref().unwrap().per_entry.unwrap();
    assert_eq!(cost.change(), kernels::MORE as f64);
    assert_eq!(cost.beyond_luck(), Some(true));
}

#[test]
fn two_kernels() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    insta::assert_snapshot!(text(&explanation, None));
}

#[test]
fn one_phase() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    insta::assert_snapshot!(text(&explanation, Some("steady")));
}

#[test]
fn phases_of_one_side_are_named_with_their_part() {
    let mut old = kernels::old();
    old.iter_mut().for_each(|boot| boot.profiles.retain(|it| it.phase != "steady"));
    let (explanation, _) = explained(&old, &kernels::new());
    let said = words(&text(&explanation, None));
    let part = explanation.section(Some("steady")).unwrap().totals.kernel.change();
    let told = format!(
        "Only 6.12 has phase steady, not 6.1: +{} kernel",
        model::grouped(&format!("{part:.0}"))
    );
    assert!(said.contains(&told), "{told}\n{said}");
    assert!(!text(&explained(&kernels::old(), &kernels::new()).0, None).contains("Only 6.12"));
}

#[test]
fn phases_that_only_prepare_are_ranked_only_where_they_are_named() {
    let variants = ["6.1", "6.12"].map(variant);
    let (old, new) = (kernels::old(), kernels::new());
    let columns = columns(&variants, &[&old, &new]);
    let mut used = WorkloadUse::new(common::manifest(), 1, Millis(1));
    used.manifest.preparation = vec!["".into(), "steady".into(), "none".into()];
    let explanation =
        compare::explain(&columns[0], &columns[1], &used, old.len() as u32, INSTRUCTIONS);
    let said = "ranks one that only prepares: ";
    let all = words(&text(&explanation, None));
    assert!(all.contains(&format!("{said}(no phase), steady.")), "{all}");
    assert!(!words(&text(&explanation, Some("steady"))).contains(said));
    let paths = compare::paths(&columns[0], &columns[1], &used, (None, INSTRUCTIONS));
    let page = report::explain_html(&explanation, &[], &paths, None, None);
    assert!(page.contains(said) && page.contains("in the measured phases"));
    // Only one phase is measured.
    let [measured, fill] = [None, Some("fill")].map(|phase| explanation.section(phase).unwrap());
    assert_eq!(measured.contributions, fill.contributions);
    assert_eq!(
        paths,
        compare::paths(&columns[0], &columns[1], &used, (Some("fill"), INSTRUCTIONS))
    );
    let change = |phase| column(&text(&explanation, phase), "Contributions", "by all");
    assert_eq!(change(None), change(Some("fill")));
    used.manifest.preparation.push("fill".into());
    let explanation =
        compare::explain(&columns[0], &columns[1], &used, old.len() as u32, INSTRUCTIONS);
    assert_eq!(
        (explanation.section(None), &explanation.measured),
        (explanation.all.as_ref(), &None)
    );
}

#[test]
fn one_seed_a_side() {
    let (explanation, _) = explained(&kernels::old()[..1], &kernels::new()[..1]);
    insta::assert_snapshot!(text(&explanation, None));
}

#[test]
fn a_missing_seed_counts_on_neither_side_and_is_reported() {
    let explained = |seeds| explained(&kernels::old(), &kernels::new()[..seeds]).0;
    let head = |seeds: usize| {
        let of = format!("{seeds} of 5 seeds");
        format!("autonuma, instructions: 6.12 ({of}) against 6.1 ({of});")
    };
    let four = text(&explained(4), None);
    assert!(four.starts_with(&head(4)) && four.contains(" beyond  measured phases"), "{four}");
    let two = words(&text(&explained(2), None));
    assert!(two.starts_with(&head(2)), "{two}");
    assert!(
        two.contains("With 2 seeds a side no function, contribution or counter can be"),
        "{two}"
    );
    let one = text(&explained(1), None);
    assert!(!one.contains(" beyond ") && !one.contains("Beyond luck"), "{one}");
    assert!(words(&one).contains("Any of these changes may be luck."));
}

#[test]
fn the_expected_number_of_lucky_rows_is_printed() {
    let (explanation, paths) = explained(&kernels::old(), &kernels::new());
    let compare::Compared { per_entry, contributions, counters } =
        explanation.all.as_ref().unwrap().compared;
    assert!(per_entry > 150 && contributions > per_entry && counters == 6);
    let text_of_all = words(&text(&explanation, None));
    let of = |rows: usize, what: &str| {
        let (before, _) = text_of_all.split_once(&format!(" of {rows} {what}")).unwrap();
        before.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let beyond =
        [of(per_entry, "functions"), of(contributions, "contrib"), of(counters, "counters")];
    assert!(beyond.iter().all(|it| *it > 0.0));
    let [cost, change, counter] = beyond.map(|it| format!("{:.1}", 0.05 * it));
    let said = format!("Expected false positives: at most {cost}, {change} and {counter}.");
    assert!(text_of_all.contains(&said), "{text_of_all}");
    assert!(report::explain_html(&explanation, &[], &paths, None, None).contains(&said));
    assert!(words(&text(&explanation, Some("fill"))).contains("Beyond luck in phase fill: "));
}

#[test]
fn every_table_has_one_change_of_a_function() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let text = text(&explanation, None);
    let lines: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.ends_with(&format!("  {}", kernels::PLANTED)))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!((lines.len(), lines[0][6]), (2, lines[1][0]), "{text}");
}

#[test]
fn functions_that_offset_each_other_name_each_other() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let kernel = Difference { base: 1.0, new: 2.0, floor: Some(0.1) };
    let functions = || {
        let all = &explanation.section(None).unwrap().contributions;
        let is_on_both = |calls: &compare::Calls| calls.only.is_none();
        let all = all.iter().filter(move |it| it.calls.as_ref().is_some_and(is_on_both));
        all.map(|it| (it.subject.to_string(), it.instructions.change()))
    };
    let pairs = functions().flat_map(|one| functions().map(move |other| (one.clone(), other)));
    let mut pairs = pairs.filter(|((_, one), (_, other))| compare::do_offset(*one, *other));
    let ((one, _), (other, _)) = pairs.next().unwrap();
    // These changed in the same direction in the measured phases together.
    let in_a_phase = [kernels::PLANTED, "mm_helper_029"].map(str::to_owned);
    let offset = vec![[one.clone(), other.clone()], in_a_phase];
    let headline = Headline { offset, ..common::headline("NUMA01", kernel, None) };
    let text = words(&report::explain(&explanation, &[headline], None, 1000));
    for (name, other) in [(&one, &other), (&other, &one)] {
        assert!(text.contains(&format!("{name} (offset by {other})")), "{text}");
    }
    assert!(!text.contains("(offset by mm_helper_029)"), "{text}");
    assert!(!words(&report::explain(&explanation, &[], None, 1000)).contains("(offset by"));
}

#[test]
fn instructions_in_no_function_are_reported_as_an_error() {
    let mut new = kernels::new();
    let costs = &mut new[1].profiles[2].costs;
    *costs = costs.with_values(|place, cell| match place {
        Place::All(Privilege::Kernel) => cell.value + 77,
        _ => cell.value,
    });
    let (explanation, paths) = explained(&kernels::old(), &new);
    let error =
        "ERROR: the profile of a seed is wrong: 77 instructions of the kernel are in no function";
    let text = text(&explanation, None);
    assert!(text.contains(error) && text.contains("does NOT add up"), "{text}");
    assert!(report::explain_html(&explanation, &[], &paths, None, None).contains(error));
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    assert!(!report::explain(&explanation, &[], None, 10).contains("ERROR"));
}

#[test]
fn limits_of_exact_mode_are_printed() {
    let (explanation, paths) = explained(&kernels::old(), &kernels::new());
    let not_modelled = "caches, TLBs, memory latency, contention in time between CPUs (they take turns), \
                        fast string instructions (loops clear and copy instead, or a rep, which counts as one), \
                        read-modify-writes that touch a page first (a read fault, then a write fault, instead of one)";
    let text = words(&text(&explanation, None));
    for report in [&text, &report::explain_html(&explanation, &[], &paths, None, None)] {
        assert!(report.contains(&format!("Not modelled: {not_modelled}.")));
        assert!(report.contains("instructions at the cuts between phases"));
    }
    let json: serde_json::Value =
        serde_json::from_str(&report::explain_json(&explanation, &[], None).unwrap()).unwrap();
    let named = json["not_modelled"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    assert_eq!(named.collect::<Vec<_>>().join(", "), not_modelled);
}

#[test]
fn contributions_add_up_as_printed() {
    for seeds in [1, 2, 3, 5] {
        let (explanation, _) = explained(&kernels::old(), &kernels::new()[..seeds]);
        let text = text(&explanation, None);
        let printed = column(&text, "Contributions", "by all");
        assert!(printed.len() > 5, "{text}");
        let proof = text.lines().find(|line| line.contains("by all")).unwrap();
        let sum: i128 = proof.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(printed.iter().sum::<i128>(), sum);
        assert!(proof.ends_with(": adds up to the change of the total exactly"), "{proof}");
    }
}

#[test]
fn nothing_to_explain() {
    let (explanation, paths) = explained(&kernels::old(), &[boot(0)]);
    assert_eq!(
        text(&explanation, None),
        "Nothing to explain: no complete boot of 6.12 has an exact profile of autonuma.\n"
    );
    let page = report::explain_html(&explanation, &[], &paths, None, None);
    assert!(page.contains("Nothing to explain"));
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    assert_eq!(
        text(&explanation, Some("flll")),
        "autonuma has no phase flll; its phases: (no phase), fill, steady.\n"
    );
}

/// Returns a boot in which every name is hostile.
fn hostile(more: u64) -> Boot {
    let names =
        ["<script>alert(1)</script>", "\"'&]]>", "a;b 7 8", "\x1b[2J\r\n\0", "\u{202e}x", ""];
    let mut costs = CostTable::new([INSTRUCTIONS, ENTRIES].map(Cost::new));
    for name in names {
        let path = vec!["--></svg>".into(), name.into()];
        costs.push(Place::Path(path), [Cell::new(0, ALL_CPUS, 100 + more)]);
        let process = Place::Process { id: 1, name: name.into(), functions: Vec::new() };
        costs.push(process, [Cell::new(0, 0, u64::MAX)]);
        let function = Place::Function { name: name.into(), module: "<b>\n".into() };
        costs.push(function, [Cell::new(0, 0, 100 + more), Cell::new(1, 0, 2)]);
    }
    costs.push(Place::All(Privilege::User), [Cell::new(0, 0, u64::MAX), Cell::new(0, 1, u64::MAX)]);
    costs.push(Place::All(Privilege::Firmware), [Cell::new(0, 0, 7), Cell::new(0, 1, 7)]);
    let profile = Profile {
        workload: WORKLOAD.into(),
        phase: "</style><img src=x onerror=alert(1)>".into(),
        costs,
        ..Profile::default()
    };
    Boot { profiles: vec![profile], ..boot(0) }
}

#[test]
fn hostile_names_reach_no_terminal() {
    let (explanation, _) = explained(&[hostile(0)], &[hostile(40)]);
    insta::assert_snapshot!(report::explain(&explanation, &[], None, 10));
}

#[test]
fn hostile_names_reach_no_page() {
    let (mut explanation, paths) = explained(&[hostile(0)], &[hostile(40)]);
    explanation.base.name = "<script>\"'".into();
    let page = report::explain_html(&explanation, &[], &paths, None, None);
    // Figures have narrow spaces and a minus sign; everything else is ASCII.
    let is_ours = |letter| matches!(letter, ' '..='~' | '\n' | '\u{202f}' | '\u{2212}');
    assert!(page.chars().all(is_ours), "{page}");
    for harm in ["<script>a", "<img", "<b>", "</svg></g>", "alert(1)<", "--></svg>"] {
        assert!(!page.contains(harm), "{harm}");
    }
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    let document = scraper::Html::parse_document(&page);
    assert!(document.errors.is_empty(), "{:?}", document.errors);
    let selector = scraper::Selector::parse(".flame svg svg > title").unwrap();
    let titles = document.select(&selector).map(|it| it.text().collect::<String>());
    assert!(titles.into_iter().any(|it| it.starts_with("<script>alert(1)</script>, ")));
}

/// Returns the page. A copy stays in the build directory for viewing.
fn page(name: &str, boots: [Vec<Boot>; 2]) -> String {
    let (explanation, paths) = explained(&boots[0], &boots[1]);
    let page = report::explain_html(&explanation, &[], &paths, None, None);
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(path, &page).unwrap();
    page
}

#[test]
fn the_page_has_tables_and_graphs_and_loads_nothing() {
    let page = page("explain.html", [kernels::old(), kernels::new()]);
    assert_eq!(page.matches("<figure class=\"flame\"").count(), 2);
    // There is a waterfall of the whole workload, and one of each phase.
    assert_eq!(page.matches("class=\"waterfall\"").count(), 4);
    assert_eq!(page.matches("<details>").count(), 4);
    assert!(page.contains(kernels::PLANTED));
    assert!(!page.contains("Not all boots recorded call paths"));
    for outside in ["src=\"", "href=\"http", "url(http", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn the_waterfall_leads_from_one_total_to_the_other() {
    let page = page("explain-waterfall.html", [kernels::old(), kernels::new()]);
    let document = scraper::Html::parse_document(&page);
    let selector = scraper::Selector::parse(".waterfall g:not([class])").unwrap();
    let text = |element: scraper::ElementRef<'_>| element.text().collect::<String>();
    let bars = document.select(&selector).map(|bar| {
        let texts = scraper::Selector::parse("text").unwrap();
        let [name, figure] = bar.select(&texts).map(text).collect::<Vec<_>>().try_into().unwrap();
        let figure = figure.replace('\u{202f}', "").replace('\u{2212}', "-");
        (name, figure.parse::<i64>().unwrap())
    });
    let bars: Vec<(String, i64)> = bars.collect();
    let end = 1 + bars.iter().skip(1).position(|bar| bar.0 == "6.12").unwrap();
    let [(first, base), changes @ .., (_, new)] = &bars[..=end] else { panic!("{bars:?}") };
    assert_eq!((&**first, &*changes[0].0), ("6.1", kernels::PLANTED));
    assert!(changes.last().unwrap().0.ends_with(" more"), "{changes:?}");
    let sum = base + changes.iter().map(|it| it.1).sum::<i64>();
    assert!((sum - new).abs() <= bars.len() as i64, "{sum} {new}");
}

#[test]
fn a_phase_comes_first_if_asked_for() {
    let (explanation, paths) = explained(&kernels::old(), &kernels::new());
    let page = report::explain_html(&explanation, &[], &paths, Some("fill"), None);
    let folded = page.find("<summary>In ").unwrap();
    assert!(page.find("per entry in phase fill:").unwrap() < folded);
    assert!(page.find("per entry in phase steady:").unwrap() > folded);
    assert!(page.find("per entry:").unwrap() > folded);
    let page = report::explain_html(&explanation, &[], &paths, Some("flll"), None);
    assert!(page.contains("autonuma has no phase flll"));
}

/// Removes the call paths from boots.
fn without_stacks(mut boots: Vec<Boot>) -> Vec<Boot> {
    for profile in boots.iter_mut().flat_map(|boot| &mut boot.profiles) {
        let mut costs = CostTable::new(profile.costs.costs().to_vec());
        for row in profile.costs.rows().filter(|row| !matches!(row.place, Place::Path(_))) {
            costs.push(row.place.clone(), row.cells.iter().copied());
        }
        profile.costs = costs;
    }
    boots
}

#[test]
fn without_paths_the_graph_is_flat_and_says_so() {
    let boots = [kernels::old(), without_stacks(kernels::new())];
    let page = page("explain-flat.html", boots);
    assert!(page.contains("Not all boots recorded call paths"));
    assert!(page.contains("<title>do_anonymous_page, "));
}

#[test]
fn frames_of_one_path_stay_together() {
    // As strings, `clone3;b` sorts between `clone` and `clone;a`.
    let with = |paths: &[(&[&str], u64)]| {
        let mut costs = CostTable::new([Cost::new(INSTRUCTIONS)]);
        for &(path, instructions) in paths {
            let path = path.iter().map(|&name| name.into()).collect();
            costs.push(Place::Path(path), [Cell::new(0, ALL_CPUS, instructions)]);
        }
        let kernel = paths.iter().map(|path| path.1).sum();
        costs.push(Place::All(Privilege::Kernel), [Cell::new(0, 0, kernel)]);
        let profile = Profile { workload: WORKLOAD.into(), costs, ..Profile::default() };
        Boot { profiles: vec![profile], ..boot(0) }
    };
    let boot = with(&[(&["clone"], 5), (&["clone", "a"], 7), (&["clone3", "b"], 2)]);
    let boots = std::slice::from_ref(&boot);
    let (explanation, paths) = explained(boots, boots);
    let page = report::explain_html(&explanation, &[], &paths, None, None);
    let graph = page.split("<figure class=\"flame\"").nth(1).unwrap();
    assert_eq!(graph.matches("<title>clone, ").count(), 1);
    assert!(graph.contains("<title>clone, 85.7 %\n12 to 12: +0\nown: 5 to 5</title>"));
}

#[test]
fn the_json_document() {
    let simple = |seed, entries, instructions| {
        let mut costs = CostTable::new([INSTRUCTIONS, ENTRIES].map(Cost::new));
        let name = "do_anonymous_page.isra.0".into();
        let function = Place::Function { name, module: "".into() };
        costs.push(function, [Cell::new(0, 0, instructions), Cell::new(1, 0, entries)]);
        costs.push(Place::All(Privilege::User), [Cell::new(0, 0, 5)]);
        costs.push(Place::All(Privilege::Kernel), [Cell::new(0, 0, instructions)]);
        let profile = Profile {
            workload: WORKLOAD.into(),
            phase: "fill".into(),
            costs,
            ..Profile::default()
        };
        let mut boot = Boot { profiles: vec![profile], ..boot(seed) };
        common::count(&mut boot, 0, &[("pgfault", entries as i64)]);
        boot
    };
    let (explanation, _) = explained(
        &[simple(0, 10, 100), simple(1, 10, 101)],
        &[simple(0, 11, 150), simple(1, 11, 150)],
    );
    insta::assert_snapshot!(report::explain_json(&explanation, &[], None).unwrap());
}

/// Each entry of `f` misses the cache, more often in the new kernel. There are four seeds.
#[test]
fn any_cost_is_explained_in_its_own_words() {
    let seeds = |misses: u64| {
        let boot = |seed: u32| {
            let mut costs = CostTable::new([INSTRUCTIONS, ENTRIES, "misses"].map(Cost::new));
            let luck = u64::from(seed % 2);
            for (name, misses) in [("f", 100 * misses + luck), ("g", 70 + luck)] {
                let path = Place::Path(vec!["entry".into(), name.into()]);
                costs.push(path, [Cell::new(0, ALL_CPUS, 5000), Cell::new(2, ALL_CPUS, misses)]);
                let function = Place::Function { name: name.into(), module: "".into() };
                costs.push(
                    function,
                    [Cell::new(0, 0, 5000), Cell::new(1, 0, 100), Cell::new(2, 0, misses)],
                );
            }
            let (phase, workload) = ("run".into(), WORKLOAD.into());
            let profile = Profile { workload, phase, costs, ..Profile::default() };
            Boot { profiles: vec![profile], ..boot(seed) }
        };
        (0..4).map(boot).collect::<Vec<_>>()
    };
    let (base, new) = (seeds(2), seeds(3));
    let (explanation, paths) = explained_cost(&base, &new, "misses");
    let variants = ["6.1", "6.12"].map(variant);
    let columns = columns(&variants, &[&base, &new]);
    let used = WorkloadUse::new(common::manifest(), 1, Millis(1));
    let headlines = compare::headlines(&explanation, &used, |phase| {
        compare::paths(&columns[0], &columns[1], &used, (Some(phase), "misses"))
    });
    insta::assert_snapshot!(report::explain(&explanation, &headlines, None, 10));
    let page = report::explain_html(&explanation, &headlines, &paths, None, None);
    assert!(page.contains("misses by function") && page.contains("more kernel misses"), "{page}");
    // Entries have no cost per entry.
    let (entries, _) = explained_cost(&base, &new, ENTRIES);
    let all = entries.all.as_ref().unwrap();
    assert_eq!(
        (all.totals.kernel.base, all.totals.kernel.new, all.in_no_function),
        (200.0, 200.0, 0)
    );
    assert!(all.contributions.iter().all(|it| it.calls.as_ref().unwrap().per_entry.is_none()));
    assert_eq!(explained(&base, &new).0.all.unwrap().change, 0);
}

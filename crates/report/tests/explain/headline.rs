//! The first sentences: which functions hold the change of a phase.

use compare::{
    Callee, Code, CommonCallee, Difference, Divided, Headline, Holder, Inner, LeftOut, OwnCost,
};

use super::{common, explained, kernels};

/// The headline of a phase that spent 1000 instructions.
fn headline(phase: &str, new: f64, function: Option<Holder>) -> Headline {
    common::headline(phase, Difference { base: 1000.0, new, floor: Some(10.0) }, function)
}

/// A holder with these instructions per entry and entries on both sides.
fn holder(inclusive: bool, [base, new]: [f64; 2], [entries, now]: [f64; 2]) -> Holder {
    Holder {
        name: "change_pte".into(),
        inclusive,
        within: None,
        instructions: [base * entries, new * now],
        without_loops: None,
        entries: Some([entries, now]),
        share: 0.99,
        parts: Vec::new(),
        parts_per_entry: true,
        callee: None,
        moved: None,
        inner: None,
    }
}

/// Of two calls one may be long, and the other short.
#[test]
fn few_entries_have_no_mean() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let said = |entries| {
        let it = headline("run", 1400.0, Some(holder(true, [120.0, 130.0], [entries; 2])));
        common::words(&report::explain(&explanation, &[it], None, 10))
    };
    assert!(said(2.0).contains("240 before, 260 now (8.33 % more); 2 entries."), "{}", said(2.0));
    assert!(said(20.0).contains("; 20 entries; 120.00 per entry before, 130.00 now."));
}

/// A function that many others call stands beside the parts, and a callee with much of a part behind its figures.
#[test]
fn a_common_callee_is_named() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let inner = Some(Inner { name: "zap".into(), share: 0.61 });
    let common = CommonCallee {
        name: "mod_state".into(),
        was: Some("__mod_state".into()),
        instructions: [200.0, 432.0],
        share: 0.58,
        callers: 12,
    };
    let holder = Holder { inner, ..holder(true, [120.0, 130.0], [2.0; 2]) };
    let headline = Headline { common: Some(common), ..headline("run", 1400.0, Some(holder)) };
    let said = common::words(&report::explain(&explanation, &[headline], None, 10));
    let told = "2 entries; 61.0 % of this change in zap and what it calls. Phase run, counted above too: mod_state \
                (before: __mod_state) with what it calls has 58.0 % of the change, called from 12 functions: 200 before, \
                432 now.";
    assert!(said.contains(told), "{said}");
}

#[test]
fn the_headline_comes_first() {
    let (explanation, paths) = explained(&kernels::old(), &kernels::new());
    let part = |name: &str, own| OwnCost { name: name.into(), own, ..OwnCost::default() };
    let of = |code, part: OwnCost| OwnCost { code: Some(code), ..part };
    let parts = vec![
        part("change_pte", [2_149_280.0, 1622.0]),
        of(Code::New, part("modify_pte", [0.0, 2_000_000.4])),
        OwnCost { is_on_both: true, beyond_luck: Some(false), ..part("flush", [0.0, 1_500_000.0]) },
        of(Code::Gone, part("old_pte", [90_000.0, 0.0])),
        part("a", [0.0, 7.0]),
        part("b", [5.0, 2.0]),
        part("c", [5.0, 5.2]),
    ];
    let dearer = Holder { parts, ..holder(true, [2_406_301.0, 5_764_432.0], [50.0, 50.0]) };
    let often = Holder { share: 0.6, ..holder(false, [1_946_694.0, 1_806_297.0], [50.0, 54.0]) };
    let once = holder(true, [120.0, 121.0], [1.0, 1.0]);
    let headlines = [
        headline("fill", 2398.4, Some(dearer)),
        headline("steady", 1009.7, Some(often)),
        headline("once", 14_010.0, Some(once.clone())),
        Headline {
            at_equal_entries: true,
            counted: Some(Difference { base: 1500.0, new: 1200.0, floor: Some(400.0) }),
            left_out: vec![LeftOut { function: "refill".into(), change: -116.0 }],
            ..headline("alike", 1010.0, Some(once))
        },
        headline("end", 1001.0, None),
        Headline { of_one_variant: true, ..headline("seeds", 1001.0, None) },
    ];
    let text = report::explain(&explanation, &headlines, None, 10);
    let said: Vec<&str> = text.lines().skip(2).take_while(|line| !line.is_empty()).collect();
    assert_eq!(
        said.join(" "),
        "Phase fill: 139.84 % more kernel instructions, 99.0 % of the change in change_pte and what it calls: 120,315,050 \
         before, 288,221,600 now (139.56 % more); 50 entries; 2,406,301 per entry before, 5,764,432 now. Change per entry, by function: change_pte -2,147,658, \
         modify_pte +2,000,000 (new, or inlined before), flush +1,500,000 (called there only now, or inlined before; may be luck), old_pte -90,000 (gone, or inlined now), 3 \
         more +4. Most of this may be luck. Phase steady: 0.97 % more kernel instructions, 60.0 % of the change in change_pte: 97,334,700 before, \
         97,540,038 now (0.21 % more); 50 entries before, 54 now; 1,946,694 per entry before, 1,806,297 now. The rest is smaller than the phase's luck floor. Phase once: 14.0 times as \
         many kernel instructions, 99.0 % of the change in change_pte and what it calls: 120 before, 121 now (0.83 % more); 1 entry. Phase alike: 1.00 % \
         more kernel instructions at equal entries, 99.0 % of the change in change_pte and what it calls: 120.00 per entry before, 121.00 \
         now. As counted: 1,500 before, 1,200 now (20.00 % fewer), which may be luck. Left out, because the number or the cost of entries \
         is luck: refill (-116). Phase end: 0.10 % more kernel instructions: this may be luck. Phase seeds: 0.10 % more \
         kernel instructions: the seeds differ by luck. An entry is one call or other start of a function."
    );
    let page = report::explain_html(&explanation, &headlines, &paths, Some("steady"), None);
    assert!(
        page.contains(
            "97,540,038 now (0.21\u{a0}% more); 50 entries before, 54 now; 1,946,694 per entry"
        ) && !page.contains("2,406,301")
    );
}

/// Luck hides a change of the total, and may not hide those of system calls.
#[test]
fn a_large_change_within_luck_says_how_to_look_closer() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let said = |new: f64| {
        let kernel = Difference { base: 1000.0, new, floor: Some(900.0) };
        let headline = Headline { kernel, listed: true, ..headline("a b", new, None) };
        common::words(&report::explain(&explanation, &[headline], None, 10))
    };
    let hint = "`explain --by-syscall --phase 'a b'` shows which system calls";
    assert!(said(1300.0).contains(hint), "{}", said(1300.0));
    assert!(!said(1005.0).contains("--by-syscall"), "{}", said(1005.0));
}

/// The thread runs since before the phase, so its function has no entries in the phase.
#[test]
fn a_kernel_threads_function_has_totals() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let callee = Callee {
        name: "folio_walk_start".into(),
        entries: [2_012_345.0, 912.0],
        per_entry: [80.0, 81.0],
    };
    let holder = Holder {
        name: "ksm_scan_thread".into(),
        inclusive: true,
        within: None,
        instructions: [345_123_456.0, 2_812_345.0],
        without_loops: None,
        entries: None,
        share: 1.0,
        parts: vec![
            OwnCost {
                name: "folio_walk_start".into(),
                own: [160_987_600.0, 73_872.0],
                ..OwnCost::default()
            },
            OwnCost {
                name: "ksm_scan_thread".into(),
                own: [90_000_000.0, 0.0],
                ..OwnCost::default()
            },
        ],
        parts_per_entry: false,
        callee: Some(callee.clone()),
        moved: None,
        inner: None,
    };
    let said = |callee| {
        let kernel = Difference { base: 346e6, new: 2_837_200.0, floor: Some(10.0) };
        let headline = common::headline("merge", kernel, Some(Holder { callee, ..holder.clone() }));
        report::explain(&explanation, &[headline], None, 10).replace('\n', " ")
    };
    let beginning = "Phase merge: 99.18 % fewer kernel instructions, 100.0 % of the change in ksm_scan_thread and what it calls: \
                     345,123,456 before, 2,812,345 now (99.19 % fewer)";
    let parts = "Change, by function: folio_walk_start -160,913,728, ksm_scan_thread -90,000,000 (called only before, or inlined now).";
    for (callee, words) in [
        (None, ""),
        (Some(callee.clone()), "; folio_walk_start: 2,012,345 entries before, 912 now"),
        (
            Some(Callee { entries: [5.0; 2], ..callee }),
            "; folio_walk_start: 80.00 of its own per entry before, 81.00 now",
        ),
    ] {
        let said = said(callee);
        assert!(said.contains(&format!("{beginning}{words}. {parts}")), "{said}");
    }
}

/// More functions are named until those left out add up to little.
#[test]
fn many_small_changes_are_told() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let said = |small: usize, each: f64| {
        let part = |change: f64| OwnCost {
            name: "f".into(),
            own: [1.0, 1.0 + change],
            ..OwnCost::default()
        };
        let large = [100.0, 50.0, 40.0, 30.0].map(part);
        let parts = large.into_iter().chain(vec![part(each); small]).collect();
        let holder = Holder { parts, ..holder(true, [1000.0, 2000.0], [5.0, 5.0]) };
        let headlines = [headline("run", 2000.0, Some(holder))];
        report::explain(&explanation, &headlines, None, 10).replace("\n", " ")
    };
    let begins = "f +100, f +50, f +40, f +30";
    assert!(said(3, 9.0).contains(&format!("{begins}, 3 more +27.")));
    assert!(said(5, 9.0).contains(&format!("{begins}, f +9, f +9, f +9, f +9, 1 more +9.")));
    let eight = ", f +9".repeat(8);
    let cut = format!("{begins}{eight}, 92 more +828.");
    assert!(said(100, 9.0).contains(&cut), "{}", said(100, 9.0));
}

#[test]
fn what_is_in_the_tree_of_mappings_is_said() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let said = |base: f64, tree: f64| {
        let own = [("mas_wr_split", tree), ("mab_mas_cp", 5.0), ("do_brk_flags", 60.0)];
        let part = |(name, more): (&str, f64)| OwnCost {
            name: name.into(),
            own: [base, base + more],
            ..OwnCost::default()
        };
        let parts = own.map(part).into();
        let holder = Holder { parts, ..holder(true, [10.0, 100.0], [5.0, 5.0]) };
        let text =
            report::explain(&explanation, &[headline("run", 1450.0, Some(holder))], None, 10);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let words = "Of this, +25 is in the tree of mappings: how full its nodes are";
    assert!(said(1.0, 20.0).contains(words), "{}", said(1.0, 20.0));
    assert!(!said(1.0, 10.0).contains("in the tree of mappings"));
    // Functions of one kernel alone are another algorithm.
    assert!(!said(0.0, 20.0).contains("in the tree of mappings"));
}

/// The shares add up to 100 % as printed.
#[test]
fn a_change_that_divides_is_told_by_its_parts() {
    let (explanation, paths) = explained(&kernels::old(), &kernels::new());
    let part = |name: &str, share: f64, entries| Holder {
        name: name.into(),
        inclusive: name != "do_syscall_64",
        within: (name == "exit_mmap").then(|| "mmput".into()),
        instructions: [1000.0, 1000.0 + 300.0 * share],
        without_loops: None,
        entries,
        share,
        parts: [["f", "g", "h"].map(|name| OwnCost {
            name: name.into(),
            own: [1.0, 2.0],
            ..OwnCost::default()
        })]
        .concat(),
        parts_per_entry: entries.is_some(),
        callee: None,
        moved: None,
        inner: None,
    };
    let parts = vec![
        part("copy_process", 0.4746, Some([20.0, 20.0])),
        part("exit_mmap", 0.4556, None),
        part("do_syscall_64", -0.02, None),
    ];
    let kernel = Difference { base: 1000.0, new: 1300.0, floor: Some(10.0) };
    let headline = |complete, function: Option<Holder>| Headline {
        divided: Some(Divided {
            parts: parts.clone(),
            complete,
            elsewhere: 0.0898,
            offset_elsewhere: 0.04,
        }),
        ..common::headline("run", kernel, function)
    };
    let said = |headline: &Headline| {
        let text = report::explain(&explanation, std::slice::from_ref(headline), None, 10);
        let said: Vec<&str> = text.lines().skip(2).take_while(|line| !line.is_empty()).collect();
        said.join(" ")
    };
    let shares = "47.5 % of the change in copy_process and what it calls, 45.6 % in exit_mmap and what it calls \
                  (within mmput), -2.0 % in do_syscall_64 and what one kernel alone calls there, 8.9 % elsewhere.";
    let figures = "copy_process and what it calls: 1,000 before, 1,142 now (14.24 % more); 20 entries; 50.00 per entry before, \
                   57.12 now. Change per entry, by function: f +1, g +1, 1 more +1. exit_mmap and what it \
                   calls (within mmput): 1,000 before, 1,137 now (13.67 % more). Change, by function: f +1, g +1, 1 more +1. \
                   do_syscall_64 and what one kernel alone calls there: 1,000 before, 994 now (0.60 % fewer).";
    let begins = "Phase run: 30.00 % more kernel instructions";
    let all = headline(true, None);
    assert!(said(&all).starts_with(&format!("{begins}: {shares} {figures}")), "{}", said(&all));
    let some = said(&headline(false, None));
    let largest = "the largest parts:";
    assert!(some.starts_with(&format!("{begins}: {largest} {shares} {figures}")), "{some}");
    let mut overlapping = headline(true, None);
    overlapping.divided.as_mut().unwrap().elsewhere += 0.01;
    overlapping.divided.as_mut().unwrap().offset_elsewhere = 0.06;
    let called_in =
        "9.9 % elsewhere, where larger changes offset each other (one of them calls another).";
    assert!(said(&overlapping).contains(called_in), "{}", said(&overlapping));
    // Shares that are printed with 0.1 % too much are told, too.
    let mut little = headline(true, None);
    little.divided.as_mut().unwrap().elsewhere += 0.001;
    let called_in = "9.0 % elsewhere (one of them calls another).";
    assert!(said(&little).contains(called_in), "{}", said(&little));
    // Shares of a difference between large changes would mislead.
    let mut exceeding = headline(false, None);
    exceeding.divided.as_mut().unwrap().elsewhere = -0.2;
    let amounts = "the largest parts: copy_process and what it calls +142 (14.24 % more), exit_mmap and what it calls (within \
                   mmput) +137 (13.67 % more), do_syscall_64 and what one kernel alone calls there -6 (0.60 % fewer), elsewhere \
                   -60 (one of them calls another). ";
    assert!(said(&exceeding).contains(amounts), "{}", said(&exceeding));
    exceeding.at_equal_entries = true;
    assert!(said(&exceeding).contains("47.5 % of the change in copy_process"));
    let below = said(&headline(true, Some(part("sys", 1.0, None))));
    let caller =
        "100.0 % of the change in sys and what it calls: 1,000 before, 1,300 now (30.00 % more).";
    let shares = shares.replace("of the change", "of the phase's change");
    assert!(below.starts_with(&format!("{begins}, {caller} {shares} {figures}")), "{below}");
    let page = report::explain_html(&explanation, std::slice::from_ref(&all), &paths, None, None);
    assert!(page.contains("45.6\u{a0}% in exit_mmap and what it calls"));
    let json = report::explain_json(&explanation, &[all], None).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let divided = &json["headlines"][0]["divided"];
    assert_eq!(
        (&divided["complete"], &divided["parts"][1]["share"]),
        (&true.into(), &0.4556.into())
    );
    assert_eq!(divided["parts"][0]["parts"][0]["own"], serde_json::json!([1.0, 2.0]));
}

#[test]
fn the_work_of_a_phase_is_said() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let asked = |name: &str, new: f64| compare::Asked {
        name: name.into(),
        entries: Difference { base: 10.0, new, floor: Some(0.5) },
        instructions: Some([900.0, 1000.0 * new / 10.0]),
    };
    let kernel = Difference { base: 1000.0, new: 1100.0, floor: Some(10.0) };
    let said = |kernel: Difference, new: f64, unit: &str| {
        let headline = Headline {
            asked: vec![asked("system call brk", new)],
            unit: unit.into(),
            ..common::headline("run", kernel, None)
        };
        common::words(&report::explain(&explanation, &[headline], None, 10))
    };
    let text = said(kernel, 10.0, "instructions");
    let same = "Phase run, the same work on both sides: 10 calls of brk; one call of brk with what it calls: 90 \
                instructions before, 100 now.";
    assert!(text.contains(same), "{text}");
    let text = said(kernel, 11.0, "instructions");
    let other =
        "Phase run, not the same work: 10 calls of brk before, 11 now (95.0 % of the change);";
    assert!(text.contains(other), "{text}");
    let luck = Difference { floor: Some(1000.0), ..kernel };
    for text in [said(luck, 11.0, "instructions"), said(kernel, 11.0, "entries")] {
        assert!(!text.contains("same work"), "{text}");
    }
}

#[test]
fn what_is_per_page_and_per_byte_is_said() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let said = |sizes: [u64; 2], faults: [f64; 2], floor: f64| {
        let [base, new] = faults;
        let faults = compare::Asked {
            name: "exception mem_abort".into(),
            entries: Difference { base, new, floor: Some(0.5) },
            instructions: Some([base, new].map(|it| it * 100.0)),
        };
        let pages = compare::ByPages {
            sizes,
            per_page: 0.8,
            per_byte: 0.15,
            by_bytes: vec!["clear_page".into()],
        };
        let kernel = Difference { base: base * 110.0, new: new * 110.0, floor: Some(floor) };
        let headline = Headline {
            asked: vec![faults],
            pages: Some(pages),
            ..common::headline("run", kernel, None)
        };
        common::words(&report::explain(&explanation, &[headline], None, 10))
    };
    let text = said([4 << 10, 16 << 10], [1600.0, 400.0], 10.0);
    for wanted in [
        "Phase run, the same work in other pages: 1,600 mem aborts before, 400 now (90.9 % of the change);",
        "Phase run, instructions before: 80.0 % per page, 15.0 % per byte (clear_page), 5.0 % neither. Pages have 16 KiB \
         instead of 4 KiB. Per page: functions that execute a quarter as many instructions now. Per byte: functions \
         that are entered a quarter as often now, and execute as many.",
    ] {
        assert!(text.contains(wanted), "{text}");
    }
    let text = said([4 << 10, 64 << 10], [1600.0, 400.0], 10.0);
    assert!(text.contains("not the same work: 1,600 mem aborts"), "{text}");
    assert!(text.contains("execute 1/16 as many instructions now"), "{text}");
    let text = said([16 << 10, 4 << 10], [400.0, 1600.0], 10.0);
    assert!(text.contains("entered 4 times as often now"), "{text}");
    let text = said([4 << 10, 16 << 10], [1600.0, 400.0], 1e9);
    assert!(!text.contains("per page"), "{text}");
}

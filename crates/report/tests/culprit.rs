//! What a search for a commit found, as text, mail, page, JSON and log of `git bisect`.

mod common;

use common::{blocks, compared};
use culprit::{Commit, Culprit, Findings, LevelChange, Phase, Proof, SearchEnding, Tried};
use insta::assert_snapshot;

fn commit(place: usize, subject: &str) -> Commit {
    Commit { id: format!("{place:02x}").repeat(20), subject: subject.into(), place }
}

fn tried(place: usize, subject: &str, figures: &[f64], left: usize) -> Tried {
    let commit = commit(place, subject);
    let reach = (!figures.is_empty()).then_some(0.8);
    Tried { commit, figures: figures.into(), reach, problem: None, left, same_as: None }
}

/// Returns findings with one proven culprit in a range of 64 commits.
fn found() -> Findings {
    let [good, bad] = [commit(1, "Linux 6.1"), commit(64, "last")];
    let culprit = commit(40, "mm: add <b>work</b> to \u{1b}[31mthe fault path");
    let subject = culprit.subject.clone();
    let lost = Tried {
        problem: Some("does not build: mm/a.c:1:2: error: broken".into()),
        ..tried(33, "half a change", &[], 63)
    };
    let same = Tried { same_as: Some(good.id.clone()), ..tried(20, "comment", &[31.0], 32) };
    Findings {
        tree: "/home/user/linux".into(),
        names: ["v6.1".into(), "HEAD".into()],
        ends: [good.clone(), bad.clone()],
        workload: "truncate".into(),
        arch: "x86_64",
        exact: true,
        signal: "instructions of handle_mm_fault per entry in phase touch".into(),
        share: Some(0.76),
        phase: Some(Phase {
            signal: "kernel instructions in phase touch".into(),
            change: LevelChange {
                levels: [162_345_678.0, 170_296_884.0],
                floor: Some(1_266_000.0),
            },
        }),
        emulated: false,
        commits: 63,
        options: 0,
        code: None,
        posterior: Vec::new(),
        without_effect: 41,
        tried: vec![
            tried(1, "Linux 6.1", &[31.0, 31.5, 30.5], 63),
            tried(64, "last", &[41.0, 41.5, 40.5], 63),
            lost,
            same,
            tried(40, &subject, &[41.0], 2),
        ],
        kernels: 4,
        boots: 7,
        ending: SearchEnding::Found,
        floor: Some(0.75),
        culprits: vec![Culprit {
            commits: vec![(culprit, 1.0)],
            parents: vec![commit(39, "").id],
            before: commit(20, "comment"),
            after: bad,
            levels: [31.0, 41.0],
            with: Vec::new(),
            author: Some("2026-11-23 A U Thor <author@example.com>".into()),
            proof: Some(Proof {
                experiment: 12,
                parent: commit(39, "").id,
                step: Some(LevelChange { levels: [31.0, 41.0], floor: Some(0.75) }),
                reverted: Ok(LevelChange { levels: [41.0, 31.25], floor: Some(0.75) }),
                instructions: None,
                aligned: None,
                functions: Ok(vec!["handle_mm_fault".into()]),
            }),
        }],
        left: Vec::new(),
        reference: Some(("v5.15".into(), Some(40.8))),
    }
}

#[test]
fn a_proven_culprit() {
    assert_snapshot!(report::culprit(&found()));
    assert_snapshot!(report::culprit_mail(&found(), &[], "faultline culprit --tree ~/linux", &[]));
    assert_snapshot!(report::bisect_log(&found()));
}

#[test]
fn several_steps_and_sets_of_commits() {
    let mut found = found();
    let mut set = found.culprits[0].clone();
    set.commits = (50..75).map(|place| (commit(place, "x"), 0.04)).collect();
    set.levels = [41.0, 43.5];
    (set.author, set.proof) = (None, None);
    found.culprits[0].levels = [31.0, 37.0];
    let proof = found.culprits[0].proof.as_mut().unwrap();
    proof.reverted = Err("revert aaaaaaaaaaaa does not apply: mm/memory.c:12".into());
    proof.step = Some(LevelChange { levels: [31.0, 37.0], floor: Some(1.5) });
    proof.functions = Ok(Vec::new());
    proof.instructions = Some(Ok(LevelChange { levels: [1e6, 1e6], floor: Some(1000.0) }));
    proof.aligned = Some(Ok(LevelChange { levels: [31.0, 31.2], floor: Some(0.75) }));
    found.culprits.push(set);
    assert_snapshot!(report::culprit(&found));
    assert!(report::culprit_mail(&found, &[], "", &[]).starts_with("Subject: truncate: "));
}

#[test]
fn the_mail_has_the_rows_of_a_proof_that_have_a_verdict() {
    let [parent, culprit] = [(1.0, 1), (1.5, 2)].map(|(scale, seed)| blocks(4, scale, seed));
    let proof = compared(&[("parent", &parent), ("culprit", &culprit)]);
    let mail = report::culprit_mail(&found(), &[proof], "faultline culprit", &["culprit.txt"]);
    assert!(mail.contains("\nOn request: culprit.txt.\n"), "{mail}");
    let (_, proof) = mail.split_once("\nProof of 282828282828 (\"mm: add").unwrap();
    let (proof, compared) = proof.split_once("\nWhat was compared:\n").unwrap();
    assert!(proof.contains("\nVerdicts on culprit against parent: margin 1 %, "), "{proof}");
    assert!(proof.contains("\nAmean ") && !proof.contains("\nMin "), "{proof}");
    assert!(compared.contains("\nTo reproduce:\n  faultline culprit\n"), "{compared}");
    assert!(mail.lines().all(|line| line.len() < 78), "{mail}");
}

#[test]
fn a_used_up_budget_leaves_the_likeliest_commits() {
    let mut found = found();
    let left = [(40, 0.5), (41, 0.3), (39, 0.13)];
    found.left = left.map(|(place, share)| (commit(place, "x"), share)).to_vec();
    found.culprits.clear();
    (found.ending, found.exact) = (SearchEnding::Budget, false);
    assert_snapshot!(report::culprit(&found));
    assert!(report::culprit_page(&found).contains("one of 3 commits, probability 93.0 %"));
}

/// The range has one option after 63 commits.
#[test]
fn an_option_is_named_with_its_values() {
    let mut found = found();
    let option = Commit { id: "CONFIG_HZ_1000".into(), subject: "n -> y".into(), place: 70 };
    let end = Commit { id: "CONFIG_OLD".into(), subject: "y -> n".into(), place: 80 };
    found.names = ["v6.1 with debian:6.1", "HEAD with debian:6.12"].map(String::from);
    (found.options, found.code, found.reference, found.share) = (16, Some(33.0), None, Some(1.0));
    found.ends[1] = end.clone();
    found.tried[1].commit = end;
    found.tried[4].commit = option.clone();
    found.tried[3].same_as = Some("CONFIG_HZ_1000".into());
    let culprit = &mut found.culprits[0];
    culprit.commits = vec![(option, 1.0)];
    culprit.with = vec!["CONFIG_HZ: 250 -> 1000".into()];
    (culprit.author, culprit.parents) = (None, Vec::new());
    assert_snapshot!(report::culprit_mail(&found, &[], "faultline culprit", &[]));
    let page = report::culprit_page(&found);
    assert!(page.contains(">commit or option</th>") && page.contains("HZ: 250 -&gt; 1000"));
    (found.commits, found.without_effect, found.share) = (0, 0, None);
    let text = report::culprit(&found);
    assert!(text.replace('\n', " ").contains("; not beyond luck, but the function's cost is "));
    assert!(text.contains("debian:6.12: 15 ruled out by readings, 1 left.\n4 "));
    assert!(text.contains("place  option ") && text.contains("  change\n"), "{text}");
}

#[test]
fn searches_without_an_answer_say_why() {
    let none = |ending| Findings { ending, culprits: Vec::new(), reference: None, ..found() };
    let first = |ending| report::culprit(&none(ending)).lines().next().unwrap().to_owned();
    let [same, hidden, end, budget] = [
        SearchEnding::NoDifference,
        SearchEnding::Hidden,
        SearchEnding::NoEnd("aaaa does not build".into()),
        SearchEnding::Budget,
    ]
    .map(first);
    assert_eq!(same, "The ends do not differ beyond luck: there is no commit to find.");
    let noisy = Findings { exact: false, ..none(SearchEnding::NoDifference) };
    let noisy = report::culprit(&noisy);
    assert!(noisy.contains("beyond noise") && noisy.contains("More boots of the ends"), "{noisy}");
    assert!(hidden.starts_with("Not found: luck hides"), "{hidden}");
    assert_eq!(end, "Not found: aaaa does not build");
    assert!(budget.contains("Run the same command again"), "{budget}");
}

#[test]
fn a_page_escapes_what_commits_say() {
    let page = report::culprit_page(&found());
    assert!(
        page.contains("mm: add &lt;b&gt;work")
            && !page.contains("<b>work")
            && !page.contains('\u{1b}')
    );
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/culprit.html");
    std::fs::write(path, &page).unwrap();
    let json: serde_json::Value = serde_json::from_str(&report::culprit_json(&found())).unwrap();
    assert_eq!(json["culprits"][0]["commits"][0][0]["place"], 40);
    assert_eq!(json["ending"]["ending"], "found");
}

/// Returns the findings of a search in measured mode among 200 commits.
fn measured() -> Findings {
    let mut found = found();
    found.exact = false;
    (found.share, found.reference) = (Some(1.0), None);
    found.ends = [commit(0, "mm: change 0"), commit(200, "mm: change 200")];
    found.signal = "Time".into();
    found.commits = 200;
    found.posterior =
        (0..=200).map(|place| if (92..=95).contains(&place) { 0.02 } else { 0.0 }).collect();
    found.posterior[93] = 0.94;
    let noise = |place: usize, boot: usize| ((place * 37 + boot * 101) % 17) as f64 / 8.0 - 1.0;
    let figures = |place: usize, boots: usize| -> Vec<f64> {
        let level = if place < 93 { 100.0 } else { 103.0 };
        (0..boots).map(|boot| level + noise(place, boot)).collect()
    };
    let places = [(0, 8), (200, 8), (100, 2), (50, 1), (75, 1), (88, 3), (92, 4), (93, 4), (95, 3)];
    found.tried = places
        .map(|(place, boots)| Tried {
            reach: Some(2.0 / (boots as f64).sqrt()),
            ..tried(place, &format!("mm: change {place}"), &figures(place, boots), 200 / boots)
        })
        .into();
    let culprit = &mut found.culprits[0];
    culprit.commits =
        vec![(commit(93, "mm: change 93"), 0.94), (commit(92, "mm: change 92"), 0.02)];
    culprit.levels = [100.0, 103.0];
    (culprit.author, culprit.proof) = (None, None);
    found
}

#[test]
fn boots_in_groups_are_told() {
    let mut found = measured();
    let groups = "Boots of one kernel lie in groups";
    assert!(!report::culprit(&found).contains(groups));
    found.tried[1].figures =
        vec![106.2, 106.6, 100.7, 100.5, 99.7, 106.6, 107.0, 105.6, 100.1, 106.0, 99.9, 106.4];
    let text = report::culprit(&found);
    assert!(text.contains(groups), "{text}");
    assert!(text.contains(": 5 about 100.10, 7 about 106.40\n"), "{text}");
    assert!(report::culprit_page(&found).contains(groups));
    found.exact = true;
    assert!(!report::culprit(&found).contains(groups));
}

#[test]
fn a_page_of_measured_mode_has_intervals_and_probabilities() {
    let page = report::culprit_page(&measured());
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/culprit-measured.html");
    std::fs::write(path, &page).unwrap();
    assert_eq!(page.matches("class=\"interval\"").count(), 9);
    assert_eq!(page.matches("class=\"likely\"").count(), 4);
    assert!(page.contains("commit 93: 94.0 %"));
    assert!(report::culprit(&measured()).starts_with("One of 2 commits, probability 96.0 %"));
    let mut counted = found();
    counted.exact = false;
    let same = LevelChange { levels: [1e6, 1e6], floor: Some(1000.0) };
    counted.culprits[0].proof.as_mut().unwrap().instructions = Some(Ok(same));
    let text = report::culprit(&counted).replace("\n      ", " ");
    assert!(text.contains("1,000,000 -> 1,000,000 (0.00 %; within luck, floor 0.10 %)"), "{text}");
    assert!(text.contains("beyond noise, floor 2.42 %"), "{text}");
    // Exact mode has no probabilities.
    let exact = report::culprit_page(&found());
    assert!(exact.contains("class=\"interval\"") && !exact.contains("class=\"likely\""));
}

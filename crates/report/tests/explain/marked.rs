//! Explanations with functions marked by their code.

use code::{ChangedLine, ChangedPlace, CodeDifference, Function};
use compare::{Code, Difference, Explanation, Fact, Headline, Subject};
use model::{Boot, Place};

use super::{common, explained, kernels, text};

/// Returns the explanation of the two kernels, in which the code of these functions differs.
fn marked(causes: &[&str]) -> Explanation {
    marked_in(&kernels::new(), causes)
}

/// Returns such an explanation with other boots of the new kernel.
fn marked_in(new: &[Boot], causes: &[&str]) -> Explanation {
    let (explanation, _) = explained(&kernels::old(), new);
    let all = explanation.all.as_ref().unwrap().contributions.iter();
    let names = all.filter_map(|it| match &it.subject {
        Subject::Function { name, .. } => Some(name.clone()),
        _ => None,
    });
    let (differ, same) = names.partition::<Vec<_>, _>(|name| causes.contains(&name.as_str()));
    let function = |name: String| Function {
        inlined: (name == "vmstat_update").then(|| "fold_diff".into()),
        ..common::changed(&name)
    };
    let functions = differ.into_iter().map(function).collect();
    explanation.with_code(Ok(CodeDifference { functions, same: same.into_iter().collect() }))
}

#[test]
fn causes_are_named_first() {
    let explanation = marked(&["vmstat_update", kernels::PLANTED]);
    insta::assert_snapshot!(text(&explanation, None));
    let page = report::explain_html(&explanation, &[], &compare::Paths::default(), None, None);
    assert!(page.contains("The code of 2 of the "), "{page}");
    assert!(page.contains("do_anonymous_page (code differs)"), "{page}");
    let json = report::explain_json(&explanation, &[], None).unwrap();
    assert!(json.contains("\"inlined\": \"fold_diff\""));
    assert!(json.contains("\"code\": \"differs\"") && json.contains("\"code\": \"same\""));
    assert!(json.contains("\"code_unknown\": null"));
}

#[test]
fn functions_that_one_side_instruments_are_counted() {
    let mut explanation = marked(&["vmstat_update", kernels::PLANTED]);
    let said = |it: &Explanation| text(it, None).replace('\n', " ");
    assert!(!said(&explanation).contains("instrumentation"));
    let all = &mut explanation.measured.as_mut().unwrap().contributions;
    let causes = all.iter_mut().filter(|it| it.code == Some(Code::Differs));
    for (it, kind) in causes.zip(["UBSAN", "the stack protector"]) {
        it.instrumentation.gained.insert(kind);
    }
    let told =
        "2 of these 2 functions differ in instrumentation: UBSAN (1), the stack protector (1).";
    let said = said(&explanation);
    assert!(said.contains(told), "{said}");
}

/// A function that only one kernel has is none whose code differs.
#[test]
fn functions_of_one_kernel_are_counted_apart() {
    let mut explanation = marked(&["vmstat_update", "get_page_from_freelist", kernels::PLANTED]);
    let said = |it: &Explanation| text(it, None).replace('\n', " ");
    assert!(said(&explanation).contains("The code of 3 of the 202 functions executed differs;"));
    let told = [
        "The code of 2 of the 201 functions executed that both kernels have differs; 1 more is in one kernel only; own",
        "The code of 1 of the 200 functions executed that both kernels have differs; 2 more are in one kernel only; own",
        "The code of none of the 199 functions executed that both kernels have differs; 3 more are in one kernel only; own",
    ];
    for told in told {
        let all = &mut explanation.measured.as_mut().unwrap().contributions;
        let it = all.iter_mut().find(|it| it.code == Some(Code::Differs)).unwrap();
        it.code = Some(Code::New);
        assert!(said(&explanation).contains(told), "{}", said(&explanation));
    }
}

#[test]
fn the_line_of_a_cause_is_named() {
    let line = |of_base| ChangedLine { place: "mm/memory.c:3312".into(), of_base, mostly: true };
    let placed = |causes: &[&str], inlined: Option<&str>, of_base| {
        let place = ChangedPlace { inlined: inlined.map(str::to_owned), line: line(of_base) };
        let places = [(kernels::PLANTED.to_owned(), place)].into();
        let explanation = marked(causes).with_places(&places, vec!["6.1 has no lines".into()]);
        text(&explanation, None).replace('\n', " ")
    };
    let said = placed(&[kernels::PLANTED], Some("clear"), false);
    let told = "of the 202 functions executed differs. clear, inlined in do_anonymous_page, \
                mm/memory.c:3312: 40.00 more an entry; own instructions +23,054,260.";
    assert!(said.contains(told), "{said}");
    assert!(said.contains("Not every line is named: 6.1 has no lines."), "{said}");
    let said = placed(&["vmstat_update", kernels::PLANTED], None, true);
    let told = "do_anonymous_page (mm/memory.c:3312 before) +23,054,260 (+40.00 per entry)";
    assert!(said.contains(told), "{said}");
}

#[test]
fn a_single_cause_is_the_first_answer() {
    let explanation = marked(&[kernels::PLANTED]);
    let kernel = Difference { base: 1000.0, new: 1300.0, floor: Some(10.0) };
    let headline = |only_cause: Option<&str>| Headline {
        followed: false,
        listed: false,
        only_cause: only_cause.map(str::to_owned),
        ..common::headline("run", kernel, None)
    };
    let said = |headline: Headline| {
        let text = report::explain(&explanation, &[headline], None, 10);
        text.split("\n\n").nth(1).unwrap().replace('\n', " ")
    };
    let said_of = said(headline(Some(kernels::PLANTED)));
    let first = "The code of one of the 202 functions executed differs; own instructions: do_anonymous_page +";
    assert!(said_of.starts_with(first), "{said_of}");
    let alone = "30.00 % more kernel instructions: beyond luck; the code of do_anonymous_page alone differs.";
    assert!(said_of.contains(alone) && !said_of.contains("4 seeds"), "{said_of}");
    assert!(said(headline(None)).contains("naming the function takes 4 seeds a side"));
}

/// The new kernel enters one function more often, at the same cost per entry.
#[test]
fn causes_are_ranked_by_their_part_of_the_change() {
    let mut new = kernels::new();
    for profile in new.iter_mut().flat_map(|boot| &mut boot.profiles) {
        profile.costs = profile.costs.with_values(|place, cell| match place {
            Place::Function { name, .. } if **name == *"vmstat_update" => 100 * cell.value,
            _ => cell.value,
        });
    }
    let said = text(&marked_in(&new, &["vmstat_update", kernels::PLANTED]), None);
    let said = said.replace('\n', " ");
    let often = "own instructions: vmstat_update (inlined from fold_diff) +";
    assert!(said.contains(often), "{said}");
    assert!(said.contains(" now), do_anonymous_page +23,054,260 (+40.00 per entry)"), "{said}");
}

#[test]
fn kernels_with_the_same_code_have_no_cause() {
    let said = text(&marked(&[]), Some("fill"));
    assert!(said.contains("functions executed in phase fill differs."), "{said}");
    assert!(said.contains("The code of none of the "), "{said}");
    assert!(!said.contains("code that differs first"), "{said}");
}

#[test]
fn many_causes_are_not_all_named() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let all = explanation.all.unwrap();
    let names: Vec<String> = all.contributions.iter().map(|it| it.subject.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let said = |names: &[&str]| common::words(&text(&marked(names), None));
    assert!(said(&names).contains(", 197 more."), "{}", said(&names));
    // A function that was renamed has one entry in the list.
    let renamed = ["do_anonymous_page", "lru_cache_add", "folio_add_lru"];
    let said = said(&renamed);
    assert!(said.contains("entry), lru_cache_add with folio_add_lru -499."), "{said}");
}

#[test]
fn a_reason_is_given_where_the_code_is_not_known() {
    let (explanation, _) = explained(&kernels::old(), &kernels::new());
    let unmarked = Some("the cache no longer has mine".into());
    let values = ["0x0000", "0x0007"].map(|it| Some(it.to_owned())).to_vec();
    let states = vec![Fact { name: "MGLRU", values }];
    let said = text(&Explanation { unmarked, states, ..explanation }, None);
    let state =
        "6.12 ran in another state: MGLRU is 0x0007 instead of 0x0000. A part of the change";
    assert!(said.contains(state), "{said}");
    let told = "Functions are not marked by their code: the cache no longer has mine.";
    assert!(said.contains(told), "{said}");
    assert!(!said.contains("code differs"), "{said}");
}

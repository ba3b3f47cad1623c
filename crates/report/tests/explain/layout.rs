//! Layouts of types in both kernels.

use compare::{Difference, Explanation, FieldCost, Layout, LayoutMember};
use model::Class;

use super::common::words;
use super::{explained, kernels, text};

fn layout(begins: &[u64], members: &[(&str, u64, u64)]) -> Layout {
    let member = |(name, offset, size): &(&str, u64, u64)| LayoutMember {
        name: (*name).into(),
        offset: *offset,
        size: *size,
        bits: (*name == "dumpable").then_some((3, 1)),
    };
    Layout { begins: begins.into(), members: members.iter().map(member).collect() }
}

fn field(field: &str, [base, new]: [f64; 2], writer: &str) -> FieldCost {
    let transfers = Difference { base, new, floor: Some(50.0) };
    let writers = || if writer.is_empty() { Vec::new() } else { vec![writer.to_owned()] };
    let (field, function) = (field.into(), "finish_task_switch".into());
    FieldCost { field, function, transfers, writers: [writers(), writers()] }
}

/// Fields of `mm_struct`, of which `mm_count` leaves the line of `membarrier_state`.
fn transferred() -> Explanation {
    let (mut explanation, _) = explained(&kernels::old(), &kernels::new());
    explanation.cost = Class::Transfer.cost();
    explanation.fields = vec![
        field("mm_struct.mm_count", [1675.0, 63.0], "mmdrop"),
        field("mm_struct.membarrier_state", [1440.0, 123.0], ""),
        field("mm_struct.mmap_lock.owner", [2584.0, 3285.0], "rwsem_down_write_slowpath"),
        field("mm_struct.dumpable", [200.0, 200.0], "do_exit"),
        field("[page]", [10.0, 20.0], ""),
    ];
    explanation
}

const BEFORE: [(&str, u64, u64); 5] = [
    ("mmap_base", 32, 8),
    ("membarrier_state", 80, 4),
    ("mm_count", 88, 4),
    ("dumpable", 92, 1),
    ("mmap_lock.owner", 120, 8),
];
const AFTER: [(&str, u64, u64); 5] = [
    ("mm_count", 0, 4),
    ("mmap_base", 80, 8),
    ("membarrier_state", 128, 4),
    ("a_field_with_a_name.that_is_too_long", 160, 8),
    ("mmap_lock.owner", 176, 8),
];

#[test]
fn both_layouts_stand_side_by_side() {
    let layouts = [layout(&[0], &BEFORE), layout(&[0], &AFTER)];
    let explanation = transferred().with_layouts(|_| Ok(vec![("mm_struct".into(), layouts)]));
    let text = text(&explanation, None);
    let (_, from) = text.split_once("Layout of mm_struct").unwrap();
    let (shown, _) = from.split_once("\n\n").unwrap();
    insta::assert_snapshot!(shown);
    let json = report::explain_json(&explanation, &[], None).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let side = &json["layouts"][0]["sides"][0];
    assert_eq!(side["lines"][0]["fields"][1]["name"], "mm_count");
    assert_eq!(json["layouts"][0]["parted"][0]["field"], "mm_struct.mm_count");
    let paths = compare::Paths::default();
    let page = report::explain_html(&explanation, &[], &paths, None, None);
    assert!(page.contains("--- line 1 (64) ---"));
}

#[test]
fn lines_are_not_drawn_where_objects_begin_anywhere() {
    let layouts = [layout(&[0, 16, 32, 48], &BEFORE), layout(&[], &AFTER)];
    let explanation = transferred().with_layouts(|_| Ok(vec![("mm_struct".into(), layouts)]));
    let said = words(&text(&explanation, None));
    assert!(!said.contains("--- line"), "{said}");
    for told in [
        "Objects of mm_struct begin at 4 places of a line in 6.1, so what shares a line depends on the object",
        "The boots of 6.12 do not say where in a line objects of mm_struct begin",
    ] {
        assert!(said.contains(told), "{said}");
    }
    // Bytes 80 and 88 of an object that begins at byte 40 of a line are on two lines.
    let layouts = [layout(&[0, 40], &BEFORE), layout(&[0, 40], &AFTER)];
    let explanation = transferred().with_layouts(|_| Ok(vec![("mm_struct".into(), layouts)]));
    let said = words(&text(&explanation, None));
    let told = "`mm_struct.mm_count` shares a line with `mmap_lock.owner` in 6.1, not in 6.12, and with \
                `membarrier_state` in 50 % of the places of an object in 6.1, in 0 % in 6.12: 1,612 transfers fewer.";
    assert!(said.contains(told), "{said}");
}

#[test]
fn unknown_layouts_have_a_reason() {
    let explanation = transferred().with_layouts(|_| Err("the cache no longer has 6.1".into()));
    let said = words(&text(&explanation, None));
    assert!(said.contains("Layouts are not known: the cache no longer has 6.1."), "{said}");
}

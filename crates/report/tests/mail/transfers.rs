//! Lines of memory that CPUs took from each other, in a mail.

use compare::{Difference, FieldCost, Layout, LayoutMember};
use model::Class;

use super::cause::explained;
use super::*;

fn field(field: &str, [base, new]: [f64; 2]) -> FieldCost {
    let transfers = Difference { base, new, floor: Some(50.0) };
    FieldCost {
        field: field.into(),
        function: "finish_task_switch".into(),
        transfers,
        writers: Default::default(),
    }
}

fn layout(members: [(&str, u64); 2]) -> Layout {
    let member = |(name, offset): (&str, u64)| LayoutMember {
        name: name.into(),
        offset,
        size: 4,
        bits: None,
    };
    Layout { begins: vec![0], members: members.map(member).into() }
}

#[test]
fn fields_and_what_shares_their_lines_are_named() {
    let mut it = explained();
    let mut transfers = it.explanation.clone();
    transfers.cost = Class::Transfer.cost();
    let section = transfers.measured.as_mut().or(transfers.all.as_mut()).unwrap();
    section.totals.kernel = Difference { base: 30_303.0, new: 38_609.0, floor: Some(900.0) };
    transfers.fields = vec![
        field("mm_struct.mm_count", [1675.0, 63.0]),
        field("mm_struct.membarrier_state", [1440.0, 123.0]),
        field("[page]", [60.0, 70.0]),
    ];
    let layouts = [
        layout([("membarrier_state", 80), ("mm_count", 88)]),
        layout([("mm_count", 0), ("membarrier_state", 128)]),
    ];
    let transfers = transfers.with_layouts(|_| Ok(vec![("mm_struct".into(), layouts)]));
    it.transfers = Some(transfers);
    let mut case = two(Mode::Exact, 1.2);
    case.explained = vec![it];
    let said = common::words(&case.mail(|_| ()).0);
    for told in [
        "took 27.41 % more lines from other CPUs: ",
        "Neither figure is time.",
        "Transfers by field, beyond luck (at most 5 % of these by luck): `mm_struct.mm_count` 1,675 before, 63 now \
         and `mm_struct.membarrier_state` 1,440 before, 123 now.",
        "`mm_struct.mm_count` shares a line with `membarrier_state` in 6.1.174, not in 6.12: 1,612 transfers \
         fewer.",
    ] {
        assert!(said.contains(told), "{told}\n{said}");
    }
    case.explained[0].transfers = None;
    assert!(!case.mail(|_| ()).0.contains("ransfers"));
}

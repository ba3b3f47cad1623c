//! Rows of transparent huge pages.

use super::Expr::{Counter, First};
use super::{Derived, Expr, Section};

const fn row(
    label: &'static str,
    formula: Expr,
    unit: &'static str,
    note: &'static str,
) -> Derived {
    Derived::count(Section::Thp, label, formula, unit, note)
}

pub(super) static ROWS: &[Derived] = &[
    row("THP fault alloc", Counter("thp_fault_alloc"), "huge pages", ""),
    row("THP fault fallback", Counter("thp_fault_fallback"), "faults", ""),
    row("THP collapse alloc", Counter("thp_collapse_alloc"), "huge pages", ""),
    row("THP collapse fail", Counter("thp_collapse_alloc_failed"), "events", ""),
    row(
        "THP split",
        First(&[Counter("thp_split_page"), Counter("thp_split")]),
        "huge pages",
        "Until 4.4 a split of the mapping was one of the page too; since 4.5 `thp_split_pmd` \
         counts splits of mappings alone.",
    ),
    row("THP split failed", Counter("thp_split_page_failed"), "events", ""),
];

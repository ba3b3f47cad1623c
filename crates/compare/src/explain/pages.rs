//! What of a phase's instructions depends on the number of pages, where two kernels have pages of different sizes.

use serde::Serialize;

use super::{Contribution, Section, Subject};

/// Numbers are taken as equal if they differ by less than this share.
const CLOSE: f64 = 0.1;
/// Functions that work by bytes are named if they have at least this share of a phase.
const NOTABLE: f64 = 0.01;

/// The kernel's instructions of a phase in the baseline, by what their number depends on: as shares of all. Functions that
/// are in neither share have the rest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ByPages {
    /// The size of a base page in bytes on both sides.
    pub sizes: [u64; 2],
    /// Functions whose instructions changed as the number of pages does.
    pub per_page: f64,
    /// Functions that executed as many, but whose entries changed as the number of pages does.
    pub per_byte: f64,
    /// The names of those, the largest first.
    pub by_bytes: Vec<String>,
}

impl ByPages {
    /// The number of pages that hold as many bytes, as a multiple of the baseline's.
    pub fn factor(&self) -> f64 {
        self.sizes[0] as f64 / self.sizes[1] as f64
    }

    /// Whether a figure changed as the number of pages does.
    pub fn follows(&self, [base, new]: [f64; 2]) -> bool {
        is_close(new, base * self.factor())
    }
}

/// Divides the instructions of a phase, for pages of these sizes.
pub fn by_pages(section: &Section, sizes: [u64; 2]) -> ByPages {
    let mut found = ByPages { sizes, per_page: 0.0, per_byte: 0.0, by_bytes: Vec::new() };
    let all = section.totals.kernel.base;
    let mut functions: Vec<(&str, &Contribution)> = section
        .contributions
        .iter()
        .filter_map(|it| match &it.subject {
            Subject::Function { name, .. } => Some((&**name, it)),
            _ => None,
        })
        .collect();
    functions
        .sort_by(|(_, one), (_, other)| other.instructions.base.total_cmp(&one.instructions.base));
    for (name, function) in functions {
        let Contribution { instructions, calls, .. } = function;
        let entries = calls.as_ref().map(|it| [it.entries.base, it.entries.new]);
        let share = instructions.base / all;
        let is_same = is_close(instructions.new, instructions.base);
        match entries {
            _ if found.follows([instructions.base, instructions.new]) => found.per_page += share,
            Some(entries) if is_same && found.follows(entries) => {
                found.per_byte += share;
                found.by_bytes.extend((share >= NOTABLE).then(|| name.to_owned()));
            }
            _ => {}
        }
    }
    found
}

/// Whether one number is near another one that is not 0.
fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() < CLOSE * other
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::{all, executed};

    /// 64 KiB are mapped, cleared and read with pages of 4 and of 16 KiB.
    #[test]
    fn functions_are_told_apart_by_instructions_and_entries() {
        let of = |pages: u64| {
            executed(&[
                ("map", "", pages, pages * 300),
                ("clear", "", pages, 16 * 1024 / pages * pages),
                ("loop", "", 1, pages * 500 + 20),
                ("call", "", 3, 300),
                ("other", "", 3, pages * 7 + 2000),
            ])
        };
        let section = all(&[of(16), of(16)], &[of(4), of(4)]);
        let kernel = section.totals.kernel.base;
        let found = by_pages(&section, [4 << 10, 16 << 10]);
        assert_eq!(found.factor(), 0.25);
        assert_eq!(found.by_bytes, ["clear"]);
        let sums = [found.per_page, found.per_byte].map(|it| (it * kernel).round());
        assert_eq!(sums, [16.0 * 300.0 + 8020.0, 16.0 * 1024.0]);
        assert!(found.follows([16.0, 4.0]) && !found.follows([16.0, 5.0]));
        assert!(!found.follows([0.0, 0.0]));
    }
}

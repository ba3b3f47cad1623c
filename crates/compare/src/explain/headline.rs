//! One sentence per phase: by how much the kernel's instructions changed, and the function that holds the
//! change.

use std::collections::HashMap;

use model::{INSTRUCTIONS, WorkloadUse, is_by_path};
use serde::Serialize;

use super::asked::{Asked, with_instructions};
use super::common::CommonCallee;
use super::held::{Divided, Held, Holder, KernelThread};
use super::holder::{self, HALF, NOTABLE};
use super::joined;
use super::pages::{ByPages, by_pages};
use super::{Contribution, Explanation, LeftOut, Paths, Section, Span, Subject};
use crate::{Difference, FEWEST_FOR_LISTS};

/// The change of the kernel's cost in one phase, and the function that holds it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headline {
    /// The phase's name.
    pub phase: String,
    /// The kernel's cost, at equal entries if luck hides the change of the total.
    pub kernel: Difference,
    /// The unit of the cost.
    pub unit: String,
    /// The function that holds the change; `None` if luck explains the change, or no function holds it.
    pub function: Option<Holder>,
    /// The functions between which the change divides: callees of the function that holds it, or functions that are
    /// called first where no function holds it. `None` if call paths were not recorded, or one function is the answer.
    pub divided: Option<Divided>,
    /// The system calls and exceptions of the phase, the most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// What depends on the number of pages. `None` if both kernels have pages of one size, or the cost is not instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<ByPages>,
    /// Functions whose changes offset each other in the phase: work may have moved between them.
    pub offset: Vec<[String; 2]>,
    /// The function that many others call, and that has much of the change; `None` if there is none besides those that the
    /// headline names, and at equal entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common: Option<CommonCallee>,
    /// Kernel threads that ran in the phase, the one with the largest change first. Empty if the change is not beyond luck
    /// or call paths were not recorded.
    pub threads: Vec<KernelThread>,
    /// Whether [`Headline::kernel`] is at equal entries.
    pub at_equal_entries: bool,
    /// The kernel's cost as counted, if luck hides its change; `None` if [`Headline::kernel`] is this cost.
    pub counted: Option<Difference>,
    /// The functions that have no part in a figure at equal entries, if their change is a notable part of it.
    pub left_out: Vec<LeftOut>,
    /// Whether call paths were recorded; false where the change is not beyond luck.
    pub followed: bool,
    /// Whether call paths can have this cost. They have no entries, nor instructions of a class.
    pub by_path: bool,
    /// Whether there are enough seeds for lists of functions.
    pub listed: bool,
    /// The only function executed in the phase whose code differs; `None` if there are more or none, or if that is not
    /// known.
    pub only_cause: Option<String>,
    /// Whether both sides are boots of one variant, so that luck alone makes them differ.
    pub of_one_variant: bool,
    /// Whether both sides booted the same kernel.
    pub one_kernel: bool,
}

impl Headline {
    /// The functions that the headline names: the one that holds the change, then those between which it divides.
    pub fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.function.iter().chain(self.divided.iter().flat_map(|it| &it.parts))
    }

    /// Marks the functions in its holders by their code and by luck, as far as these are known in `section`, which is that of
    /// its phase.
    pub(super) fn add_code(&mut self, section: &Section) {
        let known = section.contributions.iter().filter_map(|it| match &it.subject {
            Subject::Function { name, module } if module.is_empty() => Some((&**name, it)),
            _ => None,
        });
        let known: HashMap<&str, &Contribution> = known.collect();
        let divided = self.divided.iter_mut().flat_map(|it| &mut it.parts);
        let holders = self.function.iter_mut().chain(divided);
        for part in holders.flat_map(|it| &mut it.parts) {
            let own = known.get(&*part.name);
            part.code = own.and_then(|it| it.code);
            part.is_on_both =
                own.is_some_and(|it| it.instructions.base.min(it.instructions.new) > 0.0);
            let own = own.and_then(|it| it.is_beyond_luck());
            let other = part.with.as_ref().map(|it| known.get(&**it)?.is_beyond_luck());
            // What two functions have together has another floor than each.
            part.beyond_luck = match (own, other) {
                _ if !self.listed => None,
                (own, None) => own,
                (Some(false), Some(Some(false))) => Some(false),
                _ => None,
            };
        }
    }
}

/// The headlines of the phases that `used` measures. `paths` gives the paths of a phase.
pub fn headlines(
    explanation: &Explanation,
    used: &WorkloadUse,
    paths: impl Fn(&str) -> Paths,
) -> Vec<Headline> {
    let measured = explanation.phases.iter().filter_map(|section| {
        let phase = section.phase.as_deref()?;
        let Difference { base, new, .. } = section.totals.kernel;
        let is_judged =
            Span::Measured.has(phase, used) && !section.is_of_one_side() && base + new > 0.0;
        is_judged.then_some((phase, section))
    });
    let seeds = explanation.base.seeds.min(explanation.new.seeds);
    let listed = seeds >= FEWEST_FOR_LISTS as usize;
    let headline = |(phase, section): (&str, &Section)| {
        let hidden = section.totals.hidden();
        let kernel = *hidden.unwrap_or(&section.totals.kernel);
        let at_equal_entries = hidden.is_some();
        let is_beyond = kernel.beyond_luck() == Some(true);
        let paths = paths(phase);
        let pairs = joined::pairs(section, &paths);
        let paths = Some(paths).filter(|_| is_beyond);
        let followed = paths.as_ref().is_some_and(|paths| paths.followed);
        let asked = with_instructions(&section.asked, paths.as_ref());
        let held = paths.map(|paths| match paths.followed {
            true => holder::by_calls(section, &paths, &pairs),
            false => Held { function: holder::own(section), ..Held::default() },
        });
        let Held { function, divided, common, threads } = held.unwrap_or_default();
        let offset = pairs.into_iter().filter(|(one, other)| one < other);
        let offset: Vec<[String; 2]> = offset.map(|(one, other)| [one, other]).collect();
        let (function, divided) = match at_equal_entries {
            // Paths and totals are not at equal entries; only the cost of an entry is.
            true => {
                let parts = divided.into_iter().flat_map(|it| it.parts);
                let dearest = holder::dearest(section, &offset);
                let mut all = function.into_iter().chain(parts).chain(dearest);
                (all.find_map(|it| share_at_equal_entries(it, &kernel)), None)
            }
            false => (function, divided),
        };
        let is_notable = |it: &&LeftOut| it.change.abs() >= NOTABLE * kernel.change().abs();
        let left_out = section.left_out.iter().filter(|_| at_equal_entries).filter(is_notable);
        let phase = phase.to_owned();
        let unit = explanation.cost.unit.clone();
        let by_path = is_by_path(&explanation.cost.name);
        let sizes = explanation.pages.filter(|_| explanation.cost.name == INSTRUCTIONS);
        let mut headline = Headline {
            phase,
            kernel,
            unit,
            function,
            divided,
            asked,
            pages: sizes.map(|sizes| by_pages(section, sizes)),
            offset,
            common: common.filter(|_| !at_equal_entries),
            threads,
            at_equal_entries,
            counted: at_equal_entries.then_some(section.totals.kernel),
            left_out: left_out.cloned().collect(),
            followed,
            by_path,
            listed,
            only_cause: section.only_cause().map(|it| it.subject.to_string()),
            of_one_variant: explanation.of_one_variant,
            one_kernel: explanation.one_kernel,
        };
        headline.add_code(section);
        headline
    };
    measured.map(headline).collect()
}

/// Gives the holder of a change its share of the phase's change at equal entries. `None` if it has no entries, or less
/// than half of that change.
fn share_at_equal_entries(holder: Holder, kernel: &Difference) -> Option<Holder> {
    let [before, now] = holder.entries?;
    let per_entry = holder.instructions[1] / now - holder.instructions[0] / before;
    let share = per_entry * (before + now) / 2.0 / kernel.change();
    (share >= HALF).then_some(Holder { share, ..holder })
}

#[cfg(test)]
mod tests {
    use model::Boot;

    use super::super::Path;
    use super::super::tests::{executed, explained};
    use super::*;
    use crate::testing::{manifest, used};

    /// A loop whose cost is luck changes more than the function that became dearer, and the other way round. It has no part
    /// in the figure at equal entries, and the other function is named.
    #[test]
    fn a_cost_that_is_luck_is_left_out_and_named() {
        let seeds = |cost: u64, order: [u64; 5]| -> Vec<Boot> {
            let of = |work: u64| {
                executed(&[("read", "", 100, 100 * cost), ("refill", "", 10, 1000 * work)])
            };
            order.map(of).into()
        };
        let explanation = explained(&seeds(100, [1, 9, 2, 8, 40]), &seeds(130, [2, 1, 8, 2, 9]));
        let path = |name: &str, [base, new]: [f64; 2]| Path {
            frames: ["kernel", name].map(str::to_owned).into(),
            base,
            new,
        };
        let paths = Paths {
            followed: true,
            paths: vec![path("read", [10_000.0, 13_000.0]), path("refill", [12_000.0, 4_400.0])],
        };
        let used = used(manifest());
        let [headline] = &headlines(&explanation, &used, |_| paths.clone())[..] else { panic!() };
        assert!(headline.at_equal_entries);
        let counted = headline.counted.unwrap();
        assert_eq!((counted.base, counted.new), (22_000.0, 17_400.0));
        let left_out = LeftOut { function: "refill".into(), change: -7600.0 };
        assert_eq!(headline.left_out, [left_out]);
        let holder = headline.function.as_ref().unwrap();
        assert_eq!((&*holder.name, holder.share), ("read", 1.0));
    }

    /// A thread that runs by luck hides a change of the total. The function that became dearer is named all the same.
    #[test]
    fn a_part_of_a_change_is_named_at_equal_entries() {
        let seeds = |cost: u64| -> Vec<Boot> {
            let of = |scans: u64| {
                executed(&[("read", "", 100, 100 * cost), ("scan", "", scans, 100 * scans)])
            };
            [10, 90, 40, 20, 70].map(of).into()
        };
        let explanation = explained(&seeds(100), &seeds(130));
        let path = |frames: [&str; 2], [base, new]: [f64; 2]| Path {
            frames: frames.map(str::to_owned).into(),
            base,
            new,
        };
        let paths = Paths {
            followed: true,
            paths: vec![
                path(["kernel", "read"], [10_000.0, 13_000.0]),
                path(["kernel", "scan"], [4_200.0, 5_000.0]),
            ],
        };
        let used = used(manifest());
        let [headline] = &headlines(&explanation, &used, |_| paths.clone())[..] else { panic!() };
        assert!(headline.at_equal_entries && headline.divided.is_none());
        let holder = headline.function.as_ref().unwrap();
        assert_eq!((&*holder.name, holder.share), ("read", 1.0));
    }
}

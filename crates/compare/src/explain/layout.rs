//! Where the fields lie whose lines CPUs take from each other: the layouts of their type in both kernels.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Explanation, FieldCost};
use crate::Difference;

/// The bytes of a line.
pub const LINE: u64 = 64;
/// Most types whose layouts are compared.
const MOST_TYPES: usize = 3;
/// The least share of the change of all types that such a type has.
const LEAST_CHANGE: f64 = 0.1;
/// Most lines of a side.
const MOST_LINES: usize = 6;
/// A line is listed if it has at least this share of the type's transfers.
const LEAST_OF_LINE: f64 = 0.05;
/// A field is looked at as a neighbour if it has at least this share of the type's transfers.
const LEAST_OF_FIELD: f64 = 0.01;
/// Most fields of a type whose neighbours are named.
const MOST_PARTED: usize = 3;
/// Most neighbours that are named for each of them.
const MOST_OTHERS: usize = 3;

/// The layouts of types in both kernels. The error says why they are not known.
pub type Layouts = Result<Vec<(String, [Layout; 2])>, String>;

/// The layout of a type in one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Where in a line its objects can begin, in bytes; empty if that is not known.
    pub begins: Vec<u64>,
    /// Its fields in order of their offsets. Those of a union overlap.
    pub members: Vec<LayoutMember>,
}

/// A field in a layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutMember {
    /// Its name within the type. That of an array ends with `[]`, and stands for what is in its elements.
    pub name: String,
    /// Its first byte.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Of a bit field, its first bit in its first byte, and the number of bits.
    pub bits: Option<(u32, u32)>,
}

/// The layouts of a type around the fields whose transfers changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayoutChange {
    /// The type, or the per-CPU variable.
    #[serde(rename = "type")]
    pub name: String,
    /// The sum of the changes of its fields.
    pub change: f64,
    /// What is listed of both kernels.
    pub sides: [LayoutSide; 2],
    /// Fields that share a line with another field in one kernel and not in the other.
    pub parted: Vec<Parted>,
}

/// The part of a type's layout in which lines were transferred.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LayoutSide {
    /// Where in a line the objects can begin, in bytes. Only where there is one such place, the type has fixed lines.
    /// Empty if it is not known.
    pub begins: Vec<u64>,
    /// The lines with transfers. Without fixed lines, one with the fields that have transfers.
    pub lines: Vec<LayoutLine>,
    /// The lines with few transfers, which are left out, and the number of these.
    pub others: (usize, f64),
}

/// A line of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LayoutLine {
    /// Its number from the line in which an object begins; `None` without fixed lines.
    pub number: Option<u64>,
    /// The fields that lie in it.
    pub fields: Vec<LayoutField>,
}

/// A field of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayoutField {
    /// Its name within the type.
    pub name: String,
    /// Its first byte.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Of a bit field, its first bit in its first byte, and the number of bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<(u32, u32)>,
    /// The mean of its transfers over the seeds of this side. They count in its first line.
    pub transfers: f64,
}

/// A field whose neighbours differ between the kernels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parted {
    /// The field, with its type.
    pub field: String,
    /// Its transfers on both sides.
    pub transfers: Difference,
    /// The fields that share a line with it more often in one kernel, with the share of the places at which an object
    /// can begin for which they do, in both kernels. Those with the most transfers come first.
    pub with: Vec<(String, [f64; 2])>,
}

/// The type of a field and the field's name within it; `None` for memory without a type.
fn split(field: &str) -> Option<(&str, &str)> {
    field.split_once('.').filter(|_| !field.starts_with('['))
}

/// The types whose fields have most of the change, the largest change first.
fn changed_types(fields: &[FieldCost]) -> Vec<String> {
    let mut types = BTreeMap::<&str, f64>::new();
    let is_beyond = |it: &&FieldCost| it.transfers.beyond_luck() != Some(false);
    for (field, (name, _)) in
        fields.iter().filter(is_beyond).filter_map(|it| Some((it, split(&it.field)?)))
    {
        *types.entry(name).or_default() += field.transfers.change().abs();
    }
    let all: f64 = types.values().sum();
    let mut types: Vec<(&str, f64)> =
        types.into_iter().filter(|(_, size)| *size > 0.0 && *size >= LEAST_CHANGE * all).collect();
    types.sort_by(|one, other| other.1.total_cmp(&one.1));
    types.into_iter().take(MOST_TYPES).map(|(name, _)| name.to_owned()).collect()
}

impl Explanation {
    /// Adds the layouts of the types whose fields have most of the change. `layouts` gives those of types in both kernels,
    /// or says why they are not known.
    pub fn with_layouts(mut self, layouts: impl FnOnce(&[String]) -> Layouts) -> Self {
        let changed = changed_types(&self.fields);
        if changed.is_empty() {
            return self;
        }
        match layouts(&changed) {
            Ok(layouts) => {
                let changes = layouts.iter().filter_map(|(name, sides)| {
                    layout_change(name, sides.each_ref(), &self.fields)
                });
                self.layouts = changes.collect();
            }
            Err(why) => self.no_layouts = Some(why),
        }
        self
    }
}

/// Compares the layouts of a type. `None` if no field of it has transfers.
fn layout_change(name: &str, layouts: [&Layout; 2], fields: &[FieldCost]) -> Option<LayoutChange> {
    let own = fields.iter().filter_map(|it| {
        let (kind, field) = split(&it.field)?;
        (kind == name).then_some((field, it))
    });
    let own: Vec<(&str, &FieldCost)> = own.collect();
    let is_known = |(field, _): &(&str, &FieldCost)| {
        layouts.iter().any(|layout| layout.members.iter().any(|it| it.has(field)))
    };
    own.iter().any(is_known).then(|| {
        let parted = parted(&own, layouts);
        let told = parted.iter().filter_map(|it| split(&it.field));
        let told: Vec<&str> = told.map(|(_, field)| field).collect();
        let of_side = |side: usize| {
            let counted = own.iter().map(|(field, cost)| {
                let Difference { base, new, .. } = cost.transfers;
                (*field, [base, new][side])
            });
            listed(layouts[side], &counted.collect::<Vec<_>>(), &told)
        };
        LayoutChange {
            name: name.to_owned(),
            change: own.iter().map(|(_, it)| it.transfers.change()).sum(),
            sides: [of_side(0), of_side(1)],
            parted,
        }
    })
}

impl LayoutMember {
    /// Whether a field is this one, or in an element of it.
    fn has(&self, field: &str) -> bool {
        match self.name.ends_with("[]") {
            true => field.starts_with(&self.name),
            false => field == self.name,
        }
    }

    /// The first and the last line in which it lies, of an object that begins at this byte of a line.
    fn lines(&self, begins: u64) -> [u64; 2] {
        let first = begins + self.offset;
        [first, first + self.size.saturating_sub(1)].map(|byte| byte / LINE)
    }
}

/// The lines of a side in which transfers were counted. Those of the fields `told` are among them, however few it has.
fn listed(layout: &Layout, counted: &[(&str, f64)], told: &[&str]) -> LayoutSide {
    let Layout { begins, members } = layout;
    let transfers = |member: &LayoutMember| -> f64 {
        counted.iter().filter(|(field, _)| member.has(field)).map(|(_, count)| count).sum()
    };
    let field = |member: &LayoutMember, transfers: f64| LayoutField {
        name: member.name.clone(),
        offset: member.offset,
        size: member.size,
        bits: member.bits,
        transfers,
    };
    let [begin] = begins[..] else {
        let own = members.iter().map(|it| field(it, transfers(it))).filter(|it| it.transfers > 0.0);
        let fields: Vec<LayoutField> = own.collect();
        let lines = (!fields.is_empty()).then_some(LayoutLine { number: None, fields });
        let lines = lines.into_iter().collect();
        return LayoutSide { begins: begins.clone(), lines, others: (0, 0.0) };
    };
    let mut sums = BTreeMap::<u64, f64>::new();
    for member in members {
        *sums.entry(member.lines(begin)[0]).or_default() += transfers(member);
    }
    let least = LEAST_OF_LINE * sums.values().sum::<f64>();
    let mut ranked: Vec<(u64, f64)> = sums.into_iter().filter(|(_, sum)| *sum > 0.0).collect();
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1));
    let is_told = |number: u64| {
        let mut own = members.iter().filter(|it| it.lines(begin)[0] == number);
        own.any(|it| told.iter().any(|field| it.has(field)))
    };
    let (mut shown, mut others): (Vec<_>, Vec<_>) =
        ranked.into_iter().partition(|(number, sum)| *sum >= least || is_told(*number));
    others.extend(shown.split_off(shown.len().min(MOST_LINES)));
    let numbers: BTreeSet<u64> = shown.into_iter().map(|(number, _)| number).collect();
    let lines = numbers.into_iter().map(|number| {
        let is_in = |it: &&LayoutMember| {
            let [first, last] = it.lines(begin);
            (first..=last).contains(&number) && it.size > 0
        };
        let fields = members.iter().filter(is_in).map(|it| {
            let begins_here = it.lines(begin)[0] == number;
            field(it, if begins_here { transfers(it) } else { 0.0 })
        });
        LayoutLine { number: Some(number), fields: fields.collect() }
    });
    LayoutSide {
        begins: begins.clone(),
        lines: lines.collect(),
        others: (others.len(), others.iter().map(|it| it.1).sum()),
    }
}

/// The share of the places at which an object can begin for which two fields share a line. `None` if it is not known.
fn together(layout: &Layout, [one, other]: [&str; 2]) -> Option<f64> {
    let find = |name: &str| layout.members.iter().find(|it| it.has(name));
    let (one, other) = (find(one)?, find(other)?);
    let share = |begins: &&u64| {
        let [a, b] = [one, other].map(|it| it.lines(**begins));
        a[0] <= b[1] && b[0] <= a[1]
    };
    let all = layout.begins.len();
    (all > 0).then(|| layout.begins.iter().filter(share).count() as f64 / all as f64)
}

/// The fields that share a line with others in one kernel more often than in the other, those whose transfers changed
/// most first.
fn parted(own: &[(&str, &FieldCost)], layouts: [&Layout; 2]) -> Vec<Parted> {
    let size = |it: &FieldCost| it.transfers.base.max(it.transfers.new);
    let all: f64 = own.iter().map(|(_, it)| size(it)).sum();
    // A field without transfers shares its line with others too, but nothing happens to it.
    let active: Vec<&(&str, &FieldCost)> =
        own.iter().filter(|(_, it)| size(it) >= LEAST_OF_FIELD * all).collect();
    let found = active.iter().filter(|it| it.1.transfers.beyond_luck() != Some(false));
    let found = found.filter_map(|(field, cost)| {
        let with = active.iter().filter(|(other, _)| other != field).filter_map(|(other, it)| {
            let [base, new] = layouts.map(|layout| together(layout, [field, other]));
            let shares = [base?, new?];
            (shares[0] != shares[1]).then(|| (size(it), ((*other).to_owned(), shares)))
        });
        let mut with: Vec<_> = with.collect();
        with.sort_by(|one, other| other.0.total_cmp(&one.0));
        let with: Vec<_> = with.into_iter().take(MOST_OTHERS).map(|(_, it)| it).collect();
        let (field, transfers) = (cost.field.clone(), cost.transfers);
        (!with.is_empty() && transfers.change() != 0.0).then_some(Parted { field, transfers, with })
    });
    let mut found: Vec<Parted> = found.collect();
    let change = |it: &Parted| it.transfers.change().abs();
    found.sort_by(|one, other| change(other).total_cmp(&change(one)));
    found.truncate(MOST_PARTED);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(field: &str, [base, new]: [f64; 2]) -> FieldCost {
        let transfers = Difference { base, new, floor: Some(10.0) };
        FieldCost {
            field: field.into(),
            function: "f".into(),
            transfers,
            writers: Default::default(),
        }
    }

    fn layout(begins: &[u64], members: &[(&str, u64, u64)]) -> Layout {
        let member = |(name, offset, size): &(&str, u64, u64)| LayoutMember {
            name: (*name).into(),
            offset: *offset,
            size: *size,
            bits: None,
        };
        Layout { begins: begins.into(), members: members.iter().map(member).collect() }
    }

    fn change(layouts: [Layout; 2], fields: &[FieldCost]) -> LayoutChange {
        let explanation = Explanation { fields: fields.to_vec(), ..Explanation::default() };
        let mut changes =
            explanation.with_layouts(|_| Ok(vec![("mm_struct".into(), layouts)])).layouts;
        changes.pop().unwrap()
    }

    const BEFORE: [(&str, u64, u64); 5] = [
        ("mmap_base", 0, 8),
        ("count", 64, 4),
        ("state", 72, 8),
        ("cpus[]", 96, 64),
        ("owner", 160, 8),
    ];
    const AFTER: [(&str, u64, u64); 4] =
        [("count", 0, 4), ("state", 64, 8), ("cpus[]", 128, 64), ("mmap_base", 192, 8)];

    fn fields() -> Vec<FieldCost> {
        vec![
            cost("mm_struct.count", [900.0, 100.0]),
            cost("mm_struct.state", [300.0, 300.0]),
            cost("mm_struct.cpus[].sum", [40.0, 60.0]),
            cost("mm_struct.cpus[]", [2.0, 0.0]),
            cost("[page]", [5000.0, 1000.0]),
            cost("dentry.d_lock", [10.0, 500.0]),
        ]
    }

    #[test]
    fn types_with_most_of_the_change_are_chosen() {
        assert_eq!(changed_types(&fields()), ["mm_struct", "dentry"]);
        let small =
            [cost("a.b", [1000.0, 0.0]), cost("c.d", [90.0, 0.0]), cost("jiffies", [9e9, 0.0])];
        assert_eq!(changed_types(&small), ["a"]);
    }

    #[test]
    fn only_lines_with_transfers_are_listed() {
        let change = change([layout(&[0], &BEFORE), layout(&[0], &AFTER)], &fields());
        let listed = change.sides.map(|side| {
            let lines = side.lines.into_iter().map(|line| {
                let fields = line.fields.into_iter().map(|it| (it.name, it.transfers));
                (line.number.unwrap(), fields.collect::<Vec<_>>())
            });
            lines.collect::<Vec<_>>()
        });
        let field = |name: &str, transfers| (name.to_owned(), transfers);
        let before =
            vec![(1, vec![field("count", 900.0), field("state", 300.0), field("cpus[]", 42.0)])];
        let after = vec![
            (0, vec![field("count", 100.0)]),
            (1, vec![field("state", 300.0)]),
            (2, vec![field("cpus[]", 60.0)]),
        ];
        assert_eq!(listed, [before, after]);
    }

    #[test]
    fn fields_that_are_parted_are_named() {
        let change = change([layout(&[0], &BEFORE), layout(&[0], &AFTER)], &fields());
        let parted: Vec<_> = change.parted.iter().map(|it| (&*it.field, it.with.clone())).collect();
        let with = |name: &str| (name.to_owned(), [1.0, 0.0]);
        let expected = vec![
            ("mm_struct.count", vec![with("state"), with("cpus[].sum")]),
            ("mm_struct.cpus[].sum", vec![with("count"), with("state")]),
        ];
        assert_eq!(parted, expected);
    }

    #[test]
    fn objects_that_begin_anywhere_have_no_lines() {
        // 176 bytes from one object to the next.
        let places = [0, 48, 32, 16];
        let change = change([layout(&places, &BEFORE), layout(&[], &AFTER)], &fields());
        for side in &change.sides {
            assert_eq!(side.lines.len(), 1);
            assert_eq!(side.lines[0].number, None);
            assert!(side.lines[0].fields.iter().all(|it| it.transfers > 0.0));
        }
        // What is not known of one kernel is not compared.
        assert_eq!(change.parted, []);
        let both = [layout(&places, &BEFORE), layout(&places, &AFTER)];
        let Parted { with, .. } = &self::change(both, &fields()).parted[0];
        // Bytes 64 to 67 and 72 to 79: apart only if an object begins at byte 56, and none does.
        assert_eq!(with[0], ("state".to_owned(), [1.0, 0.0]));
    }
}

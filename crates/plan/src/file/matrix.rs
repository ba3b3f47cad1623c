//! Expands `[matrix]`: kernels x patches x settings become variants.

mod variant;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use model::RUNNING_KERNEL;
use serde::Deserialize;
use toml::Spanned;

use super::build;
use super::variants::{NEEDS_PATCHES, VariantForm, contradiction, default_names};
use super::{Checked, Value, fault, placeless};
use crate::form::near::nearest;
use variant::variant;

/// Most variants of a matrix, before some are taken out.
pub(super) const MOST_VARIANTS: usize = 1000;
const KERNEL: &str = "kernel";
const PATCHES: &str = "patches";
const THP_FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// The name of a value that changes nothing.
const NONE: &str = "none";

/// The values of an axis.
pub type List<T> = Spanned<Vec<Spanned<T>>>;

/// The axes, each a list of values, and what is taken out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixForm {
    #[serde(default = "no_kernels")]
    kernel: List<String>,
    revert: Option<List<Changes>>,
    pick: Option<List<Changes>>,
    patches: Option<List<Changes>>,
    each: Option<Spanned<bool>>,
    thp: Option<List<String>>,
    mglru: Option<List<String>>,
    numa_balancing: Option<List<String>>,
    preempt: Option<List<String>>,
    cmdline: Option<List<String>>,
    #[serde(default)]
    sysctl: BTreeMap<Spanned<String>, List<Value>>,
    #[serde(default)]
    sysfs: BTreeMap<Spanned<String>, List<Value>>,
    #[serde(default)]
    exclude: Vec<Spanned<BTreeMap<Spanned<String>, Value>>>,
}

fn no_kernels() -> List<String> {
    placeless(Vec::new())
}

/// A setting and its values, as an option has them.
pub type SettingValues = (Spanned<String>, Vec<String>);

impl MatrixForm {
    /// The variants that kernels make with each value of settings.
    pub fn crossing(
        kernels: Vec<Spanned<String>>,
        sysctl: Vec<SettingValues>,
        sysfs: Vec<SettingValues>,
    ) -> Self {
        let axis = |(name, values): SettingValues| {
            let place = name.span();
            let at = |value| Spanned::new(place.clone(), Value::Text(value));
            let values = values.into_iter().map(at).collect();
            (name, Spanned::new(place.clone(), values))
        };
        Self {
            kernel: placeless(kernels),
            revert: None,
            pick: None,
            patches: None,
            each: None,
            thp: None,
            mglru: None,
            numa_balancing: None,
            preempt: None,
            cmdline: None,
            sysctl: sysctl.into_iter().map(axis).collect(),
            sysfs: sysfs.into_iter().map(axis).collect(),
            exclude: Vec::new(),
        }
    }

    /// Gives a host the kernel that it runs, unless the matrix names kernels.
    pub(super) fn on_host(&mut self) {
        if self.kernel.get_ref().is_empty() {
            self.kernel = placeless(vec![placeless(RUNNING_KERNEL.to_owned())]);
        }
    }
}

/// Commits or patches that are applied together.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, or a list of strings that are applied together")]
enum Changes {
    One(String),
    All(Vec<String>),
}

impl Changes {
    /// All of them; an empty text stands for none.
    fn into_list(self) -> Vec<String> {
        let mut list = match self {
            Self::One(one) => vec![one],
            Self::All(all) => all,
        };
        list.retain(|it| !it.trim().is_empty());
        list
    }
}

/// A setting with a short name. Values are written as the kernel expects them.
struct Known {
    name: &'static str,
    values: &'static [(&'static str, &'static str)],
    set: fn(Range<usize>, &str) -> VariantChange,
}

const THP: Known = Known {
    name: "thp",
    values: &[("always", "always"), ("madvise", "madvise"), ("never", "never")],
    set: |place, value| sysfs(place, THP_FILE, value),
};
const MGLRU: Known = Known {
    name: "mglru",
    values: &[("on", "y"), ("off", "n")],
    set: |place, value| sysfs(place, "/sys/kernel/mm/lru_gen/enabled", value),
};
const NUMA_BALANCING: Known = Known {
    name: "numa_balancing",
    values: &[("off", "0"), ("normal", "1"), ("tiering", "2")],
    set: |place, value| {
        VariantChange::Sysctl(Spanned::new(place, "kernel.numa_balancing".into()), text(value))
    },
};
const PREEMPT: Known = Known {
    name: "preempt",
    values: &[("none", "none"), ("voluntary", "voluntary"), ("full", "full"), ("lazy", "lazy")],
    set: |_, value| VariantChange::Cmdline(format!("preempt={value}")),
};

fn sysfs(place: Range<usize>, path: &str, value: &str) -> VariantChange {
    VariantChange::Sysfs(Spanned::new(place, path.into()), text(value))
}

fn text(value: &str) -> Value {
    Value::Text(value.into())
}

/// What a value does to a variant.
#[derive(Clone)]
enum VariantChange {
    Kernel,
    Revert(Vec<String>),
    Pick(Vec<String>),
    Patches(Vec<String>),
    /// The first patches of a series: its files, how many of their patches, and the subject of the last one.
    Series(Vec<String>, usize, Option<String>),
    Cmdline(String),
    Sysctl(Spanned<String>, Value),
    Sysfs(Spanned<String>, Value),
}

/// Makes a change of commits or patches.
type Wrap = fn(Vec<String>) -> VariantChange;

/// A value of an axis.
struct Choice {
    place: Range<usize>,
    /// Its name on the axis.
    name: String,
    /// As the file has it.
    written: String,
    /// What it adds to a variant's name.
    suffix: String,
    change: VariantChange,
}

struct Axis {
    name: String,
    choices: Vec<Choice>,
}

impl Axis {
    fn new<T>(
        name: &str,
        values: List<T>,
        mut choice: impl FnMut(Range<usize>, T) -> Checked<Choice>,
    ) -> Checked<Self> {
        let span = values.span();
        let values = values.into_inner().into_iter();
        let choices: Vec<Choice> =
            values.map(|it| choice(it.span(), it.into_inner())).collect::<Checked<_>>()?;
        if choices.is_empty() {
            let hint = "list its values, or leave the key out";
            return fault(span, format!("`{name}` has no values"), hint);
        }
        let is_named =
            |place: usize| choices[..place].iter().any(|it| it.name == choices[place].name);
        if let Some(place) = (0..choices.len()).find(|place| is_named(*place)) {
            let Choice { place, name: value, .. } = &choices[place];
            let problem = format!("two values of `{name}` have the name `{value}`");
            let hint = "give each value once; patches are named by their files, without directory";
            return fault(place.clone(), problem, hint);
        }
        Ok(Self { name: name.to_owned(), choices })
    }

    fn of_known(known: &Known, values: List<String>) -> Checked<Self> {
        Self::new(known.name, values, |place, name| {
            let Some((_, value)) = known.values.iter().find(|(known, _)| *known == name) else {
                let values: Vec<&str> = known.values.iter().map(|(name, _)| *name).collect();
                let problem = format!("`{name}` is not a value of `{}`", known.name);
                return fault(place, problem, format!("its values are {}", values.join(", ")));
            };
            let change = (known.set)(place.clone(), value);
            let suffix = format!(" {}={name}", known.name);
            Ok(Choice { place, written: name.clone(), suffix, name, change })
        })
    }

    /// Commits or patches. Their names follow the kernel's after `mark`.
    fn of_changes(name: &str, mark: &str, values: List<Changes>, change: Wrap) -> Checked<Self> {
        Self::new(name, values, |place, changes| {
            let changes = changes.into_list();
            let written = changes.join("+");
            let stem = |it: &String| match name {
                PATCHES => Path::new(it).file_stem().map(|it| it.to_string_lossy().into_owned()),
                _ => Some(it.clone()),
            };
            let stems: Vec<String> =
                changes.iter().map(|it| stem(it).unwrap_or_default()).collect();
            let (name, suffix) = match stems.join("+") {
                empty if empty.is_empty() => (NONE.to_owned(), String::new()),
                stems => (stems.clone(), format!("{mark}{stems}")),
            };
            Ok(Choice { place, name, written, suffix, change: change(changes) })
        })
    }

    /// The steps of a series: no patches, the first, the first two, and so on.
    fn of_series(patches: List<Changes>, directory: &Path) -> Checked<Self> {
        let place = patches.span();
        let values = patches.into_inner().into_iter();
        let files: Vec<String> = values.flat_map(|it| it.into_inner().into_list()).collect();
        if files.is_empty() {
            return fault(place, NEEDS_PATCHES[0], NEEDS_PATCHES[1]);
        }
        let paths: Vec<PathBuf> =
            files.iter().map(|it| build::patch(directory, Path::new(it))).collect();
        let subjects = kernels::subjects(&paths)
            .or_else(|error| fault(place.clone(), error.to_string(), ""))?;
        let choice = |number: usize| {
            let suffix = build::suffix(number);
            let name = suffix.strip_prefix('+').unwrap_or(NONE).to_owned();
            let last = number.checked_sub(1).map(|last| subjects[last].clone());
            let change = VariantChange::Series(files.clone(), number, last);
            Choice { place: place.clone(), name, written: suffix.clone(), suffix, change }
        };
        let choices = (0..=subjects.len()).map(choice).collect();
        Ok(Self { name: PATCHES.to_owned(), choices })
    }

    fn of_settings(
        key: Spanned<String>,
        values: List<Value>,
        change: fn(Spanned<String>, Value) -> VariantChange,
    ) -> Checked<Self> {
        let name = key.get_ref().clone();
        Self::new(&name, values, |place, value| {
            let written = String::from(value.clone());
            let suffix = format!(" {}={written}", short(&name));
            let change = change(key.clone(), value);
            Ok(Choice { place, name: written.clone(), written, suffix, change })
        })
    }

    /// Whether its values are settings or words of the command line. Others are kernels and what they are built from.
    fn is_of_settings(&self) -> bool {
        self.choices.iter().any(|it| it.suffix.starts_with(' '))
    }

    fn choice(&self, text: &str) -> Option<usize> {
        self.choices.iter().position(|it| it.name == text || it.written == text)
    }
}

/// The name of a setting as it is printed: without the directories that most have in common, and without `enabled`. So
/// `/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled` is `hugepages-64kB`.
fn short(setting: &str) -> &str {
    let Some(own) = setting.strip_prefix("/sys/kernel/mm/") else {
        return setting.strip_prefix("/sys/").unwrap_or(setting);
    };
    let of_size = own.strip_prefix("transparent_hugepage/").filter(|it| it.contains('/'));
    let own = of_size.filter(|it| it.starts_with("hugepages-")).unwrap_or(own);
    own.strip_suffix("/enabled").unwrap_or(own)
}

/// The variants of a file, which has either a list of them or a matrix.
pub(super) fn variants(
    listed: Option<Spanned<Vec<VariantForm>>>,
    matrix: Option<Spanned<MatrixForm>>,
    directory: &Path,
) -> Checked<Vec<VariantForm>> {
    match (listed, matrix) {
        (Some(_), Some(matrix)) => fault(
            matrix.span(),
            "the file has both [[variant]] and [matrix]",
            "leave one of them out; the matrix makes all variants",
        ),
        (None, Some(matrix)) => expand(matrix, directory),
        (Some(listed), None) if !listed.get_ref().is_empty() => Ok(listed.into_inner()),
        (listed, None) => fault(
            listed.map_or(0..0, |it| it.span()),
            "there is no variant",
            "add a [[variant]] with a kernel, or a [matrix]",
        ),
    }
}

fn expand(matrix: Spanned<MatrixForm>, directory: &Path) -> Checked<Vec<VariantForm>> {
    let span = matrix.span();
    let mut form = matrix.into_inner();
    if form.kernel.get_ref().is_empty() && form.kernel.span() == (0..0) {
        let hint = "add kernel = [\"debian:6.12\"], or kind = \"host\" to [machine]";
        return fault(span, "the matrix has no kernel", hint);
    }
    let exclude = std::mem::take(&mut form.exclude);
    let axes = form.axes(directory)?;
    check_files(&axes)?;
    let number = axes.iter().try_fold(1usize, |all, it| all.checked_mul(it.choices.len()));
    if number.is_none_or(|number| number > MOST_VARIANTS) {
        let problem = format!("the matrix has more than {MOST_VARIANTS} variants");
        return fault(span, problem, "give its axes fewer values");
    }
    let mut cells: Vec<Vec<usize>> = vec![Vec::new()];
    for axis in &axes {
        let longer = |cell: &Vec<usize>| {
            let cell = cell.clone();
            (0..axis.choices.len()).map(move |choice| [&cell[..], &[choice]].concat())
        };
        cells = cells.iter().flat_map(longer).collect();
    }
    for excluded in exclude {
        let place = excluded.span();
        let chosen = values(excluded, &axes)?;
        let before = cells.len();
        cells.retain(|cell| !chosen.iter().all(|(axis, choice)| cell[*axis] == *choice));
        if cells.len() == before {
            let problem = "this takes out no variant: those before it took them out already";
            return fault(place, problem, "leave it out");
        }
    }
    cells.iter().try_for_each(|cell| check_words(&axes, cell))?;
    if cells.is_empty() {
        let hint = "name more values of each variant that is taken out";
        return fault(span, "`exclude` takes out all variants", hint);
    }
    Ok(cells.iter().map(|cell| variant(&axes, cell, &cells)).collect())
}

/// The values that a variant must have to be taken out: axes and their choices.
fn values(
    excluded: Spanned<BTreeMap<Spanned<String>, Value>>,
    axes: &[Axis],
) -> Checked<Vec<(usize, usize)>> {
    if excluded.get_ref().is_empty() {
        let hint = "name the values of the variants to take out: { thp = \"never\" }";
        return fault(excluded.span(), "this names no value", hint);
    }
    let names: Vec<&str> = axes.iter().map(|axis| &*axis.name).collect();
    let found = excluded.into_inner().into_iter().map(|(name, value)| {
        let Some(axis) = axes.iter().position(|axis| axis.name == *name.get_ref()) else {
            let problem = format!("`{}` is not an axis of the matrix", name.get_ref());
            let hint = match nearest(name.get_ref(), names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its axes are {}", names.join(", ")),
            };
            return fault(name.span(), problem, hint);
        };
        let value = String::from(value);
        match axes[axis].choice(&value) {
            Some(choice) => Ok((axis, choice)),
            None => {
                let problem = format!("the matrix has no `{}` of `{value}`", names[axis]);
                let known: Vec<&str> = axes[axis].choices.iter().map(|it| &*it.name).collect();
                fault(name.span(), problem, format!("it has {}", known.join(", ")))
            }
        }
    });
    found.collect()
}

impl MatrixForm {
    /// The axes in the order of the names of variants; the last one changes fastest from column to column.
    fn axes(self, directory: &Path) -> Checked<Vec<Axis>> {
        let kernels: Vec<&str> = self.kernel.get_ref().iter().map(|it| &**it.get_ref()).collect();
        let mut names = default_names(&kernels).into_iter();
        let mut axes = vec![Axis::new(KERNEL, self.kernel, |place, written| {
            let name = names.next().unwrap_or_default();
            Ok(Choice { place, suffix: name.clone(), name, written, change: VariantChange::Kernel })
        })?];
        let (patches, series) = match self.each.filter(|it| *it.get_ref()) {
            Some(each) if self.patches.is_none() => {
                return fault(each.span(), NEEDS_PATCHES[0], NEEDS_PATCHES[1]);
            }
            Some(_) => (None, self.patches),
            None => (self.patches, None),
        };
        let changes: [(_, _, _, Wrap); 3] = [
            ("revert", "+revert-", self.revert, VariantChange::Revert),
            ("pick", "+", self.pick, VariantChange::Pick),
            (PATCHES, "+", patches, VariantChange::Patches),
        ];
        for (name, mark, values, change) in changes {
            axes.extend(values.map(|it| Axis::of_changes(name, mark, it, change)).transpose()?);
        }
        axes.extend(series.map(|it| Axis::of_series(it, directory)).transpose()?);
        let known = [
            (&THP, self.thp),
            (&MGLRU, self.mglru),
            (&NUMA_BALANCING, self.numa_balancing),
            (&PREEMPT, self.preempt),
        ];
        for (known, values) in known {
            axes.extend(values.map(|values| Axis::of_known(known, values)).transpose()?);
        }
        if let Some(values) = self.cmdline {
            axes.push(Axis::new("cmdline", values, |place, words| {
                let is_none = words.trim().is_empty();
                let name = if is_none { NONE.to_owned() } else { words.clone() };
                let suffix = if is_none { String::new() } else { format!(" {words}") };
                Ok(Choice {
                    place,
                    name,
                    written: words.clone(),
                    suffix,
                    change: VariantChange::Cmdline(words),
                })
            })?);
        }
        for (key, values) in self.sysctl {
            axes.push(Axis::of_settings(key, values, VariantChange::Sysctl)?);
        }
        for (key, values) in self.sysfs {
            axes.push(Axis::of_settings(key, values, VariantChange::Sysfs)?);
        }
        Ok(axes)
    }
}

/// Refuses two axes that write to one file.
fn check_files(axes: &[Axis]) -> Checked<()> {
    let file = |axis: &Axis| match &axis.choices[0].change {
        VariantChange::Sysctl(name, _) => Some(format!("sysctl {}", name.get_ref())),
        VariantChange::Sysfs(path, _) => Some(path.get_ref().clone()),
        _ => None,
    };
    let files: Vec<Option<String>> = axes.iter().map(file).collect();
    for (number, file) in files.iter().enumerate() {
        if let (Some(file), true) = (file, files[..number].contains(file)) {
            let place = axes[number].choices[0].place.clone();
            return fault(place, format!("`{file}` is set by two axes"), "leave one of them out");
        }
    }
    Ok(())
}

/// Words of the command line that a value amounts to.
fn words(change: &VariantChange) -> Vec<String> {
    match change {
        VariantChange::Cmdline(words) => words.split_whitespace().map(str::to_owned).collect(),
        // A sysctl can be set on the command line, and so can this file
        // (`Documentation/admin-guide/kernel-parameters.txt`).
        VariantChange::Sysctl(name, value) => {
            vec![format!("sysctl.{}={}", name.get_ref(), String::from(value.clone()))]
        }
        VariantChange::Sysfs(path, value) if path.get_ref() == THP_FILE => {
            vec![format!("transparent_hugepage={}", String::from(value.clone()))]
        }
        _ => Vec::new(),
    }
}

/// Refuses a variant for which two axes want different values of one thing.
fn check_words(axes: &[Axis], cell: &[usize]) -> Checked<()> {
    let mut known: Vec<(&Axis, Vec<String>)> = Vec::new();
    for (axis, choice) in axes.iter().zip(cell) {
        let choice = &axis.choices[*choice];
        let own = words(&choice.change);
        for (other, words) in &known {
            if let Some([one, two]) = contradiction(words, &own) {
                let problem = format!(
                    "`{one}` of the axis `{}` contradicts `{two}` of the axis `{}`",
                    other.name, axis.name
                );
                let hint = "leave one of the values out, or take such variants out with `exclude`";
                return fault(choice.place.clone(), problem, hint);
            }
        }
        known.push((axis, own));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

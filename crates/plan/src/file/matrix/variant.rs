//! The variant of a matrix with one value of each axis, and its name.

use std::path::PathBuf;

use model::PatchStep;
use toml::Spanned;

use super::{Axis, Choice, VariantChange, short};
use crate::file::variants::VariantForm;

/// The values on all axes.
fn chosen<'a>(axes: &'a [Axis], cell: &[usize]) -> impl Iterator<Item = (&'a Axis, &'a Choice)> {
    axes.iter().zip(cell).map(|(axis, choice)| (axis, &axis.choices[*choice]))
}

/// The name of a variant: its values on the axes that have several. If these leave it empty, it is the kernel's.
/// Values on several axes of settings are joined by slashes, as in `6.12 always/on`, unless that is not plain.
fn name(axes: &[Axis], cell: &[usize]) -> String {
    let named = || chosen(axes, cell).filter(|(axis, _)| axis.choices.len() > 1);
    let settings = || axes.iter().filter(|it| it.choices.len() > 1 && it.is_of_settings());
    let is_plain = |it: &Choice| !it.name.contains(['/', ' ']);
    let joins = settings().count() > 1 && settings().all(|it| it.choices.iter().all(is_plain));
    let name: String = match joins {
        false => named().map(|(_, choice)| &*choice.suffix).collect(),
        true => {
            let (set, others): (Vec<_>, Vec<_>) = named().partition(|(it, _)| it.is_of_settings());
            let values: Vec<&str> = set.iter().map(|(_, choice)| &*choice.name).collect();
            let others: String = others.iter().map(|(_, choice)| &*choice.suffix).collect();
            format!("{others} {}", values.join("/"))
        }
    };
    match name.trim() {
        "" => chosen(axes, cell).map(|(_, kernel)| kernel.name.clone()).take(1).collect(),
        name => name.to_owned(),
    }
}

/// The variant with these choices, of all `cells`.
pub(super) fn variant(axes: &[Axis], cell: &[usize], cells: &[Vec<usize>]) -> VariantForm {
    let crossed = chosen(axes, cell).filter(|(axis, _)| axis.choices.len() > 1);
    let kernel = &axes[0].choices[cell[0]];
    let at = |text: &str| Spanned::new(kernel.place.clone(), text.to_owned());
    let mut form = VariantForm {
        axes: crossed.map(|(axis, it)| at(&format!("{}={}", short(&axis.name), it.name))).collect(),
        name: Some(at(&name(axes, cell))),
        ..VariantForm::new(at(&kernel.written))
    };
    let mut words: Vec<String> = Vec::new();
    let paths = |files: Vec<String>| files.into_iter().map(PathBuf::from).collect();
    for (number, (_, choice)) in chosen(axes, cell).enumerate() {
        match choice.change.clone() {
            VariantChange::Kernel => {}
            VariantChange::Revert(commits) => form.revert = commits,
            VariantChange::Pick(commits) => form.pick = commits,
            VariantChange::Patches(files) => form.patches = paths(files),
            VariantChange::Series(files, first, last) => {
                (form.patches, form.first) = (paths(files), Some(first));
                let mut before = cell.to_vec();
                before[number] = before[number].saturating_sub(1);
                let last = last.filter(|_| cells.contains(&before));
                form.step = last.map(|patch| PatchStep { after: name(axes, &before), patch });
            }
            VariantChange::Cmdline(more) => words.push(more),
            VariantChange::Sysctl(name, value) => drop(form.sysctl.insert(name, value)),
            VariantChange::Sysfs(path, value) => drop(form.sysfs.insert(path, value)),
        }
    }
    form.cmdline = Some(at(words.join(" ").trim()));
    form
}

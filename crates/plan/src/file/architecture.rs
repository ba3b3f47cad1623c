//! Settles the architecture of machine and kernels.

use kernels::Request;
use model::Architecture;
use toml::Spanned;

use super::machine::{ArchForm, MachineForm};
use super::variants::VariantForm;
use super::{Checked, FileForm, fault};

impl FileForm {
    /// The architectures for which it asks. With several there is an experiment for each.
    pub fn architectures(&self) -> Vec<Option<Architecture>> {
        match self.machine.get_ref().arch.as_ref().map(Spanned::get_ref) {
            Some(ArchForm::Several(all)) if !all.is_empty() => {
                let asked = Architecture::ALL.iter().copied().filter(|it| all.contains(it));
                asked.map(Some).collect()
            }
            Some(ArchForm::One(arch)) => vec![Some(*arch)],
            _ => vec![None],
        }
    }

    /// The part of it that is for one architecture, if it names any.
    pub fn for_architecture(mut self, arch: Option<Architecture>) -> Self {
        let machine = self.machine.get_mut();
        if let (Some(form), Some(arch)) = (&mut machine.arch, arch) {
            *form.get_mut() = ArchForm::One(arch);
        }
        self
    }
}

/// Settles the architecture of an experiment: the machine's, or that of its kernels. Kernels of Debian and sources for
/// arm64 get names that say so.
pub fn settle(machine: &mut MachineForm, variants: &mut [VariantForm]) -> Checked<()> {
    let of = |form: &VariantForm| Request::architecture(form.kernel.get_ref());
    if let Some(several) = machine.arch.as_ref().filter(|_| machine.arch().is_none()) {
        let hint = "name one; `faultline run` and `faultline try` make an experiment for each";
        return fault(several.span(), "an experiment is for one architecture", hint);
    }
    let asked = machine.arch();
    let Some(arch) = asked.or_else(|| variants.first().map(of)) else { return Ok(()) };
    for VariantForm { kernel, .. } in variants.iter_mut() {
        let (name, place) = (kernel.get_ref(), kernel.span());
        let own = Request::architecture(name);
        match Request::for_architecture(name, arch) {
            Some(named) if own == arch || named == *name || asked.is_some() => {
                *kernel = Spanned::new(place, named);
            }
            _ => {
                let [own, arch] = [own, arch].map(Architecture::name);
                let problem = format!("`{name}` is a kernel for {own}, but the machine is {arch}");
                let hint = "all kernels of an experiment are for one architecture: [machine] arch (--arch)";
                return fault(place, problem, hint);
            }
        }
    }
    if machine.arch.is_none() && !arch.is_usual() {
        let place = variants.first().map(|form| form.kernel.span()).unwrap_or_default();
        machine.arch = Some(Spanned::new(place, ArchForm::One(arch)));
    }
    Ok(())
}

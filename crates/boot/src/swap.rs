//! Describes the swap space of a machine for the agent.

use flight::job;
use kernels::modules;
use model::{Kernel, Machine, Swap};

/// The default compression algorithm of zram up to Linux 6.11. Newer kernels load their default with zram.
const USUAL_ALGORITHM: &str = "lzo-rle";
/// The name of the swap file on its disk.
const FILE: &str = "swapfile";

/// Returns the modules that the swap space needs. If the compression algorithm of zram is a module
/// in this kernel, it is included, because the guest cannot find it by itself. Fails when the
/// kernel's lists of modules cannot be read.
pub fn modules<'a>(
    swap: Option<&'a Swap>,
    kernel: &Kernel,
) -> Result<Vec<&'a str>, modules::Error> {
    let Some(Swap::Zram { algorithm, .. }) = swap else {
        return Ok(Vec::new());
    };
    let algorithm = match algorithm.as_str() {
        "" => USUAL_ALGORITHM,
        named => named,
    };
    let mut wanted = vec!["zram"];
    if modules::has(kernel, algorithm)? {
        wanted.insert(0, algorithm);
    }
    Ok(wanted)
}

/// Describes the swap space for the agent; `None` if the machine has none.
pub fn of_job(machine: &Machine) -> Option<job::Swap> {
    Some(match machine.swap.as_ref()? {
        Swap::File { disk, size } => job::Swap::File {
            path: format!("{}/{FILE}", machine.disks[*disk].place(*disk)),
            size: *size,
        },
        Swap::Disk { disk } => job::Swap::Disk { device: machine.disks[*disk].place(*disk) },
        Swap::Zram { size, algorithm } => {
            job::Swap::Zram { size: *size, algorithm: algorithm.clone() }
        }
    })
}

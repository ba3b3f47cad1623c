//! The provenance of a boot: the host and the programs that made it.

use serde::{Deserialize, Serialize};

named! {
    /// What executed the instructions of a boot. The [`crate::Mode`] says how figures are compared.
    pub enum Execution {
        /// The host's processor, without a virtual machine.
        Native = "native",
        /// The host's processor, under KVM.
        Kvm = "kvm",
        /// QEMU's emulation, where times are not performance. Old boots of exact mode have its second name.
        Tcg = "tcg" | "exact",
    }
}

/// The host and the programs that made a boot, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// What executed its instructions; `None` if unknown.
    #[serde(alias = "accel")]
    pub execution: Option<Execution>,
    /// The emulator and its version; empty if unknown.
    pub emulator: String,
    /// The host that made the boot.
    #[serde(skip_serializing_if = "is_default")]
    pub host: Host,
    /// Faultline's own programs and libraries.
    #[serde(skip_serializing_if = "is_default")]
    pub programs: Programs,
}

impl Provenance {
    /// The name of what executed the boot; empty if unknown.
    pub fn execution_name(&self) -> &'static str {
        self.execution.map_or("", Execution::name)
    }
}

/// A host, as far as it can be read. An empty text, an empty list, 0 and `None` mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Its identity, as SHA-256 in hexadecimal. Boots with the same identity were made on the same host.
    pub id: String,
    /// The processor's vendor, such as `GenuineIntel`.
    pub vendor: String,
    /// The processor's name, as in `/proc/cpuinfo`.
    pub cpu: String,
    /// The processor's family.
    pub family: Option<u32>,
    /// The processor's model number.
    pub model: Option<u32>,
    /// The processor's stepping.
    pub stepping: Option<u32>,
    /// The revision of its microcode, such as `0x5003604`.
    pub microcode: String,
    /// Number of logical CPUs that are online.
    pub cpus: u32,
    /// Number of cores that are online.
    pub cores: u32,
    /// Memory of each NUMA node, in bytes.
    pub memory: Vec<u64>,
    /// Release and version of its kernel.
    pub kernel: String,
    /// The governors of CPU frequency, each once.
    pub governor: String,
    /// Whether the processor may exceed its nominal frequency.
    pub turbo: Option<bool>,
    /// Whether cores run several threads: `on`, `off` and so on, as `smt/control` has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub smt: String,
    /// What the kernel does against the processor's vulnerabilities, one `name: state` after the other.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mitigations: String,
    /// The source of its clock, such as `tsc`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub clocksource: String,
    /// The identity of the start of its kernel (random(4), `boot_id`).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
}

impl Host {
    /// The first 16 digits of its identity as a number, which stands for the identity. 0 if the identity is unknown.
    pub fn number(&self) -> u64 {
        self.id.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
    }

    /// Its processor and the first digits of its identity, each if it is known.
    pub fn label(&self) -> String {
        match (self.id.get(..8).unwrap_or("unknown"), &*self.cpu) {
            (digits, "") => digits.to_owned(),
            (digits, cpu) => format!("{cpu} ({digits})"),
        }
    }
}

/// SHA-256 of Faultline's own programs and libraries that took part in a boot, in hexadecimal. An empty text means
/// that the program took no part, or is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Programs {
    /// The agent in the guest.
    pub agent: String,
    /// The built-in workloads in the guest.
    pub workloads: String,
    /// The plugin of QEMU that counts instructions.
    pub plugin: String,
    /// The library that hides the host's clock from QEMU.
    pub clock: String,
    /// The library that makes the file systems of disks the same each time.
    pub mkfs: String,
}

impl Programs {
    /// The digests with the names of the programs.
    pub fn named(&self) -> [(&'static str, &str); 5] {
        let Self { agent, workloads, plugin, clock, mkfs } = self;
        [
            ("agent", agent),
            ("workloads", workloads),
            ("plugin", plugin),
            ("clock library", clock),
            ("mkfs library", mkfs),
        ]
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BootFacts;

    #[test]
    fn what_old_boots_say_is_read() {
        let old = |word: &str| {
            let mut facts = serde_json::to_value(BootFacts::default()).unwrap();
            facts["execution"] = word.into();
            facts["emulator"] = "QEMU 10.0.2".into();
            serde_json::from_value::<BootFacts>(facts).unwrap().provenance
        };
        for (word, execution) in
            [("kvm", Execution::Kvm), ("tcg", Execution::Tcg), ("exact", Execution::Tcg)]
        {
            let emulator = "QEMU 10.0.2".to_owned();
            let expected =
                Provenance { execution: Some(execution), emulator, ..Provenance::default() };
            assert_eq!((old(word), Execution::of_name(word)), (expected, Some(execution)));
        }
        let mut oldest = serde_json::to_value(BootFacts::default()).unwrap();
        oldest.as_object_mut().unwrap().remove("execution");
        oldest["accel"] = "kvm".into();
        let oldest: BootFacts = serde_json::from_value(oldest).unwrap();
        assert_eq!(oldest.provenance.execution, Some(Execution::Kvm));
        assert_eq!(Host::default().label(), "unknown");
    }

    #[test]
    fn what_a_boot_says_is_read_back() {
        let host = Host {
            id: "00000000000000ff".repeat(4),
            cpu: "EPYC".into(),
            family: Some(25),
            memory: vec![u64::MAX, 1],
            turbo: Some(false),
            ..Host::default()
        };
        assert_eq!((host.number(), &*host.label()), (255, "EPYC (00000000)"));
        let programs = Programs { agent: "a1".into(), ..Programs::default() };
        let provenance = Provenance {
            execution: Some(Execution::Native),
            host,
            programs,
            ..Provenance::default()
        };
        let facts = BootFacts { provenance, ..BootFacts::default() };
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<BootFacts>(&text).unwrap(), facts);
    }

    #[test]
    fn an_identity_that_is_no_digest_is_unknown() {
        for id in ["", "abc", "zzzzzzzzzzzzzzzz", "é0000000000000000"] {
            assert_eq!(Host { id: id.into(), ..Host::default() }.number(), 0);
        }
    }
}

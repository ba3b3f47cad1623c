//! `/proc/cpuinfo` of x86 (`arch/x86/kernel/cpu/proc.c`) and arm64 (`arch/arm64/kernel/cpuinfo.c`).

use std::collections::BTreeSet;

/// The longest text of a value, in characters.
const MAX_TEXT: usize = 128;

/// The processors of a machine. If they differ in a property, it is that of the first one. An empty text, 0 and
/// `None` mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processors {
    /// The vendor; on arm64 the implementer's number.
    pub vendor: String,
    /// The name; on arm64 the part's number.
    pub name: String,
    /// The family; on arm64 the architecture's version.
    pub family: Option<u32>,
    /// The model's number; on arm64 the variant.
    pub model: Option<u32>,
    /// The stepping; on arm64 the revision.
    pub stepping: Option<u32>,
    /// The revision of the microcode.
    pub microcode: String,
    /// Logical CPUs online.
    pub cpus: u32,
    /// Cores that these logical CPUs are on.
    pub cores: u32,
}

/// The processors that the file lists.
pub fn parse(text: &str) -> Processors {
    let mut found = Processors::default();
    let (mut package, mut cores) = ("", BTreeSet::new());
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match key.trim_end() {
            "processor" => found.cpus += 1,
            "physical id" => package = value,
            "core id" => drop(cores.insert((package, value))),
            "vendor_id" | "CPU implementer" => once(&mut found.vendor, value),
            "model name" | "CPU part" => once(&mut found.name, value),
            "microcode" => once(&mut found.microcode, value),
            "cpu family" | "CPU architecture" => found.family = found.family.or(number(value)),
            "model" | "CPU variant" => found.model = found.model.or(number(value)),
            "stepping" | "CPU revision" => found.stepping = found.stepping.or(number(value)),
            _ => {}
        }
    }
    Processors { cores: cores.len() as u32, ..found }
}

fn once(known: &mut String, value: &str) {
    if known.is_empty() {
        known.extend(value.chars().take(MAX_TEXT));
    }
}

fn number(value: &str) -> Option<u32> {
    match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages with one core of two threads each, shortened.
    const XEON: &str = "\
processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
model name\t: Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz\nstepping\t: 7\nmicrocode\t: 0x5003604\n\
physical id\t: 0\nsiblings\t: 2\ncore id\t\t: 0\ncpu cores\t: 1\nflags\t\t: fpu vme\n\n\
processor\t: 1\nmicrocode\t: 0x5003605\nphysical id\t: 1\ncore id\t\t: 0\n\n\
processor\t: 2\nphysical id\t: 0\ncore id\t\t: 0\n\nprocessor\t: 3\nphysical id\t: 1\ncore id\t\t: 0\n";

    /// From a Neoverse N1, shortened.
    const NEOVERSE: &str = "\
processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd evtstrm\nCPU implementer\t: 0x41\n\
CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n";

    #[test]
    fn processors_are_described_and_counted() {
        let expected = Processors {
            vendor: "GenuineIntel".into(),
            name: "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz".into(),
            family: Some(6),
            model: Some(85),
            stepping: Some(7),
            microcode: "0x5003604".into(),
            cpus: 4,
            cores: 2,
        };
        assert_eq!(parse(XEON), expected);
        let arm = parse(NEOVERSE);
        assert_eq!((&*arm.vendor, &*arm.name, arm.cpus, arm.cores), ("0x41", "0xd0c", 1, 0));
        assert_eq!((arm.family, arm.model, arm.stepping), (Some(8), Some(3), Some(1)));
    }

    #[test]
    fn damaged_text_is_unknown_and_bounded() {
        assert_eq!(parse("model name\nmodel : x\nstepping: 0xzz\n:\n"), Processors::default());
        assert_eq!(parse(&format!("model name: {}", "x".repeat(9999))).name.len(), MAX_TEXT);
    }
}

//! Kernel taint flags (`Documentation/admin-guide/tainted-kernels.rst`).

/// Letter and meaning of each bit of `/proc/sys/kernel/tainted`, from bit 0.
const FLAGS: [(char, &str); 20] = [
    ('P', "proprietary module loaded"),
    ('F', "module loaded by force"),
    ('S', "hardware out of specification"),
    ('R', "module unloaded by force"),
    ('M', "machine check exception"),
    ('B', "bad page"),
    ('U', "asked for by user space"),
    ('D', "oops or BUG"),
    ('A', "ACPI table overridden"),
    ('W', "warning"),
    ('C', "staging driver loaded"),
    ('I', "workaround for a firmware bug"),
    ('O', "out-of-tree module loaded"),
    ('E', "unsigned module loaded"),
    ('L', "soft lockup"),
    ('K', "live patched"),
    ('X', "flag of the distribution"),
    ('T', "structure layout randomised"),
    ('N', "in-kernel test run"),
    ('J', "firmware changed through fwctl"),
];

/// The flags set when a module is loaded that was built out of tree and is not signed.
pub const EXTERNAL_MODULE: u64 = 1 << 12 | 1 << 13;

/// The meaning of the flags, such as `tainted 4608: W (warning), O (out-of-tree module loaded)`; `None` if the kernel
/// is not tainted.
pub fn taint(flags: u64) -> Option<String> {
    if flags == 0 {
        return None;
    }
    let set = (0..u64::BITS).filter(|bit| flags >> bit & 1 == 1);
    let meanings: Vec<_> = set
        .map(|bit| match FLAGS.get(bit as usize) {
            Some((letter, meaning)) => format!("{letter} ({meaning})"),
            None => format!("bit {bit} (unknown)"),
        })
        .collect();
    Some(format!("tainted {flags}: {}", meanings.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_named() {
        assert_eq!(taint(0), None);
        assert!(
            taint(EXTERNAL_MODULE)
                .unwrap()
                .ends_with(": O (out-of-tree module loaded), E (unsigned module loaded)")
        );
        let text = taint(4096 + 512).unwrap();
        assert_eq!(text, "tainted 4608: W (warning), O (out-of-tree module loaded)");
        assert_eq!(taint(1 << 40).unwrap(), "tainted 1099511627776: bit 40 (unknown)");
        assert!(taint(u64::MAX).unwrap().ends_with("bit 63 (unknown)"));
    }
}

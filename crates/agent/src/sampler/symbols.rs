//! Reads the kernel's symbols from `/proc/kallsyms`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The size of the read buffer. It is large, because the kernel seeks from the beginning at each read.
const BUFFER: usize = 64 << 10;

/// The lines that are about code, of the kernel and its modules. Fails if the file cannot be opened.
pub fn code(root: &Path) -> io::Result<impl Iterator<Item = io::Result<String>>> {
    let file = File::open(root.join("proc/kallsyms"))?;
    let lines = BufReader::with_capacity(BUFFER, file).lines();
    Ok(lines.filter(|line| line.as_ref().map_or(true, |line| is_code(line))))
}

/// The address of each function of the kernel, ascending; empty if the kernel hides them.
pub fn functions(root: &Path) -> Vec<u64> {
    let code = code(root).into_iter().flatten().map_while(Result::ok);
    let mut begins: Vec<u64> =
        code.filter_map(|line| address(&line)).filter(|begin| *begin > 0).collect();
    begins.sort_unstable();
    begins.dedup();
    begins.shrink_to_fit();
    begins
}

/// The address with which a line begins.
pub fn address(line: &str) -> Option<u64> {
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
}

/// Whether a line is a symbol in a code section (`nm(1)`).
fn is_code(line: &str) -> bool {
    matches!(line.split(' ').nth(1), Some("t" | "T" | "w" | "W"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_distinguished_from_data() {
        assert!(is_code("ffffffff81000000 T _text"));
        assert!(is_code("ffffffffc0201000 t ext4_da_map_blocks\t[ext4]"));
        assert!(!is_code("ffffffff82000000 D jiffies"));
        assert!(!is_code(""));
    }

    #[test]
    fn functions_begin_where_code_does() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(functions(root.path()), [0; 0]);
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let write = |text: &str| std::fs::write(root.path().join("proc/kallsyms"), text).unwrap();
        write("ffffffff81000010 T b\nffffffff81000000 T _text\nffffffff81000000 t a\nff D data\n");
        assert_eq!(functions(root.path()), [0xffff_ffff_8100_0000, 0xffff_ffff_8100_0010]);
        // Without permission all addresses read as 0.
        write("0000000000000000 T _text\n");
        assert_eq!(functions(root.path()), [0; 0]);
    }
}

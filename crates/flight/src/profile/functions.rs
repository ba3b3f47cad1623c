//! The file of the kernel's functions, which the host gives to the plugin: the address at which each begins,
//! in order, 8 bytes little-endian.

/// The environment variable with the path of the file. Without it, jumps between functions are not followed.
pub const FUNCTIONS_VARIABLE: &str = "FAULTLINE_FUNCTIONS";

/// Encodes the addresses as the file's contents.
pub fn pack_functions(beginnings: &[u64]) -> Vec<u8> {
    beginnings.iter().flat_map(|address| address.to_le_bytes()).collect()
}

/// The addresses in a file; `None` if it is damaged.
pub fn unpack_functions(bytes: &[u8]) -> Option<Vec<u64>> {
    let (addresses, rest) = bytes.as_chunks();
    let addresses: Vec<u64> = addresses.iter().copied().map(u64::from_le_bytes).collect();
    (rest.is_empty() && addresses.is_sorted()).then_some(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_read_back() {
        let functions = vec![0xffff_ffff_8100_0000, 0xffff_ffff_8100_0040];
        let bytes = pack_functions(&functions);
        assert_eq!(unpack_functions(&bytes), Some(functions));
        assert_eq!(unpack_functions(&bytes[1..]), None);
        assert_eq!(unpack_functions(&pack_functions(&[2, 1])), None);
    }
}

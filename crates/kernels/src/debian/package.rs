//! The syntax of names and versions of packages, and of paths in the archive.

/// The longest version or path.
const LONGEST: usize = 400;

/// Whether a word is a valid package name (Debian policy, 5.6.7) without a special meaning to apt. A `-` at
/// the end would remove the package.
pub fn is_name(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = word.as_bytes();
    bytes.len() >= 2
        && bytes.len() <= 100
        && plain(bytes[0])
        && bytes.iter().all(|byte| plain(*byte) || b"+-.".contains(byte))
        && !word.ends_with('-')
}

/// Whether these are a valid package name and version (Debian policy, 5.6.12).
pub(crate) fn is_pin(name: &str, version: &str) -> bool {
    is_name(name) && letters(version, ".+-~:")
}

/// Whether a text consists of letters, digits and the characters of `others`.
pub(crate) fn letters(text: &str, others: &str) -> bool {
    let known = |letter: char| letter.is_ascii_alphanumeric() || others.contains(letter);
    !text.is_empty() && text.len() <= LONGEST && text.chars().all(known)
}

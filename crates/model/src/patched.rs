//! The patches with which a kernel was built, and the mail that they came in.

use serde::{Deserialize, Serialize};

/// Longest identifier of a mail, in bytes.
const LONGEST_ID: usize = 250;
/// Longest address, in bytes (RFC 5321, section 4.5.3.1.3).
const LONGEST_ADDRESS: usize = 254;

/// The patches with which a kernel was built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patched {
    /// The subject of the patch, or of a series that of its cover letter or else of its first patch. The file's name if
    /// it came in no mail.
    pub subject: String,
    /// The number of patches.
    pub patches: u32,
    /// The origin of the same kernel without these patches, as in [`Kernel::origin`](crate::Kernel::origin).
    pub unpatched: String,
    /// The mail with this subject; `None` if there is none, or it has no identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<PatchMail>,
}

/// What a reply to a mail needs of its headers. The bytes are a stranger's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchMail {
    /// Its identifier, with angle brackets.
    pub message_id: String,
    /// The identifiers of the mails before it in the thread, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// Whom a reply is sent to: the author, or who is named for replies.
    pub to: Vec<MailAddress>,
    /// The other recipients, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<MailAddress>,
}

/// An address with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailAddress {
    /// The name; empty if there is none. It may have encoded words (RFC 2047).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The address, such as `linux-mm@kvack.org`.
    pub address: String,
}

/// Whether a text is the identifier of a mail: `<...@...>` of printable ASCII without spaces.
pub fn is_message_id(text: &str) -> bool {
    let inside = text.strip_prefix('<').and_then(|it| it.strip_suffix('>'));
    text.len() <= LONGEST_ID && inside.is_some_and(|it| it.contains('@') && is_plain(it, "<>"))
}

/// Whether a text is an address without name, of printable ASCII without quotes and comments.
pub fn is_address(text: &str) -> bool {
    let ends = text.split_once('@');
    text.len() <= LONGEST_ADDRESS
        && is_plain(text, "()<>[]:;\\,\"")
        && ends.is_some_and(|(to, at)| !to.is_empty() && !at.is_empty() && !at.contains('@'))
}

fn is_plain(text: &str, without: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_graphic() && !without.contains(letter))
}

#[cfg(test)]
mod tests {
    use crate::BootFacts;

    use super::*;

    /// Facts of a boot without patches are what they were before there was this field. A program that does not know it
    /// skips it, as this one does with others.
    #[test]
    fn boots_of_other_versions_are_read() {
        let mut facts = serde_json::to_value(BootFacts::default()).unwrap();
        assert!(facts.get("patched").is_none(), "{facts}");
        facts["of_a_later_version"] = serde_json::json!({ "x": [1] });
        assert_eq!(serde_json::from_value::<BootFacts>(facts).unwrap(), BootFacts::default());
    }

    #[test]
    fn identifiers_and_addresses_have_no_room_for_another_header() {
        assert!(is_message_id("<20240102-x.1@kernel.org>") && is_address("a.b+c@d.org"));
        for text in
            ["", "<>", "<a>", "a@b", "<a@b", "<a@b> <c@d>", "<a@b\n>", "<a @b>", "<\u{e9}@b>"]
        {
            assert!(!is_message_id(text), "{text:?}");
        }
        for text in ["", "a", "@b", "a@", "a@b@c", "a@b,c@d", "a@b\nBcc: x@y", "a@b ", "\u{e9}@b"] {
            assert!(!is_address(text), "{text:?}");
        }
        assert!(!is_address(&format!("{}@b", "a".repeat(300))));
    }
}

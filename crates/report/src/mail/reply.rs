//! The headers of a mail that answers a patch, in the form that `git send-email` reads. What they are made of are a
//! stranger's bytes: identifiers and addresses are checked again, and all else is encoded or escaped.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{MailAddress, PatchMail, is_address, is_message_id};

use super::subject::WIDTH;
use crate::document::{MAIL, Medium};

/// Most bytes of text in an encoded word, whose length is limited to 75 (RFC 2047, section 2).
const ENCODED: usize = 45;

/// Returns the headers of a reply to the mail with this subject. `None` if the mail lacks what they need.
pub fn headers(subject: &str, mail: &PatchMail) -> Option<String> {
    let PatchMail { message_id, references, to, cc } = mail;
    let [to, cc] = [to, cc].map(|list| list.iter().filter_map(address).collect::<Vec<_>>());
    if to.is_empty() || !is_message_id(message_id) {
        return None;
    }
    let references: Vec<&str> = references
        .iter()
        .chain([message_id])
        .map(|id| &**id)
        .filter(|id| is_message_id(id))
        .collect();
    let lists = [("To", to.join(",\n ")), ("Cc", cc.join(",\n "))];
    let lists = lists.iter().filter(|(_, list)| !list.is_empty());
    let lists: String = lists.map(|(name, list)| format!("{name}: {list}\n")).collect();
    let subject = subject_header(subject);
    let references = references.join("\n ");
    Some(format!("{lists}{subject}In-Reply-To: {message_id}\nReferences: {references}\n"))
}

/// Returns the header with the subject of a reply. `Re:` stands before it once.
fn subject_header(subject: &str) -> String {
    let mut rest = subject.trim();
    while let Some((_, after)) =
        rest.split_at_checked(3).filter(|(re, _)| re.eq_ignore_ascii_case("re:"))
    {
        rest = after.trim_start();
    }
    let fits = |word: &str| word.len() < WIDTH - "Subject: ".len() && !word.contains("=?");
    if is_printable(rest) && rest.split(' ').all(fits) {
        return Medium { width: WIDTH, ..MAIL }.wrapped("Subject: ", " ", &format!("Re: {rest}"));
    }
    format!("Subject: Re:\n {}\n", encoded(rest))
}

/// Lays out a recipient. `None` for what is no address.
fn address(recipient: &MailAddress) -> Option<String> {
    let MailAddress { name, address } = recipient;
    if !is_address(address) {
        return None;
    }
    let name = name.replace(char::is_control, "");
    // Words with these characters only need no quotes (RFC 5322, section 3.2.3); encoded words have no others.
    let is_atom =
        |letter: char| letter.is_ascii_alphanumeric() || " !#$%&'*+-/=?^_`{|}~".contains(letter);
    Some(match name.trim() {
        "" => address.clone(),
        name if name.chars().all(is_atom) => format!("{name} <{address}>"),
        name if is_printable(name) => {
            let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{quoted}\" <{address}>")
        }
        name => format!("{}\n <{address}>", encoded(name)),
    })
}

fn is_printable(text: &str) -> bool {
    text.chars().all(|letter| matches!(letter, ' '..='~'))
}

/// Encodes a text as words of RFC 2047, each on a line. Control characters are left out.
fn encoded(text: &str) -> String {
    let mut parts = vec![String::new()];
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        let part = parts.last_mut().expect("there is a part");
        match part.len() + letter.len_utf8() > ENCODED {
            true => parts.push(letter.to_string()),
            false => part.push(letter),
        }
    }
    let words = parts.iter().map(|part| format!("=?UTF-8?B?{}?=", STANDARD.encode(part)));
    words.collect::<Vec<_>>().join("\n ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recipient(name: &str, address: &str) -> MailAddress {
        MailAddress { name: name.into(), address: address.into() }
    }

    fn mail() -> PatchMail {
        PatchMail {
            message_id: "<2@x>".into(),
            references: vec!["<0@x>".into(), "<1@x>".into()],
            to: vec![recipient("=?UTF-8?q?J=C3=A9r?=", "j@x.org")],
            cc: vec![
                recipient("", "linux-mm@kvack.org"),
                recipient("Gorman, \"Mel\"", "mel@y.org"),
                recipient("Jos\u{e9}", "jose@z.org"),
            ],
        }
    }

    #[test]
    fn a_reply_has_its_place_in_the_thread() {
        assert_eq!(
            headers("[PATCH v3 2/5] mm: faster", &mail()).unwrap(),
            "To: =?UTF-8?q?J=C3=A9r?= <j@x.org>\n\
             Cc: linux-mm@kvack.org,\n \"Gorman, \\\"Mel\\\"\" <mel@y.org>,\n =?UTF-8?B?Sm9zw6k=?=\n <jose@z.org>\n\
             Subject: Re: [PATCH v3 2/5] mm: faster\n\
             In-Reply-To: <2@x>\n\
             References: <0@x>\n <1@x>\n <2@x>\n"
        );
        assert_eq!(subject_header("RE: re:  x"), "Subject: Re: x\n");
        assert_eq!(subject_header("mm: caf\u{e9}"), "Subject: Re:\n =?UTF-8?B?bW06IGNhZsOp?=\n");
        let nobody = PatchMail { to: vec![recipient("", "a@b\nBcc: c@d")], ..mail() };
        assert_eq!(headers("x", &nobody), None);
        assert_eq!(headers("x", &PatchMail { message_id: "<a@b>\nX: y".into(), ..mail() }), None);
    }

    /// Bytes that would end a header, begin another one, or the body.
    const HOSTILE: &str =
        "(\\r?\\nBcc: x@y|\\n\\n|[\\x00-\\x1f]|=\\?utf-8\\?q\\?=0AX: y\\?=|\\PC|[a@<>,;\" ]){0,30}";

    proptest! {
        #[test]
        fn nothing_begins_another_header(
            subject in HOSTILE, names in prop::collection::vec(HOSTILE, 3), ids in prop::collection::vec(HOSTILE, 2),
            addresses in prop::collection::vec(prop_oneof![Just("a@b.org".to_owned()), HOSTILE], 2),
        ) {
            let mut mail = mail();
            mail.to[0].name = names[0].clone();
            mail.cc[0] = recipient(&names[1], &addresses[0]);
            mail.cc[1] = recipient(&names[2], &addresses[1]);
            mail.references = ids;
            let text = headers(&subject, &mail).unwrap();
            let own = text.lines().filter(|line| !line.starts_with(' '));
            let own: Vec<&str> = own.map(|line| line.split_once(':').unwrap().0).collect();
            prop_assert_eq!(own, ["To", "Cc", "Subject", "In-Reply-To", "References"]);
            for line in text.lines() {
                prop_assert!(!line.trim().is_empty() && is_printable(line), "{text:?}");
            }
        }
    }
}

//! The headers of a patch's mail that a reply needs. They are a stranger's bytes: only well-formed identifiers and
//! addresses are taken, names have no control characters, and everything has a limit.

use model::{MailAddress, PatchMail, is_address, is_message_id};

/// Most bytes of headers that are read.
const MAX_HEADERS: usize = 256 << 10;
/// Most identifiers of earlier mails that are kept: the first, and the last ones.
const MAX_REFERENCES: usize = 20;
/// Most recipients that are kept.
const MAX_RECIPIENTS: usize = 200;
/// Most characters of a name.
const MAX_NAME: usize = 100;

/// What a reply needs of a mail. `None` if the mail has no identifier, or nobody to reply to.
pub fn reply(mail: &[u8]) -> Option<PatchMail> {
    let text = String::from_utf8_lossy(&mail[..mail.len().min(MAX_HEADERS)]);
    let headers = headers(&text);
    let values = |name: &str| {
        let own = headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        own.map(|(_, value)| &**value).collect::<Vec<_>>().join(",")
    };
    let message_id = identifiers(&values("Message-ID")).next()?.to_owned();
    let answered = [values("References"), values("In-Reply-To")];
    let answered = answered.iter().map(|it| identifiers(it).map(str::to_owned).collect());
    let mut references: Vec<String> =
        answered.into_iter().find(|it: &Vec<_>| !it.is_empty()).unwrap_or_default();
    if references.len() > MAX_REFERENCES {
        references.drain(1..references.len() - MAX_REFERENCES + 1);
    }
    let mut known = Vec::new();
    let mut new = |list: &str| {
        let mut found = addresses(list);
        found.retain(|it| {
            let address = it.address.to_ascii_lowercase();
            let is_new = known.len() < MAX_RECIPIENTS && !known.contains(&address);
            known.extend(is_new.then_some(address));
            is_new
        });
        found
    };
    let replies = new(&values("Reply-To"));
    let author = new(&values("From"));
    let others = [new(&values("To")), new(&values("Cc"))].concat();
    let (to, cc) = match replies.is_empty() {
        true => (author, others),
        false => (replies, [author, others].concat()),
    };
    (!to.is_empty()).then_some(PatchMail { message_id, references, to, cc })
}

/// The names and unfolded values of the headers.
fn headers(mail: &str) -> Vec<(&str, String)> {
    let mut headers: Vec<(&str, String)> = Vec::new();
    for line in mail.lines().skip_while(|line| line.starts_with("From ")) {
        if line.trim().is_empty() {
            break;
        }
        let visible = |text: &str| text.replace('\t', " ").replace(char::is_control, "");
        match (line.starts_with([' ', '\t']), headers.last_mut(), line.split_once(':')) {
            (true, Some((_, value)), _) => value.push_str(&visible(line)),
            (false, _, Some((name, value))) => headers.push((name, visible(value))),
            _ => {}
        }
    }
    headers
}

fn identifiers(value: &str) -> impl Iterator<Item = &str> {
    let parts = value.split_inclusive('>').filter_map(|part| Some(&part[part.rfind('<')?..]));
    parts.filter(|id| is_message_id(id))
}

/// The addresses of a list. Those that are not well-formed, such as empty groups, are left out.
fn addresses(list: &str) -> Vec<MailAddress> {
    let mut addresses = Vec::new();
    let (mut name, mut inside) = (String::new(), String::new());
    let (mut quoted, mut comments, mut angle) = (false, 0_usize, false);
    let mut letters = list.chars().chain([',']);
    while let Some(letter) = letters.next() {
        let word = if angle { &mut inside } else { &mut name };
        match letter {
            '\\' if quoted || comments > 0 => {
                let next = letters.next().unwrap_or(' ');
                if comments == 0 {
                    word.push(next);
                }
            }
            '"' if comments == 0 => quoted = !quoted,
            '(' if !quoted => comments += 1,
            ')' if !quoted => comments = comments.saturating_sub(1),
            _ if comments > 0 => {}
            '<' if !quoted => angle = true,
            '>' if !quoted => angle = false,
            ',' if !quoted && !angle => {
                let address = if inside.is_empty() { std::mem::take(&mut name) } else { inside };
                let address = address.trim().to_owned();
                let name = std::mem::take(&mut name);
                let name = name.trim().chars().take(MAX_NAME).collect();
                addresses.extend(is_address(&address).then_some(MailAddress { name, address }));
                inside = String::new();
            }
            letter => word.push(letter),
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(name: &str, address: &str) -> MailAddress {
        MailAddress { name: name.into(), address: address.into() }
    }

    #[test]
    fn a_reply_goes_to_the_author_and_the_others_of_the_thread() {
        let mail = "From git@z Thu Jan  1 00:00:00 1970\nFrom: =?UTF-8?q?J=C3=A9r?= <j@x.org>\n\
                    To: linux-mm@kvack.org, \"Gorman, Mel\" <mel@y.org>,\n\tJ <J@x.org>\n\
                    CC: Jos\u{e9} <jose@z.org>, a@b.org (A B), undisclosed-recipients:;\n\
                    Message-Id: <2@x>\nReferences: <0@x>\n <1@x>\nBcc: secret@x.org\n\n\
                    Cc: trailer@x.org\n";
        let cc = [
            address("", "linux-mm@kvack.org"),
            address("Gorman, Mel", "mel@y.org"),
            address("Jos\u{e9}", "jose@z.org"),
            address("", "a@b.org"),
        ];
        let expected = PatchMail {
            message_id: "<2@x>".into(),
            references: vec!["<0@x>".into(), "<1@x>".into()],
            to: vec![address("=?UTF-8?q?J=C3=A9r?=", "j@x.org")],
            cc: cc.into(),
        };
        assert_eq!(reply(mail.as_bytes()), Some(expected));
        let named = reply(format!("Reply-To: r@x.org\n{}", &mail[36..]).as_bytes()).unwrap();
        assert_eq!(named.to, [address("", "r@x.org")]);
        assert_eq!(named.cc[0].address, "j@x.org");
        for without in
            ["From: a@b\n\n", "Message-ID: <a@b>\n\n", "Message-ID: a@b\nFrom: a@b\n\n", ""]
        {
            assert_eq!(reply(without.as_bytes()), None, "{without:?}");
        }
    }

    #[test]
    fn much_is_cut() {
        let many = |number: usize, one: &dyn Fn(usize) -> String| {
            (0..number).map(one).collect::<Vec<_>>().join(",\n ")
        };
        let recipients = many(1000, &|it| format!("{} <a{it}@b>", "n".repeat(300)));
        let references = many(100, &|it| format!("<{it}@b>"));
        let mail =
            format!("Message-ID: <x@y>\nFrom: a@b\nReferences: {references}\nTo: {recipients}\n\n");
        let found = reply(mail.as_bytes()).unwrap();
        assert_eq!((found.references.len(), found.cc.len()), (MAX_REFERENCES, MAX_RECIPIENTS - 1));
        assert_eq!([&found.references[0], &found.references[1]], ["<0@b>", "<81@b>"]);
        assert_eq!(found.cc[0].name.len(), MAX_NAME);
    }

    proptest! {
        #[test]
        fn any_bytes_give_only_what_a_header_can_have(
            values in prop::collection::vec("[a-b<>@,;:\\\\\"() \\r\\n\\t\u{e9}=?]{0,40}|\\PC{0,40}", 5),
            tail in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let names = ["Message-ID: <a@b>\nTo", "From: c@d\nFrom", "Cc", "References", "Reply-To"];
            let text: String =
                names.iter().zip(&values).map(|(name, value)| format!("{name}: {value}\n")).collect();
            let found = reply(&[text.as_bytes(), &tail].concat());
            for it in found.iter().flat_map(|it| it.to.iter().chain(&it.cc)) {
                prop_assert!(is_address(&it.address), "{it:?}");
                prop_assert!(!it.name.contains(char::is_control), "{it:?}");
            }
            for id in found.iter().flat_map(|it| it.references.iter().chain([&it.message_id])) {
                prop_assert!(is_message_id(id), "{id}");
            }
            reply(&tail);
        }
    }
}

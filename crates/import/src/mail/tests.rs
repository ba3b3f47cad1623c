use super::*;

fn unfold(bytes: &[u8]) -> Mail {
    super::unfold(bytes, 0)
}

fn texts(bytes: &str) -> Vec<(usize, usize, String)> {
    let mail = unfold(bytes.as_bytes());
    let text = mail.lines.iter().filter(|line| line.role == Role::Text);
    text.map(|line| (line.lines.first, line.depth, line.text.clone())).collect()
}

fn texts_of(bytes: &str) -> Vec<String> {
    texts(bytes).into_iter().map(|(_, _, text)| text).collect()
}

#[test]
fn headers_and_hunks_are_set_apart() {
    let mail = "From: Ada <a@b.c>\nSubject: x\n folded 1 2\n\nText\n---\n\
                @@ -1,2 +1,2 @@ struct x\n a 1 2\n-b 1 2\n+b 1 3\nafter\n";
    let texts = texts(mail);
    let lines: Vec<_> = texts.iter().map(|(_, _, text)| text.as_str()).collect();
    assert_eq!(lines, ["", "Text", "---", "after"]);
}

#[test]
fn lines_of_a_kernels_log_are_set_apart() {
    let lines = "[   97.003812] RBP: 01 R08: 02\n> [  0.5] x\n[1] 5 6\n";
    assert_eq!(texts_of(lines), ["[  0.5] x", "[1] 5 6"]);
}

#[test]
fn a_title_with_a_colon_is_no_header() {
    let lines = texts("autonuma: over 3 boots\n       base    new\nAmean x  1.0   2.0\n");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(texts("X-Spam: no\nfrom: a@b.c\n\ntext\n").len(), 2);
}

#[test]
fn a_hunk_ends_with_its_lines() {
    let texts = texts("@@ -1 +1 @@\n-a\n+b\n+ c 1 2\n- d\n");
    assert_eq!(texts.len(), 2, "{texts:?}");
}

#[test]
fn authors_follow_quoting_and_messages() {
    let mail = unfold(
        b"From: Ada <a@b.c>\n\nOn Monday, Bob <b@b.c> wrote:\n> hello\n> On Sunday, Ada <a@b.c> wrote:\n\
          > > first\n> last\nend\n>>> who\nFrom x@y Sat Mar  7 15:20:00 2015\nFrom: Cy <c@b.c>\n\nnew\n> old\n",
    );
    let author = |text: &str| {
        let line = mail.lines.iter().find(|line| line.text == text).unwrap();
        mail.author(line).unwrap_or_default()
    };
    assert_eq!(author("hello"), "Bob");
    assert_eq!(author("first"), "Ada");
    assert_eq!(author("last"), "Bob");
    assert_eq!(author("end"), "Ada");
    assert_eq!(author("who"), "");
    assert_eq!(author("new"), "Cy");
    assert_eq!(author("old"), "");
}

#[test]
fn quoted_printable_lines_keep_their_places() {
    let mail = "Subject: x\nContent-Transfer-Encoding: quoted-printable\n\na=3D1 b=\n c=20d\r\ne\n";
    assert_eq!(
        texts(mail),
        [(3, 0, String::new()), (4, 0, "a=1 b c d".to_owned()), (6, 0, "e".to_owned())]
    );
}

#[test]
fn latin_1_is_read_line_by_line() {
    let mail = unfold(b"1\xa0\xa0 2\n\xc3\xa9 3\n");
    let texts: Vec<_> = mail.lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["1   2", "\u{e9} 3"]);
    let mail = "Subject: x\nContent-Transfer-Encoding: quoted-printable\n\na=A0=A0b\n";
    assert_eq!(texts_of(mail).last(), Some(&"a  b".to_owned()));
}

#[test]
fn parts_have_their_own_encodings() {
    let mail = unfold(
        b"Content-Type: multipart/mixed; boundary=x=\n\n--x=\n\
          Content-Transfer-Encoding: quoted-printable\nContent-Type: text/plain\n\nFrom: A <a@b>\n\n=41\n--x=\n\
          Content-Type: text/x-patch\n\n=41\n--x\n\
          Content-Type: image/png\nContent-Transfer-Encoding: base64\n\nAAAA\n--x\n\
          Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\nBBBB\n",
    );
    let roles = |role| mail.lines.iter().filter(|line| line.role == role).count();
    let has = |text: &str| mail.lines.iter().any(|line| line.text == text);
    assert!(has("A") && has("=41"));
    assert_eq!(roles(Role::Encoded), 0);
}

#[test]
fn base64_is_read_with_the_lines_on_which_it_stands() {
    // "Results:\n@@ -1 +1 @@\n-a  1 2\n+b  1 3\nAmean  1.50  2.50\n> last\n", in lines of 20 letters.
    let mail = "From: =?utf-8?B?QWTDoQ==?= <a@b.c>\nContent-Transfer-Encoding: base64\n\n\
                UmVzdWx0czoKQEAgLTEg\nKzEgQEAKLWEgIDEgMgor\nYiAgMSAzCkFtZWFuICAx\n\
                LjUwICAyLjUwCj4gbGFz\ndAo=\n";
    let mail = unfold(mail.as_bytes());
    let text = mail.lines.iter().filter(|line| line.role == Role::Text && !line.text.is_empty());
    let found: Vec<_> = text
        .map(|line| (line.lines.first, line.lines.last, line.depth, line.text.as_str()))
        .collect();
    assert_eq!(found, [(4, 4, 0, "Results:"), (6, 7, 0, "Amean  1.50  2.50"), (7, 8, 1, "last")]);
    assert_eq!(mail.author(&mail.lines[4]).as_deref(), Some("Ad\u{e1}"));
    let broken = unfold(b"Content-Transfer-Encoding: base64\n\nAA*\n--mark\n");
    let roles: Vec<Role> = broken.lines.iter().map(|line| line.role).collect();
    assert_eq!(roles[1..], [Role::Text, Role::Encoded, Role::Apart]);
}

#[test]
fn no_more_lines_are_decoded_than_are_read() {
    // Four letters of base64 are three lines.
    let lines = "CgoK".repeat(MAX_LINES / 3 + 1);
    let mail = unfold(format!("Content-Transfer-Encoding: base64\n\n{lines}\n").as_bytes());
    assert_eq!((mail.lines.len(), mail.cut), (MAX_LINES, Some(3)));
}

#[test]
fn flowed_text_is_unstuffed() {
    let mail =
        |kind: &str| format!("Subject: x\nContent-Type: text/plain;\n {kind}\n\n  a  1\nb  2\n");
    assert_eq!(texts_of(&mail("format=flowed"))[1..], [" a  1", "b  2"]);
    assert_eq!(texts_of(&mail("charset=utf-8"))[1..], ["  a  1", "b  2"]);
}

#[test]
fn tabs_stop_at_every_eighth_letter() {
    assert_eq!(expand("a\tb\t\tc \t"), "a       b               c");
    assert_eq!(expand("a\u{a0}b\u{7}"), "a b");
}

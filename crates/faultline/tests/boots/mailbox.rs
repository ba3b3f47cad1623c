//! A patch of a mailing list, from the pipe to the reply.

use std::io::Write;
use std::process::Stdio;

use crate::common::Bench;
use crate::planted::{SOURCE, patch};
use crate::said::Said;

const ID: &str = "20261001100000.1-2-dev@example.org";
const SUBJECT: &str = "[PATCH v2 1/2] mm: delay page_add_new_anon_rmap";
/// Writes to pages of one size.
const PROGRAM: &str = "
#define _GNU_SOURCE
#include <sys/mman.h>
int main(void)
{
    unsigned long size = 32 << 20;
    volatile char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)memory, size, MADV_NOHUGEPAGE);
    for (unsigned long at = 0; at < size; at += 4096)
        memory[at] = 1;
    return !memory[0];
}
";

/// The planted delay as `b4 am -o -` prints a patch.
fn mailbox() -> String {
    let planted = std::fs::read_to_string(patch("delay")).unwrap();
    let (message, diff) = planted.split_once("--- a/").unwrap();
    format!(
        "From git@z Thu Jan  1 00:00:00 1970\nFrom: A Developer <dev@example.org>\n\
         Date: Thu, 1 Oct 2026 10:00:00 +0000\nTo: linux-mm@example.org\n\
         Cc: linux-kernel@example.org,\n Other <other@example.org>\nSubject: {SUBJECT}\n\
         Message-ID: <{ID}>\nIn-Reply-To: <20261001100000.1-1-dev@example.org>\n\n\
         {message}\nSigned-off-by: A Developer <dev@example.org>\n---\n mm/rmap.c | 1 +\n\n\
         --- a/{diff}-- \n2.50.0\n"
    )
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_patch_from_a_pipe_is_answered() {
    let bench = Bench::new();
    bench.compile("program", PROGRAM, &["-static"]);
    let words = ["try", SOURCE, "--patch", "-", "--exact", "--memory", "512M", "--seeds", "4"];
    let mut faultline = bench.command(&[&words[..], &["--", "./program"]].concat());
    faultline.current_dir(bench.directory.path());
    let mut run = faultline
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    run.stdin.take().unwrap().write_all(mailbox().as_bytes()).unwrap();
    let ended = run.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("page_add_new_anon_rmap"), "{said}");

    let Said { out: mail, .. } = bench.faultline(&["compare", "--format", "mail"]).expect(0);
    println!("{mail}");
    let (headers, body) = mail.split_once("\n\n").unwrap();
    for part in [
        "To: A Developer <dev@example.org>\n",
        &format!("Subject: Re: {SUBJECT}\n"),
        &format!("In-Reply-To: <{ID}>\n"),
        "linux-mm@example.org",
        "Other <other@example.org>",
    ] {
        assert!(headers.contains(part), "{part}: {headers}");
    }
    let finding = body.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(finding.contains("more kernel instructions with"), "{finding}");
    let repeated = format!("b4 am -o - {ID} |\n    faultline kernel add {SOURCE} --patch -  # ");
    for part in ["page_add_new_anon_rmap", "small configuration", &repeated] {
        assert!(body.contains(part), "{part}: {body}");
    }
}

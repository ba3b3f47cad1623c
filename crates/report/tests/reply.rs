//! The mail on a patch: its subject, and its headers if it answers a mail.

mod common;

use common::carried::assert_short;
use common::{boot, columns, experiment, measure_phase, variant};
use compare::{Judging, Results, compare};
use model::{Boot, MailAddress, Mode, PatchMail, Patched, Reading};
use report::Recipe;

const BASE: &str = "git v6.12, 0123abc (\"Linux 6.12\"); small configuration";

/// Seeds whose kernels spent these instructions, and were built so.
fn seeds(instructions: f64, origin: &str, patched: Option<&Patched>) -> Vec<Boot> {
    let seed = |number: u32| {
        let mut boot = boot(number);
        let value = instructions + f64::from(number * 7 % 5);
        measure_phase(&mut boot, "run", "instructions", "kernel", value);
        boot.facts.kernel_origin = origin.into();
        boot.facts.patched = patched.cloned();
        boot
    };
    (0..5).map(seed).collect()
}

fn patched(subject: &str, patches: u32) -> Patched {
    let address =
        |name: &str, address: &str| MailAddress { name: name.into(), address: address.into() };
    let mail = PatchMail {
        message_id: "<20240102.2@kernel.org>".into(),
        references: vec!["<20240102.1@kernel.org>".into()],
        to: vec![address("A Developer", "dev@kernel.org")],
        cc: vec![address("", "linux-mm@kvack.org"), address("Ren\u{e9}", "rene@kernel.org")],
    };
    Patched { subject: subject.into(), patches, unpatched: BASE.into(), mail: Some(mail) }
}

/// The headers and the body of the mail on kernels, each with its origin and its patches.
fn mail(mode: Mode, kernels: &[(&str, Option<&Patched>)]) -> (String, String) {
    let names = ["6.12", "6.12+fix", "6.12+other"].map(variant);
    let all: Vec<Vec<Boot>> = (1..)
        .zip(kernels)
        .map(|(scale, (origin, patched))| seeds(1e6 * f64::from(scale), origin, *patched))
        .collect();
    let boots: Vec<&[Boot]> = all.iter().map(Vec::as_slice).collect();
    let experiment = experiment(mode, 5);
    let variants = columns(&names, &boots);
    let results = Results { experiment: &experiment, reading: Reading::USUAL, variants };
    let comparison = compare(&results, 0, &Judging::default());
    let recipe = Recipe { version: "0.1.0", ..Recipe::default() };
    let mail = report::mail(&comparison, &results, &[], &recipe, &[]);
    common::assert_plain(&mail);
    assert_short(&mail);
    let (headers, body) = mail.split_once("\n\n").unwrap();
    (headers.to_owned(), body.to_owned())
}

#[test]
fn a_reply_goes_to_the_thread_of_the_patch() {
    let patch = patched("[PATCH v3 2/5] mm: waste memory", 1);
    let (headers, body) = mail(Mode::Exact, &[(BASE, None), ("patched", Some(&patch))]);
    assert_eq!(
        headers,
        "To: A Developer <dev@kernel.org>\n\
         Cc: linux-mm@kvack.org,\n =?UTF-8?B?UmVuw6k=?=\n <rene@kernel.org>\n\
         Subject: Re: [PATCH v3 2/5] mm: waste memory\n\
         In-Reply-To: <20240102.2@kernel.org>\n\
         References: <20240102.1@kernel.org>\n <20240102.2@kernel.org>"
    );
    let finding =
        "autonuma 100.0 % more kernel instructions with \"[PATCH v3 2/5] mm: waste\nmemory\".\n\n";
    assert!(body.starts_with(finding), "{body}");
    assert!(!body.contains("Tested-by") && !body.contains("Reviewed-by"), "{body}");
}

#[test]
fn the_subject_names_the_patch() {
    let subject = |mode, kernels: &[(&str, Option<&Patched>)]| {
        mail(mode, kernels).0.replace("\n ", " ").strip_prefix("Subject: ").unwrap().to_owned()
    };
    let file = Patched { mail: None, ..patched("waste.patch", 1) };
    assert_eq!(
        subject(Mode::Exact, &[(BASE, None), ("patched", Some(&file))]),
        "mm: autonuma 100.0 % more kernel instructions with \"waste.patch\""
    );
    let series = Patched { mail: None, ..patched("[PATCH v3 0/5] mm: waste", 5) };
    assert_eq!(
        subject(Mode::Exact, &[(BASE, None), ("patched", Some(&series))]),
        "mm: autonuma 100.0 % more kernel instructions with \"[PATCH v3 0/5] mm: waste\" (5 patches)"
    );
    assert_eq!(
        subject(Mode::Measured, &[(BASE, None), ("patched", Some(&file))]),
        "autonuma: \"waste.patch\" on 6.12: no verdict"
    );
    // Another base: the patch alone is not what differs.
    assert_eq!(
        subject(Mode::Exact, &[("git v6.11", None), ("patched", Some(&file))]),
        "mm: autonuma 100.0 % more kernel instructions with 6.12+fix than with 6.12"
    );
    // Patches of two mails have no mail that could be answered.
    let (one, mut two) = (patched("[PATCH] one", 1), patched("[PATCH] two", 1));
    two.mail.as_mut().unwrap().message_id = "<other@kernel.org>".into();
    let said = subject(Mode::Exact, &[(BASE, None), ("one", Some(&one)), ("two", Some(&two))]);
    assert!(said.contains("with \"[PATCH] two\""), "{said}");
}

//! How to repeat it: what was run, by which versions, on which kernels.

use std::collections::BTreeSet;

use maud::{Markup, html};
use model::{BootFacts, Mode};

use super::Page;
use crate::ascii::{escape, excerpt};
use crate::mail::reproduce::{commands, facts, kernel_and_digest, lock_command};

pub fn section(page: &Page<'_>) -> Markup {
    let experiment = page.results.experiment;
    html! {
        section id="reproduce" {
            h2 { "How to reproduce" }
            @if let Some(imported) = &experiment.imported {
                p {
                    "Run by " (excerpt(&imported.tool)) ", and imported from "
                    code { (excerpt(&imported.directory.display().to_string())) } "."
                }
            } @else {
                pre class="command" tabindex="0" {
                    @for command in commands(page.results, page.recipe) { (escape(&command)) "\n" }
                }
                @for (name, text) in page.recipe.files {
                    p { code { (excerpt(name)) } ":" }
                    pre tabindex="0" { (printable(text)) }
                }
            }
            (kernels(page))
            @if experiment.mode == Mode::Exact {
                p {
                    "In exact mode boots with equal inputs are equal to the byte: "
                    code { "faultline replay BOOT" } " repeats one and compares."
                }
            }
            p {
                "Faultline " (escape(page.recipe.version)) (emulators(page)) "."
                @if !experiment.guest_digest.is_empty() {
                    " Our programs in the guest: SHA-256 "
                    code class="digest" { (excerpt(&experiment.guest_digest)) } "."
                }
                @if !experiment.userspace_digest.is_empty() {
                    " User space in the guest (" (escape(&experiment.packages().join(", ")))
                    "): SHA-256 "
                    code class="digest" { (excerpt(&experiment.userspace_digest)) } "."
                    @if let Some(command) = lock_command(page.results) {
                        " Its packages are written down by " code { (escape(&command)) } " where it ran."
                    }
                }
            }
        }
    }
}

/// The variants' kernels, identified by their digests.
fn kernels(page: &Page<'_>) -> Markup {
    html! {
        div class="table" {
            table class="notes" {
                caption { "Kernels" }
                thead {
                    tr {
                        th scope="col" { "Variant" } th scope="col" { "Kernel" }
                        th scope="col" { "Release and origin" } th scope="col" { "SHA-256 of the image" }
                        th scope="col" { "Command line" }
                    }
                }
                tbody {
                    @for column in &page.results.variants {
                        @let facts = facts(column);
                        @let (kernel, digest) = kernel_and_digest(column.variant, facts);
                        tr {
                            th scope="row" { (excerpt(&column.variant.name)) }
                            td { (excerpt(kernel)) }
                            td { (origin(facts)) }
                            td class="digest" { (excerpt(digest)) }
                            td { (facts.map_or(String::new(), |facts| excerpt(&facts.cmdline))) }
                        }
                    }
                }
            }
        }
    }
}

fn origin(facts: Option<&BootFacts>) -> String {
    let known = facts.map(|facts| [&facts.release, &facts.kernel_origin]);
    let known = known.into_iter().flatten().filter(|text| !text.is_empty());
    known.map(|text| excerpt(text)).collect::<Vec<_>>().join("; ")
}

fn emulators(page: &Page<'_>) -> String {
    let boots = page.results.variants.iter().flat_map(|column| &column.boots);
    let all =
        boots.map(|kept| &kept.boot.facts).filter(|facts| !facts.provenance.emulator.is_empty());
    let all: BTreeSet<String> = all
        .map(|facts| {
            format!(
                "; {} ({})",
                excerpt(&facts.provenance.emulator),
                facts.provenance.execution_name()
            )
        })
        .collect();
    all.into_iter().collect()
}

/// The lines of a file, each escaped.
fn printable(file: &str) -> String {
    file.lines().map(|line| escape(line) + "\n").collect()
}

//! How to repeat the run: what ran, by which versions, on which kernels.

use std::collections::BTreeSet;

use model::{BootFacts, Mode};

use super::Page;
use crate::ascii::excerpt;
use crate::document::{Block, Column, part, sentence, table};
use crate::mail::kernel::kernel_and_digest;
use crate::mail::reproduce::{facts, file, guest, run};

pub fn blocks(page: &Page<'_>) -> Vec<Block> {
    let Page { results, recipe, .. } = page;
    let experiment = results.experiment;
    let mut blocks = Vec::new();
    if let Some(imported) = &experiment.imported {
        let directory = excerpt(&imported.directory.display().to_string());
        let tool = excerpt(&imported.tool);
        blocks.push(sentence(format!("Run by {tool}, and imported from `{directory}`.")));
    } else {
        blocks.push(run(results, recipe));
        blocks.extend(recipe.files.iter().map(|(name, text)| file(name, text)));
    }
    blocks.push(kernels(page));
    let first = results.variants.iter().find_map(|column| column.boots.first());
    if let (Mode::Exact, Some(first)) = (experiment.mode, first) {
        blocks.push(sentence(format!(
            "In exact mode boots with equal inputs are equal to the byte: `faultline replay {}` repeats \
             one and compares.",
            first.id
        )));
    }
    blocks.push(sentence(format!("Faultline {}{}.", recipe.version, emulators(page))));
    blocks.extend(guest(results));
    blocks
}

/// Lists the variants' kernels with their digests.
fn kernels(page: &Page<'_>) -> Block {
    let rows = page.results.variants.iter().map(|column| {
        let facts = facts(column);
        let (kernel, digest) = kernel_and_digest(column.variant, facts);
        let cmdline = facts.map_or(String::new(), |facts| excerpt(&facts.cmdline));
        let digest =
            if digest.is_empty() { String::new() } else { format!("`{}`", excerpt(digest)) };
        vec![excerpt(&column.variant.name), excerpt(kernel), origin(facts), digest, cmdline]
    });
    let heads = ["Variant", "Kernel", "Release and origin", "SHA-256 of the image", "Command line"];
    part("Kernels:", [table(heads.map(Column::sentences), rows.collect())])
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

//! How the boots were done, and how to repeat the run.

use compare::{KeptBoot, Results, VariantBoots};
use model::{BootFacts, BootId, Mode, Pinned, Variant};

use crate::ascii::{excerpt, shell_word};
use crate::document::{Block, part, sentence};
use crate::note::{self, Note};
use crate::notes;

/// The version and the files that are needed to run an experiment again.
#[derive(Clone, Debug)]
pub struct Recipe<'a> {
    /// The version of Faultline that ran it.
    pub version: &'a str,
    /// The names and texts of its files, in printable ASCII. The experiment's file is the first; the files
    /// that it names follow.
    pub files: &'a [(String, String)],
}

/// Most lines of a file in a mail. Lock files of user space can have hundreds of lines.
const MOST_LINES: usize = 120;
/// The letters by which a mail names the variants.
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Lists the order in which the variants booted. `None` for an import, with fewer than two variants, or
/// with more variants than letters.
pub fn boots(results: &Results<'_>) -> Option<Block> {
    let Results { experiment, variants, .. } = results;
    if experiment.imported.is_some() || variants.len() > LETTERS.len() || variants.len() < 2 {
        return None;
    }
    let mut boots: Vec<(u32, u64, BootId, char, bool)> = Vec::new();
    for (column, letter) in variants.iter().zip(LETTERS) {
        for KeptBoot { id, superseded, boot } in &column.boots {
            let complete = boot.outcome.counts() && !superseded;
            boots.push((boot.block, boot.started, *id, char::from(*letter), complete));
        }
    }
    boots.sort_unstable();
    let blocks = boots.chunk_by(|a, b| a.0 == b.0).map(|block| {
        let block = block.iter().map(|(.., letter, complete)| match complete {
            true => letter.to_string(),
            false => format!("({letter})"),
        });
        block.collect::<Vec<_>>().join(" ")
    });
    let order = blocks.collect::<Vec<_>>().join(" | ");
    let letters = variants
        .iter()
        .zip(LETTERS)
        .map(|(column, letter)| format!("{} is {}", char::from(*letter), column.variant.name));
    let letters = letters.collect::<Vec<_>>().join(", ");
    let what = match experiment.mode {
        Mode::Measured => "boots of each variant, in blocks in which each boots once",
        Mode::Exact => "seeds of each variant, a boot each",
    };
    let wanted = format!("{} {what}: {letters}. Boots in brackets do not count.", experiment.boots);
    let notes = [Note::on_all("wanted", wanted), Note::on_all("done", order)];
    Some(note::block("Boots:", &notes))
}

/// Lays out the kernels, files and commands that are needed to repeat the run.
pub fn sections(results: &Results<'_>, recipe: &Recipe<'_>) -> Vec<Vec<Block>> {
    let Results { experiment, variants, .. } = results;
    if let Some(imported) = &experiment.imported {
        let said = format!("Imported from what {} left behind.", imported.tool);
        return vec![vec![sentence(said)]];
    }
    let mut how: Vec<Block> =
        variants.iter().map(|column| kernel(column.variant, facts(column))).collect();
    how.extend(guest(results));
    how.push(run(results, recipe));
    let files = recipe.files.iter().map(|(name, text)| match text.lines().count() {
        lines if lines > MOST_LINES => {
            vec![sentence(format!("{name} has {lines} lines: it goes beside this mail."))]
        }
        _ => vec![file(name, text)],
    });
    [vec![part("How to reproduce:", how)]].into_iter().chain(files).collect()
}

/// Lists the digests of what ran in the guest besides its kernel.
pub fn guest(results: &Results<'_>) -> Vec<Block> {
    let experiment = results.experiment;
    let mut guest = Vec::new();
    if !experiment.guest_digest.is_empty() {
        guest.push(part("Our programs in the guest:", [digest(&experiment.guest_digest)]));
    }
    if !experiment.userspace_digest.is_empty() {
        let packages = experiment.packages().join(", ");
        let locked = lock_command(results).map(|command| {
            sentence(format!("Its packages are written down by `{command}` where it ran."))
        });
        let said = [digest(&experiment.userspace_digest)].into_iter().chain(locked);
        let title = format!("User space in the guest ({packages}):");
        guest.push(part(title, said.collect::<Vec<_>>()));
    }
    guest
}

/// Lists the commands that repeat the run.
pub fn run(results: &Results<'_>, recipe: &Recipe<'_>) -> Block {
    let commands = Block::Code(commands(results, recipe).join("\n"));
    part(format!("By faultline {}:", recipe.version), [commands])
}

/// Lays out a file that the commands need.
pub fn file(name: &str, text: &str) -> Block {
    part(format!("{name}:"), [Block::Code(text.to_owned())])
}

fn digest(digest: &str) -> Block {
    sentence(format!("sha256 {digest}"))
}

/// Returns the commands that repeat the run: those that get the kernels, then those that run and compare.
fn commands(results: &Results<'_>, recipe: &Recipe<'_>) -> Vec<String> {
    let Results { experiment, variants, .. } = results;
    let mut commands: Vec<String> = Vec::new();
    for column in variants {
        let command = kernel_command(column.variant, facts(column));
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    if let Some((file, _)) = recipe.files.first() {
        commands.push(format!("faultline run {}", shell_word(file.as_bytes())));
        commands.push(format!("faultline compare {}", shell_word(experiment.name.as_bytes())));
    }
    commands
}

/// Returns the command that pins the packages of user space, on the host that has the boots. `None` if the
/// experiment pins them itself, or has none.
fn lock_command(results: &Results<'_>) -> Option<String> {
    let experiment = results.experiment;
    if experiment.userspace_digest.is_empty() || experiment.userspace.is_some() {
        return None;
    }
    let mut boots = results.variants.iter().flat_map(|column| &column.boots);
    let boot = boots.find(|kept| !kept.boot.facts.userspace.is_empty())?;
    Some(format!("faultline userspace lock --boot {} -o userspace.lock", boot.id))
}

/// Returns the facts of a variant's first complete boot, or else of its first boot. `None` without boots.
pub fn facts<'a>(column: &VariantBoots<'a>) -> Option<&'a BootFacts> {
    let boots = || column.boots.iter().map(|kept| kept.boot);
    let any = boots().find(|boot| boot.outcome.counts()).or_else(|| boots().next());
    any.map(|boot| &boot.facts)
}

/// Returns the name of a variant's kernel and its digest, which is empty if it is not known.
pub fn kernel_and_digest<'a>(
    variant: &'a Variant,
    facts: Option<&'a BootFacts>,
) -> (&'a str, &'a str) {
    let Pinned { name, digest } = &variant.kernel;
    let known = facts.map(|facts| &*facts.kernel_digest).filter(|known| !known.is_empty());
    (name, known.or(digest.as_deref()).unwrap_or_default())
}

/// Lays out the origin and the digest of a variant's kernel.
fn kernel(variant: &Variant, facts: Option<&BootFacts>) -> Block {
    let (kernel, known) = kernel_and_digest(variant, facts);
    let origin = facts.map_or("", |facts| &facts.kernel_origin);
    let origin = if origin.is_empty() { kernel } else { origin };
    let below: Vec<Block> = (!known.is_empty()).then(|| digest(known)).into_iter().collect();
    part(format!("{}: {}", variant.name, excerpt(origin)), below)
}

/// Returns the command that gets a variant's kernel. If it is no package of Debian, the command has
/// placeholders.
fn kernel_command(variant: &Variant, facts: Option<&BootFacts>) -> String {
    let (kernel, _) = kernel_and_digest(variant, facts);
    let origin = facts.map_or("", |facts| &facts.kernel_origin);
    let version =
        origin.strip_prefix(notes::DEBIAN).and_then(|rest| rest.split_once(',')).map(|it| it.0);
    match version {
        Some(version) => {
            format!("faultline kernel add {}", shell_word(format!("debian:{version}").as_bytes()))
        }
        None => {
            format!(
                "faultline kernel add --image bzImage --modules DIR --name {}",
                shell_word(kernel.as_bytes())
            )
        }
    }
}

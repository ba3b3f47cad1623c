//! The findings as a mail, and as a log of `git bisect`.

use compare::Comparison;
use culprit::{Commit, Culprit, Findings, Phase, Tried};

use super::{blocks, change, kind, name, of, rest};
use crate::ascii::escape;
use crate::document::{Block, MAIL, part, sections, sentence};
use crate::mail::{compared, guarded, header, verdicts_and_rows};
use crate::words::Of;

/// The findings as a mail: subject, the answer, the commits tried, the verdicts on the proofs, and the lines that
/// trackers read. `proofs` has the comparison of each culprit that was proven, in their order. `command` repeats the
/// search.
pub fn culprit_mail(found: &Findings, proofs: &[Comparison], command: &str) -> String {
    let mut all = blocks(found, Vec::new());
    let proven = found.culprits.iter().filter(|culprit| culprit.proof.is_some());
    for (culprit, comparison) in proven.zip(proofs) {
        let mut proof = verdicts_and_rows(comparison);
        proof[0].insert(0, sentence(format!("Proof of {}:", name(culprit))));
        all.extend(proof);
    }
    all.extend(proofs.first().map(|comparison| vec![compared(comparison)]));
    all.push(vec![part("To reproduce:", [Block::Code(command.to_owned())])]);
    let mut text = format!("{}\n{}", header(&subject(found)), guarded(&sections(&all, &MAIL)));
    // Steps to the other side offset a part of the change.
    let whole = found.levels().map_or(0.0, |[good, bad]| bad - good);
    let is_shown_again = |step: &&Culprit| step.proof.as_ref().is_none_or(|proof| proof.confirms());
    let same = found.culprits.iter().filter(|step| step.change() * whole > 0.0);
    let same = same.filter(is_shown_again);
    for commit in same.filter_map(Culprit::only).filter(|commit| !commit.is_option()) {
        let (short, id) = (commit.short(), &commit.id);
        // As git prints it: the line is to be copied into a commit.
        let subject: String = commit.subject.chars().filter(|it| is_shown(*it)).collect();
        text += &format!("\nFixes: {short} (\"{subject}\")\n#regzbot introduced: {id}\n");
    }
    text
}

/// Whether a letter neither moves the cursor nor turns the direction of text (Unicode's bidirectional controls).
fn is_shown(letter: char) -> bool {
    let turns = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !letter.is_control() && !turns
}

fn subject(found: &Findings) -> String {
    let (workload, signal) = (&found.workload, &found.signal);
    let change = |step: &Culprit| match &found.phase {
        Some(Phase { signal, change: whole }) if found.share.is_some() && rest(found).is_none() => {
            format!("{} {signal}", change(Of::Number, whole.levels))
        }
        _ => format!("{} {signal}", change(of(found), step.levels)),
    };
    match &found.culprits[..] {
        [] => format!("{workload}: no {} found that changed {signal}", kind(found)),
        [step] => {
            let since = match step.only() {
                Some(commit) if commit.is_option() => format!("with {commit}"),
                Some(commit) => format!("since {commit}"),
                None => format!("since {}", name(step).to_lowercase()),
            };
            format!("{workload}: {} {since}", change(step))
        }
        steps => format!("{workload}: {signal} changed in {} steps", steps.len()),
    }
}

/// The commits that were tried as a log that `git bisect replay` reads (git-bisect(1)). A commit nearer to the
/// level of the good end is good, others are bad, and those without a figure are skipped.
pub fn bisect_log(found: &Findings) -> String {
    let line = |word: &str, commit: &Commit| {
        let subject = escape(&commit.subject);
        format!("# {word}: [{0}] {subject}\ngit bisect {word} {0}\n", commit.id)
    };
    let [good, bad] = &found.ends;
    let mut text = "git bisect start '--term-new=bad' '--term-old=good'\n".to_owned();
    text += &(line("bad", bad) + &line("good", good));
    let Some([low, high]) = found.levels() else { return text };
    let [step] = &found.culprits[..] else {
        return text + &format!("# {} steps\n", found.culprits.len());
    };
    let is_other =
        |tried: &&Tried| !found.ends.contains(&tried.commit) && step.only() != Some(&tried.commit);
    for tried in found.tried.iter().filter(is_other) {
        let word = match tried.level() {
            None => "skip",
            Some(level) if (level - low).abs() < (level - high).abs() => "good",
            Some(_) => "bad",
        };
        text += &line(word, &tried.commit);
    }
    if let Some(commit) = step.only() {
        // Commits that were ruled out without a reading are unknown to git.
        text += &line("bad", commit);
        let is_told = |parent: &str| text.contains(&format!("\ngit bisect good {parent}\n"));
        let untold = step.parents.iter().filter(|parent| !is_told(parent));
        let untold: String = untold.map(|it| format!("git bisect good {it}\n")).collect();
        text += &untold;
        text += &format!("# first bad commit: [{}] {}\n", commit.id, escape(&commit.subject));
    }
    text
}

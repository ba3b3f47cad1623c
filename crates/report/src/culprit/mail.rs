//! The findings as a mail, and as a log of `git bisect`.

use compare::Comparison;
use culprit::{Commit, Culprit, Findings, Phase, Tried};

use super::{blocks, change, kind, name, of, rest};
use crate::ascii::escape;
use crate::document::{Block, MAIL, part, sections, sentence};
use crate::mail::{beside, compared, guarded, header, verdicts_and_rows};
use crate::words::Of;

/// Returns the findings as a mail: the subject, the answer, the commits tried, the verdicts of the proofs,
/// and the lines that trackers read. `proofs` has a comparison for each culprit that was proven, in the
/// order of the culprits. `command` repeats the search, and `attached` names the files that go beside the mail.
pub fn culprit_mail(
    found: &Findings,
    proofs: &[Comparison],
    command: &str,
    attached: &[&str],
) -> String {
    let mut all = blocks(found, Vec::new());
    let proven = found.culprits.iter().filter(|culprit| culprit.proof.is_some());
    for (culprit, comparison) in proven.zip(proofs) {
        let mut proof = verdicts_and_rows(comparison);
        proof[0].insert(0, sentence(format!("Proof of {}:", name(culprit))));
        all.extend(proof);
    }
    all.extend(proofs.first().map(|comparison| vec![compared(comparison)]));
    all.push(vec![part("To reproduce:", [Block::Code(command.to_owned())])]);
    all.extend(beside(attached).map(|files| vec![files]));
    let mut text = format!("{}\n{}", header(&subject(found)), guarded(&sections(&all, &MAIL)));
    // A step in the direction opposite to the whole change is no cause of it.
    let whole = found.levels().map_or(0.0, |[good, bad]| bad - good);
    let is_shown_again = |step: &&Culprit| step.proof.as_ref().is_none_or(|proof| proof.confirms());
    let same = found.culprits.iter().filter(|step| step.change() * whole > 0.0);
    let same = same.filter(is_shown_again);
    for commit in same.filter_map(Culprit::only).filter(|commit| !commit.is_option()) {
        let (short, id) = (commit.short(), &commit.id);
        // The subject is printed as git prints it, because the line is copied into a commit.
        let subject: String = commit.subject.chars().filter(|it| is_shown(*it)).collect();
        text += &format!("\nFixes: {short} (\"{subject}\")\n#regzbot introduced: {id}\n");
    }
    text
}

/// Returns whether a character neither moves the cursor nor changes the direction of text (Unicode's
/// bidirectional controls).
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

/// Returns the commits that were tried as a log that `git bisect replay` reads (git-bisect(1)). A commit is
/// good if its level is nearer to that of the good end, skipped if it has no level, and bad otherwise.
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
        // Git does not know which commits were ruled out without a reading, so the parents of the culprit
        // are listed.
        text += &line("bad", commit);
        let is_told = |parent: &str| text.contains(&format!("\ngit bisect good {parent}\n"));
        let untold = step.parents.iter().filter(|parent| !is_told(parent));
        let untold: String = untold.map(|it| format!("git bisect good {it}\n")).collect();
        text += &untold;
        text += &format!("# first bad commit: [{}] {}\n", commit.id, escape(&commit.subject));
    }
    text
}

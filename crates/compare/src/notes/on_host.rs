//! Remarks of sessions on what changed on their host meanwhile. They are made and recognized here.

use model::{Host, Note, NoteKind};

use super::facts::turbo;

/// The first words of such a remark.
const HEAD: &str = "on the host: ";

/// A remark on each property that decides times and changed during a session, and on heat, which slowed CPUs down `slowed`
/// times.
pub fn remarks(before: &Host, after: &Host, slowed: u64) -> Vec<Note> {
    let cpus = [before, after].map(|host| host.cpus.to_string());
    let said = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
    let all = [
        ("governor", &*before.governor, &*after.governor),
        ("turbo", turbo(before), turbo(after)),
        ("SMT", &before.smt, &after.smt),
        ("the number of CPUs", &cpus[0], &cpus[1]),
        ("mitigations", &before.mitigations, &after.mitigations),
        ("clocksource", &before.clocksource, &after.clocksource),
        ("microcode", &before.microcode, &after.microcode),
    ];
    let changed = all.into_iter().filter(|(_, before, after)| before != after);
    let changed = changed.map(|(name, before, after)| {
        format!("{name} changed from {} to {}", said(before), said(after))
    });
    let heat = (slowed > 0)
        .then(|| format!("CPUs were slowed down because of heat, by {slowed} events in all"));
    changed.chain(heat).map(|it| NoteKind::Remark.note(HEAD.to_owned() + &it)).collect()
}

/// Whether a note is such a remark.
pub fn is_remark(note: &Note) -> bool {
    note.text.starts_with(HEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_on_a_host_is_named() {
        let before = Host { governor: "schedutil".into(), cpus: 4, ..Host::default() };
        let after = Host { cpus: 4, turbo: Some(false), boot_id: "x".into(), ..Host::default() };
        let told = remarks(&before, &after, 3);
        assert!(told.iter().all(is_remark));
        let told: Vec<String> = told.iter().map(Note::to_string).collect();
        let expected = [
            "on the host: governor changed from schedutil to unknown",
            "on the host: turbo changed from unknown to off",
            "on the host: CPUs were slowed down because of heat, by 3 events in all",
        ];
        assert_eq!(told, expected);
        assert!(remarks(&after, &after, 0).is_empty());
    }
}

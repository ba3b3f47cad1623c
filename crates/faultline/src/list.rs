//! Lists as text: kernels, experiments, boots. Text from guests and files is escaped.

mod layout;
mod record;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use kernels::{KnownKernel, KnownUserspace, Pruned, Renewed};
use lock::Held;
use model::{Boot, Kept, Outcome, count, date};
use report::escape;
use results::KeyDifference;
use store::{ExperimentId, ExperimentRow, Lost};

use layout::{WIDTH, columns, columns_above, seconds};

pub use layout::{figure, topics, wrapped};
pub use record::{Moved, moved};
pub use workload::{checked, floors, workload, workloads};

/// The largest number of lines of the console of a boot whose agent did not start.
const CONSOLE_LINES: usize = 20;
/// An outcome that is longer gets a line of its own.
const BOOTS_WIDTH: usize = 28;

/// The kernels in the cache: a row each, and below it the origin.
pub fn kernels(known: &[KnownKernel]) -> String {
    let rows = known.iter().map(|KnownKernel { kernel, size: bytes, used }| {
        let parts = [
            ("modules", &kernel.modules),
            ("headers", &kernel.headers),
            ("config", &kernel.config),
            ("map", &kernel.map),
        ];
        let parts = parts.into_iter().filter_map(|(name, part)| part.as_ref().map(|_| name));
        let parts = match parts.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "image only".to_owned(),
            parts => parts,
        };
        [kernel.name.clone(), size(*bytes), day(*used), parts, short(&kernel.digest)]
    });
    let origins = known.iter().map(|KnownKernel { kernel, .. }| {
        let arch = kernel.arch.unless_usual().map(|it| format!("; {}", it.name()));
        format!("        {}{}\n", escape(&kernel.origin), arch.unwrap_or_default())
    });
    columns_above(["KERNEL", "SIZE", "LAST USED", "HAS", "DIGEST"], rows, origins)
}

/// What was removed from the cache, or would be: a row each, then the sum.
pub fn pruned(pruned: &[Pruned], dry_run: bool) -> String {
    let (head, verb) = if dry_run { ("TO REMOVE", "Would free") } else { ("REMOVED", "Freed") };
    let freed = format!("{verb} {}.\n", size(pruned.iter().map(|it| it.size).sum()));
    let rows = pruned.iter().map(|it| [it.name.clone(), size(it.size), it.origin.clone()]);
    match pruned.is_empty() {
        true => "Nothing to remove.\n".to_owned(),
        false => columns([head, "SIZE", "ORIGIN"], rows) + &freed,
    }
}

/// The images in the cache, one line each.
pub fn userspaces(known: &[KnownUserspace]) -> String {
    let rows = known.iter().map(|KnownUserspace { image, wanted }| {
        let wanted: Vec<String> = wanted.iter().map(|packages| packages.join(" ")).collect();
        [
            short(&image.digest),
            image.size.to_string(),
            day(image.made),
            image.packages.len().to_string(),
            if wanted.is_empty() { "-".to_owned() } else { wanted.join(", ") },
        ]
    });
    columns(["IMAGE", "SIZE", "MADE", "PACKAGES", "MADE FOR"], rows)
}

/// The run that is under way on a store, and the runs that wait for it, one line each; empty if there are none.
/// `lock` is the file that they lock.
pub fn runs(lock: &Path) -> String {
    let now = Held::now(lock).map(|held| match held.span {
        Some(span) => format!("under way for {}: {}\n", lock::text(span), held.by()),
        None => format!("under way: {}\n", held.by()),
    });
    let waiting = lock::waiting(lock).into_iter().map(|it| match lock::age(it.process) {
        Some(age) => format!("waiting, started {} ago: {it}\n", lock::text(age)),
        None => format!("waiting: {it}\n"),
    });
    now.into_iter().chain(waiting).collect()
}

/// The damaged parts of a store, one line each.
pub fn lost(lost: &[Lost]) -> String {
    let rows = lost.iter().map(|Lost { experiment, boot, what, why }| {
        let (number, variant) = match boot {
            Some((number, variant)) => (number.to_string(), variant.clone()),
            None => ("-".into(), "-".into()),
        };
        let experiment = experiment.clone().unwrap_or_else(|| "-".into());
        [experiment, variant, number, format!("{what}: {why}")]
    });
    columns(["EXPERIMENT", "VARIANT", "BOOT", "DAMAGED"], rows)
}

/// The first digits of a digest.
fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// The changed packages of a renewed image, one line each.
pub fn renewed(Renewed { wanted, old, new }: &Renewed) -> String {
    let [was, is] = [old, new].map(|image| {
        let versions = image.packages.iter().filter_map(|package| package.split_once('='));
        versions.collect::<BTreeMap<_, _>>()
    });
    let names: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
    let changed = names.into_iter().filter_map(|name| match (was.get(name), is.get(name)) {
        (was, is) if was == is => None,
        (Some(was), Some(is)) => Some(format!("  {name} {is}, was {was}\n")),
        (Some(was), None) => Some(format!("  {name} {was} removed\n")),
        (None, is) => Some(format!("  {name} {} added\n", is?)),
    });
    let changed: Vec<String> = changed.map(|line| escape(line.trim_end()) + "\n").collect();
    let wanted = wanted.join(" ");
    match &changed[..] {
        [] => format!("{}: up to date\n", escape(&wanted)),
        changed => {
            format!("{}: {}\n{}", escape(&wanted), short(&new.digest), changed.concat())
        }
    }
}

/// The experiments in the store, a row each. Long outcomes, a remark and the note follow on lines of their own. Only
/// lines with outcomes are wider than 100 columns.
pub fn experiments(experiments: &[ExperimentRow], remarks: &[String]) -> String {
    let rows = experiments.iter().map(|row| {
        [
            row.id.to_string(),
            cut(&escape(&row.name), 24),
            moment(row.created),
            size(row.size),
            boots_cell(row),
            escape(&row.variants.join(", ")),
        ]
    });
    let head = ["NUMBER", "EXPERIMENT", "CREATED (UTC)", "SIZE", "BOOTS", "VARIANTS"];
    let lines = columns(head, rows);
    let mut lines = lines.lines();
    let mut text = format!("{}\n", lines.next().unwrap_or_default());
    for ((row, line), remark) in experiments.iter().zip(lines).zip(remarks) {
        let boots = boots_kept(row);
        let note = match row.note.as_str() {
            "" => String::new(),
            note => format!("note: {}", escape(note)),
        };
        let below = [remark, &note].map(|it| format!("        {it}"));
        let below = below.iter().filter(|it| !it.trim().is_empty()).map(String::as_str);
        text.push_str(&cut(line, WIDTH));
        text.push('\n');
        if boots != boots_cell(row) {
            text.push_str(&format!("        boots: {}\n", escape(&boots)));
        }
        for line in below {
            text.push_str(&cut(line, WIDTH));
            text.push('\n');
        }
    }
    text
}

/// How an experiment differs from an older one of its name.
pub fn differing(differences: &[KeyDifference], older: ExperimentId) -> String {
    let usual = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".into());
    let told = differences
        .iter()
        .map(|it| format!("{} {} (was {})", it.key, usual(&it.first), usual(&it.second)));
    let told = match told.collect::<Vec<_>>() {
        none if none.is_empty() => "no key of its file".to_owned(),
        told => escape(&told.join("; ")),
    };
    format!("differs from {older}: {told}")
}

/// The day of a time, in UTC.
fn day(time: SystemTime) -> String {
    date(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// Day and minute of a time in seconds since 1970, in UTC.
pub fn moment(seconds: u64) -> String {
    format!("{} {:02}:{:02}", date(seconds), seconds / 3600 % 24, seconds / 60 % 60)
}

/// A size in the largest suitable unit, such as `1.2M` or `45K`.
fn size(bytes: u64) -> String {
    let units = [("G", 30), ("M", 20), ("K", 10)];
    match units.into_iter().find(|(_, power)| bytes >> power > 0) {
        Some((unit, power)) if bytes >> power < 10 => {
            format!("{:.1}{unit}", bytes as f64 / (1_u64 << power) as f64)
        }
        Some((unit, power)) => format!("{}{unit}", bytes >> power),
        None => bytes.to_string(),
    }
}

/// The text, shortened to this many characters.
fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}

/// The outcomes or, if these are too long, the number of boots: `14 of 64`.
fn boots_cell(row: &ExperimentRow) -> String {
    match boots_kept(row) {
        short if short.len() <= BOOTS_WIDTH => short,
        _ => {
            let places = standing(row).map(|(_, count)| count);
            format!("{} of {}", places.sum::<u32>(), boots_wanted(row))
        }
    }
}

fn boots_wanted(row: &ExperimentRow) -> u64 {
    u64::from(row.boots) * row.variants.len() as u64
}

/// How many boots the store has, how they ended, and how many are wanted: `3 complete, 1 died of 4`.
fn boots_kept(row: &ExperimentRow) -> String {
    let wanted = boots_wanted(row);
    let outcomes: Vec<String> =
        standing(row).map(|(outcome, count)| format!("{count} {outcome}")).collect();
    let kept = if outcomes.is_empty() { "none".to_owned() } else { outcomes.join(", ") };
    let aside = [("interrupted", interrupted(row)), ("superseded", row.superseded)];
    let aside = aside.into_iter().filter(|(_, count)| *count > 0);
    let aside: String = aside.map(|(what, count)| format!("; {count} {what}")).collect();
    format!("{kept} of {wanted}{aside}")
}

/// How many boots that occupy a place in the schedule had each outcome.
fn standing(row: &ExperimentRow) -> impl Iterator<Item = (&String, u32)> {
    let interrupted = Outcome::Interrupted.name();
    row.outcomes
        .iter()
        .filter(move |it| it.0 != interrupted)
        .map(|(outcome, count)| (outcome, *count))
}

fn interrupted(row: &ExperimentRow) -> u32 {
    row.outcomes.get(Outcome::Interrupted.name()).copied().unwrap_or(0)
}

/// The boots of an experiment, one line each.
pub fn boots(boots: &[Kept]) -> String {
    let rows = boots.iter().map(|Kept { id, superseded, boot }| {
        let superseded = if *superseded { " (superseded)" } else { "" };
        [
            id.to_string(),
            boot.variant.clone(),
            seconds(boot.host.wall, 0),
            boot.facts.provenance.execution_name().to_owned(),
            boot.facts.release.clone(),
            format!("{}{superseded}", boot.outcome),
        ]
    });
    columns(["BOOT", "VARIANT", "TIME", "ACCEL", "RELEASE", "OUTCOME"], rows)
}

/// The result of `faultline boot`: the outcome, and what the agent reported of the machine. If the agent did not
/// start, the last lines of the console instead.
pub fn boot(boot: &Boot) -> String {
    let facts = &boot.facts;
    let head = format!(
        "{}: {} in {} ({}, {})\n",
        escape(&facts.release),
        escape(&boot.outcome.to_string()),
        seconds(boot.host.wall, 1),
        escape(&facts.provenance.emulator),
        facts.provenance.execution_name()
    );
    let problems = boot
        .problems
        .iter()
        .map(|problem| format!("{}: {}\n", problem.kind, escape(&problem.text)));
    let problems: String = problems.collect();
    if facts.cpus == 0 {
        return format!("{head}{problems}{}", console_end(&boot.console));
    }
    let machine = format!(
        "{}, {}, {} MiB of memory\n",
        count(facts.cpus as usize, "CPU"),
        count(facts.nodes as usize, "node"),
        facts.memory >> 20
    );
    let lines = [&facts.banner, &facts.version, &facts.cmdline].map(|line| escape(line.trim()));
    format!("{head}{machine}{}\n{problems}", lines.join("\n"))
}

/// The last lines of the console.
fn console_end(console: &str) -> String {
    let lines: Vec<&str> = console.lines().map(str::trim_end).filter(|it| !it.is_empty()).collect();
    match &lines[lines.len().saturating_sub(CONSOLE_LINES)..] {
        [] => "Its console is empty.\n".to_owned(),
        last => {
            let last: String = last.iter().map(|line| format!("  {}\n", escape(line))).collect();
            format!("The last lines on its console:\n{last}")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kernels::Userspace;
    use model::{Bytes, Kernel};
    use store::ExperimentId;

    use super::*;

    fn image(packages: &[&str]) -> Userspace {
        Userspace {
            image: "/x".into(),
            size: Bytes::mib(36),
            digest: "0123456789abcdef".repeat(4),
            packages: packages.iter().map(|package| (*package).to_owned()).collect(),
            lock: None,
            made: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        }
    }

    #[test]
    fn kernels_are_listed_with_their_use_of_the_disk() {
        let kernel = |name: &str, origin: &str| Kernel {
            name: name.into(),
            origin: origin.into(),
            digest: "0123456789abcdef".repeat(4),
            config: Some("/x".into()),
            ..Kernel::default()
        };
        let used = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let known = [
            (kernel("6.1.0-9-cloud-amd64", "Debian 6.1.9-1"), 171 << 20),
            (kernel("6.12.0-0123456789ab", "git v6.12, adc218676eef (\"Linux 6.12\")"), 45 << 20),
        ];
        let known = known.map(|(kernel, size)| KnownKernel { kernel, size, used });
        insta::assert_snapshot!(kernels(&known), @r#"
        KERNEL               SIZE  LAST USED   HAS     DIGEST
        6.1.0-9-cloud-amd64  171M  2023-11-14  config  0123456789ab
                Debian 6.1.9-1
        6.12.0-0123456789ab  45M   2023-11-14  config  0123456789ab
                git v6.12, adc218676eef ("Linux 6.12")
        "#);
    }

    #[test]
    fn what_is_removed_from_the_cache_is_listed_with_its_size() {
        let pruned = |name: &str, size, origin: &str| Pruned {
            name: name.into(),
            size,
            origin: origin.into(),
            path: name.into(),
        };
        let all = [
            pruned("6.12.0-0123456789ab", 45 << 20, "git v6.12"),
            pruned("build/repository", 3 << 30, ""),
        ];
        insta::assert_snapshot!(super::pruned(&all, false), @r"
        REMOVED              SIZE  ORIGIN
        6.12.0-0123456789ab  45M   git v6.12
        build/repository     3.0G
        Freed 3.0G.
        ");
        insta::assert_snapshot!(super::pruned(&all[..1], true), @r"
        TO REMOVE            SIZE  ORIGIN
        6.12.0-0123456789ab  45M   git v6.12
        Would free 45M.
        ");
        assert_eq!(super::pruned(&[], false), "Nothing to remove.\n");
    }

    #[test]
    fn images_are_listed_by_what_they_are_for() {
        let packages = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let wanted = vec![packages(&["fio"]), packages(&["fsmark", "xfsprogs"])];
        let known = KnownUserspace { image: image(&["fio=1", "dash=2"]), wanted };
        let past = KnownUserspace { wanted: Vec::new(), ..known.clone() };
        insta::assert_snapshot!(userspaces(&[past, known]), @r"
        IMAGE         SIZE  MADE        PACKAGES  MADE FOR
        0123456789ab  36M   2023-11-14  2         -
        0123456789ab  36M   2023-11-14  2         fio, fsmark xfsprogs
        ");
    }

    #[test]
    fn changed_packages_of_an_image_are_listed() {
        let wanted = vec!["fio".to_owned()];
        let old = image(&["fio=3.33-3", "libaio1=1", "libc6=2.36-1"]);
        let new = image(&["fio=3.33-4", "libc6=2.36-1", "libnew=1"]);
        let same = Renewed { wanted: wanted.clone(), old: old.clone(), new: old.clone() };
        let told = [Renewed { wanted, old, new }, same].iter().map(renewed).collect::<String>();
        insta::assert_snapshot!(told, @r"
        fio: 0123456789ab
          fio 3.33-4, was 3.33-3
          libaio1 1 removed
          libnew 1 added
        fio: up to date
        ");
    }

    #[test]
    fn a_boot_without_an_agent_shows_the_end_of_its_console() {
        let lines: String = (1..=30).map(|number| format!("line {number}\r\n\n")).collect();
        let console = format!("{lines}Kernel panic\x1b[2J\n");
        let outcome = Outcome::Panicked("No working init found.".into());
        let text = super::boot(&Boot { outcome, console, ..Boot::default() });
        assert!(text.contains("No working init found."), "{text}");
        assert!(
            text.contains("console:\n  line 12\n  line 13\n") && !text.contains("line 11"),
            "{text}"
        );
        assert!(text.ends_with("  Kernel panic\\u{1b}[2J\n") && !text.contains("CPU"), "{text}");
    }

    #[test]
    fn boots_are_counted_by_how_they_ended() {
        let mut row = ExperimentRow {
            id: ExperimentId(1),
            name: "numa".into(),
            created: 0,
            variants: vec!["6.1".into(), "7.3".into()],
            boots: 2,
            outcomes: BTreeMap::new(),
            superseded: 0,
            size: 0,
            note: String::new(),
        };
        assert_eq!(boots_kept(&row), "none of 4");
        row.outcomes = [("complete".to_owned(), 2), ("died".to_owned(), 1)].into();
        row.superseded = 1;
        assert_eq!(boots_kept(&row), "2 complete, 1 died of 4; 1 superseded");
    }

    #[test]
    fn many_outcomes_are_listed_in_full_below() {
        let outcomes = ["complete", "died", "panicked", "timed-out", "partial"];
        let row = ExperimentRow {
            id: ExperimentId(1),
            name: "numa".into(),
            created: 0,
            variants: vec!["6.1".into(), "7.3".into()],
            boots: 8,
            outcomes: outcomes.map(|outcome| (outcome.to_owned(), 3)).into(),
            superseded: 12,
            size: 0,
            note: "a note".into(),
        };
        let few = ExperimentRow {
            id: ExperimentId(2),
            outcomes: [("complete".into(), 2), ("died".into(), 1)].into(),
            superseded: 0,
            size: 0,
            note: String::new(),
            ..row.clone()
        };
        let remarks = [String::new(), "other than 1".to_owned()];
        insta::assert_snapshot!(experiments(&[row, few], &remarks), @r"
        NUMBER  EXPERIMENT  CREATED (UTC)     SIZE  BOOTS                     VARIANTS
        1       numa        1970-01-01 00:00  0     15 of 16                  6.1, 7.3
                boots: 3 complete, 3 died, 3 panicked, 3 partial, 3 timed-out of 16; 12 superseded
                note: a note
        2       numa        1970-01-01 00:00  0     2 complete, 1 died of 16  6.1, 7.3
                other than 1
        ");
    }
}

//! The findings of a search for a commit or an option, as text, mail, page and JSON, and as a log of
//! `git bisect`.

mod mail;
mod page;
mod proof;

use culprit::{Commit, Culprit, Findings, Phase, SearchEnding, Tried, short};
use model::{Architecture, count};

use crate::ascii::excerpt;
use crate::document::{Block, Column, TEXT, lead, note, part, sections, sentence, table};
use crate::exact::not_modelled;
use crate::table::EMULATED;
use crate::words::{Of, decimal, figure};
pub use mail::{bisect_log, culprit_mail};
pub use page::culprit_page;

/// Most commits that are listed of a set.
const LISTED: usize = 20;

/// Returns the findings as plain text: ASCII, without trailing spaces.
pub fn culprit(found: &Findings) -> String {
    sections(&blocks(found, Vec::new()), &TEXT)
}

/// Returns the findings in sections. `drawn` has the drawings of a page, which follow the answer.
fn blocks(found: &Findings, drawn: Vec<Block>) -> Vec<Vec<Block>> {
    let answer = [answer(found), whole(found)].into_iter().chain(share(found)).map(lead).collect();
    let steps = steps(found).into_iter().collect();
    let culprits = found.culprits.iter().map(|culprit| vec![of_culprit(culprit, found)]);
    let others = [
        left(found).into_iter().collect(),
        rest(found).map(sentence).into_iter().collect(),
        parts(found).map(sentence).into_iter().collect(),
        reference(found).map(sentence).into_iter().collect(),
        groups(found),
        limits(found).map(note).into_iter().collect(),
        effort(found).map(note).into(),
        vec![tried(found)],
    ];
    [answer, drawn, steps].into_iter().chain(culprits).chain(others).collect()
}

/// Returns the findings as JSON.
pub fn culprit_json(found: &Findings) -> String {
    serde_json::to_string_pretty(found).expect("findings are plain data") + "\n"
}

/// Returns the answer in one line.
fn answer(found: &Findings) -> String {
    let (by, kind) = (by(found.exact), kind(found));
    match &found.ending {
        SearchEnding::Found => match &found.culprits[..] {
            [one] if one.only().is_some() => {
                format!("Culprit: {}{}", name(one), probability(&one.commits, found.exact))
            }
            [one] => name(one) + &probability(&one.commits, found.exact),
            steps => format!("{} steps", steps.len()),
        },
        SearchEnding::Drift => format!(
            "No single {kind}: the figure drifts, and no step has 10 % of the change. --all lists smaller steps."
        ),
        SearchEnding::NoDifference => {
            let more = match found.exact {
                true => "",
                false => " More boots of the ends lower the floor.",
            };
            format!("The ends do not differ beyond {by}: there is no {kind} to find.{more}")
        }
        SearchEnding::Hidden => {
            format!("Not found: {by} hides on which side a {kind} lies, even with the most boots.")
        }
        SearchEnding::NoEnd(problem) => format!("Not found: {problem}"),
        SearchEnding::Budget => {
            "Not found: the time budget is used up. Run the same command again to continue.".into()
        }
    }
}

/// Writes the figure at both ends, with the change and the floor.
fn whole(found: &Findings) -> String {
    let Findings { names: [good, bad], signal, .. } = found;
    let whole = match found.levels() {
        Some(levels) => format!(
            "{signal}: {} at {good}, {} at {bad} ({})",
            value(levels[0]),
            value(levels[1]),
            change(of(found), levels)
        ),
        None => "no figure of both ends".into(),
    };
    let base = found.levels().map_or(0.0, |levels| levels[0]);
    let floor =
        found.floor.map(|floor| format!(", {} {}", by(found.exact), self::floor(floor, base)));
    whole + &floor.unwrap_or_default()
}

/// Returns the word for what the range consists of.
fn kind(found: &Findings) -> &'static str {
    match (found.commits, found.options) {
        (_, 0) => "commit",
        (0, _) => "option",
        _ => "commit or option",
    }
}

/// Returns the word for what hides small differences.
fn by(exact: bool) -> &'static str {
    if exact { "luck" } else { "noise" }
}

fn of_culprit(culprit: &Culprit, found: &Findings) -> Block {
    let title = name(culprit) + &probability(&culprit.commits, found.exact);
    let (title, mut said) = match culprit.only() {
        Some(_) => (title, Vec::new()),
        None => (title + ":", listed(&culprit.commits, found.exact)),
    };
    said.extend(culprit.with.iter().map(|other| sentence(format!("with it {other}"))));
    said.extend(culprit.author.as_ref().map(|author| sentence(&**author)));
    let share = found.levels().map(|[good, bad]| 100.0 * culprit.change() / (bad - good));
    let share = share.filter(|_| found.culprits.len() > 1);
    said.push(sentence(format!(
        "{} before, {} after ({}{})",
        value(culprit.levels[0]),
        value(culprit.levels[1]),
        change(of(found), culprit.levels),
        share.map_or(String::new(), |share| format!("; {share:.0} % of the whole change")),
    )));
    let is_option = culprit.only().is_some_and(Commit::is_option);
    said.extend(culprit.proof.as_ref().map(|proof| proof::block(proof, found, is_option)));
    part(title, said)
}

/// Lists commits one of which is the culprit, each on a line. In measured mode each line has the
/// probability.
fn listed(commits: &[(Commit, f64)], exact: bool) -> Vec<Block> {
    let rows = commits.iter().take(LISTED).map(|(commit, share)| {
        let share = (!exact).then(|| of_hundred(*share));
        share.into_iter().chain([named(commit)]).collect()
    });
    let columns = [Column::figures(""), Column::sentences("")];
    let columns = if exact { &columns[1..] } else { &columns[..] };
    let more = commits.len().checked_sub(LISTED).filter(|more| *more > 0);
    let more = more.map(|more| sentence(format!("and {more} more")));
    [table(columns, rows.collect())].into_iter().chain(more).collect()
}

/// Lists the commits and options that can still be the culprit. `None` if there are none left.
fn left(found: &Findings) -> Option<Block> {
    let (what, of) = (numbered(&found.left), probability(&found.left, found.exact));
    let title = format!("If there is one culprit, it is one of {what}{of}:");
    (!found.left.is_empty()).then(|| part(title, listed(&found.left, found.exact)))
}

/// Lays out several steps by size, and the rest of the change that is in no step. `None` if there are fewer
/// than two steps.
fn steps(found: &Findings) -> Option<Block> {
    let (rest, [good, bad]) = (found.rest()?, found.levels()?);
    if found.culprits.len() < 2 {
        return None;
    }
    let called = |step: &Culprit| match step.only() {
        Some(commit) => named(commit),
        None => format!("one of {}", numbered(&step.commits)),
    };
    let mut rows: Vec<(f64, String)> =
        found.culprits.iter().map(|step| (step.change(), called(step))).collect();
    rows.sort_by(|one, other| other.0.abs().total_cmp(&one.0.abs()));
    rows.push((rest, "in no step".into()));
    rows.push((bad - good, "the whole change".into()));
    let row = |(change, name): (f64, String)| {
        let size = decimal(Some(change.abs()), digits(good));
        let sign = if change < 0.0 { '-' } else { '+' };
        vec![format!("{sign}{size}"), of_whole(change, [good, bad]), name]
    };
    let columns = [Column::figures(""), Column::figures(""), Column::sentences("")];
    Some(part("Steps by size:", [table(columns, rows.into_iter().map(row).collect())]))
}

/// Writes the part of the change that is in no step. `None` unless there is exactly one step and the rest
/// is beyond the floor and 5 % of the change.
fn rest(found: &Findings) -> Option<String> {
    let (rest, [good, bad]) = (found.rest()?, found.levels()?);
    let floor = found.floor.unwrap_or(0.0).max(0.05 * (bad - good).abs());
    if found.culprits.len() != 1 || rest.abs() <= floor {
        return None;
    }
    let share = of_whole(rest, [good, bad]);
    Some(format!("In no step: {} ({share} of the whole change)", value(rest)))
}

/// Writes how the change divides into code and options. `None` if the code alone was not measured, or if
/// the search found neither a step nor a drift.
fn parts(found: &Findings) -> Option<String> {
    let (code, [good, bad]) = (found.code?, found.levels()?);
    if !matches!(found.ending, SearchEnding::Found | SearchEnding::Drift) {
        return None;
    }
    let share = |part: f64| {
        let hidden = found.floor.is_some_and(|floor| part.abs() <= floor);
        let within = if hidden { format!(" (within {})", by(found.exact)) } else { String::new() };
        of_whole(part, [good, bad]) + &within
    };
    Some(format!(
        "The code of the bad end with the options of the good end: {}. Changed first, the code has {} of the \
         change, and the options have {}.",
        value(code),
        share(code - good),
        share(bad - code)
    ))
}

/// Writes the change of the phase, and the share of it that the searched function has. `None` if no
/// function was searched.
fn share(found: &Findings) -> Option<String> {
    let Phase { signal, change: whole } = found.phase.as_ref()?;
    let [before, after] = whole.levels.map(value);
    let floor = whole.floor.map_or(String::new(), |floor| {
        format!(", {} {}", by(found.exact), self::floor(floor, whole.levels[0]))
    });
    let meaning = match found.share {
        Some(share) if share < 0.95 => {
            format!("the function has {:.0} % of that; --all searches all of it", 100.0 * share)
        }
        Some(share) => format!("the function has {:.0} % of that", 100.0 * share),
        None => "not beyond luck, but the function's cost is".into(),
    };
    let change = change(Of::Number, whole.levels);
    Some(format!("{signal}: {before} -> {after} ({change}{floor}); {meaning}"))
}

/// Lists the kernels whose boots lie in groups, in measured mode.
fn groups(found: &Findings) -> Vec<Block> {
    let of_kernel = |tried: &&Tried| {
        let groups = tried.groups();
        let each = groups.iter().map(|group| format!("{} about {}", group.n, value(group.centre)));
        let each = each.collect::<Vec<_>>().join(", ");
        (!groups.is_empty()).then(|| sentence(format!("{}: {each}", tried.commit.short())))
    };
    let kernels: Vec<Block> = in_order(found).iter().filter_map(of_kernel).collect();
    if found.exact || kernels.is_empty() {
        return Vec::new();
    }
    let meaning = "A step that only changes how often each comes is found less surely than the probabilities say.";
    vec![part("Boots of one kernel lie in groups:", kernels), sentence(meaning)]
}

/// Returns what the figures do not show.
fn limits(found: &Findings) -> Option<String> {
    match (found.exact, found.emulated) {
        (true, _) => Some(format!(
            "Instructions were counted, not time. Not modelled: {}.",
            not_modelled(Architecture::of_name(found.arch).unwrap_or_default()).join(", ")
        )),
        (false, true) => Some(EMULATED.to_owned()),
        (false, false) => None,
    }
}

fn reference(found: &Findings) -> Option<String> {
    let (name, level) = found.reference.as_ref()?;
    let (Some(level), Some([good, bad])) = (level, found.levels()) else {
        return Some(format!("Reference {name}: no figure"));
    };
    let nearer = if (level - good).abs() < (level - bad).abs() { "good" } else { "bad" };
    let meaning = match nearer {
        "good" => "the change is not a return to it",
        _ => "the bad end returns to what was",
    };
    Some(format!("Reference {name}: {}, nearer to the {nearer} end: {meaning}", value(*level)))
}

/// Writes what was searched, and how many kernels and boots that took.
fn effort(found: &Findings) -> [String; 2] {
    let [good, bad] = &found.names;
    let skipped = found.tried.iter().filter(|tried| tried.problem.is_some()).count();
    let same = found.tried.iter().filter(|tried| tried.same_as.is_some()).count();
    let options = count(found.options, "option");
    let commits = count(found.commits, "commit");
    let what = match (found.commits, found.options) {
        (_, 0) => commits,
        (0, _) => options,
        _ => format!("{commits} and {options}"),
    };
    let without = match found.commits {
        0 => String::new(),
        _ => format!(": {} without effect on the build", found.without_effect),
    };
    let mut range = format!("{what} from {good} to {bad}{without}");
    let sets = found.culprits.iter().map(|culprit| &culprit.commits);
    let left: usize = sets.chain([&found.left]).map(Vec::len).sum();
    if left > 0 {
        let separator = if without.is_empty() { ":" } else { "," };
        let read = found.changes().saturating_sub(found.without_effect + left);
        let how = if found.exact { "ruled out by" } else { "unlikely by the" };
        range += &format!("{separator} {read} {how} readings, {left} left");
    }
    let mut took = format!(
        "{} and {} before the proof",
        count(found.kernels, "kernel"),
        count(found.boots, "boot"),
    );
    if same > 0 {
        took += &format!("; {} the same as another, not booted", count(same, "kernel"));
    }
    if skipped > 0 {
        let skipped =
            count(skipped, kind(found)).replace("commit or options", "commits or options");
        took += &format!("; {skipped} without a reading");
    }
    [range, took].map(|said| said + ".")
}

/// Lays out a table of the commits that were tried, in the order of the history.
fn tried(found: &Findings) -> Block {
    let rows = in_order(found).into_iter().map(|tried| {
        let level = tried.level().map_or("-".into(), |it| decimal(Some(it), digits(it)));
        let number = booted(tried).map_or("-".into(), |number| number.to_string());
        let Commit { place, subject, .. } = &tried.commit;
        let said = format!("{} {}", excerpt(subject), problem(tried));
        let short = tried.commit.short().to_owned();
        vec![place.to_string(), short, level, number, tried.left.to_string(), said]
    });
    let columns = [
        Column::figures("place"),
        Column::words(kind(found)),
        Column::figures("level"),
        Column::figures("boots"),
        Column::figures("left"),
        Column::sentences(subjects(found)),
    ];
    table(columns, rows.collect())
}

/// Returns the name of the column with the subject of a commit or the change of an option.
fn subjects(found: &Findings) -> &'static str {
    if found.commits == 0 { "change" } else { "subject" }
}

fn in_order(found: &Findings) -> Vec<&Tried> {
    let mut tried: Vec<&Tried> = found.tried.iter().collect();
    tried.sort_by_key(|tried| tried.commit.place);
    tried
}

/// Returns how often a commit was booted; `None` if it has the same kernel as another commit and uses its
/// boots.
fn booted(tried: &Tried) -> Option<usize> {
    tried.same_as.is_none().then_some(tried.figures.len())
}

/// Returns why a commit has no figure of its own; empty if it has one.
fn problem(tried: &Tried) -> String {
    match (&tried.problem, &tried.same_as) {
        (Some(problem), _) => format!("[{problem}]"),
        (None, Some(same)) => format!("[the same kernel as {}]", short(same)),
        (None, None) => String::new(),
    }
}

/// Returns the name of the culprit, or the number of commits that can be it.
fn name(culprit: &Culprit) -> String {
    match culprit.only() {
        Some(commit) => named(commit),
        None => format!("One of {}", numbered(&culprit.commits)),
    }
}

/// Counts commits and options, in words.
fn numbered(all: &[(Commit, f64)]) -> String {
    let options = all.iter().filter(|(commit, _)| commit.is_option()).count();
    let named = [(all.len() - options, "commit"), (options, "option")].into_iter();
    let named = named.filter(|it| it.0 > 0).map(|(number, what)| count(number, what));
    named.collect::<Vec<_>>().join(" and ")
}

/// Writes how likely the step is one of these commits; empty in exact mode.
fn probability(commits: &[(Commit, f64)], exact: bool) -> String {
    let sum: f64 = commits.iter().map(|(_, probability)| probability).sum();
    if exact { String::new() } else { format!(", probability {}", of_hundred(sum)) }
}

/// Formats a probability in percent; at most 99.9 %, so that none looks certain.
fn of_hundred(probability: f64) -> String {
    format!("{:.1} %", (100.0 * probability).min(99.9))
}

fn named(commit: &Commit) -> String {
    let subject = excerpt(&commit.subject);
    match commit.is_option() {
        true => format!("{}: {subject}", commit.id),
        false => format!("{} (\"{subject}\")", commit.short()),
    }
}

/// Formats a part of the change between the two ends, in percent.
fn of_whole(part: f64, [good, bad]: [f64; 2]) -> String {
    // Adding zero turns -0 into 0.
    format!("{} %", (100.0 * part / (bad - good)).round() + 0.0)
}

/// Formats a figure in a sentence, with the decimals that matter.
fn value(value: f64) -> String {
    figure(value, digits(value))
}

/// Writes the floor in percent of a level; as a figure if the level is zero.
fn floor(floor: f64, level: f64) -> String {
    match 100.0 * floor / level.abs() {
        share if share.is_finite() => format!("floor {share:.2} %"),
        _ => format!("floor {}", value(floor)),
    }
}

/// Returns how many decimals matter of a figure and of its differences.
fn digits(figure: f64) -> usize {
    if figure.abs() < 1e5 { 2 } else { 0 }
}

/// Returns the kind of the searched figure. In measured mode the unit of the row is not known, so it counts
/// as an amount.
fn of(found: &Findings) -> Of {
    if found.exact { Of::Number } else { Of::Amount }
}

/// Writes a change in words.
fn change(of: Of, [before, after]: [f64; 2]) -> String {
    let change = after - before;
    of.change([before, after], 2).unwrap_or_else(|| of.directed(value(change.abs()), change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_nothing_have_no_direction() {
        let of = |before, after| change(Of::Number, [before, after]);
        assert_eq!([of(1e6, 1e6), of(1e6, 999_999.0), of(0.0, 0.0)], ["0.00 %", "0.00 %", "0.00"]);
        assert_eq!([of(100.0, 99.0), of(-1.0, 1.0)], ["1.00 % fewer", "200.00 % more"]);
        assert_eq!([of(0.0, 3.0), of(0.0, -3.0)], ["3.00 more", "3.00 fewer"]);
    }

    #[test]
    fn figures_of_sentences_have_groups() {
        assert_eq!([value(31.0), value(162_345_678.0)], ["31.00", "162,345,678"]);
    }
}

//! What a search for a commit or an option found: as text, mail, page and JSON, and as a log of `git bisect`.

mod mail;
mod page;
mod proof;

use culprit::{Commit, Culprit, Ending, Findings, Phase, Tried, short};
use model::count;

use crate::ascii::{WIDTH, escape, excerpt, fitted, fold};
use crate::exact::NOT_MODELLED;
use crate::table::{EMULATED, decimal};
use crate::words::{Of, figure};
pub use mail::{bisect_log, culprit_mail};
pub use page::culprit_page;

/// The commits of a set that are listed at most.
const LISTED: usize = 20;

/// The findings as plain text: ASCII, without trailing spaces.
pub fn culprit(found: &Findings) -> String {
    text(found, WIDTH)
}

/// The findings as lines of at most `width` letters.
fn text(found: &Findings, width: usize) -> String {
    let mut text = answer(found) + &steps(found);
    for culprit in &found.culprits {
        text += &format!("\n{}", of_culprit(culprit, found));
    }
    text += &left(found);
    text += &rest(found);
    text += &parts(found);
    text += &reference(found);
    text += &groups(found);
    text += &limits(found);
    text += &format!("\n{}\n", effort(found));
    fitted(width, &text) + &table(found, width)
}

/// The findings as JSON.
pub fn culprit_json(found: &Findings) -> String {
    serde_json::to_string_pretty(found).expect("findings are plain data") + "\n"
}

/// The first lines.
fn answer(found: &Findings) -> String {
    let [good, bad] = found.names.each_ref().map(|name| escape(name));
    let signal = escape(&found.signal);
    let (by, kind) = (by(found.exact), kind(found));
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
        found.floor.map_or(String::new(), |floor| format!(", {by} {}", self::floor(floor, base)));
    let answer = match &found.ending {
        Ending::Found => match &found.culprits[..] {
            [one] if one.only().is_some() => {
                format!("Culprit: {}{}", name(one), probability(&one.commits, found.exact))
            }
            [one] => name(one) + &probability(&one.commits, found.exact),
            steps => format!("{} steps", steps.len()),
        },
        Ending::Drift => format!(
            "No single {kind}: the figure drifts, and no step has 10 % of the change. --all lists smaller steps."
        ),
        Ending::NoDifference => {
            let more = match found.exact {
                true => "",
                false => " More boots of the ends lower the floor.",
            };
            format!("The ends do not differ beyond {by}: there is no {kind} to find.{more}")
        }
        Ending::Hidden => {
            format!("Not found: {by} hides on which side a {kind} lies, even with the most boots.")
        }
        Ending::NoEnd(problem) => format!("Not found: {}", escape(problem)),
        Ending::Budget => {
            "Not found: the time budget is used up. Run the same command again to continue.".into()
        }
    };
    format!("{answer}\n{whole}{floor}\n{}", share(found))
}

/// What the range consists of.
fn kind(found: &Findings) -> &'static str {
    match (found.commits, found.options) {
        (_, 0) => "commit",
        (0, _) => "option",
        _ => "commit or option",
    }
}

/// What hides small differences.
fn by(exact: bool) -> &'static str {
    if exact { "luck" } else { "noise" }
}

fn of_culprit(culprit: &Culprit, found: &Findings) -> String {
    let mut text = match culprit.only() {
        Some(commit) => {
            format!("{}{}\n", named(commit), probability(&culprit.commits, found.exact))
        }
        None => {
            let (commits, of) = (&culprit.commits, probability(&culprit.commits, found.exact));
            format!("{}{of}:\n{}", name(culprit), listed(commits, found.exact))
        }
    };
    for other in &culprit.with {
        text += &format!("  with it {}\n", escape(other));
    }
    if let Some(author) = &culprit.author {
        text += &format!("  {}\n", escape(author));
    }
    let share = found.levels().map(|[good, bad]| 100.0 * culprit.change() / (bad - good));
    let share = share.filter(|_| found.culprits.len() > 1);
    text += &format!(
        "  {} before, {} after ({}{})\n",
        value(culprit.levels[0]),
        value(culprit.levels[1]),
        change(of(found), culprit.levels),
        share.map_or(String::new(), |share| format!("; {share:.0} % of the whole change")),
    );
    if let Some(proof) = &culprit.proof {
        let is_option = culprit.only().is_some_and(Commit::is_option);
        text += &proof::text(proof, found, is_option);
    }
    text
}

/// Commits of which one is the culprit, a line each.
fn listed(commits: &[(Commit, f64)], exact: bool) -> String {
    let line = |(commit, share): &(Commit, f64)| {
        let share = if exact { String::new() } else { of_hundred(*share) + "  " };
        format!("  {share}{}\n", named(commit))
    };
    let text: String = commits.iter().take(LISTED).map(line).collect();
    match commits.len().saturating_sub(LISTED) {
        0 => text,
        more => text + &format!("  and {more} more\n"),
    }
}

/// What can be the culprit when the budget is used up.
fn left(found: &Findings) -> String {
    if found.left.is_empty() {
        return String::new();
    }
    let (what, of) = (numbered(&found.left), probability(&found.left, found.exact));
    format!(
        "\nIf there is one culprit, it is one of {what}{of}:\n{}",
        listed(&found.left, found.exact)
    )
}

/// Several steps by size, and what no step has: together the whole change. Empty if there is one step.
fn steps(found: &Findings) -> String {
    let (Some(rest), Some([good, bad])) = (found.rest(), found.levels()) else {
        return String::new();
    };
    if found.culprits.len() < 2 {
        return String::new();
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
        [format!("{sign}{size}"), of_whole(change, [good, bad]), name]
    };
    let rows: Vec<[String; 3]> = rows.into_iter().map(row).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let [a, b] = [0, 1].map(widest);
    let line =
        |[change, share, name]: &[String; 3]| format!("  {change:>a$}  {share:>b$}  {name}\n");
    format!("\nSteps by size:\n{}", rows.iter().map(line).collect::<String>())
}

/// What a single step lacks of the whole change.
fn rest(found: &Findings) -> String {
    let (Some(rest), Some([good, bad])) = (found.rest(), found.levels()) else {
        return String::new();
    };
    let floor = found.floor.unwrap_or(0.0).max(0.05 * (bad - good).abs());
    if found.culprits.len() != 1 || rest.abs() <= floor {
        return String::new();
    }
    let share = of_whole(rest, [good, bad]);
    format!("\nIn no step: {} ({share} of the whole change)\n", value(rest))
}

/// How the change divides into code and options.
fn parts(found: &Findings) -> String {
    let (Some(code), Some([good, bad])) = (found.code, found.levels()) else {
        return String::new();
    };
    if !matches!(found.ending, Ending::Found | Ending::Drift) {
        return String::new();
    }
    let share = |part: f64| {
        let hidden = found.floor.is_some_and(|floor| part.abs() <= floor);
        let within = if hidden { format!(" (within {})", by(found.exact)) } else { String::new() };
        of_whole(part, [good, bad]) + &within
    };
    format!(
        "\nThe code of the bad end with the options of the good end: {}. Changed first, the code has {} of the \
         change, and the options have {}.\n",
        value(code),
        share(code - good),
        share(bad - code)
    )
}

/// What the change of a function means for its phase.
fn share(found: &Findings) -> String {
    let Some(Phase { signal, change: whole }) = &found.phase else { return String::new() };
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
    format!("{}: {before} -> {after} ({change}{floor}); {meaning}\n", escape(signal))
}

/// Kernels whose boots lie in groups, in measured mode.
fn groups(found: &Findings) -> String {
    if found.exact {
        return String::new();
    }
    let of_kernel = |tried: &&Tried| {
        let groups = tried.groups();
        let each = groups.iter().map(|group| format!("{} about {}", group.n, value(group.centre)));
        let each = each.collect::<Vec<_>>().join(", ");
        (!groups.is_empty()).then(|| format!("  {}: {each}\n", tried.commit.short()))
    };
    let kernels: String = in_order(found).iter().filter_map(of_kernel).collect();
    if kernels.is_empty() {
        return kernels;
    }
    format!(
        "\nBoots of one kernel lie in groups:\n{kernels}A step that only changes how often each comes is found less \
         surely than the probabilities say.\n"
    )
}

/// What the figures do not show.
fn limits(found: &Findings) -> String {
    match (found.exact, found.emulated) {
        (true, _) => format!(
            "\nInstructions were counted, not time. Not modelled: {}.\n",
            NOT_MODELLED.join(", ")
        ),
        (false, true) => format!("\n{EMULATED}\n"),
        (false, false) => String::new(),
    }
}

fn reference(found: &Findings) -> String {
    let Some((name, level)) = &found.reference else { return String::new() };
    let name = escape(name);
    let (Some(level), Some([good, bad])) = (level, found.levels()) else {
        return format!("\nReference {name}: no figure\n");
    };
    let nearer = if (level - good).abs() < (level - bad).abs() { "good" } else { "bad" };
    let meaning = match nearer {
        "good" => "the change is not a return to it",
        _ => "the bad end returns to what was",
    };
    format!("\nReference {name}: {}, nearer to the {nearer} end: {meaning}\n", value(*level))
}

fn effort(found: &Findings) -> String {
    let [good, bad] = found.names.each_ref().map(|name| escape(name));
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
    let mut text = format!("{what} from {good} to {bad}{without}");
    let sets = found.culprits.iter().map(|culprit| &culprit.commits);
    let left: usize = sets.chain([&found.left]).map(Vec::len).sum();
    if left > 0 {
        let separator = if without.is_empty() { ":" } else { "," };
        let read = found.changes().saturating_sub(found.without_effect + left);
        let how = if found.exact { "ruled out by" } else { "unlikely by the" };
        text += &format!("{separator} {read} {how} readings, {left} left");
    }
    text += &format!(
        ".\n{} and {} before the proof",
        count(found.kernels, "kernel"),
        count(found.boots, "boot"),
    );
    if same > 0 {
        text += &format!("; {} the same as another, not booted", count(same, "kernel"));
    }
    if skipped > 0 {
        let skipped =
            count(skipped, kind(found)).replace("commit or options", "commits or options");
        text += &format!("; {skipped} without a reading");
    }
    text + ".\n"
}

/// The commits that were tried, in the order of the history.
fn table(found: &Findings, width: usize) -> String {
    let tried = in_order(found);
    let rows: Vec<[String; 5]> = tried
        .iter()
        .map(|tried| {
            let level = tried.level().map_or("-".into(), |it| decimal(Some(it), digits(it)));
            let number = booted(tried).map_or("-".into(), |number| number.to_string());
            let left = tried.left.to_string();
            [tried.commit.place.to_string(), tried.commit.short().into(), level, number, left]
        })
        .collect();
    let head = ["place", kind(found), "level", "boots", "left"].map(String::from);
    let widest =
        |column: usize| rows.iter().chain([&head]).map(|row| row[column].len()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(widest);
    let line = |row: &[String; 5], last: &str| {
        let [place, commit, level, boots, left] = row;
        let [a, b, c, d, e] = widths;
        let first = format!("{place:>a$}  {commit:b$}  {level:>c$}  {boots:>d$}  {left:>e$}  ");
        match first.len() <= 3 * width / 4 {
            true => fold(width, &first, &" ".repeat(first.len()), last),
            // Names of options can be long.
            false => format!("{}\n{}", first.trim_end(), fold(width, "    ", "    ", last)),
        }
    };
    let mut text = line(&head, subjects(found));
    for (row, tried) in rows.iter().zip(tried) {
        text += &line(row, &format!("{} {}", excerpt(&tried.commit.subject), problem(tried)));
    }
    text
}

/// What is said of each commit or option.
fn subjects(found: &Findings) -> &'static str {
    if found.commits == 0 { "change" } else { "subject" }
}

fn in_order(found: &Findings) -> Vec<&Tried> {
    let mut tried: Vec<&Tried> = found.tried.iter().collect();
    tried.sort_by_key(|tried| tried.commit.place);
    tried
}

/// The number of its boots; `None` if those of another commit count.
fn booted(tried: &Tried) -> Option<usize> {
    tried.same_as.is_none().then_some(tried.figures.len())
}

/// Why a commit has no figure of its own.
fn problem(tried: &Tried) -> String {
    match (&tried.problem, &tried.same_as) {
        (Some(problem), _) => format!("[{}]", escape(problem)),
        (None, Some(same)) => format!("[the same kernel as {}]", short(same)),
        (None, None) => String::new(),
    }
}

/// The culprit, or how many commits can be.
fn name(culprit: &Culprit) -> String {
    match culprit.only() {
        Some(commit) => named(commit),
        None => format!("One of {}", numbered(&culprit.commits)),
    }
}

/// How many commits and options these are.
fn numbered(all: &[(Commit, f64)]) -> String {
    let options = all.iter().filter(|(commit, _)| commit.is_option()).count();
    let named = [(all.len() - options, "commit"), (options, "option")].into_iter();
    let named = named.filter(|it| it.0 > 0).map(|(number, what)| count(number, what));
    named.collect::<Vec<_>>().join(" and ")
}

/// How likely it is in measured mode that the step is one of these commits.
fn probability(commits: &[(Commit, f64)], exact: bool) -> String {
    let sum: f64 = commits.iter().map(|(_, probability)| probability).sum();
    if exact { String::new() } else { format!(", probability {}", of_hundred(sum)) }
}

/// A probability in percent, which is never rounded to certainty.
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

/// A part of the change between the two ends in percent.
fn of_whole(part: f64, [good, bad]: [f64; 2]) -> String {
    // A zero has no sign.
    format!("{} %", (100.0 * part / (bad - good)).round() + 0.0)
}

/// A figure in a sentence, with the digits that matter.
fn value(value: f64) -> String {
    figure(value, digits(value))
}

/// What luck or noise can cause, as a share of a level if that is not zero.
fn floor(floor: f64, level: f64) -> String {
    match 100.0 * floor / level.abs() {
        share if share.is_finite() => format!("floor {share:.2} %"),
        _ => format!("floor {}", value(floor)),
    }
}

/// The decimals that matter of a figure, and of its differences.
fn digits(figure: f64) -> usize {
    if figure.abs() < 1e5 { 2 } else { 0 }
}

/// What the searched figure measures: the unit of a row of measured mode is not known.
fn of(found: &Findings) -> Of {
    if found.exact { Of::Number } else { Of::Amount }
}

/// A change in words.
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

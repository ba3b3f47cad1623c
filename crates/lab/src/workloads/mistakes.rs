//! Finds all mistakes of a manifest. A parser reports the first one. So each mistake is repaired in a copy of the
//! text, and the copy is read again.

use std::ops::Range;

use model::Manifest;
use toml::de::{DeTable, DeValue, Error};

use super::meaning::{self, Wrong};
use crate::file::excerpt::{brief, quoted};
use crate::file::near::did_you_mean;

/// The most mistakes that are looked for.
const MOST: usize = 20;
/// Stands for the line of a key that is missing at the top level.
const MISSING: usize = usize::MAX;

/// Reads a manifest. The error has each mistake: a problem, and a hint, which may be empty.
pub fn parse(text: &str) -> Result<Manifest, Vec<(String, String)>> {
    let mut repaired = Repaired { text: text.to_owned(), added: Vec::new(), removed: Vec::new() };
    let mut errors: Vec<Error> = Vec::new();
    let mut places = Vec::new();
    while errors.len() < MOST {
        let error = match toml::from_str(&repaired.text) {
            Ok(manifest) => {
                let wrong = meaning::mistakes(&manifest);
                if errors.is_empty() && wrong.is_empty() {
                    return Ok(manifest);
                }
                return Err(described(text, errors, places, repaired.located(wrong)));
            }
            Err(error) => error,
        };
        let place = (repaired.line(&error), repaired.key(&error));
        let repair = repaired.repair(&error);
        if repair != Some(Repair::OfRepair) {
            places.push(place);
            errors.push(error);
        }
        if repair.is_none() {
            break;
        }
    }
    Err(described(text, errors, places, Vec::new()))
}

/// One error of the parser with its excerpt of the text; several mistakes with their lines and keys.
fn described(
    text: &str,
    errors: Vec<Error>,
    places: Vec<(usize, Option<String>)>,
    wrong: Vec<(usize, Wrong)>,
) -> Vec<(String, String)> {
    let hint = |error: &Error| did_you_mean(error.message()).unwrap_or_default();
    if let ([error], []) = (&errors[..], &wrong[..]) {
        return vec![(quoted(error, text), hint(error))];
    }
    let told = |(error, (line, key)): (&Error, (usize, Option<String>))| {
        let (message, hint) = (error.message(), hint(error));
        // The hint has the key that was meant.
        let short = message.split_once(", expected").filter(|_| !hint.is_empty());
        let message = short.map_or(message, |(short, _)| short);
        let key = key.map_or(String::new(), |key| format!("{key}: "));
        (line, brief(&format!("{key}{message}")), hint)
    };
    let mut all: Vec<_> = errors.iter().zip(places).map(told).collect();
    all.extend(wrong.into_iter().map(|(line, it)| (line, brief(&it.problem), brief(&it.hint))));
    all.sort_by_key(|(line, ..)| *line);
    let with_line = |(line, problem, hint)| match line {
        MISSING => (problem, hint),
        line => (format!("line {line}: {problem}"), hint),
    };
    all.into_iter().map(with_line).collect()
}

/// A copy of a text with its mistakes repaired.
struct Repaired {
    text: String,
    /// Where lines were added.
    added: Vec<usize>,
    /// The keys whose values were wrong and are now missing.
    removed: Vec<String>,
}

/// What was repaired.
#[derive(PartialEq, Eq)]
enum Repair {
    /// A mistake of the text.
    OfText,
    /// What an earlier repair removed.
    OfRepair,
}

impl Repaired {
    /// The line of the original text that has an error, from 1 on; [`MISSING`] for what is missing at the top
    /// level.
    fn line(&self, error: &Error) -> usize {
        let span = error.span().filter(|span| !span.is_empty());
        span.map_or(MISSING, |span| self.line_at(span.start))
    }

    fn line_at(&self, at: usize) -> usize {
        let added = self.added.iter().filter(|added| **added <= at).count();
        1 + self.text[..at].matches('\n').count() - added
    }

    /// These mistakes and their lines. Mistakes in lines that a repair added are left out.
    fn located(&self, wrong: Vec<Wrong>) -> Vec<(usize, Wrong)> {
        let Ok(table) = DeTable::parse(&self.text) else { return Vec::new() };
        let line = |it: Wrong| {
            let at = start(table.get_ref(), &it.place);
            let is_added = at.is_some_and(|at| self.is_added(at));
            (!is_added).then(|| (at.map_or(MISSING, |at| self.line_at(at)), it))
        };
        wrong.into_iter().filter_map(line).collect()
    }

    /// Whether the line at this place was added.
    fn is_added(&self, at: usize) -> bool {
        let begin = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        self.added.contains(&begin)
    }

    /// The key that has a wrong value; none for missing and unknown ones, which the error names.
    fn key(&self, error: &Error) -> Option<String> {
        let is_of_value = !error.message().contains(" field `");
        let table = DeTable::parse(&self.text).ok().filter(|_| is_of_value)?;
        Some(entry(table.get_ref(), &error.span()?)?.0)
    }

    /// Adds what is missing, or takes the wrong key away. `None` if it cannot.
    fn repair(&mut self, error: &Error) -> Option<Repair> {
        let span = error.span()?;
        if let Some(rest) = error.message().strip_prefix("missing field `") {
            let key = rest.trim_end_matches('`');
            let removed = self.removed.iter().position(|removed| removed == key);
            let repair = removed.map_or(Repair::OfText, |at| {
                self.removed.swap_remove(at);
                Repair::OfRepair
            });
            return self.add(key, &span).then_some(repair);
        }
        let (key, entry) = entry(DeTable::parse(&self.text).ok()?.get_ref(), &span)?;
        if !error.message().starts_with("unknown field") {
            self.removed.push(key);
        }
        let entry = self.with_heading(entry);
        let blank = |letter: u8| if letter == b'\n' { '\n' } else { ' ' };
        let blanked: String = self.text[entry.clone()].bytes().map(blank).collect();
        self.text.replace_range(entry, &blanked);
        Some(Repair::OfText)
    }

    /// The lines of a table, up to the next heading, for an entry that begins in its heading; else the entry.
    fn with_heading(&self, entry: Range<usize>) -> Range<usize> {
        let begin = self.text[..entry.start].rfind('\n').map_or(0, |end| end + 1);
        if !self.text[begin..].starts_with('[') {
            return entry;
        }
        let end =
            self.text[entry.start..].find("\n[").map_or(self.text.len(), |at| entry.start + at);
        begin..end
    }

    /// Adds a key at the beginning of the text or below the heading of its table.
    fn add(&mut self, key: &str, span: &Range<usize>) -> bool {
        let value = match key {
            "name" => format!("\"added{}\"", self.added.len()),
            "command" | "metrics" => "[]".to_owned(),
            "mean" => "\"amean\"".to_owned(),
            "kind" => "\"text\"".to_owned(),
            _ => "\"\"".to_owned(),
        };
        let at = match span.is_empty() {
            true => 0,
            false if !self.text[span.clone()].starts_with('[') => return false,
            false => match self.text[span.end..].find('\n') {
                Some(rest) => span.end + rest + 1,
                None => return false,
            },
        };
        let line = format!("{key} = {value}\n");
        self.text.insert_str(at, &line);
        self.added.iter_mut().filter(|added| **added >= at).for_each(|added| *added += line.len());
        self.added.push(at);
        true
    }
}

/// The innermost key that an error is about, and where it is with its value.
fn entry(table: &DeTable<'_>, span: &Range<usize>) -> Option<(String, Range<usize>)> {
    table.iter().find_map(|(key, value)| {
        let inner = match value.get_ref() {
            DeValue::Table(table) => entry(table, span),
            DeValue::Array(list) => {
                let mut tables = list.iter().filter_map(|item| item.get_ref().as_table());
                tables.find_map(|table| entry(table, span))
            }
            _ => None,
        };
        let own = key.span().start..value.span().end.max(key.span().end);
        let is_own = own.start <= span.start && span.end <= own.end;
        inner.or_else(|| is_own.then(|| (key.get_ref().to_string(), own)))
    })
}

/// Where the value begins to which these keys lead.
fn start(table: &DeTable<'_>, place: &[String]) -> Option<usize> {
    let (first, rest) = place.split_first()?;
    let mut value = table.get(first.as_str())?;
    for key in rest {
        value = match value.get_ref() {
            DeValue::Table(table) => table.get(key.as_str())?,
            DeValue::Array(list) => list.get(key.parse::<usize>().ok()?)?,
            _ => break,
        };
    }
    Some(value.span().start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(text: &str) -> Vec<String> {
        let told = |(problem, hint): (String, String)| match &*hint {
            "" => problem,
            hint => format!("{problem}: {hint}"),
        };
        parse(text).map(|_| Vec::new()).unwrap_or_else(|all| all.into_iter().map(told).collect())
    }

    #[test]
    fn all_mistakes_are_found() {
        let text = "nam = \"x\"\ncommand = \"x\"\npreparation = [\"a\",\n  \"b\"]\nnods = [\n1]\n\
                    [parameters.size]\ndefault = \"1\"\n\n[[metrics]]\nname = \"a b  c\"\nunit = 5\n\
                    mean = \"amen\"\n[[metrics]]\nname = \"late\"\nmean = \"amean\"\n";
        let found = told(text).join("\n");
        insta::assert_snapshot!(found, @r#"
        line 1: unknown field `nam`: did you mean `name`?
        line 2: command: invalid type: string "x": write a list in brackets, also of one value
        line 5: unknown field `nods`: did you mean `nodes`?
        line 7: missing field `kind`
        line 11: `a b  c` cannot be the name of a metric: use 1 to 64 letters, digits and ._:+/%- in words separated by single blanks
        line 12: unit: invalid type: integer `5`: write it in quotation marks, with its unit if it has one: "1G"
        line 13: mean: unknown variant `amen`: did you mean `amean`?
        line 14: missing field `unit`
        missing field `name`
        missing field `description`
        "#);
    }

    #[test]
    fn an_unknown_table_hides_no_other_mistake() {
        let text = "name = \"x\"\ndescription = 5\ncommand = [\"x\"]\n[parametrs.a]\ndefault = 1\n\
                    [[metric]]\nname = \"a\"\n[[metrics]]\nname = \"b\"\nunit = \"s\"\nmean = \"nope\"\n";
        let lines: Vec<String> =
            told(text).iter().map(|it| it.split(':').next().unwrap().to_owned()).collect();
        assert_eq!(lines, ["line 2", "line 4", "line 6", "line 11"], "{:?}", told(text));
    }

    #[test]
    fn a_single_mistake_has_an_excerpt_of_the_text() {
        let text = "name = \"x\"\ndescription = \"\"\ncommand = [\"x\"]\nmetrics = []\nnodez = 1\n";
        assert!(told(text)[0].contains("5 | nodez = 1"), "{:?}", told(text));
        assert!(told(text)[0].ends_with("did you mean `nodes`?"));
        assert_eq!(told(&text.replace("nodez", "nodes")), [""; 0]);
        assert_eq!(told("name = \"x\nb = 1\n").len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(
            lines in prop::collection::vec("(name|unit|mean|metrics|parameters|nodes|x) ?(=|\\.|\\]) ?(\"[a-zé]{0,3}\"|\\[.{0,3}\\]|\\{ ?(name|mean) ?= ?[12] ?\\}|5)|\\[\\[?(metrics|parameters|x)(\\.x)?\\]?\\]|.{0,5}", 0..12)
        ) {
            let _ = parse(&lines.join("\n"));
        }
    }
}

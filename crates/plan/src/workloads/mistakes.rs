//! Finds all mistakes of a manifest. Reading ends at the first one. So each mistake is repaired in the table, and the
//! table is read again.

use std::ops::Range;

use model::Manifest;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::meaning;
use crate::form::excerpt::{brief, quoted};
use crate::form::mistake::{Kind, Mistake};
use crate::form::{read, read_table};

/// The most mistakes that are looked for.
const MOST: usize = 20;

/// Reads a manifest. The error has each mistake: a problem, and a hint, which may be empty.
pub fn parse(text: &str) -> Result<Manifest, Vec<(String, String)>> {
    let alone = |it: &Mistake| vec![(quoted(it, text), it.hint().unwrap_or_default())];
    let mut root = match DeTable::parse(text) {
        Ok(table) => DeValue::Table(table.into_inner()),
        Err(_) => return read(text).map_err(|mistake| alone(&mistake)),
    };
    let mut found: Vec<Mistake> = Vec::new();
    let mut wrong = Vec::new();
    // Paths of keys whose values were wrong and are now missing.
    let mut removed: Vec<Vec<String>> = Vec::new();
    for number in 0..MOST {
        let table = root.as_table().expect("the root stays a table");
        let mistake = match read_table(table) {
            Ok(manifest) => {
                wrong = meaning::mistakes(&manifest);
                if found.is_empty() && wrong.is_empty() {
                    return Ok(manifest);
                }
                break;
            }
            Err(mistake) => mistake,
        };
        if mistake.kind == Kind::Missing {
            add(&mut root, &mistake.keys, number);
            if !removed.contains(&mistake.keys) {
                found.push(mistake);
            }
        } else {
            let path = remove(&mut root, &mistake.keys);
            found.push(mistake);
            match path {
                Some(path) => removed.push(path),
                None => break,
            }
        }
    }
    let wrong = wrong.into_iter().map(|it| (place(&root, &it.place), it.problem, Some(it.hint)));
    // What was added has an empty place.
    let is_added = |place: &Option<Range<usize>>| place.as_ref().is_some_and(Range::is_empty);
    let wrong: Vec<_> = wrong.filter(|(place, ..)| !is_added(place)).collect();
    if let ([mistake], []) = (&found[..], &wrong[..]) {
        return Err(alone(mistake));
    }
    let found = found.into_iter().map(|it| (it.place.clone(), told(&it), it.hint()));
    let mut all: Vec<_> = found.chain(wrong).collect();
    all.sort_by_key(|(place, ..)| place.as_ref().map_or(usize::MAX, |place| place.start));
    let with_line = |(place, problem, hint): (Option<Range<usize>>, String, Option<String>)| {
        let number = |place: Range<usize>| 1 + text[..place.start].matches('\n').count();
        let line = place.map_or(String::new(), |place| format!("line {}: ", number(place)));
        (line + &brief(&problem), brief(&hint.unwrap_or_default()))
    };
    Err(all.into_iter().map(with_line).collect())
}

/// A mistake among others. A hint stands for what was expected.
fn told(mistake: &Mistake) -> String {
    match mistake.hint() {
        Some(_) => mistake.with_key(&mistake.problem),
        None => mistake.with_key(&mistake.to_string()),
    }
}

/// Adds the last of these keys, which is missing, with any value that it can have.
fn add(root: &mut DeValue<'_>, keys: &[String], number: usize) {
    let Some((key, parent)) = keys.split_last() else { return };
    let value = match key.as_str() {
        "name" => DeValue::String(format!("added{number}").into()),
        "command" | "metrics" => DeValue::Array(DeArray::new()),
        "mean" => DeValue::String("amean".into()),
        "kind" => DeValue::String("text".into()),
        _ => DeValue::String("".into()),
    };
    if let Some(DeValue::Table(table)) = value_at(root, parent) {
        table.insert(Spanned::new(0..0, key.clone().into()), Spanned::new(0..0, value));
    }
}

/// Removes the innermost key of these, and returns the keys that lead to it.
fn remove(root: &mut DeValue<'_>, keys: &[String]) -> Option<Vec<String>> {
    (1..=keys.len()).rev().find_map(|length| {
        let (key, parent) = keys[..length].split_last()?;
        let DeValue::Table(table) = value_at(root, parent)? else { return None };
        table.remove(key.as_str())?;
        Some(keys[..length].to_vec())
    })
}

/// The value to which these keys lead.
fn value_at<'a, 'i>(value: &'a mut DeValue<'i>, keys: &[String]) -> Option<&'a mut DeValue<'i>> {
    let Some((key, rest)) = keys.split_first() else { return Some(value) };
    let inner = match value {
        DeValue::Table(table) => table.get_mut(key.as_str())?,
        DeValue::Array(list) => list.get_mut(key.parse::<usize>().ok()?)?,
        _ => return None,
    };
    value_at(inner.get_mut(), rest)
}

/// Where the value is to which these keys lead, or the innermost one that is there.
fn place(root: &DeValue<'_>, keys: &[String]) -> Option<Range<usize>> {
    let (mut value, mut place) = (root, None);
    for key in keys {
        let inner = match value {
            DeValue::Table(table) => table.get(key.as_str()),
            DeValue::Array(list) => list.get(key.parse::<usize>().ok()?),
            _ => None,
        };
        let Some(inner) = inner else { break };
        (value, place) = (inner.get_ref(), Some(inner.span()));
    }
    place
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
        line 13: mean: unknown value `amen`: did you mean `amean`?
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
        // What stands for a wrong value is no mistake.
        let size = "[parameters.size]\ndefault = 5\nkind = \"whole\"\n";
        let wrong = told(&text.replace("nodez = 1\n", size));
        assert!(wrong.len() == 1 && wrong[0].contains("6 | default = 5"), "{wrong:?}");
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

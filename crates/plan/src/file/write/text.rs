//! Writes readable TOML: values before tables, long lists and strings over several lines.

use serde::Serialize;
use toml::{Table, Value};

/// Lists longer than this are written with a line for each value.
pub const WIDTH: usize = 76;

/// A form as TOML of printable ASCII: values first, beginning with the name, then its tables.
pub fn text(form: &impl Serialize) -> String {
    let table = Table::try_from(form).expect("a form has only plain data");
    let mut text = String::new();
    section(&mut text, "", &table);
    text
}

fn section(text: &mut String, path: &str, table: &Table) {
    let is_tables = |list: &Vec<Value>| list.first().is_some_and(Value::is_table);
    let is_value = |value: &Value| match value {
        Value::Table(_) => false,
        Value::Array(list) => !is_tables(list),
        _ => true,
    };
    let (mut values, tables): (Vec<_>, Vec<_>) = table.iter().partition(|(_, it)| is_value(it));
    values.sort_by_key(|(name, _)| *name != "name");
    for (name, value) in values {
        let line = format!("{} = {}", key(name), one_line(value));
        let lines = match value {
            _ if line.len() <= WIDTH => line,
            Value::Array(list) => {
                let items = list.iter().map(|item| format!("    {},\n", within(item, WIDTH - 5)));
                format!("{} = [\n{}]", key(name), items.collect::<String>())
            }
            other => format!("{} = {}", key(name), within(other, 0)),
        };
        text.push_str(&lines);
        text.push('\n');
    }
    for (name, value) in tables {
        let path = match path {
            "" => key(name),
            path => format!("{path}.{}", key(name)),
        };
        match value {
            Value::Table(table) => {
                text.push_str(&format!("\n[{path}]\n"));
                section(text, &path, table);
            }
            Value::Array(list) => {
                for table in list.iter().filter_map(Value::as_table) {
                    text.push_str(&format!("\n[[{path}]]\n"));
                    section(text, &path, table);
                }
            }
            _ => {}
        }
    }
}

fn key(name: &str) -> String {
    let bare = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

fn one_line(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(one_line).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A value, over several lines if it is a string of more than `room` letters.
fn within(value: &Value, room: usize) -> String {
    let line = one_line(value);
    match value {
        Value::String(text) if line.len() > room => folded(text),
        _ => line,
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// A TOML basic string over several lines. An escaped line end and the spaces after it are not part of the
/// string.
fn folded(text: &str) -> String {
    let mut folded = String::from("\"\"\"\\\n");
    let mut width = 0;
    for letter in text.chars() {
        let mut piece = escaped(letter);
        // Leaves room for the end of the line.
        if width + piece.len() > WIDTH - 4 {
            folded.push_str("\\\n");
            width = 0;
        }
        if width == 0 && piece == " " {
            piece = "\\u0020".to_owned();
        }
        width += piece.len();
        folded.push_str(&piece);
    }
    folded + "\"\"\""
}

/// A character in a basic string, in printable ASCII.
fn escaped(letter: char) -> String {
    match letter {
        '"' | '\\' => format!("\\{letter}"),
        ' '..='~' => letter.to_string(),
        _ => format!("\\U{:08X}", u32::from(letter)),
    }
}

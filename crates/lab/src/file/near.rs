//! Names similar to one that is not known.

/// The known name most similar to the wanted one, if one is similar.
pub fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// A hint for serde's "invalid type: integer `1`, expected a string", for its "unknown field `a`, expected one of
/// `b`, `c`", and for similar messages.
pub fn did_you_mean(message: &str) -> Option<String> {
    if message.ends_with("expected a string") {
        return Some("write it in quotation marks, with its unit if it has one: \"1G\"".into());
    }
    if message.ends_with("expected a sequence") {
        return Some("write a list in brackets, also of one value".into());
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let wanted = quoted.next().filter(|_| message.starts_with("unknown"))?;
    nearest(wanted, quoted).map(|near| format!("did you mean `{near}`?"))
}

//! Names similar to one that is not known.

/// How similar names are, from 0 to 1, that may have been meant.
const LIKENESS: f64 = 0.75;
/// How many of them are named.
const SEVERAL: usize = 3;

/// The known name most similar to the wanted one, if one is similar.
pub fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    similar(wanted, known).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// The known names most similar to the wanted one, the most similar first.
pub fn several<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut near: Vec<_> = similar(wanted, known).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.dedup();
    near.into_iter().map(|(_, name)| name).take(SEVERAL).collect()
}

/// The known names that may have been meant, each with its likeness.
fn similar<'a>(
    wanted: &str,
    known: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = (f64, &'a str)> {
    let likeness = move |name: &'a str| (strsim::jaro_winkler(wanted, name), name);
    known.map(likeness).filter(|(likeness, _)| *likeness > LIKENESS)
}

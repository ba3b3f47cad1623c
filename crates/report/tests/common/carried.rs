//! The text of a comparison, and its mail, after the checks that every one must pass.

use compare::{Comparison, Results};
use model::Reading;
use report::Recipe;

/// Most lines of a mail's body.
const MOST: usize = 60;

/// Checks that the body of a mail is as short as a list reader expects.
pub fn assert_short(mail: &str) {
    let (_, body) = mail.split_once("\n\n").unwrap();
    assert!(body.lines().count() <= MOST, "{} lines: {mail}", body.lines().count());
    assert!(!body.starts_with('\n'), "{mail}");
}

/// Returns the text, after the checks that every text and every mail must pass.
pub fn printed(comparison: &Comparison) -> String {
    let text = report::text(comparison);
    super::assert_plain(&text);
    assert_short(&mail(comparison));
    text
}

/// Returns the mail of a comparison without its boots.
pub fn mail(comparison: &Comparison) -> String {
    let experiment = super::experiment(comparison.mode, comparison.boots);
    let results =
        Results { experiment: &experiment, reading: Reading::USUAL, variants: Vec::new() };
    let recipe = Recipe { version: "0.1.0", ..Recipe::default() };
    report::mail(comparison, &results, &[], &recipe, &[])
}

//! Boots that failed, each with the end of its console.

use compare::{Comparison, FailedBoot};
use maud::{Markup, html};

use super::{Console, Page, short};
use crate::ascii::{escape, excerpt};

/// Most consoles that are shown. Other failed boots are listed with their outcome only.
pub const MAX_CONSOLES: usize = 20;
/// Most lines that are shown of a console; they are the last ones.
const MAX_LINES: usize = 150;
/// Most characters of a line.
const MAX_LINE: usize = 400;

pub fn section(page: &Page<'_>) -> Markup {
    let Comparison { variants, .. } = page.comparison;
    let failed: Vec<(&str, &FailedBoot)> = variants
        .iter()
        .flat_map(|variant| variant.failed.iter().map(|boot| (&*variant.name, boot)))
        .collect();
    html! {
        section id="failed" {
            h2 { "Failed boots" }
            @if failed.is_empty() { p { "None." } }
            @for (number, (variant, boot)) in failed.iter().enumerate() {
                @let console = page.consoles.iter().find(|console| console.boot == boot.boot);
                details class="on-screen" {
                    summary {
                        (boot.boot) ", " (short(variant)) ": "
                        span class="bad" { (excerpt(&boot.outcome)) }
                    }
                    @match console.filter(|_| number < MAX_CONSOLES) {
                        Some(console) => (end_of(console))
                        None => p { "Its console: " code { "faultline show " (boot.boot) } }
                    }
                }
            }
        }
    }
}

/// Lays out the last lines of a console.
fn end_of(console: &Console) -> Markup {
    let lines: Vec<&str> = console.text.lines().collect();
    let left_out = lines.len().saturating_sub(MAX_LINES);
    let mut text = String::new();
    for line in &lines[left_out..] {
        let mut line = escape(&line.replace('\t', "    "));
        if line.len() > MAX_LINE {
            line.truncate(MAX_LINE);
            line.push_str("...");
        }
        text.push_str(&line);
        text.push('\n');
    }
    html! {
        @if left_out > 0 {
            p class="note" {
                (left_out) " lines before: " code { "faultline show " (console.boot) }
            }
        }
        @match text.is_empty() {
            true => p { "It printed nothing." }
            false => pre class="console" tabindex="0" { (text) }
        }
    }
}

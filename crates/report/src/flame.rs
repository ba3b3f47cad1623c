//! A differential flame graph, drawn by inferno.

use std::collections::BTreeMap;

use compare::Paths;
use inferno::flamegraph::{self, Options, TextTruncateDirection};

use crate::stacks::frame;

/// By which side a frame is as wide as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widths {
    /// What only the other variant executes has no width.
    Base,
    /// What only the baseline executes has no width.
    New,
}

/// Larger sums are scaled down before inferno computes with them: its arithmetic is that of 64 bits.
const MAX_INSTRUCTIONS: f64 = 1e15;
/// Narrower frames are not drawn, in percent.
const MIN_WIDTH: f64 = 0.05;

/// The graph as an `svg` element: a frame is red if the other variant executes more instructions
/// of its own there, blue if fewer. None if the side of the widths executes nothing.
pub fn differential(paths: &Paths, widths: Widths, title: &str) -> Option<String> {
    let largest = |side: fn(&compare::Path) -> f64| paths.paths.iter().map(side).sum::<f64>();
    let sum = largest(|path| path.base).max(largest(|path| path.new));
    let scale = (MAX_INSTRUCTIONS / sum).min(1.0);
    let lines = lines(paths, widths, scale);

    let mut options = Options::default();
    options.title = title.to_owned();
    options.count_name = "instructions".to_owned();
    options.min_width = MIN_WIDTH;
    options.factor = 1.0 / scale;
    options.negate_differentials = widths == Widths::Base;
    options.text_truncate_direction = TextTruncateDirection::Right;
    // inferno sorts lines as texts, which tears a function's frames apart where another name
    // begins with its name. Only as a chart it takes lines as they come, from the last one on.
    options.flame_chart = true;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().rev().map(String::as_str), &mut svg).ok()?;
    let document = String::from_utf8(svg).ok()?;
    let element = document.find("<svg")?;
    Some(document[element..].to_owned())
}

/// Paths with two counts each, the second one that of the widths, in order of their frames.
fn lines(paths: &Paths, widths: Widths, scale: f64) -> Vec<String> {
    let mut counts = BTreeMap::<Vec<String>, [f64; 2]>::new();
    for path in &paths.paths {
        let frames = path.frames.iter().map(|name| frame(name)).collect();
        let sides = match widths {
            Widths::New => [path.base, path.new],
            Widths::Base => [path.new, path.base],
        };
        let sum = counts.entry(frames).or_default();
        *sum = [sum[0] + sides[0], sum[1] + sides[1]];
    }
    let lines = counts.into_iter().map(|(frames, sides)| {
        let [other, width] = sides.map(|count| (count * scale).round() as u64);
        format!("{} {other} {width}", frames.join(";"))
    });
    lines.collect()
}

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
/// of its own there, blue if fewer. Without a title, which would cover the buttons of a narrow one.
/// None if the side of the widths executes nothing.
pub fn differential(paths: &Paths, widths: Widths) -> Option<String> {
    let largest = |side: fn(&compare::Path) -> f64| paths.paths.iter().map(side).sum::<f64>();
    let sum = largest(|path| path.base).max(largest(|path| path.new));
    let scale = (MAX_INSTRUCTIONS / sum).min(1.0);
    let lines = lines(paths, widths, scale);

    let mut options = Options::default();
    options.title = String::new();
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

#[cfg(test)]
mod tests {
    use compare::Path;

    use super::*;

    fn path(frames: &[&str], base: f64, new: f64) -> Path {
        Path { frames: frames.iter().map(|&frame| frame.to_owned()).collect(), base, new }
    }

    /// The colour of the only frame of this name, and its width in percent.
    fn drawn(svg: &str, name: &str) -> Option<(String, f64)> {
        let mut frames = svg.split("<title>").skip(1);
        let frame = frames.find(|frame| frame.starts_with(&format!("{name} (")))?;
        let attribute = |name: &str| frame.split_once(name)?.1.split('"').nth(1);
        let width = attribute(" width=")?.trim_end_matches('%').parse().ok()?;
        Some((attribute(" fill=")?.to_owned(), width))
    }

    #[test]
    fn more_is_red_and_fewer_is_blue_by_either_widths() {
        let paths = Paths {
            followed: true,
            paths: vec![
                path(&["kernel", "dearer"], 100.0, 200.0),
                path(&["kernel", "cheaper"], 200.0, 100.0),
                path(&["kernel", "same"], 100.0, 100.0),
                path(&["kernel", "gone"], 100.0, 0.0),
            ],
        };
        let [new, base] = [Widths::New, Widths::Base].map(|it| differential(&paths, it).unwrap());
        let [red, blue, white] = ["rgb(255,100,100)", "rgb(100,100,255)", "rgb(250,250,250)"];
        let expected = |colour: &str, width| Some((colour.to_owned(), width));
        assert_eq!(drawn(&new, "dearer"), expected(red, 50.0));
        assert_eq!(drawn(&base, "dearer"), expected(red, 20.0));
        assert_eq!(drawn(&new, "cheaper"), expected(blue, 25.0));
        assert_eq!(drawn(&base, "cheaper"), expected(blue, 40.0));
        assert_eq!(drawn(&new, "same"), expected(white, 25.0));
        assert_eq!(drawn(&new, "gone"), None);
        assert_eq!(drawn(&base, "gone"), expected(blue, 20.0));
    }

    #[test]
    fn sums_beyond_64_bits_are_drawn() {
        let paths = vec![path(&["f"], 1e30, 3e30), path(&["g"], 0.0, 1e30)];
        let svg = differential(&Paths { followed: true, paths }, Widths::New).unwrap();
        assert_eq!(drawn(&svg, "f").map(|(_, width)| width), Some(75.0));
    }

    #[test]
    fn nothing_is_not_drawn() {
        let paths = vec![path(&["f"], 5.0, 0.0)];
        assert_eq!(differential(&Paths { followed: true, paths }, Widths::New), None);
        assert_eq!(differential(&Paths::default(), Widths::Base), None);
    }
}

//! A differential flame graph. A frame is a function on one call path. Its width is the cost of the
//! function and its callees on one side.
//!
//! Its colour is the change of this cost, without cost that only moved. Three kinds of moves are
//! recognised:
//! - A function costs less on one path and more on another: only the change of the sum over its paths
//!   counts.
//! - A function itself costs less, and its callees more, or the reverse.
//! - A callee that only one side has replaces other callees of the same caller, or the reverse.
//!
//! Cost that moved is subtracted from both sides of the move, so the colour of the outermost frame is the
//! change of the total.

use std::collections::BTreeMap;

use compare::{Path, Paths};
use maud::html;

use crate::ascii::excerpt;
use crate::document::{Block, Chart, part, sentence};
use crate::words::{figure, signed};

/// The side that determines the widths of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Widths {
    /// Frames that only the other variant executes have no width.
    Base,
    /// Frames that only the baseline executes have no width.
    New,
}

/// Frames narrower than this are not drawn, in percent of the graph.
const MIN_WIDTH: f64 = 0.1;
/// Frames narrower than this have no label, in percent of the graph. The script labels a frame when it is
/// zoomed into.
const MIN_LABELLED: f64 = 2.0;
/// Height of a frame, in CSS pixels.
const HEIGHT: usize = 18;
/// Number of shades of each colour.
const SHADES: f64 = 8.0;
/// Most frames of a path. Deeper calls count as cost of the last frame.
const MAX_DEPTH: usize = 200;

/// Depth of the frames that say who executes: the kernel, a process or the firmware.
const WHO: usize = 1;

/// A function on one call path.
struct Frame<'a> {
    name: &'a str,
    /// The index of its caller; its own index for the outermost frame.
    caller: usize,
    depth: usize,
    /// The frame's own cost on both sides.
    own: [f64; 2],
    /// The cost on both sides, callees included.
    all: [f64; 2],
    /// The change of its own cost, without what moved to other paths of the same function.
    own_change: f64,
    /// The sum of `own_change` over the frame and its callees.
    change: f64,
    /// Whether only one side executes the function, on any path.
    one_sided: bool,
    /// The share of `change` that did not move between callers and callees, from 0 to 1.
    kept: f64,
}

impl Frame<'_> {
    /// Returns the change that determines the colour.
    fn shade(&self) -> f64 {
        self.kept * self.change
    }
}

/// The differential flame graphs of a page, and the words around them.
pub struct Graphs<'a> {
    /// The heading above the graphs.
    pub title: String,
    /// The names of both sides.
    pub names: [String; 2],
    /// The unit of the cost that widths stand for.
    pub unit: &'a str,
    /// Words on where moved cost can have gone, as a continuation of a sentence; may be empty.
    pub moved: &'static str,
    /// The deepest colour stands for at least this change, so that luck looks pale.
    pub least: f64,
    /// Functions whose frames are marked by a border.
    pub marked: Vec<&'a str>,
    /// Words on which functions are marked.
    pub marks: &'static str,
}

/// Draws the graph with the widths of the new side, and below it, folded, the graph with the widths of the
/// baseline.
pub fn graphs(paths: &Paths, graphs: &Graphs<'_>) -> Block {
    let Graphs { title, names: [base, new], unit, moved, least, marked, marks } = graphs;
    let graph = |widths, of: &str| {
        let label = format!("Flame graph, as wide as the {unit} of {of}");
        match differential(paths, widths, *least, marked, label) {
            Some(graph) => Block::Chart(graph),
            None => sentence(format!("There are no {unit}.")),
        }
    };
    let colours = Block::Drawing(html! {
        p class="note" {
            "A frame is as wide as the " (unit) " of " (new) " in it and in what it calls. \
             Its colour is their change: " span class="key more8" { "more" } " or "
            span class="key fewer8" { "fewer" } " than " (base) ", the larger the deeper. What only moved counts as "
            span class="key same" { "no change" } (moved) "."
            @if !marked.is_empty() { " Framed: " (marks) "." }
        }
    });
    let of_base = format!("As wide as the {unit} of {base}, to see what {new} no longer executes");
    let of_base = Block::Fold(of_base, vec![graph(Widths::Base, base)]);
    part(title.clone(), [colours, graph(Widths::New, new), of_base])
}

/// Draws one graph. The deepest colour stands for a change of at least `least`, so that luck looks pale.
/// Frames of `marked` functions have a border. `None` if the side that determines the widths executes
/// nothing.
fn differential(
    paths: &Paths,
    widths: Widths,
    least: f64,
    marked: &[&str],
    label: String,
) -> Option<Chart> {
    let frames = frames(&paths.paths);
    let side = widths as usize;
    let whole = frames[0].all[side];
    if whole <= 0.0 {
        return None;
    }
    let begins = begins(&frames, side);
    let percent = |instructions: f64| 100.0 * instructions / whole;
    let is_drawn = |frame: &Frame<'_>| percent(frame.all[side]) >= MIN_WIDTH;
    let deepest = frames.iter().filter(|frame| is_drawn(frame)).map(|frame| frame.depth).max()?;
    let most = frames.iter().map(|frame| frame.shade().abs()).fold(least, f64::max);
    let shapes = html! {
        @for (frame, begin) in frames.iter().zip(begins).filter(|(frame, _)| is_drawn(frame)) {
            svg x={ (coordinate(percent(begin))) "%" } y=((deepest - frame.depth) * HEIGHT)
                width={ (coordinate(percent(frame.all[side]))) "%" } height=(HEIGHT) {
                title { (figures(frame, percent(frame.all[side]))) }
                rect class={ (shade(frame.shade(), least, most))
                    @if marked.contains(&frame.name) { " marked" } } {}
                @if percent(frame.all[side]) >= MIN_LABELLED { text { (excerpt(frame.name)) } }
            }
        }
    };
    Some(Chart {
        title: String::new(),
        beside: String::new(),
        label,
        figures: figures(&frames[0], 100.0).replace('\n', "; "),
        note: String::new(),
        class: "flame",
        size: [0.0, ((deepest + 1) * HEIGHT) as f64],
        shapes,
    })
}

/// Builds the frames of all paths, callers before callees. The first frame is the caller of all others.
fn frames(paths: &[Path]) -> Vec<Frame<'_>> {
    let mut paths: Vec<&Path> = paths.iter().collect();
    paths.sort_by(|one, other| one.frames.cmp(&other.frames));
    let frame = |name, caller, depth| Frame {
        name,
        caller,
        depth,
        own: [0.0; 2],
        all: [0.0; 2],
        own_change: 0.0,
        change: 0.0,
        one_sided: false,
        kept: 1.0,
    };
    let mut frames = vec![frame("all", 0, 0)];
    let mut open = vec![0];
    for path in paths {
        let names = || path.frames.iter().take(MAX_DEPTH);
        let same =
            open[1..].iter().zip(names()).take_while(|(at, name)| frames[**at].name == *name);
        let same = same.count();
        open.truncate(1 + same);
        for name in names().skip(same) {
            let caller = open[open.len() - 1];
            open.push(frames.len());
            frames.push(frame(name, caller, frames[caller].depth + 1));
        }
        let own = &mut frames[open[open.len() - 1]].own;
        *own = [own[0] + path.base, own[1] + path.new];
    }
    without_other_paths(&mut frames);
    for place in (0..frames.len()).rev() {
        let Frame { caller, own, own_change, .. } = frames[place];
        let frame = &mut frames[place];
        frame.all = [frame.all[0] + own[0], frame.all[1] + own[1]];
        frame.change += own_change;
        let (all, change) = (frame.all, frame.change);
        if place > 0 {
            let caller = &mut frames[caller];
            caller.all = [caller.all[0] + all[0], caller.all[1] + all[1]];
            caller.change += change;
        }
    }
    without_moves(&mut frames);
    frames
}

/// Sets `own_change` of each frame. Among the changes of a function's paths, those with another sign than
/// their sum become 0, and the others shrink in proportion, so that the sum stays.
fn without_other_paths(frames: &mut [Frame<'_>]) {
    /// Sums over the paths of a function.
    #[derive(Default)]
    struct Function {
        own: [f64; 2],
        more: f64,
        less: f64,
    }
    // Several processes can have frames of the same name, so each is a function of its own.
    let mut executes = vec![0; frames.len()];
    for (place, frame) in frames.iter().enumerate() {
        executes[place] = if frame.depth > WHO { executes[frame.caller] } else { place };
    }
    let mut functions = BTreeMap::<(usize, &str), Function>::new();
    for (frame, who) in frames.iter().zip(&executes) {
        let it = functions.entry((*who, frame.name)).or_default();
        let change = frame.own[1] - frame.own[0];
        it.own = [it.own[0] + frame.own[0], it.own[1] + frame.own[1]];
        it.more += change.max(0.0);
        it.less += (-change).max(0.0);
    }
    for (frame, who) in frames.iter_mut().zip(executes) {
        let Some(Function { own, more, less }) = functions.get(&(who, frame.name)) else {
            continue;
        };
        let change = frame.own[1] - frame.own[0];
        let all = more - less;
        let larger = more.max(*less);
        let is_with_all = change * all > 0.0;
        frame.own_change = if is_with_all { change * all.abs() / larger } else { 0.0 };
        frame.one_sided = (own[0] > 0.0) != (own[1] > 0.0);
    }
}

/// Sets `kept` of each frame. Within a function, the change of its own cost and those of callees that only
/// one side has are offset against changes of the other sign.
fn without_moves(frames: &mut [Frame<'_>]) {
    // Sums of changes in each function: by sign, and by whether the change may have moved or is that of a
    // callee that both sides have.
    let mut parts = vec![[[0.0; 2]; 2]; frames.len()];
    let part = |frame: &Frame<'_>| (usize::from(frame.change < 0.0), usize::from(!frame.one_sided));
    for frame in &frames[1..] {
        let (sign, both) = part(frame);
        parts[frame.caller][sign][both] += frame.change.abs();
    }
    for (parts, frame) in parts.iter_mut().zip(&*frames) {
        parts[usize::from(frame.own_change < 0.0)][0] += frame.own_change.abs();
    }
    for place in 1..frames.len() {
        let (sign, both) = part(&frames[place]);
        let caller = frames[place].caller;
        // Frames that say who executes call nothing: the functions below them are unrelated.
        let is_called = frames[caller].depth > WHO;
        let kept = if is_called { kept(parts[caller], sign, both) } else { 1.0 };
        frames[place].kept = frames[caller].kept * kept;
    }
}

/// Returns the share of a part of a function's change that did not move, from 0 to 1. `sign` and `both`
/// select the part from the sums in `parts`.
fn kept(parts: [[f64; 2]; 2], sign: usize, both: usize) -> f64 {
    let sums = parts.map(|[movable, fixed]| movable + fixed);
    let movable = parts[0][0] + parts[1][0];
    let moved = sums[0].min(sums[1]).min(movable);
    let first = moved.min(parts[sign][0]);
    let moved = if both == 0 { first } else { moved - first };
    let part = parts[sign][both];
    if part > 0.0 { ((part - moved) / part).clamp(0.0, 1.0) } else { 1.0 }
}

/// Returns where each frame begins, as a cost on this side. Callees of one caller lie next to each other.
fn begins(frames: &[Frame<'_>], side: usize) -> Vec<f64> {
    let mut begins = vec![0.0; frames.len()];
    let mut next = vec![0.0; frames.len()];
    for (place, frame) in frames.iter().enumerate().skip(1) {
        begins[place] = next[frame.caller];
        next[frame.caller] += frame.all[side];
        next[place] = begins[place];
    }
    begins
}

/// Returns the class of a colour: `more1` to `more8`, `fewer1` to `fewer8`, or `same`. `most` is the change
/// with the deepest colour. A change above `least` has a colour, however small it is beside `most`.
fn shade(change: f64, least: f64, most: f64) -> String {
    let level = if most > 0.0 { (SHADES * change.abs() / most).round() } else { 0.0 };
    let level = if change.abs() > least { level.max(1.0) } else { level };
    match (level > 0.0, change > 0.0) {
        (false, _) => "same".to_owned(),
        (true, more) => format!("{}{level}", if more { "more" } else { "fewer" }),
    }
}

/// Writes the text that is shown when the pointer is on a frame.
fn figures(frame: &Frame<'_>, percent: f64) -> String {
    let sides = |[base, new]: [f64; 2]| format!("{} to {}", figure(base, 0), figure(new, 0));
    let change = frame.all[1] - frame.all[0];
    let moved = change - frame.shade();
    let moved = match moved.abs() >= 0.5 {
        true => format!(", of which {} only moved", signed(moved, 0)),
        false => String::new(),
    };
    format!(
        "{}, {percent:.1} %\n{}: {}{moved}\nown: {}",
        excerpt(frame.name),
        sides(frame.all),
        signed(change, 0),
        sides(frame.own),
    )
}

/// Formats a coordinate in percent, with enough decimals for zooming.
fn coordinate(percent: f64) -> String {
    let text = format!("{percent:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(frames: &[&str], base: f64, new: f64) -> Path {
        Path { frames: frames.iter().map(|&frame| frame.to_owned()).collect(), base, new }
    }

    #[test]
    fn a_change_beyond_luck_has_a_colour_beside_a_large_one() {
        assert_eq!(shade(1.34e7, 1e6, 2.5e8), "more1");
        assert_eq!(shade(-1.34e7, 1e6, 2.5e8), "fewer1");
        assert_eq!(shade(9e5, 1e6, 2.5e8), "same");
        assert_eq!(
            (shade(2.5e8, 1e6, 2.5e8), shade(0.0, 0.0, 0.0)),
            ("more8".into(), "same".into())
        );
    }

    /// Returns the name of each frame with the change that determines its colour.
    fn shades(paths: &[Path]) -> Vec<(String, f64)> {
        let frames = frames(paths);
        frames.iter().map(|it| (it.name.to_owned(), it.shade().round())).collect()
    }

    fn shade_of(paths: &[Path], name: &str) -> f64 {
        let all = shades(paths);
        all.iter().find(|it| it.0 == name).unwrap_or_else(|| panic!("{name}: {all:?}")).1
    }

    #[test]
    fn frames_are_as_wide_as_a_side() {
        let paths = Paths {
            followed: true,
            paths: vec![
                path(&["kernel", "dearer"], 100.0, 200.0),
                path(&["kernel", "cheaper"], 200.0, 100.0),
                path(&["kernel", "same"], 100.0, 100.0),
                path(&["kernel", "gone"], 100.0, 0.0),
            ],
        };
        let [base, new] = [Widths::Base, Widths::New].map(|it| {
            differential(&paths, it, 0.0, &[], String::new()).unwrap().shapes.into_string()
        });
        let drawn = |svg: &str, name: &str| {
            let frame = svg.split("<svg x=").find(|it| it.contains(&format!("<title>{name},")))?;
            let class = frame.split("class=\"").nth(1)?.split('"').next()?;
            Some((frame.split("width=\"").nth(1)?.split('"').next()?.to_owned(), class.to_owned()))
        };
        let expected = |width: &str, class: &str| Some((width.to_owned(), class.to_owned()));
        assert_eq!(drawn(&new, "dearer"), expected("50%", "more8"));
        assert_eq!(drawn(&base, "dearer"), expected("20%", "more8"));
        assert_eq!(drawn(&new, "cheaper"), expected("25%", "fewer8"));
        assert_eq!(drawn(&new, "same"), expected("25%", "same"));
        assert_eq!(drawn(&new, "gone"), None);
        assert_eq!(drawn(&base, "gone").unwrap().0, "20%");
    }

    #[test]
    fn a_loop_that_moved_into_a_function_of_its_own_is_no_change() {
        let paths = [
            path(&["kernel", "sys", "change"], 1000.0, 100.0),
            path(&["kernel", "sys", "change", "range"], 0.0, 500.0),
            path(&["kernel", "sys", "change", "range", "pte"], 0.0, 400.0),
        ];
        for name in ["kernel", "sys", "change", "range", "pte"] {
            assert_eq!(shade_of(&paths, name), 0.0, "{name}");
        }
    }

    #[test]
    fn a_loop_that_moved_and_got_dearer_is_as_red_as_its_caller_and_no_redder() {
        let paths = [
            path(&["kernel", "sys", "change"], 1000.0, 100.0),
            path(&["kernel", "sys", "change", "range"], 0.0, 1500.0),
            path(&["kernel", "sys", "change", "range", "pte"], 0.0, 300.0),
        ];
        assert_eq!(shade_of(&paths, "change"), 900.0);
        assert_eq!(shade_of(&paths, "range"), 900.0);
        assert_eq!(shade_of(&paths, "pte"), 150.0);
    }

    #[test]
    fn inlining_is_no_change() {
        let paths = [
            path(&["kernel", "load"], 100.0, 150.0),
            path(&["kernel", "load", "descend"], 50.0, 0.0),
        ];
        assert_eq!([shade_of(&paths, "load"), shade_of(&paths, "descend")], [0.0, 0.0]);
    }

    #[test]
    fn another_path_of_the_same_function_is_no_change() {
        let paths = [
            path(&["kernel", "old_entry", "work"], 500.0, 0.0),
            path(&["kernel", "new_entry", "work"], 0.0, 500.0),
            path(&["kernel", "other"], 10.0, 30.0),
        ];
        for name in ["old_entry", "new_entry", "work"] {
            assert_eq!(shade_of(&paths, name), 0.0, "{name}");
        }
        assert_eq!(shade_of(&paths, "other"), 20.0);
    }

    #[test]
    fn callees_that_both_sides_have_do_not_make_up_for_each_other() {
        let paths = [
            path(&["kernel", "sys"], 10.0, 10.0),
            path(&["kernel", "sys", "read"], 100.0, 200.0),
            path(&["kernel", "sys", "write"], 200.0, 100.0),
        ];
        let of = |name| shade_of(&paths, name);
        assert_eq!([of("sys"), of("read"), of("write")], [0.0, 100.0, -100.0]);
        // A callee that only the new side has may have replaced another callee.
        let paths = [
            path(&["kernel", "sys", "lock"], 100.0, 40.0),
            path(&["kernel", "sys", "lock_slow"], 0.0, 70.0),
        ];
        assert_eq!([shade_of(&paths, "lock"), shade_of(&paths, "lock_slow")], [0.0, 10.0]);
    }

    #[test]
    fn processes_are_distinguished() {
        let paths = [path(&["a", "[user]"], 100.0, 0.0), path(&["b", "[user]"], 0.0, 100.0)];
        assert_eq!([shade_of(&paths, "a"), shade_of(&paths, "b")], [-100.0, 100.0]);
        assert_eq!(shade_of(&paths, "all"), 0.0);
    }

    #[test]
    fn the_outermost_frame_has_the_change_of_the_total() {
        let paths = [
            path(&["kernel", "a"], 70.0, 10.0),
            path(&["kernel", "a", "b"], 0.0, 95.0),
            path(&["kernel", "c", "b"], 30.0, 0.0),
            path(&["user", "[user]"], 5.0, 6.0),
        ];
        assert_eq!(shade_of(&paths, "all"), 6.0);
        assert_eq!(shade_of(&paths, "kernel"), 5.0);
    }

    #[test]
    fn changes_within_luck_are_pale() {
        let paths = Paths { followed: true, paths: vec![path(&["kernel", "f"], 100.0, 110.0)] };
        let svg = |least| {
            differential(&paths, Widths::New, least, &["f"], String::new())
                .unwrap()
                .shapes
                .into_string()
        };
        assert!(svg(5.0).contains("more8 marked") && svg(40.0).contains("more2 marked"));
    }

    #[test]
    fn huge_sums_are_drawn_and_nothing_is_not() {
        let paths = vec![path(&["f"], 1e30, 3e30), path(&["g"], 0.0, 1e30)];
        let svg =
            differential(&Paths { followed: true, paths }, Widths::New, 0.0, &[], String::new());
        assert!(svg.unwrap().shapes.into_string().contains("width=\"75%\""));
        let gone = Paths { followed: true, paths: vec![path(&["f"], 5.0, 0.0)] };
        assert!(differential(&gone, Widths::New, 0.0, &[], String::new()).is_none());
        assert!(differential(&Paths::default(), Widths::Base, 0.0, &[], String::new()).is_none());
    }
}

//! Fits a mail into the number of lines that a list reader looks at.

use crate::ascii::few;
use crate::document::{self, Block, MAIL, sentence};
use crate::note::{self, Note};

/// Most lines of a mail's body.
pub const MOST: usize = 60;
/// Most topics of notes that are named because the notes are left out.
const MAX_TOPICS: usize = 4;
/// The rank of files, and of the other spare paragraphs for which those that shrink make room.
const WANTED: u8 = 0;
/// Rows that the table keeps while something else can be left out.
const KEPT_ROWS: usize = 12;

/// A paragraph of a mail.
pub enum Piece {
    /// A paragraph that is always printed.
    Kept(String),
    /// Notes that are always printed, the last ones only where there is room.
    Shrinks {
        /// Their title.
        title: &'static str,
        /// The notes.
        notes: Vec<Note>,
        /// The lines that they have at most.
        most: usize,
        /// The lines that they keep.
        least: usize,
    },
    /// Sentences, the last ones only where there is room.
    Sentences {
        /// What they are about, in the words that say that some are left out.
        name: &'static str,
        /// The sentences.
        blocks: Vec<Block>,
        /// The lines that they have at most.
        most: usize,
        /// The lines that they keep.
        least: usize,
    },
    /// A paragraph that is left out where there is no room.
    Spare {
        /// What it has, in the words that say that it is left out.
        name: &'static str,
        /// Paragraphs of lower ranks get the room first.
        rank: u8,
        /// The paragraph.
        text: String,
    },
    /// A file that is needed to repeat the run.
    File {
        /// Its name.
        name: String,
        /// Its text as a paragraph; `None` if no mail has room for it.
        text: Option<String>,
        /// Whether it goes beside the mail. A file that neither does nor is in the mail is named at the end.
        is_beside: bool,
    },
    /// The table. It loses rows where there is no room.
    Rows,
}

/// Joins the paragraphs with an empty line between them. `table` lays out the table with at most so many
/// rows, of which it has `rows`. The first rows get their room before spare paragraphs, the others after
/// them. If names of extreme length leave no room, the end is cut.
pub fn body(pieces: &[Piece], rows: usize, table: impl Fn(usize) -> String) -> String {
    let mut included = vec![false; pieces.len()];
    let joined = |(rows, lost): (usize, &[usize]), included: &[bool]| {
        let texts = pieces.iter().zip(lost).zip(included).map(|((piece, lost), is_included)| {
            match piece {
                Piece::Kept(text) => text.clone(),
                Piece::Shrinks { title, notes, most, least } => {
                    first_notes(title, notes, room(*most, *least, *lost))
                }
                // The first sentence is never cut.
                Piece::Sentences { blocks, most, least, .. } => {
                    let number = number_of_whole(blocks, room(*most, *least, *lost));
                    document::text(&blocks[..number], &MAIL)
                }
                Piece::Spare { text, .. } | Piece::File { text: Some(text), .. }
                    if *is_included =>
                {
                    text.clone()
                }
                Piece::Spare { .. } | Piece::File { .. } => String::new(),
                Piece::Rows => table(rows),
            }
        });
        let texts = texts.chain(left_out(pieces, included, lost));
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    };
    let fits =
        |room: (usize, &[usize]), included: &[bool]| joined(room, included).lines().count() <= MOST;
    let all = |lost| vec![lost; pieces.len()];
    let mut kept = rows.min(KEPT_ROWS);
    // A paragraph that is shorter than its most loses nothing at first.
    let is_enough = |lost: &usize| fits((kept, &all(*lost)), &included);
    let mut lost = (0..MOST).find(is_enough).unwrap_or(MOST);
    while kept > 1 && !fits((kept, &all(lost)), &included) {
        kept -= 1;
    }
    for place in by_rank(pieces) {
        included[place] = true;
        let is_wanted =
            matches!(pieces[place], Piece::Spare { rank: WANTED, .. } | Piece::File { .. });
        let most = if is_wanted { MOST } else { lost };
        // What does not fit with the most room fits with none.
        let has_room = fits((kept, &all(most)), &included);
        match (lost..=most).find(|lost| has_room && fits((kept, &all(*lost)), &included)) {
            Some(enough) => lost = enough,
            None => included[place] = false,
        }
    }
    // All paragraphs that shrink have lost as many lines. The first ones get back what is left.
    let mut lost = all(lost);
    for (place, piece) in pieces.iter().enumerate() {
        let (Piece::Shrinks { most, least, .. } | Piece::Sentences { most, least, .. }) = piece
        else {
            continue;
        };
        let most = lost[place].min(most - least);
        lost[place] = 0;
        while lost[place] < most && !fits((kept, &lost), &included) {
            lost[place] += 1;
        }
    }
    while kept < rows && fits((kept + 1, &lost), &included) {
        kept += 1;
    }
    cut(joined((kept, &lost), &included), MOST)
}

/// Returns the lines of a paragraph that shrinks and has lost some.
fn room(most: usize, least: usize, lost: usize) -> usize {
    most.saturating_sub(lost).max(least)
}

/// Returns a paragraph that names what is left out: paragraphs, and files that are neither included nor beside the mail.
/// `None` if nothing is.
fn left_out(pieces: &[Piece], included: &[bool], lost: &[usize]) -> Option<String> {
    let left =
        || pieces.iter().zip(lost).zip(included).filter(|(_, is_in)| !**is_in).map(|(it, _)| it);
    let spare = left().filter_map(|(piece, lost)| match piece {
        Piece::Spare { name, text, .. } if !text.is_empty() => Some((*name).to_owned()),
        Piece::Sentences { name, blocks, most, least } => {
            let number = number_of_whole(blocks, room(*most, *least, *lost));
            (number < blocks.len()).then(|| format!("more about {name}"))
        }
        _ => None,
    });
    let files = left().filter_map(|(piece, _)| match piece {
        Piece::File { name, is_beside: false, .. } => Some(name.clone()),
        _ => None,
    });
    let said = |names: Vec<String>, head: &str| {
        (!names.is_empty()).then(|| sentence(format!("{head}: {}.", names.join(", "))))
    };
    let said = [
        said(spare.collect(), "Left out for room"),
        said(files.collect(), "Also needed, and not in this mail"),
    ];
    let said: Vec<Block> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| document::text(&said, &MAIL))
}

/// Returns the places of the paragraphs that may be left out, the lowest rank first.
fn by_rank(pieces: &[Piece]) -> Vec<usize> {
    let mut places: Vec<(u8, usize)> = Vec::new();
    for (place, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Spare { rank, .. } => places.push((*rank, place)),
            Piece::File { text: Some(_), .. } => places.push((WANTED, place)),
            Piece::File { .. }
            | Piece::Kept(_)
            | Piece::Shrinks { .. }
            | Piece::Sentences { .. }
            | Piece::Rows => {}
        }
    }
    places.sort_unstable();
    places.into_iter().map(|(_, place)| place).collect()
}

/// Lays out as many of the first blocks as `most` lines have room for. The first one is cut if it has more.
pub fn whole(blocks: &[Block], most: usize) -> String {
    let number = number_of_whole(blocks, most);
    cut(document::text(&blocks[..number], &MAIL), most)
}

/// Returns the number of the first blocks that `most` lines have room for; at least 1 if there are any.
fn number_of_whole(blocks: &[Block], most: usize) -> usize {
    let fits = |number: &usize| document::text(&blocks[..*number], &MAIL).lines().count() <= most;
    (1..=blocks.len()).rev().find(fits).unwrap_or(blocks.len().min(1))
}

/// Lays out as many of the first notes as `most` lines have room for, and names the topics of the others. The first note
/// is cut if it has more.
pub fn first_notes(title: &str, notes: &[Note], most: usize) -> String {
    let first = |number: usize| {
        let (shown, left) = notes.split_at(number);
        let mut topics: Vec<&str> = left.iter().map(|note| note.topic).collect();
        topics.dedup();
        let left = match topics.is_empty() {
            true => String::new(),
            false => format!("  (left out here: {})\n", few(MAX_TOPICS, topics).join(", ")),
        };
        document::text(&[note::block(title, shown)], &MAIL) + &left
    };
    let fits = |text: &String| text.lines().count() <= most;
    // Notes on one topic stay together.
    let ends: Vec<usize> = notes
        .chunk_by(|one, other| one.topic == other.topic)
        .scan(0, |end, notes| {
            *end += notes.len();
            Some(*end)
        })
        .collect();
    let laid_out = ends.iter().rev().map(|end| first(*end));
    laid_out.into_iter().find(fits).unwrap_or_else(|| cut(first(notes.len().min(1)), most))
}

/// Cuts a text to `most` lines. If lines are left out, their number takes the place of the last one.
pub fn cut(text: String, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= most {
        return text;
    }
    let kept = lines[..most - 1].join("\n");
    format!("{kept}\n  ({} more lines)\n", lines.len() + 1 - most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(word: &str, number: usize) -> String {
        format!("{word}\n").repeat(number)
    }

    #[test]
    fn what_matters_most_gets_the_room() {
        let spare =
            |rank, word, number| Piece::Spare { name: word, rank, text: lines(word, number) };
        let of = |long: usize, rows| {
            let pieces = [Piece::Kept(lines("kept", long)), Piece::Rows];
            let pieces: Vec<Piece> =
                pieces.into_iter().chain([spare(1, "first", 4), spare(2, "second", 4)]).collect();
            let text = body(&pieces, rows, |rows| lines("row", rows));
            assert!(text.lines().count() <= MOST, "{text}");
            ["kept", "row", "first", "second"]
                .map(|it| text.lines().filter(|line| *line == it).count())
        };
        assert_eq!(of(10, 20), [10, 20, 4, 4]);
        assert_eq!(of(10, 80), [10, 39, 4, 4]);
        assert_eq!(of(39, 20), [39, 13, 4, 0]);
        assert_eq!(of(50, 20), [50, 7, 0, 0]);
    }

    #[test]
    fn a_paragraph_that_shrinks_leaves_room_for_the_last_one() {
        let of = |long| {
            let topics = "abcdefghijklmnopqrst".split("").filter(|it| !it.is_empty());
            let notes = topics.map(|it| Note::on_all(it, "shrinks".to_owned())).collect();
            let shrinks = Piece::Shrinks { title: "Notes:", notes, most: 16, least: 8 };
            let pieces = [Piece::Kept(lines("kept", long)), shrinks, Piece::Kept(lines("end", 4))];
            let text = body(&pieces, 0, |_| String::new());
            assert!(text.lines().count() <= MOST, "{text}");
            ["shrinks", "end"].map(|it| text.lines().filter(|line| line.ends_with(it)).count())
        };
        assert_eq!(of(30), [14, 4]);
        assert_eq!(of(40), [12, 4]);
        assert_eq!(of(46), [6, 4]);
        assert_eq!(of(48), [6, 1]);
    }

    /// Paragraphs that are shorter than their most give up as many lines as it takes, too.
    #[test]
    fn a_short_paragraph_shrinks_before_the_end_is_cut() {
        let sentences = |name: &'static str, number: u32| Piece::Sentences {
            name,
            blocks: (0..number).map(|number| sentence(format!("{name} {number}."))).collect(),
            most: 20,
            least: 2,
        };
        let end = Piece::Kept(lines("command", 3));
        let pieces =
            [Piece::Kept(lines("kept", 38)), sentences("cause", 10), sentences("builds", 10), end];
        let text = body(&pieces, 0, |_| String::new());
        let of = |word| text.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(["kept", "command"].map(of), [38, 3], "{text}");
        assert!(of("cause") >= 2 && of("builds") >= 2, "{text}");
    }

    /// Room for the file is taken from both paragraphs. The first one gets back what is left.
    #[test]
    fn paragraphs_that_shrink_use_all_the_room() {
        let sentences = |name: &'static str| Piece::Sentences {
            name,
            blocks: (0..10).map(|number| sentence(format!("{name} {number}."))).collect(),
            most: 10,
            least: 2,
        };
        let file =
            Piece::File { name: "file".into(), text: Some(lines("file", 45)), is_beside: false };
        let pieces = [sentences("cause"), sentences("builds"), file];
        let text = body(&pieces, 0, |_| String::new());
        assert_eq!(text.lines().count(), MOST, "{text}");
        let of = |word| text.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(["cause", "builds", "file"].map(of), [6, 5, 45]);
    }

    #[test]
    fn a_file_without_room_is_named_at_the_end() {
        let file = |name: &str, number, is_beside| Piece::File {
            name: name.into(),
            text: Some(lines(name, number)),
            is_beside,
        };
        let archive = Piece::File { name: "a.cpio".into(), text: None, is_beside: false };
        let pieces = [file("a", 30, false), archive, file("b", 40, false), file("c", 40, true)];
        let text = body(&pieces, 0, |_| String::new());
        assert!(text.starts_with("a\n"), "{text}");
        assert!(text.ends_with("a\n\nAlso needed, and not in this mail: a.cpio, b.\n"), "{text}");
    }

    #[test]
    fn paragraphs_without_room_are_left_out_whole() {
        let blocks: Vec<Block> = ["a b.", "c d.", "e f."].map(sentence).into();
        assert_eq!(whole(&blocks, 3), "a b.\nc d.\ne f.\n");
        assert_eq!(whole(&blocks, 2), "a b.\nc d.\n");
        assert_eq!(whole(&[], 2), "");
        let long = sentence("word ".repeat(60));
        assert!(whole(&[long], 2).ends_with("\n  (3 more lines)\n"));
    }

    #[test]
    fn notes_without_room_are_left_out_whole() {
        let note = |topic, text: &str| Note::on_all(topic, text.to_owned());
        let long = "word ".repeat(40);
        let notes = [
            note("kernel", "a b"),
            note("memory", "e f"),
            note("memory", &long),
            note("state", "c d"),
        ];
        let whole = first_notes("Notes:", &notes, 20);
        let lines = whole.lines().count();
        assert!(lines > 3 && whole.ends_with("  state   c d\n"), "{whole}");
        assert_eq!(first_notes("Notes:", &notes, lines), whole);
        let first = first_notes("Notes:", &notes, 4);
        assert_eq!(first, "Notes:\n  kernel  a b\n  (left out here: memory, state)\n");
    }

    #[test]
    fn a_cut_text_says_how_much_it_lacks() {
        assert_eq!(cut(lines("x", 4), 4), lines("x", 4));
        assert_eq!(cut(lines("x", 5), 4), "x\nx\nx\n  (2 more lines)\n");
    }
}

//! What others print and keep, read into the model: the benchmark tables of mails, patches and
//! commit messages, and the directories of logs that mmtests leaves ([`mmtests`]). Tables are pure:
//! bytes in, tables out; where they come from and how they are printed again is for others.
//!
//! The way of a text: [`mailbox`] parts it into mails, [`mail`] unfolds each into lines that know their quoting and their author,
//! [`wrapped`] joins rows that a mail program has wrapped, [`row`] takes a line apart, [`block`]
//! gathers rows, [`header`] finds their columns' names, [`robot`] does all that for the kernel test
//! robot's, and [`ours`] for those of our own reports whose rows end in words, [`read`] makes tables of
//! them. Then [`direction`] says which way each row is good,
//! [`rebase`] sets a table against another column, [`check`] recomputes what is printed.

mod block;
mod check;
mod direction;
mod encoding;
mod figure;
mod header;
mod kind;
mod mail;
mod mailbox;
pub mod mmtests;
mod names;
mod ours;
mod quoting;
mod read;
mod rebase;
mod robot;
mod row;
mod table;
mod wrapped;

pub use check::{Check, Clue, Finding, check};
pub use read::{MAX_MAIL, read, read_mails};
pub use rebase::{NoBaseline, rebase};
pub use table::{Baseline, Cell, Document, Figure, Kind, Lines, Row, Signs, Table, Unread};

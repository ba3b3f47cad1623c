//! Reads the benchmark tables of mails, patches and commit messages, and perf's samples ([`perf_script`], [`perf_json`]).
//! The code is pure: bytes in, tables and profiles out. Callers find the input and print the output.
//!
//! The stages for a text: [`mailbox`] splits it into mails, [`mail`] splits each into lines with their
//! quoting and author, [`wrapped`] joins rows that a mail program has wrapped, [`row`] parses a line,
//! [`block`] gathers rows, [`header`] finds the names of columns. [`robot`] does all that for tables of the
//! kernel test robot. [`mod@read`] makes tables of them. Then [`direction`] infers the direction of each row,
//! [`mod@rebase`] changes the baseline of a table, [`mod@check`] recomputes what is printed.

mod block;
mod check;
mod direction;
mod encoding;
mod figure;
mod header;
mod kind;
mod mail;
mod mailbox;
mod names;
mod perf;
mod quoting;
mod read;
mod rebase;
mod robot;
mod row;
mod table;
mod wrapped;

pub use check::{Check, Clue, Finding, check};
pub use perf::{MAX_PERF, PerfSamples, perf_json, perf_script};
pub use read::{MAX_MAIL, read, read_mails};
pub use rebase::{NoBaseline, rebase};
pub use table::{Baseline, Cell, Document, Figure, Kind, Lines, Row, Signs, Table, Unread};

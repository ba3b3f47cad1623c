//! Explains a difference by the functions in which it is: as a screen of text, as JSON, and as a page of
//! HTML with a differential flame graph. The difference is one of exact mode, which a page also draws as a
//! waterfall, or one of sampled profiles ([`mod@sampled`]).

pub mod apart;
pub mod cause;
mod divided;
mod equal;
pub mod exact;
mod figures;
mod flame;
pub mod headline;
mod json;
pub mod layout;
pub mod lines;
mod lists;
mod locks;
mod pages;
mod sampled;
pub mod transfers;
mod view;
mod waterfall;
pub mod work;

use maud::html;

use crate::ascii::escape;
use crate::document::frame::{BLOCKS, Policy, frame};
use crate::document::{self, Block};

pub use exact::{explain, explain_html};
pub use json::explain_json;
pub use lines::{changed_lines, changed_lines_json, lines, lines_json};
pub use sampled::{sampled, sampled_html, sampled_json};

const STYLE: &str = include_str!("explain/page.css");
/// The style sheet of waterfalls and flame graphs.
pub const GRAPHS: &str = include_str!("explain/graphs.css");
/// The script of flame graphs.
pub const SCRIPT: &str = include_str!("explain/flame.js");

/// Returns a page with this title and these blocks.
fn page(workload: &str, title: &str, blocks: &[Block]) -> String {
    let body = html! {
        header {
            p class="kicker" { "faultline explain" }
            h1 { (escape(title)) }
        }
        main { (document::html(blocks, 1)) }
    };
    let name = format!("faultline explain {}", escape(workload));
    frame(&name, &format!("{BLOCKS}{GRAPHS}{STYLE}"), Policy::Only(SCRIPT), &body.into_string())
}

//! Attribution of a difference: as a screen of text, as JSON, and as a page of HTML with a differential flame graph.
//! Of exact mode, with a waterfall of contributions, and of sampled profiles ([`mod@sampled`]).

mod cause;
mod flame;
pub mod headline;
mod html;
mod json;
mod sampled;
mod text;
pub mod view;
mod waterfall;

pub use html::explain_html;
pub use json::explain_json;
pub use sampled::{sampled, sampled_html, sampled_json};
pub use text::explain;

const STYLE: &str = include_str!("explain/page.css");
const SCRIPT: &str = include_str!("explain/flame.js");

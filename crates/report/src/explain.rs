//! Attribution of a difference of exact mode: as a screen of text, as JSON, and as a page of HTML with a
//! waterfall of contributions and a differential flame graph.

mod cause;
mod flame;
mod html;
mod json;
mod text;
pub mod view;
mod waterfall;

pub use html::explain_html;
pub use json::explain_json;
pub use text::explain;

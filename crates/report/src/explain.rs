//! Where a difference of exact mode went: as a screen of text, as JSON, and as a page of HTML with
//! a differential flame graph.

mod html;
mod json;
mod text;
mod view;

pub use html::explain_html;
pub use json::explain_json;
pub use text::explain;

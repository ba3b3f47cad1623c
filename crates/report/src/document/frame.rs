//! The common frame of all HTML pages. Each is one file that loads nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::markup::html;

/// The style of all pages.
const STYLE: &str = include_str!("frame.css");

/// The style of the blocks of a report.
pub const BLOCKS: &str = include_str!("report.css");

/// The scripts that a page may run.
#[derive(Clone, Copy, Debug)]
pub enum Policy<'a> {
    /// This one script. A content security policy in the page makes browsers block everything else: other
    /// scripts, event handlers in attributes, other styles, and any load.
    Only(&'a str),
    /// No script; the page has none.
    Nothing,
}

/// Returns a complete page. `title` is escaped here; `body` must be escaped already.
pub fn frame(title: &str, style: &str, policy: Policy<'_>, body: &str) -> String {
    let title = html(title);
    let style = format!("\n{STYLE}{style}");
    let (policy, script) = match policy {
        Policy::Nothing => (policy_of(&[("style-src", &style)]), String::new()),
        Policy::Only(script) => {
            let policy = policy_of(&[("style-src", &style), ("script-src", script)]);
            (policy, format!("<script>{script}</script>\n"))
        }
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{policy}\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}{script}</body>\n\
         </html>\n"
    )
}

/// Returns the element with a content security policy (CSP level 3). Each pair of `allowed` is a directive,
/// such as `style-src`, and the text that it allows.
fn policy_of(allowed: &[(&str, &str)]) -> String {
    let allowed = allowed
        .iter()
        .map(|(what, text)| format!("; {what} 'sha256-{}'", STANDARD.encode(Sha256::digest(text))));
    let allowed: String = allowed.collect();
    format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         base-uri 'none'; form-action 'none'{allowed}\">\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected digest is the output of `printf 'alert(1)' | openssl dgst -sha256 -binary | base64`.
    #[test]
    fn a_policy_names_the_script_by_its_digest() {
        let page = frame("a < b", "", Policy::Only("alert(1)"), "<p>body</p>");
        let digest = "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=";
        assert!(page.contains(&format!("script-src '{digest}'")), "{page}");
        assert!(page.contains("<title>a &lt; b</title>"));
        assert!(page.ends_with("<p>body</p><script>alert(1)</script>\n</body>\n</html>\n"));
        assert!(!frame("", "", Policy::Nothing, "").contains("script"));
    }
}

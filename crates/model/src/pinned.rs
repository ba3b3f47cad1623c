//! Names of files in an experiment, with digests of their contents.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The separator between a name and its digest in experiments that are kept.
const MARK: &str = " sha256:";

/// A kernel or a program by its name or path. A kept experiment also has the SHA-256 of the file's content, in
/// hexadecimal, so that other content makes another experiment.
///
/// Its stored form is text, `NAME` or `NAME sha256:DIGEST`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Pinned {
    /// The name as it was given.
    pub name: String,
    /// The digest, once the file was read.
    pub digest: Option<String>,
}

impl Pinned {
    /// The same name with the digest of the file's content.
    pub fn with_digest(self, digest: impl Into<String>) -> Self {
        Self { digest: Some(digest.into()), ..self }
    }

    /// The name as a path.
    pub fn path(&self) -> &Path {
        Path::new(&self.name)
    }
}

impl From<String> for Pinned {
    fn from(text: String) -> Self {
        let is_digest = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_hexdigit());
        match text.rsplit_once(MARK) {
            Some((name, digest)) if is_digest(digest) => {
                Self { name: name.to_owned(), digest: Some(digest.to_owned()) }
            }
            _ => Self { name: text, digest: None },
        }
    }
}

impl From<&str> for Pinned {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Pinned> for String {
    fn from(pinned: Pinned) -> Self {
        pinned.to_string()
    }
}

impl fmt::Display for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.digest {
            Some(digest) => write!(f, "{}{MARK}{digest}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_kept_after_the_name() {
        let kernel = Pinned::from("6.1 sha256:5bd1");
        assert_eq!((&*kernel.name, kernel.digest.as_deref()), ("6.1", Some("5bd1")));
        assert_eq!(kernel, Pinned::from("6.1").with_digest("5bd1"));
        for text in ["6.1", "6.1 sha256:5bd1", "my sha256:own sha256:77aa"] {
            assert_eq!(Pinned::from(text).to_string(), text);
        }
        assert_eq!(Pinned::from("my sha256:own").digest, None);
    }
}

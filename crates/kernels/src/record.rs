//! Reads records of the cache, which are JSON.

use std::io::ErrorKind;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::Error;
use crate::error::Doing;
use crate::input::read_regular;

/// The contents of a record; `None` if the file does not exist.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let bytes = match read_regular(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        bytes => bytes.doing("read", path)?,
    };
    let record = serde_json::from_slice(&bytes);
    record
        .map(Some)
        .map_err(|error| Error::Record { path: path.to_owned(), problem: error.to_string() })
}

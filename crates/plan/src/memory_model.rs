//! Finds the memory model that a user asks for.

use std::path::Path;

use model::MemoryModel;

use crate::form::text;

/// The model with this name, or in the file with this path, which ends with `.toml`.
///
/// # Errors
/// What is wrong with the name or the file.
pub fn find(asked: &str) -> Result<MemoryModel, String> {
    if !asked.ends_with(".toml") {
        let known = MemoryModel::NAMES.join(", ");
        return MemoryModel::named(asked)
            .ok_or_else(|| format!("use {known}, or a file whose name ends with .toml"));
    }
    let text = text::read(Path::new(asked)).map_err(|error| error.to_string())?;
    let model: MemoryModel = toml::from_str(&text).map_err(|error| error.to_string())?;
    match model.problem() {
        Some(problem) => Err(problem),
        None => Ok(model),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_its_name_or_in_a_file() {
        assert_eq!(find("milan-2s").ok(), MemoryModel::named("milan-2s"));
        assert!(find("milan").unwrap_err().contains("skylake-2s, sapphire-2s, milan-2s"));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("own.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            find(path.to_str().unwrap())
        };
        let milan = MemoryModel::named("milan-2s").unwrap();
        let text = toml::to_string(&milan).unwrap();
        assert_eq!(read(&text), Ok(milan));
        assert!(
            read(&text.replace("ways = 16", "ways = 17")).unwrap_err().contains("the size of llc")
        );
        assert!(read("name = \"x\"").unwrap_err().contains("l1d"));
        assert!(find("/nowhere/own.toml").is_err());
    }
}

//! What an experiment is read from: a file, options, or a file and options that change it.

use std::path::{Path, PathBuf};

use toml::Spanned;

use super::{Fault, FileError, FileForm, culprit, read};
use crate::form::excerpt::brief;
use crate::request::Request;
use crate::search::Search;

/// A file, options, or both. Errors point at the line of the file or name the option.
#[derive(Debug, Default)]
pub struct Input {
    /// The file's path and text.
    file: Option<(PathBuf, String)>,
    /// The options, one after the other. Their places are counted from the end of the file's text.
    options: String,
}

/// Why an experiment cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file is wrong.
    #[error(transparent)]
    File(#[from] Box<FileError>),
    /// An option is wrong. The message has its name, and a hint.
    #[error("{0}")]
    Option(String),
}

impl Input {
    /// Reads an experiment file. Paths in it are relative to its directory. Fails when it does not have the form of one;
    /// what its values mean is not checked yet.
    pub fn file(path: &Path, text: String) -> Result<(Self, FileForm), Box<FileError>> {
        let form = read(&text).map_err(|fault| fault.at(path, &text))?;
        Ok((Self { file: Some((path.to_owned(), text)), options: String::new() }, form))
    }

    /// The value of an option, for a form.
    pub fn option<T>(&mut self, name: &str, value: T) -> Spanned<T> {
        let start = self.options_start() + self.options.len();
        self.options.push_str(name);
        Spanned::new(start..start + name.len(), value)
    }

    /// Checks a form with values of this input. An experiment without a name is named after its workloads and
    /// variants. Fails when the form describes no experiment.
    pub fn request(&self, form: FileForm) -> Result<Request, InputError> {
        form.check(self.directory()).map_err(|fault| self.error(fault))
    }

    /// The same for a search: machine, workload and mode are the form's; settings and configuration are those of its
    /// first variant.
    pub fn search(&self, form: FileForm) -> Result<Search, InputError> {
        culprit::search(form, self.directory()).map_err(|fault| self.error(fault))
    }

    fn directory(&self) -> &Path {
        self.file.as_ref().and_then(|(path, _)| path.parent()).unwrap_or(Path::new(""))
    }

    fn options_start(&self) -> usize {
        self.file.as_ref().map_or(0, |(_, text)| text.len())
    }

    fn error(&self, fault: Fault) -> InputError {
        let start = self.options_start();
        let of_option = |at: usize| at.checked_sub(start);
        let place = fault.place.as_ref();
        let place = place.and_then(|place| Some(of_option(place.start)?..of_option(place.end)?));
        let option = place.and_then(|place| self.options.get(place)).unwrap_or_default();
        match &self.file {
            Some((path, text)) if option.is_empty() => InputError::File(fault.at(path, text)),
            _ => {
                let parts = [option, &fault.problem, fault.hint.as_deref().unwrap_or_default()];
                let parts = parts.into_iter().filter(|part| !part.is_empty());
                InputError::Option(brief(&parts.collect::<Vec<_>>().join(": ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rendered;
    use super::*;

    const FILE: &str = "name = \"x\"\nboots = 2\nmachine = { cpus = 1, memory = \"1G\" }\n\
                        variant = [{ kernel = \"6.1\" }]\nworkload = [{ name = \"nas\" }]\n";

    fn told(text: &str, change: impl FnOnce(&mut FileForm, &mut Input)) -> String {
        let (mut input, mut form) = Input::file(Path::new("x.toml"), text.to_owned()).unwrap();
        change(&mut form, &mut input);
        match input.request(form) {
            Ok(request) => request.experiment.name,
            Err(InputError::File(error)) => rendered(&error),
            Err(InputError::Option(message)) => message,
        }
    }

    #[test]
    fn an_error_names_the_option_or_the_line() {
        assert_eq!(told(FILE, |_, _| ()), "x");
        let seeds = told(FILE, |form, input| form.seeds = Some(input.option("--seeds", 3)));
        assert!(seeds.starts_with("--seeds: seeds are only for exact mode: "), "{seeds}");
        let other = told(&FILE.replace("\"nas", "\"nsa"), |form, input| {
            form.boots = Some(input.option("--boots", super::super::BootsForm::Number(3)));
        });
        assert!(other.contains("x.toml:5:22") && other.contains("no workload `nsa`"), "{other}");
    }
}

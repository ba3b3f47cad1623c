//! What a figure of a profile is of, as JSON has it.

use compare::Subject;
use serde::Serialize;

/// The keys of a subject.
#[derive(Serialize)]
pub struct SubjectDocument<'a> {
    kind: &'static str,
    name: &'a str,
    module: &'a str,
}

/// The keys of a subject.
pub fn subject(subject: &Subject) -> SubjectDocument<'_> {
    let (kind, name, module) = match subject {
        Subject::Function { name, module } => ("function", &**name, &**module),
        Subject::Process(name) => ("process", &**name, ""),
        Subject::OtherProcesses => ("other-processes", "", ""),
        Subject::Firmware => ("firmware", "", ""),
    };
    SubjectDocument { kind, name, module }
}

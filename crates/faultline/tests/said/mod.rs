//! Runs the program, and keeps what it printed.

use std::process::{Command, Output};

pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let [out, err] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
        Self { code: status.code(), out, err }
    }

    /// Fails with the output if the exit code is another.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

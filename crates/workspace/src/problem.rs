//! What is wrong with a setting: one line that names it and the fix.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// As the person knows it: a variable or a flag.
    pub setting: String,
    pub what: String,
    pub fix: String,
}

impl Problem {
    pub fn new(
        setting: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { setting: setting.into(), what: what.into(), fix: fix.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = format!("{}: {}; {}", self.setting, self.what, self.fix);
        // A path may hold a line end.
        f.write_str(&line.replace(char::is_control, " "))
    }
}

pub(crate) fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

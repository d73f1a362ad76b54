//! Text that must never be printed.

use std::fmt;

/// Shows as `[redacted]` in every format; [`Secret::expose`] is the only way to the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

pub(crate) const REDACTED: &str = "[redacted]";

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_redacted_in_every_format() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {secret:#?}"), "[redacted] [redacted] [redacted]");
    }
}

//! What one row of the configuration table says, and how a text becomes its value.

use std::fmt;
use std::ops::RangeInclusive;

use super::secret::{REDACTED, Secret};

/// One setting under all its names.
#[derive(Debug)]
pub struct Setting {
    /// In the file: `section.name`, or a bare name at the top.
    pub key: &'static str,
    pub env: &'static str,
    /// Names of the sandboxd daemon for the same thing; `env` wins over them.
    pub aliases: &'static [&'static str],
    /// Without the dashes. Secrets have none: a command line is visible to every user.
    pub flag: Option<&'static str>,
    pub kind: Kind,
    pub default: Preset,
    /// One or two sentences for `--help` and the documentation.
    pub help: &'static str,
}

#[derive(Debug)]
pub enum Preset {
    /// Parsed like any other source.
    Text(&'static str),
    /// Depends on other things; the words say how.
    Computed(&'static str),
    Empty,
}

#[derive(Debug)]
pub enum Kind {
    Integer {
        min: u64,
        max: u64,
    },
    Switch,
    Choice(&'static [&'static str]),
    Text(Check),
    /// Separated by commas, or an array in the file.
    List(Check),
    Secret,
}

impl Kind {
    pub(super) const fn within(range: &RangeInclusive<u64>) -> Self {
        Self::Integer { min: *range.start(), max: *range.end() }
    }
}

/// A rule for text, with the words that describe it.
#[derive(Debug)]
pub struct Check {
    pub allowed: &'static str,
    pub accepts: fn(&str) -> bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Integer(u64),
    Switch(bool),
    Text(String),
    List(Vec<String>),
    Secret(Secret),
}

/// As a person reads it; a secret stays hidden.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Switch(on) => on.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::List(words) => f.write_str(&words.join(", ")),
            Self::Secret(secret) => secret.fmt(f),
        }
    }
}

impl Setting {
    /// The value in `text`, or none when it is not allowed.
    pub(crate) fn parse(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        match &self.kind {
            Kind::Integer { min, max } => {
                text.parse().ok().filter(|n| (min..=max).contains(&n)).map(Value::Integer)
            }
            Kind::Switch => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(Value::Switch(true)),
                "false" | "0" | "no" | "off" => Some(Value::Switch(false)),
                _ => None,
            },
            Kind::Choice(options) => options.contains(&text).then(|| Value::Text(text.to_owned())),
            Kind::Text(check) => (check.accepts)(text).then(|| Value::Text(text.to_owned())),
            Kind::List(check) => {
                let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
                words
                    .map(|word| (check.accepts)(word).then(|| word.to_owned()))
                    .collect::<Option<_>>()
                    .map(Value::List)
            }
            Kind::Secret => (!text.is_empty()).then(|| Value::Secret(Secret::new(text))),
        }
    }

    /// What may stand here, as the end of "it must be …".
    pub fn allowed(&self) -> String {
        match &self.kind {
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Switch => "true or false".to_owned(),
            Kind::Choice(options) => format!("one of {}", options.join(", ")),
            Kind::Text(check) => check.allowed.to_owned(),
            Kind::List(check) => format!("a list of {}", check.allowed),
            Kind::Secret => "a non-empty text".to_owned(),
        }
    }

    /// `text` as an error may show it.
    pub(crate) fn shown(&self, text: &str) -> String {
        match self.kind {
            Kind::Secret => REDACTED.to_owned(),
            _ => format!("{:?}", text.chars().take(120).collect::<String>()),
        }
    }

    /// The part of the key before the dot, as a heading.
    pub fn section(&self) -> &'static str {
        self.key.split_once('.').map_or("general", |(section, _)| section)
    }

    /// The default as help and documentation show it.
    pub fn default_text(&self) -> &'static str {
        match self.default {
            Preset::Text(text) | Preset::Computed(text) => text,
            Preset::Empty => "none",
        }
    }
}

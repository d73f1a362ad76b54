//! One section of the file: every key is read once, and everything that is wrong is told, not only
//! the first.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use toml::{Table, Value};

/// Lines for people: the key, its value, what may stand there, and what to do.
#[derive(Debug, Default)]
pub struct Problems(RefCell<Vec<String>>);

impl Problems {
    /// `key` is the whole one. `allowed` is the end of "it must be …".
    pub fn wrong(&self, key: &str, value: &str, allowed: &str, fix: &str) {
        self.add(format!("{key} is {value}, but must be {allowed}; {fix}"));
    }

    pub fn add(&self, line: String) {
        self.0.borrow_mut().push(line);
    }

    pub fn into_lines(self) -> Vec<String> {
        self.0.into_inner()
    }
}

pub struct Section<'a> {
    name: String,
    table: Option<&'a Table>,
    problems: &'a Problems,
    /// Keys that were asked for; others are unknown.
    asked: RefCell<Vec<&'static str>>,
}

const EMPTY_NAME: &str = "an empty text counts as none";

impl<'a> Section<'a> {
    pub fn new(name: &str, table: Option<&'a Table>, problems: &'a Problems) -> Self {
        Self { name: name.to_owned(), table, problems, asked: RefCell::default() }
    }

    /// The whole key, as people know it.
    pub fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.name)
    }

    pub fn value(&self, key: &'static str) -> Option<&'a Value> {
        self.asked.borrow_mut().push(key);
        self.table?.get(key)
    }

    pub fn inner(&self, key: &'static str) -> Section<'a> {
        let table = match self.value(key) {
            None => None,
            Some(Value::Table(table)) => Some(table),
            Some(other) => {
                let fix = format!("write [{}] above its keys", self.key(key));
                self.problems.wrong(&self.key(key), &shown(other), "a section", &fix);
                None
            }
        };
        Section::new(&self.key(key), table, self.problems)
    }

    pub fn integer(&self, key: &'static str, default: u64, range: RangeInclusive<u64>) -> u64 {
        let Some(value) = self.value(key) else { return default };
        match value.as_integer().and_then(|number| u64::try_from(number).ok()) {
            Some(number) if range.contains(&number) => number,
            _ => {
                let (low, high) = range.into_inner();
                let allowed = format!("a whole number from {low} to {high}");
                self.wrong(key, value, &allowed, &default.to_string());
                default
            }
        }
    }

    pub fn switch(&self, key: &'static str, default: bool) -> bool {
        let Some(value) = self.value(key) else { return default };
        value.as_bool().unwrap_or_else(|| {
            self.wrong(key, value, "true or false", &default.to_string());
            default
        })
    }

    /// An empty text is none.
    pub fn text(&self, key: &'static str) -> Option<String> {
        let value = self.value(key)?;
        match value.as_str() {
            Some(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            None => {
                self.wrong(key, value, "a text", EMPTY_NAME);
                None
            }
        }
    }

    pub fn choice(&self, key: &'static str, options: &[&'static str]) -> Option<&'static str> {
        let value = self.value(key)?;
        let text = value.as_str().map(str::trim);
        if text == Some("") {
            return None;
        }
        let found = options.iter().find(|option| text == Some(**option)).copied();
        if found.is_none() {
            let allowed = format!("one of {}", options.join(", "));
            let fix = "change it, or leave it out for the default";
            self.problems.wrong(&self.key(key), &shown(value), &allowed, fix);
        }
        found
    }

    pub fn wrong(&self, key: &str, value: &Value, allowed: &str, default: &str) {
        let fix = format!("change it, or leave it out for the default ({default})");
        self.problems.wrong(&self.key(key), &shown(value), allowed, &fix);
    }

    /// After everything that may be here was asked for.
    pub fn finish(self) {
        let asked = self.asked.into_inner();
        for key in self.table.into_iter().flat_map(Table::keys) {
            if asked.contains(&key.as_str()) {
                continue;
            }
            let name = format!("{}.{key}", self.name);
            let near = asked.iter().filter(|known| strsim::osa_distance(known, key) <= 2).min();
            let fix = match near {
                Some(known) => format!("did you mean {known}?"),
                None => format!("remove it; the keys here are {}", asked.join(", ")),
            };
            self.problems.add(format!("{name} is not a key of [{}]; {fix}", self.name));
        }
    }
}

/// Short, and on one line.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(120).collect()
}

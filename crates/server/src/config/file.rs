//! The TOML file: known keys only, each as the text that every other source gives, too.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::{ConfigError, Origin};
use super::nearest::nearest;
use super::setting::{Kind, Setting};
use super::table;
use crate::limits::MAX_CONFIG_FILE_BYTES;

const APP: &str = "app";

/// Values by key, in the notation that [`Setting::parse`] reads.
pub(super) type FileValues = BTreeMap<&'static str, String>;

pub(super) fn read(path: &Path) -> Result<FileValues, ConfigError> {
    parse(path, &text(path)?)
}

pub(super) fn text(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    if size > MAX_CONFIG_FILE_BYTES {
        let (path, max) = (path.to_owned(), MAX_CONFIG_FILE_BYTES);
        return Err(ConfigError::TooLong { path, size, max });
    }
    let mut text = String::new();
    file.take(MAX_CONFIG_FILE_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// The section `app`, which is read by `tools.rs`.
pub(super) fn app_section(path: &Path) -> Result<Option<toml::Table>, ConfigError> {
    let app = table(path, &text(path)?)?.remove(APP);
    Ok(app.and_then(|app| match app {
        toml::Value::Table(section) => Some(section),
        _ => None,
    }))
}

fn table(path: &Path, text: &str) -> Result<toml::Table, ConfigError> {
    text.parse().map_err(|error: toml::de::Error| {
        let detail = error.to_string().trim_end().replace('\n', " ");
        ConfigError::Syntax { path: path.to_owned(), detail }
    })
}

pub(super) fn parse(path: &Path, text: &str) -> Result<FileValues, ConfigError> {
    let table = table(path, text)?;
    let mut values = FileValues::new();
    for (name, value) in &table {
        match value {
            // The tools' own, and other programs'.
            toml::Value::Table(_) if name == APP => {}
            toml::Value::Table(section) => {
                for (inner, value) in section {
                    add(&mut values, path, &format!("{name}.{inner}"), value)?;
                }
            }
            value => add(&mut values, path, name, value)?,
        }
    }
    Ok(values)
}

fn add(
    values: &mut FileValues,
    path: &Path,
    key: &str,
    value: &toml::Value,
) -> Result<(), ConfigError> {
    let Some(setting) = table::row(key) else {
        let suggestion = nearest(key, table::rows().map(|setting| setting.key)).map(str::to_owned);
        return Err(ConfigError::UnknownKey {
            path: path.to_owned(),
            key: key.to_owned(),
            suggestion,
        });
    };
    let text =
        as_text(setting, value).ok_or_else(|| wrong_type(path.to_owned(), setting, value))?;
    values.insert(setting.key, text);
    Ok(())
}

/// A number where a number belongs, a word where a word belongs: `port = "8080"` is refused.
fn as_text(setting: &Setting, value: &toml::Value) -> Option<String> {
    match (&setting.kind, value) {
        (Kind::Integer { .. }, toml::Value::Integer(n)) => Some(n.to_string()),
        (Kind::Switch, toml::Value::Boolean(on)) => Some(on.to_string()),
        (Kind::Choice(_) | Kind::Text(_) | Kind::Secret, toml::Value::String(text)) => {
            Some(text.clone())
        }
        (Kind::List(_), toml::Value::Array(items)) => {
            let words: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            words.map(|words| words.join(","))
        }
        _ => None,
    }
}

fn wrong_type(path: PathBuf, setting: &Setting, value: &toml::Value) -> ConfigError {
    ConfigError::Invalid {
        origin: Origin::File { path, key: setting.key },
        value: setting.shown(&value.to_string()),
        allowed: setting.allowed(),
        default: setting.default_text(),
    }
}

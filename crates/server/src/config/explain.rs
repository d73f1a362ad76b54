//! The configuration as people look at it: every value with where it came from, and a file to
//! start from.

use std::fmt::Write;
use std::path::PathBuf;

use super::error::{ConfigError, Origin};
use super::resolve::{Sources, resolve};
use super::setting::{Kind, Preset, Setting, Value};
use super::settings::data_dir;
use super::table;

/// One row of the table as it is in force.
#[derive(Debug)]
pub struct Explained {
    pub setting: &'static Setting,
    /// None when nothing was set and the default is none or depends on other things.
    pub value: Option<Value>,
    pub origin: Origin,
}

/// Reads every source and checks every value, like `load`.
pub fn explain(sources: &Sources) -> Result<Vec<Explained>, ConfigError> {
    let mut resolved = resolve(sources)?;
    let data_dir = data_dir(&resolved, sources).ok();
    let row = |setting: &'static Setting| {
        let (value, origin) = match resolved.take(setting.key) {
            Some((value, origin)) => (Some(value), origin),
            // Everybody who looks for their data asks where this is here and for them.
            None if setting.key == "data_dir" => {
                let shown = data_dir.as_ref().map(|path| Value::Text(path.display().to_string()));
                (shown, Origin::Default)
            }
            None => (None, Origin::Default),
        };
        Explained { setting, value, origin }
    };
    Ok(table::rows().map(row).collect())
}

/// The file that would be read, whether or not it exists.
pub fn file_path(sources: &Sources) -> Option<PathBuf> {
    sources.file_path()
}

/// A whole file with every setting at its default, commented out.
pub fn example() -> String {
    let mut text = "# Sandbank's configuration. Everything here is optional.\n".to_owned();
    let mut section = None;
    for setting in table::rows() {
        let (heading, name) = match setting.key.split_once('.') {
            Some((heading, name)) => (Some(heading), name),
            None => (None, setting.key),
        };
        if heading != section {
            section = heading;
            let _ = write!(text, "\n[{}]\n", heading.unwrap_or_default());
        }
        let _ = write!(text, "\n# {}\n# {name} = {}\n", setting.help, in_file(setting));
    }
    text.push_str(TOOLS);
    text
}

/// Its keys are read by another crate, which has their ranges.
const TOOLS: &str = "
[app.bash_tools]

# A shell, files and URLs of a sandbox for a model: docs/tools.md has every key. They also need \
REMCOCHAT_ENABLE_BASH_TOOL=1.
# enabled = false
";

/// The default in the file's notation; for settings without one, a value of the right kind.
fn in_file(setting: &Setting) -> String {
    let default = match setting.default {
        Preset::Text(text) => text,
        Preset::Computed(words) => return format!("…   # default: {words}"),
        Preset::Empty => "",
    };
    match &setting.kind {
        Kind::Integer { .. } | Kind::Switch => default.to_owned(),
        Kind::Choice(_) | Kind::Text(_) | Kind::Secret => format!("{default:?}"),
        Kind::List(_) if default.is_empty() => "[]".to_owned(),
        Kind::List(_) => {
            let words: Vec<String> = default.split(',').map(|word| format!("{word:?}")).collect();
            format!("[{}]", words.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_valid_file_that_changes_nothing() {
        let path = std::path::Path::new("example.toml");
        assert!(super::super::file::parse(path, &example()).unwrap().is_empty());
    }

    #[test]
    fn the_examples_defaults_are_accepted_when_uncommented() {
        let settings = example();
        let uncommented: Vec<&str> = settings
            .lines()
            .filter_map(|line| match line.strip_prefix("# ") {
                Some(inner) if inner.contains(" = ") && !inner.contains('…') => Some(inner),
                Some(_) => None,
                None => Some(line),
            })
            .collect();
        let path = std::path::Path::new("example.toml");
        let values = super::super::file::parse(path, &uncommented.join("\n")).unwrap();
        assert!(values.len() > table::rows().count() / 2);
    }

    #[test]
    fn every_row_is_explained_with_its_origin() {
        let rows = explain(&Sources::default()).unwrap();
        assert_eq!(rows.len(), table::rows().count());
        let port = rows.iter().find(|row| row.setting.key == "server.port").unwrap();
        assert_eq!((&port.value, &port.origin), (&Some(Value::Integer(8080)), &Origin::Default));
    }
}

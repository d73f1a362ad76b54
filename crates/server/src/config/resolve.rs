//! Precedence: flag, then environment (our names, sandboxd's, Sandkasten's), then our file, then
//! Sandkasten's, then default. Each value remembers its origin.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::{ConfigError, Origin};
use super::file::{self, FileValues};
use super::flags::ConfigFlags;
use super::nearest::nearest;
use super::sandkasten::{self, Sandkasten};
use super::setting::{Preset, Setting, Value};
use super::table::{self, WITHOUT_EFFECT};

const SANDKASTEN_FILE: &str = "/etc/sandkasten/sandkasten.yaml";

/// Names of the environment that are not settings of the daemon.
const OTHER_NAMES: &[&str] =
    &["SANDBANK_CONFIG", "SANDBANK_SANDKASTEN_CONFIG", "SANDBANK_URL", "SANDBANK_TOKEN"];

/// Everything a configuration is made from, so that tests need no process environment.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub flags: ConfigFlags,
    pub env: BTreeMap<OsString, OsString>,
    pub is_root: bool,
    /// Of a command that looks for a daemon: what only a daemon does is not read.
    pub is_client: bool,
    /// Sandkasten's file that is read where none is named; none for a client.
    pub sandkasten_file: Option<PathBuf>,
    /// Where a daemon is started: a file of Sandkasten's that lies there is told of and not read.
    pub directory: Option<PathBuf>,
}

/// Checked values by key, and remarks for the log.
#[derive(Debug)]
pub(super) struct Resolved {
    values: BTreeMap<&'static str, (Value, Origin)>,
    pub(super) notices: Vec<String>,
}

impl Sources {
    /// Of a daemon.
    pub fn of_this_process(flags: ConfigFlags) -> Self {
        let client = Self::of_a_client();
        let sandkasten_file = client.is_root.then(|| SANDKASTEN_FILE.into());
        let directory = std::env::current_dir().ok();
        Self { flags, sandkasten_file, directory, is_client: false, ..client }
    }

    /// Of a command that looks for a daemon: of Sandkasten's files it reads only one that the
    /// environment names, because the file says whom to send a token to.
    pub fn of_a_client() -> Self {
        let env = std::env::vars_os().collect();
        let is_root = rustix::process::geteuid().is_root();
        Self { env, is_root, is_client: true, ..Self::default() }
    }

    /// The variable's text; empty counts as unset, because compose files pass empty ones on.
    pub(super) fn env(&self, name: &str) -> Option<String> {
        let text = self.env.get(std::ffi::OsStr::new(name))?.to_string_lossy();
        (!text.trim().is_empty()).then(|| text.into_owned())
    }

    /// The file that would be read, whether or not it exists.
    pub(super) fn file_path(&self) -> Option<PathBuf> {
        self.named_file().or_else(|| self.usual_file())
    }

    fn named_file(&self) -> Option<PathBuf> {
        self.flags.config.clone().or_else(|| self.env("SANDBANK_CONFIG").map(Into::into))
    }

    /// The file that is read: one that is named, or the usual one where it is there.
    pub(super) fn existing_file(&self) -> Option<PathBuf> {
        self.named_file().or_else(|| self.usual_file().filter(|path| path.exists()))
    }

    fn file(&self) -> Result<Option<(PathBuf, FileValues)>, ConfigError> {
        let Some(path) = self.existing_file() else { return Ok(None) };
        let values = file::read(&path)?;
        Ok(Some((path, values)))
    }

    fn usual_file(&self) -> Option<PathBuf> {
        if self.is_root {
            return Some("/etc/sandbank/config.toml".into());
        }
        let home = || self.env("HOME").map(|home| Path::new(&home).join(".config"));
        let base = self.env("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)?;
        Some(base.join("sandbank/config.toml"))
    }
}

pub(super) fn resolve(sources: &Sources) -> Result<Resolved, ConfigError> {
    let file = sources.file()?;
    let mut foreign = sandkasten::read(sources)?;
    let mut resolved = Resolved { values: BTreeMap::new(), notices: notices(sources) };
    resolved.notices.append(&mut foreign.notices);
    let mut wrong = Vec::new();
    for setting in table::rows() {
        let found = if sources.is_client && is_for_servers_only(setting) {
            default(setting)
        } else {
            find(setting, sources, file.as_ref(), &foreign)
        };
        let Some((text, origin)) = found else { continue };
        match setting.parse(&text) {
            Some(value) => drop(resolved.values.insert(setting.key, (value, origin))),
            None => wrong.push(ConfigError::Invalid {
                origin,
                value: setting.shown(&text),
                allowed: setting.allowed(),
                default: setting.default_text(),
            }),
        }
    }
    ConfigError::any(wrong)?;
    Ok(resolved)
}

/// Some of their names are other programs', too, whose values must not stop a command that looks for
/// a daemon.
fn is_for_servers_only(setting: &Setting) -> bool {
    matches!(setting.section(), "workspace" | "traces") || setting.key == "auth.allowed_origins"
}

fn find(
    setting: &'static Setting,
    sources: &Sources,
    file: Option<&(PathBuf, FileValues)>,
    foreign: &Sandkasten,
) -> Option<(String, Origin)> {
    if let (Some(text), Some(flag)) = (sources.flags.values.get(setting.key), setting.flag) {
        return Some((text.clone(), Origin::Flag(flag)));
    }
    for name in std::iter::once(&setting.env).chain(setting.aliases) {
        if let Some(text) = sources.env(name) {
            return Some((text, Origin::Env(name)));
        }
    }
    if let Some(found) = foreign.env.get(setting.key) {
        return Some(found.clone());
    }
    if let Some((path, values)) = file
        && let Some(text) = values.get(setting.key)
    {
        return Some((text.clone(), Origin::File { path: path.clone(), key: setting.key }));
    }
    if let Some(found) = foreign.file.get(setting.key) {
        return Some(found.clone());
    }
    default(setting)
}

fn default(setting: &Setting) -> Option<(String, Origin)> {
    match setting.default {
        Preset::Text(text) => Some((text.to_owned(), Origin::Default)),
        Preset::Computed(_) | Preset::Empty => None,
    }
}

/// Settings that were given and do nothing, and names that look like slips.
fn notices(sources: &Sources) -> Vec<String> {
    let ineffective = WITHOUT_EFFECT
        .iter()
        .filter(|name| sources.env(name).is_some())
        .map(|name| format!("{name} is set, but has no effect here"));
    let known = || {
        table::rows().flat_map(|row| std::iter::once(row.env).chain(row.aliases.iter().copied()))
    };
    let names = sources.env.keys().filter_map(|name| name.to_str());
    let ours = names.filter(|name| name.starts_with("SANDBANK_") || name.starts_with("SANDBOXD_"));
    let slips = ours
        .filter(|name| !known().chain(OTHER_NAMES.iter().copied()).any(|other| other == *name))
        .filter(|name| !WITHOUT_EFFECT.contains(name))
        .filter_map(|name| {
            let meant = nearest(name, known())?;
            Some(format!("{name} is set, but is not a setting; did you mean {meant}?"))
        });
    ineffective.chain(slips).collect()
}

impl Resolved {
    fn value(&self, key: &str) -> Option<&Value> {
        debug_assert!(table::row(key).is_some(), "no setting {key}");
        self.values.get(key).map(|(value, _)| value)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<(Value, Origin)> {
        self.values.remove(key)
    }

    pub(super) fn origin(&self, key: &str) -> Origin {
        self.values.get(key).map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    pub(super) fn integer(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        }
    }

    /// Of a row with a default.
    pub(super) fn number(&self, key: &str) -> u64 {
        self.integer(key).expect("the row is an integer with a default")
    }

    pub(super) fn switch(&self, key: &str) -> bool {
        matches!(self.value(key), Some(Value::Switch(true)))
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.value(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn list(&self, key: &str) -> Vec<String> {
        match self.value(key) {
            Some(Value::List(words)) => words.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn secret(&self, key: &str) -> Option<super::Secret> {
        match self.value(key) {
            Some(Value::Secret(secret)) => Some(secret.clone()),
            _ => None,
        }
    }
}

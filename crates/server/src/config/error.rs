//! What is wrong with the configuration, in words that say where and what to do.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Flag(&'static str),
    Env(&'static str),
    File {
        path: PathBuf,
        key: &'static str,
    },
    /// A YAML file of Sandkasten's, with the key that it has there.
    SandkastenFile {
        path: PathBuf,
        key: &'static str,
    },
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "the flag --{flag}"),
            Self::Env(name) => write!(f, "the environment variable {name}"),
            Self::File { path, key } | Self::SandkastenFile { path, key } => {
                write!(f, "the key {key} in {}", path.display())
            }
            Self::Default => f.write_str("the default"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(
        "{origin} is {value}, but must be {allowed}; change it, or leave it out for the default ({default})"
    )]
    Invalid { origin: Origin, value: String, allowed: String, default: &'static str },
    #[error("{} has an unknown key {key:?}; {}", .path.display(), did_you_mean(.suggestion.as_deref()))]
    UnknownKey { path: PathBuf, key: String, suggestion: Option<String> },
    #[error("{} is not valid TOML: {detail}", .path.display())]
    Syntax { path: PathBuf, detail: String },
    #[error("{} is not usable YAML: {detail}", .path.display())]
    Yaml { path: PathBuf, detail: String },
    #[error("failed to read the configuration file {}: {source}; name another with --config, or remove the setting", .path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the configuration file {} is {size} bytes long, but at most {max} are read", .path.display())]
    TooLong { path: PathBuf, size: u64, max: u64 },
    #[error(
        "no data directory can be chosen because HOME is not set; name one with --data-dir or SANDBANK_DATA_DIR"
    )]
    NoHome,
    #[error("{origin} names the control {name:?}, which does not exist; the controls are {known}")]
    UnknownControl { origin: Origin, name: String, known: String },
    #[error("{origin} cannot be used: {reason}")]
    Pool { origin: Origin, reason: String },
    #[error("{origin} cannot be used: {reason}")]
    Workspace { origin: Origin, reason: String },
    #[error("{origin} cannot be used: {reason}")]
    Engines { origin: Origin, reason: String },
    /// Each has its line.
    #[error("{} settings cannot be used:\n  {}", .0.len(), lines(.0))]
    Several(Vec<ConfigError>),
    /// Every problem has its line.
    #[error("the sections [app.bash_tools] and [app.chat] cannot be as {} has them:\n  {}", place(.path), .problems.join("\n  "))]
    Tools { path: PathBuf, problems: Vec<String> },
}

impl ConfigError {
    /// All of a section at once, so that nobody mends one to hear of the next.
    pub(super) fn any(mut errors: Vec<Self>) -> Result<(), Self> {
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(Self::Several(errors)),
        }
    }
}

fn lines(errors: &[ConfigError]) -> String {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n  ")
}

fn place(path: &std::path::Path) -> String {
    match path.as_os_str().is_empty() {
        true => "the environment".to_owned(),
        false => path.display().to_string(),
    }
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    match suggestion {
        Some(name) => format!("did you mean {name:?}?"),
        None => "see docs/configuration.md for the keys there are".to_owned(),
    }
}

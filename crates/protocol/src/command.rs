//! Commands: what is asked for, how they stand, and how they end.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The caller's name for one run of a program, unique within its sandbox.
///
/// It is also the idempotency key: starting the same id twice runs the program once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommandId(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a command id has 1 to 64 characters of A-Z a-z 0-9 _ - (got {0:?})")]
pub struct InvalidCommandId(pub String);

impl CommandId {
    pub const MAX_LEN: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CommandId {
    type Err = InvalidCommandId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=Self::MAX_LEN).contains(&text.len());
        let clean = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if fits && clean {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidCommandId(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for CommandId {
    type Error = InvalidCommandId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CommandId> for String {
    fn from(id: CommandId) -> Self {
        id.0
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A shell of the sandbox, as its callers call it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShellName(CommandId);

impl ShellName {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for ShellName {
    type Err = InvalidShellName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|InvalidCommandId(text)| InvalidShellName(text))
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a shell's name has 1 to 64 characters of A-Z a-z 0-9 _ - (got {0:?})")]
pub struct InvalidShellName(pub String);

impl TryFrom<String> for ShellName {
    type Error = InvalidShellName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ShellName> for String {
    fn from(name: ShellName) -> Self {
        name.0.into()
    }
}

impl fmt::Display for ShellName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a shell that remembers evaluates a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellUse {
    pub name: ShellName,
    /// Errors come in the stream of the output, in the order they were written.
    #[serde(default)]
    pub merged: bool,
    /// Where a shell begins that is not there yet; none is the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_in: Option<String>,
}

/// What is known of the shell that a command ran in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellStatus {
    pub name: ShellName,
    pub kind: ShellKind,
    /// Where it was when the command ended; of one that died, where the next one begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The one before it had died: directory and exported variables are as they were, functions,
    /// other variables and jobs are gone.
    pub restarted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellKind {
    Bash,
    /// Where there is no bash. Descriptors 5 to 9 are the runner's own there.
    Sh,
}

/// One program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    pub id: CommandId,
    /// Program and arguments; the program is looked up in the command's `PATH`.
    pub argv: Vec<String>,
    /// Added to the runner's base environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Absolute, or relative to the workspace; the workspace itself when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default)]
    pub stdin: StdinMode,
    /// Run on a terminal of this size; output is then one `pty` stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pty: Option<PtySize>,
    /// Kill the command and everything it left behind after this long; never when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Bytes of output kept for readers that come later; the runner's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_bytes: Option<u64>,
    /// Keep a model of what the terminal shows, for `GET …/screen`. Needs `pty`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub screen: bool,
    /// Evaluate in this shell, which keeps what changes; `argv` is then the script alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellUse>,
}

impl CommandSpec {
    /// A program with nothing particular about it.
    pub fn new(id: CommandId, argv: Vec<String>) -> Self {
        Self {
            id,
            argv,
            env: BTreeMap::new(),
            cwd: None,
            stdin: StdinMode::Null,
            pty: None,
            timeout_ms: None,
            journal_bytes: None,
            screen: false,
            shell: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinMode {
    /// `/dev/null`.
    #[default]
    Null,
    /// Fed by `POST …/stdin`.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtySize {
    pub rows: u16,
    pub cols: u16,
}

impl PtySize {
    /// The most rows, and the most columns.
    pub const MAX: u16 = 500;

    /// Sizes outside 1 to [`Self::MAX`] are taken for the nearest within.
    #[must_use]
    pub fn clamped(self) -> Self {
        let within = |size: u16| size.clamp(1, Self::MAX);
        Self { rows: within(self.rows), cols: within(self.cols) }
    }
}

/// The answer to a start: `attached` says that this id was already known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub attached: bool,
    pub status: CommandStatus,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStatus {
    pub id: CommandId,
    pub argv: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    pub pty: bool,
    #[serde(flatten)]
    pub state: CommandState,
    /// Inside the sandbox.
    pub pid: i32,
    /// Unix time in milliseconds.
    pub started_at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<u64>,
    /// Bytes written by the command so far, kept or not.
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    /// Bytes that are no longer in the journal.
    pub dropped_bytes: u64,
    /// Number of the newest frame.
    pub last_seq: u64,
    /// How far stdin has been accepted.
    pub stdin_offset: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CommandState {
    Running,
    Ended { ending: Ending },
}

impl CommandStatus {
    pub fn ending(&self) -> Option<&Ending> {
        match &self.state {
            CommandState::Running => None,
            CommandState::Ended { ending } => Some(ending),
        }
    }
}

/// How a command ended. Exactly one per command, announced after its last output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ending {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    TimedOut,
    OomKilled,
    /// Ended by a caller's request; `signal` is what the process died of.
    Killed {
        by: String,
        signal: i32,
    },
    /// Nobody can say how it ended.
    Lost {
        reason: String,
    },
}

impl Ending {
    /// The code a shell would show: 124 for a timeout, 128 + n for a signal; none when lost.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Exited { code } => Some(*code),
            // A runner may say any number.
            Self::Signaled { signal } | Self::Killed { signal, .. } => {
                Some(signal.saturating_add(128))
            }
            Self::TimedOut => Some(124),
            Self::OomKilled => Some(137),
            Self::Lost { .. } => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalRequest {
    pub signal: i32,
    /// Who asked; becomes [`Ending::Killed::by`] when the command dies of it.
    pub by: String,
    /// Also signal what the command left behind in other process groups and sessions.
    #[serde(default)]
    pub tree: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StdinStatus {
    /// Where the next byte must start; bytes below it were accepted already.
    pub next_offset: u64,
    pub closed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_accept_nanoids_and_refuse_paths() {
        assert!("V1StGXR8_Z5jdHi6B-myT".parse::<CommandId>().is_ok());
        for bad in ["", "a/b", "..", "a b", "é", &"x".repeat(65)] {
            assert!(bad.parse::<CommandId>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn exit_codes_follow_the_shell() {
        assert_eq!(Ending::Exited { code: 7 }.exit_code(), Some(7));
        assert_eq!(Ending::Signaled { signal: 11 }.exit_code(), Some(139));
        assert_eq!(Ending::TimedOut.exit_code(), Some(124));
        let lost = Ending::Lost { reason: "gone".into() };
        assert_eq!(lost.exit_code(), None);
        assert_eq!(Ending::Signaled { signal: i32::MAX }.exit_code(), Some(i32::MAX));
    }

    #[test]
    fn a_status_is_flat_on_the_wire() {
        let ended = CommandState::Ended { ending: Ending::Exited { code: 0 } };
        let json = serde_json::to_value(ended).unwrap();
        assert_eq!(json["state"], "ended");
        assert_eq!(json["ending"]["kind"], "exited");
    }
}

//! How the program ends when something went wrong: one sentence, a next step, an exit code.
//!
//! Every command returns a [`Failure`]; only `main` prints it. Nothing here decides policy.

use std::fmt;

use serde_json::json;

use crate::ui::Ui;

/// The documented exit codes, after sysexits(3). `run`, `exec` and `shell` otherwise end with the
/// command's own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The server understood and refused: not found, a conflict, a limit of the sandbox.
    Refused = 1,
    /// The same from `search`, whose 1 says that nothing was found, as ripgrep's does.
    SearchRefused = 2,
    /// A wrong flag, argument or configuration value.
    Usage = 64,
    /// The database is damaged or from a newer version.
    Data = 65,
    /// No server answers.
    Unreachable = 69,
    /// A bug of ours, or an answer that cannot be.
    Internal = 70,
    /// A directory or file cannot be written, or the disk is full.
    CannotWrite = 73,
    /// Trying again later, or elsewhere, may work: a port is taken, a limit is reached.
    Temporary = 75,
    /// The token is missing or not enough.
    NotPermitted = 77,
    /// The kernel or the machine lacks something that is needed.
    Unsupported = 78,
    /// Ctrl-C before there was a command to pass it to.
    Interrupted = 130,
    /// Nobody reads our output any more; said by the code alone.
    BrokenPipe = 141,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// For `map_err`: names the step that failed.
    pub(crate) fn io(step: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::from_io(&step.to_string(), &error)
    }

    pub(crate) fn from_io(step: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as Kind;
        match error.kind() {
            Kind::BrokenPipe => Self::new(Exit::BrokenPipe, "nobody reads the output"),
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
                Self::new(Exit::CannotWrite, format!("cannot {step}: {error}"))
                    .hint("check the owner and permissions, or run as a user who may")
            }
            Kind::StorageFull | Kind::QuotaExceeded => {
                Self::new(Exit::CannotWrite, format!("cannot {step}: {error}"))
                    .hint("free some space and try again")
            }
            _ => Self::new(Exit::Refused, format!("cannot {step}: {error}")),
        }
    }

    /// Prints to stderr and gives the process's exit code.
    pub(crate) fn report(&self, ui: &Ui) -> u8 {
        if self.exit != Exit::BrokenPipe {
            if ui.json {
                let said = json!({
                    "error": self.message,
                    "hint": self.hint,
                    "exitCode": self.exit as u8,
                });
                ui.to_stderr(&said.to_string());
            } else {
                ui.to_stderr(&format!("{} {}", ui.red("error:"), self.message));
                if let Some(hint) = &self.hint {
                    ui.to_stderr(&format!("{} {hint}", ui.cyan("hint:")));
                }
            }
        }
        self.exit as u8
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

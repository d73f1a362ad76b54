//! The settings of the one workspace of `/api` and `/ws`.

use std::time::Duration;

use sandbank_engine::{ImageName, WorkspaceId};

use super::error::ConfigError;
use super::resolve::Resolved;
use super::secret::Secret;
use super::settings::count;
use crate::limits::MIN_SESSION_SECRET_CHARS;

#[derive(Debug, Clone)]
pub struct WorkspaceSettings {
    pub mode: WorkspaceMode,
    /// Of the kept workspace that its sandbox has.
    pub name: WorkspaceId,
    /// None: what sandboxes are made of whose caller does not say.
    pub image: Option<ImageName>,
    pub loopback_open: bool,
    /// What signs the names of terminals and chats, the newest first. Empty: a key of this server's own.
    pub session_secrets: Vec<Secret>,
    /// The agent's program, and what always follows it.
    pub chat_command: Vec<String>,
    /// How long a chat that nobody attends is waited for.
    pub chat_window: Duration,
    pub chat_max_sessions: usize,
    /// The same for terminals.
    pub pty_window: Duration,
    pub pty_max_sessions: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceMode {
    Off,
    Sandbox,
}

pub(super) fn read(table: &Resolved) -> Result<WorkspaceSettings, ConfigError> {
    let name = table.text("workspace.name").and_then(|name| name.parse().ok());
    let seconds = |key| Duration::from_secs(table.number(key));
    Ok(WorkspaceSettings {
        mode: match table.text("workspace.mode") {
            Some("sandbox") => WorkspaceMode::Sandbox,
            _ => WorkspaceMode::Off,
        },
        name: name.expect("checked by the table"),
        image: table.text("workspace.image").and_then(|name| name.parse().ok()),
        loopback_open: table.switch("workspace.loopback_open"),
        session_secrets: session_secrets(table)?,
        chat_command: table.list("workspace.chat_command"),
        chat_window: seconds("workspace.chat_window_seconds"),
        chat_max_sessions: count(table, "workspace.chat_max_sessions"),
        pty_window: seconds("workspace.pty_window_seconds"),
        pty_max_sessions: count(table, "workspace.pty_max_sessions"),
    })
}

fn session_secrets(table: &Resolved) -> Result<Vec<Secret>, ConfigError> {
    let mut secrets = Vec::new();
    for key in ["workspace.session_secret", "workspace.previous_session_secret"] {
        let Some(secret) = table.secret(key) else { continue };
        let characters = secret.expose().chars().count();
        if characters < MIN_SESSION_SECRET_CHARS {
            return Err(ConfigError::Invalid {
                origin: table.origin(key),
                value: format!("{characters} characters long"),
                allowed: format!("at least {MIN_SESSION_SECRET_CHARS}"),
                default: "a key of this server's own",
            });
        }
        secrets.push(secret);
    }
    Ok(secrets)
}

//! The settings of the one workspace of `/api` and `/ws`.

use std::net::IpAddr;
use std::path::PathBuf;
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
    /// Of mode local.
    pub root: Option<PathBuf>,
    /// Of mode remote.
    pub service_url: Option<String>,
    pub service_secret_file: Option<PathBuf>,
    /// Certificates of who vouches for it.
    pub service_authorities: Option<PathBuf>,
    /// The only `host:port` that may be called.
    pub service_allowed: Option<String>,
    pub multi_tenant: bool,
    pub identity_binding: bool,
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
    /// What the provider `shell` runs.
    pub pty_shell_command: Vec<String>,
    /// Of a terminal's output, what is told to who comes back.
    pub pty_history_bytes: usize,
    /// How long a terminal may do nothing while somebody looks at it; none: for ever.
    pub pty_idle: Option<Duration>,
    /// How long it may live at all.
    pub pty_life: Duration,
    /// How long a question waits; then it is denied.
    pub approval_deadline: Duration,
    /// Connections of one caller to `/ws/pty`; 0: as many as it likes.
    pub connects_per_second: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceMode {
    Off,
    /// On a directory of this machine.
    Local,
    /// In a sandbox of this server.
    Sandbox,
    /// Behind a workspace service on another machine.
    Remote,
}

pub(super) fn read(table: &Resolved) -> Result<WorkspaceSettings, ConfigError> {
    let mut wrong = contradictions(table);
    let session_secrets = session_secrets(table, &mut wrong);
    ConfigError::any(wrong)?;
    let name = table.text("workspace.name").and_then(|name| name.parse().ok());
    let text = |key| table.text(key).map(str::to_owned);
    let seconds = |key| Duration::from_secs(table.number(key));
    Ok(WorkspaceSettings {
        mode: match table.text("workspace.mode") {
            Some("local") => WorkspaceMode::Local,
            Some("sandbox") => WorkspaceMode::Sandbox,
            Some("remote") => WorkspaceMode::Remote,
            _ => WorkspaceMode::Off,
        },
        root: table.text("workspace.root").map(PathBuf::from),
        service_url: text("workspace.service_url"),
        service_secret_file: table.text("workspace.service_secret_file").map(PathBuf::from),
        service_authorities: table.text("workspace.service_authorities").map(PathBuf::from),
        service_allowed: text("workspace.service_allowed"),
        multi_tenant: table.switch("workspace.multi_tenant"),
        identity_binding: table.switch("workspace.identity_binding"),
        name: name.expect("checked by the table"),
        image: table.text("workspace.image").and_then(|name| name.parse().ok()),
        loopback_open: table.switch("workspace.loopback_open"),
        session_secrets,
        chat_command: table.list("workspace.chat_command"),
        chat_window: seconds("workspace.chat_window_seconds"),
        chat_max_sessions: count(table, "workspace.chat_max_sessions"),
        pty_window: seconds("workspace.pty_window_seconds"),
        pty_max_sessions: count(table, "workspace.pty_max_sessions"),
        pty_shell_command: table.list("workspace.pty_shell_command"),
        pty_history_bytes: count(table, "workspace.pty_history_bytes"),
        pty_idle: Some(seconds("workspace.pty_idle_seconds")).filter(|idle| !idle.is_zero()),
        pty_life: seconds("workspace.pty_life_seconds"),
        approval_deadline: seconds("workspace.approval_seconds"),
        connects_per_second: u32::try_from(table.number("workspace.connects_per_second"))
            .expect("checked by the table"),
    })
}

/// What is missing, or does not go together.
fn contradictions(table: &Resolved) -> Vec<ConfigError> {
    let mut found = Vec::new();
    let mut refuse = |key: &'static str, reason: &str| {
        found.push(ConfigError::Workspace { origin: table.origin(key), reason: reason.to_owned() });
    };
    let is_missing = |key| table.text(key).is_none();
    let (is_bound, is_open) =
        (table.switch("workspace.identity_binding"), table.switch("workspace.loopback_open"));
    match table.text("workspace.mode") {
        Some("remote") => {
            if is_missing("workspace.service_url") {
                refuse(
                    "workspace.mode",
                    "remote needs a workspace service; name it with SANDBANK_WORKSPACE_SERVICE_URL",
                );
            } else if !is_secure(table) && !is_missing("workspace.service_authorities") {
                refuse(
                    "workspace.service_authorities",
                    "nobody vouches for a service without TLS; make SANDBANK_WORKSPACE_SERVICE_URL an \
                     https:// one, or leave this out",
                );
            }
            if is_missing("workspace.service_secret_file") {
                refuse(
                    "workspace.mode",
                    "remote needs the secret that it shares with the service; name its file with \
                     SANDBANK_WORKSPACE_SERVICE_SECRET_FILE",
                );
            }
        }
        mode => {
            if mode == Some("local") && is_missing("workspace.root") {
                refuse(
                    "workspace.mode",
                    "local needs a directory; name it with SANDBANK_WORKSPACE_ROOT or --workspace-root",
                );
            }
            for key in OF_REMOTE_ONLY.into_iter().filter(|key| !is_missing(key)) {
                refuse(
                    key,
                    "it belongs to mode remote; set WORKSPACE_MODE=remote, or leave it out",
                );
            }
        }
    }
    if table.switch("workspace.route_by_user") {
        refuse(
            "workspace.route_by_user",
            "a server has one workspace; start one for each user, or leave ROUTE_BY_USER out",
        );
    }
    if table.switch("workspace.multi_tenant") && !is_bound {
        refuse(
            "workspace.multi_tenant",
            "several users need sessions that are bound to them; set \
             AUTH_IDENTITY_BINDING_ENABLED=true, or leave MULTI_TENANT out",
        );
    }
    if is_bound && is_open {
        refuse(
            "workspace.loopback_open",
            "without a token nobody can be told apart; leave it out, or leave out \
             AUTH_IDENTITY_BINDING_ENABLED",
        );
    }
    found
}

const OF_REMOTE_ONLY: [&str; 4] = [
    "workspace.service_url",
    "workspace.service_secret_file",
    "workspace.service_authorities",
    "workspace.service_allowed",
];

fn is_secure(table: &Resolved) -> bool {
    table.text("workspace.service_url").is_some_and(|url| url.starts_with("https://"))
}

impl WorkspaceSettings {
    /// Requests are signed, but everybody on the way can read them.
    pub(super) fn notice(&self) -> Option<String> {
        let url = self.service_url.as_deref().filter(|_| self.mode == WorkspaceMode::Remote)?;
        let authority = url.strip_prefix("http://")?.split(['/', '?', '#']).next()?;
        let authority: http::uri::Authority = authority.parse().ok()?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let is_here = host.parse::<IpAddr>().map_or(host == "localhost", |ip| ip.is_loopback());
        (!is_here).then(|| {
            "the workspace service is called over plain http: everybody on the way can read files \
             and terminals; give it TLS (--tls-cert, --tls-key) and make \
             SANDBANK_WORKSPACE_SERVICE_URL an https:// one"
                .to_owned()
        })
    }
}

fn session_secrets(table: &Resolved, wrong: &mut Vec<ConfigError>) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for key in ["workspace.session_secret", "workspace.previous_session_secret"] {
        let Some(secret) = table.secret(key) else { continue };
        let characters = secret.expose().chars().count();
        if characters < MIN_SESSION_SECRET_CHARS {
            wrong.push(ConfigError::Invalid {
                origin: table.origin(key),
                value: format!("{characters} characters long"),
                allowed: format!("at least {MIN_SESSION_SECRET_CHARS}"),
                default: "a key of this server's own",
            });
        }
        secrets.push(secret);
    }
    if table.secret("workspace.session_secret").is_none() && !secrets.is_empty() {
        wrong.push(ConfigError::Workspace {
            origin: table.origin("workspace.previous_session_secret"),
            reason: "it only verifies; set SESSION_TOKEN_SECRET to the one that signs".to_owned(),
        });
    }
    secrets
}

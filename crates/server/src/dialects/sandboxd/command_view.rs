//! Commands as clients see them.

use sandbank_protocol::{CommandState, CommandStatus, Ending, ShellKind, ShellStatus};
use serde::Serialize;
use utoipa::ToSchema;

/// Times are Unix times in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Command)]
pub(super) struct CommandView {
    command_id: String,
    argv: Vec<String>,
    cwd: Option<String>,
    pty: bool,
    /// `running` or `ended`.
    state: &'static str,
    /// `{"kind": "exited" | "signaled" | "timed_out" | "oom_killed" | "killed" | "lost", …}`
    #[schema(value_type = Option<Object>)]
    ending: Option<Ending>,
    /// As a shell shows it: 124 for a timeout, 128 + n for a signal; none while it runs.
    exit_code: Option<i32>,
    /// Inside the sandbox.
    pid: i32,
    started_at_ms: u64,
    ended_at_ms: Option<u64>,
    stdout_bytes: u64,
    stderr_bytes: u64,
    /// Output that is no longer kept.
    dropped_bytes: u64,
    /// Number of the newest log record.
    last_seq: u64,
    stdin_offset: u64,
    /// Of a script in a shell.
    shell: Option<ShellView>,
}

/// The shell that a script ran in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Shell)]
pub(super) struct ShellView {
    name: String,
    /// `bash`, or `sh` where there is no bash.
    kind: &'static str,
    /// Where it was when the script ended.
    cwd: Option<String>,
    /// The one before it had died: directory and exported variables are as they were, all else is
    /// gone.
    restarted: bool,
}

impl From<ShellStatus> for ShellView {
    fn from(shell: ShellStatus) -> Self {
        let kind = match shell.kind {
            ShellKind::Bash => "bash",
            ShellKind::Sh => "sh",
        };
        Self { name: shell.name.into(), kind, cwd: shell.cwd, restarted: shell.restarted }
    }
}

impl From<CommandStatus> for CommandView {
    fn from(status: CommandStatus) -> Self {
        let ending = match status.state {
            CommandState::Running => None,
            CommandState::Ended { ending } => Some(ending),
        };
        Self {
            command_id: status.id.into(),
            argv: status.argv,
            cwd: status.cwd,
            pty: status.pty,
            state: if ending.is_some() { "ended" } else { "running" },
            exit_code: ending.as_ref().and_then(Ending::exit_code),
            ending,
            pid: status.pid,
            started_at_ms: status.started_at_ms,
            ended_at_ms: status.ended_at_ms,
            stdout_bytes: status.stdout_bytes,
            stderr_bytes: status.stderr_bytes,
            dropped_bytes: status.dropped_bytes,
            last_seq: status.last_seq,
            stdin_offset: status.stdin_offset,
            shell: status.shell.map(ShellView::from),
        }
    }
}

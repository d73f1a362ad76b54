//! When a machine's first process died, and of what.

use std::sync::Arc;

use sandbank_engine::{DeathCause, EngineError, SandboxId};

use super::Parts;
use super::table::Entry;
use crate::connection::status_of;
use crate::naming;

/// A shell's way to tell a signal in an exit code, which is Docker's, too.
const SIGNAL_BASE: i64 = 128;
const KILLED: i64 = SIGNAL_BASE + 9;
const LAST_SIGNAL: i64 = SIGNAL_BASE + 64;

pub(super) async fn wait(parts: &Arc<Parts>, id: &SandboxId) -> Result<DeathCause, EngineError> {
    let entry = super::known(parts, id).await?;
    let death = entry.death();
    drop(entry);
    death.told().await.ok_or_else(|| EngineError::NotFound(id.clone()))
}

/// `told` is the exit code of an event; the container itself may be gone already.
pub(super) async fn cause(
    parts: &Arc<Parts>,
    id: &SandboxId,
    entry: &Entry,
    told: Option<i64>,
) -> DeathCause {
    let name = naming::container(id);
    match parts.client.api().inspect_container(&name, None).await {
        Ok(found) => {
            let state = found.state.unwrap_or_default();
            // Of one that was never started, the code says nothing.
            let started = state.started_at.as_deref().is_some_and(|at| !at.starts_with("0001-"));
            let code = told.or(state.exit_code.filter(|_| started));
            let oom = state.oom_killed == Some(true) && !entry.outlived_oom_kill();
            judge(code, oom)
        }
        Err(error) => {
            if status_of(&error).is_none_or(|refusal| refusal.status != 404) {
                tracing::debug!(%id, %error, "of what a machine died is not known in full");
            }
            let oom = entry.oom_kills() > 0 && !entry.outlived_oom_kill();
            judge(told, oom)
        }
    }
}

/// The engine says that something was killed for memory, not what: if the machine was killed at
/// the same time, it was that.
fn judge(code: Option<i64>, oom: bool) -> DeathCause {
    match code {
        None => DeathCause::Unknown,
        Some(KILLED) if oom => DeathCause::OutOfMemory,
        Some(code) if (SIGNAL_BASE + 1..=LAST_SIGNAL).contains(&code) => {
            DeathCause::Signaled { signal: (code - SIGNAL_BASE) as i32 }
        }
        Some(code) => DeathCause::Exited { code: i32::try_from(code).unwrap_or(-1) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_say_how_it_ended() {
        assert_eq!(judge(None, true), DeathCause::Unknown);
        assert_eq!(judge(Some(0), false), DeathCause::Exited { code: 0 });
        assert_eq!(judge(Some(70), true), DeathCause::Exited { code: 70 });
        assert_eq!(judge(Some(137), false), DeathCause::Signaled { signal: 9 });
        assert_eq!(judge(Some(137), true), DeathCause::OutOfMemory);
        assert_eq!(judge(Some(139), true), DeathCause::Signaled { signal: 11 });
    }
}

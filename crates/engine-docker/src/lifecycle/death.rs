//! When a machine's first process died, and of what.

use std::sync::Arc;

use bollard::models::ContainerStateStatusEnum as Shown;
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
            // Docker marks what it is about to remove before it kills it.
            let going = matches!(state.status, Some(Shown::REMOVING | Shown::DEAD));
            judge(code, &Seen { oom, killed: entry.was_killed(), going })
        }
        Err(error) => {
            let gone = status_of(&error).is_some_and(|refusal| refusal.status == 404);
            if !gone {
                tracing::debug!(%id, %error, "of what a machine died is not known in full");
            }
            let oom = entry.oom_kills() > 0 && !entry.outlived_oom_kill();
            judge(told, &Seen { oom, killed: entry.was_killed(), going: gone })
        }
    }
}

/// What was seen of it, beside how it ended.
#[derive(Default)]
struct Seen {
    /// Something in it was killed for memory, at about the same time.
    oom: bool,
    /// Docker killed it, and not for us.
    killed: bool,
    /// Its container is gone, or about to be.
    going: bool,
}

/// The engine says that something was killed for memory, not what: if the machine was killed at
/// the same time, it was that. That somebody else had it killed is said only of what Docker told us
/// it killed: who else may send signals on its host is not known.
fn judge(code: Option<i64>, seen: &Seen) -> DeathCause {
    match code {
        None => DeathCause::Unknown,
        Some(KILLED) if seen.killed && seen.going => DeathCause::ContainerRemoved,
        Some(KILLED) if seen.killed => DeathCause::ContainerKilled,
        Some(KILLED) if seen.oom => DeathCause::OutOfMemory,
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
        let (nothing, oom) = (Seen::default(), Seen { oom: true, ..Seen::default() });
        assert_eq!(judge(None, &oom), DeathCause::Unknown);
        assert_eq!(judge(Some(0), &nothing), DeathCause::Exited { code: 0 });
        assert_eq!(judge(Some(70), &oom), DeathCause::Exited { code: 70 });
        assert_eq!(judge(Some(137), &nothing), DeathCause::Signaled { signal: 9 });
        assert_eq!(judge(Some(137), &oom), DeathCause::OutOfMemory);
        assert_eq!(judge(Some(139), &oom), DeathCause::Signaled { signal: 11 });
    }

    #[test]
    fn somebody_else_is_named_only_where_docker_told_of_a_kill() {
        let seen = |killed, going| Seen { killed, going, ..Seen::default() };
        assert_eq!(judge(Some(137), &seen(true, true)), DeathCause::ContainerRemoved);
        assert_eq!(judge(Some(137), &seen(true, false)), DeathCause::ContainerKilled);
        // It died, and was removed then.
        assert_eq!(judge(Some(137), &seen(false, true)), DeathCause::Signaled { signal: 9 });
        assert_eq!(judge(Some(0), &seen(true, true)), DeathCause::Exited { code: 0 });
    }
}

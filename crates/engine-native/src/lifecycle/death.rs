//! When a machine's first process dies, and of what.

use std::sync::Arc;

use sandbank_engine::{DeathCause, EngineError, SandboxId};

use super::table::{Entry, ProcessFd};
use super::{Parts, blocking};
use crate::kernel::process::{ExitStatus, exit_status_of};

/// Watches in the background. `parent` is the spawner whose child it is, if this daemon's.
pub(super) fn watch(
    parts: &Arc<Parts>,
    entry: &Arc<Entry>,
    process: ProcessFd,
    parent: Option<u64>,
) {
    // Neither keeps the engine alive: a dropped engine must let go of its directory.
    let (parts, entry) = (Arc::downgrade(parts), Arc::downgrade(entry));
    tokio::spawn(async move {
        if process.readable().await.is_err() {
            return;
        }
        let (Some(parts), Some(entry)) = (parts.upgrade(), entry.upgrade()) else { return };
        let cause = cause(&parts, &entry, &process, parent).await;
        tracing::debug!(?cause, "a machine died");
        entry.set_dead(cause);
    });
}

pub(super) async fn wait(parts: &Arc<Parts>, id: &SandboxId) -> Result<DeathCause, EngineError> {
    let death = parts.table.find(id)?.death();
    death.told().await.ok_or_else(|| EngineError::NotFound(id.clone()))
}

async fn cause(
    parts: &Arc<Parts>,
    entry: &Entry,
    process: &ProcessFd,
    parent: Option<u64>,
) -> DeathCause {
    let survived = entry.survived_oom_kills();
    let record = entry.record();
    let pid = record.as_ref().and_then(|record| record.process).map(|process| process.pid);
    let told = match (pid, parent) {
        (Some(pid), Some(parent)) => parts.spawner.exit_status(pid, parent).await,
        _ => None,
    };
    match told.or_else(|| exit_status_of(process.get_ref())) {
        None => DeathCause::Unknown,
        Some(ExitStatus::Exited(code)) => DeathCause::Exited { code },
        Some(ExitStatus::Signaled(signal)) => {
            let id = record.map(|record| record.spec.id);
            let ours = entry.is_doomed();
            if signal == libc::SIGKILL && !ours && oom_kills(parts, id).await > survived {
                DeathCause::OutOfMemory
            } else {
                DeathCause::Signaled { signal }
            }
        }
    }
}

/// Of the whole machine: the kernel does not say whom it killed. Those that the machine was seen to
/// survive did not end it.
async fn oom_kills(parts: &Arc<Parts>, id: Option<SandboxId>) -> u64 {
    let Some(id) = id else { return 0 };
    let parts = Arc::clone(parts);
    let stats = blocking(move || parts.cgroups.stats(&id)).await;
    stats.map_or(0, |stats| stats.oom_kills)
}

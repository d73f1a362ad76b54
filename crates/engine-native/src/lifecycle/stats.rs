//! What a machine uses.

use std::sync::Arc;

use sandbank_engine::{EngineError, MachineStats, SandboxId};

use super::{Parts, blocking};

pub(super) async fn stats(parts: &Arc<Parts>, id: &SandboxId) -> Result<MachineStats, EngineError> {
    let entry = parts.table.find(id)?;
    let (parts, id) = (Arc::clone(parts), id.clone());
    blocking(move || {
        let mut stats = parts.cgroups.stats(&id)?;
        entry.saw_oom_kills(stats.oom_kills);
        // Of a kept workspace all of it, whoever wrote it.
        let kept = entry.record().and_then(|record| record.spec.workspace);
        let usage = match kept {
            None => parts.storage.usage(&id)?,
            Some(kept) => {
                let usage = parts.storage.usage_of(&parts.kept.path(&kept))?;
                usage.ok_or_else(|| EngineError::NotFound(id.clone()))?
            }
        };
        stats.disk_bytes = usage;
        Ok(stats)
    })
    .await
}

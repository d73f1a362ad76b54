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
        stats.disk_bytes = parts.storage.usage(&id)?;
        Ok(stats)
    })
    .await
}

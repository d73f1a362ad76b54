//! Network namespaces of machines: empty ones, and ones wired to the public internet.
//!
//! Both kinds are made ahead of time and handed out ready. `none` has loopback only. `default`
//! has one link to the host, with addresses from a slot of the instance's subnet; what may pass
//! is in `rules` and, a second time and independently, in the routes of the namespace.
//!
//! A link on the host is the slot: the kernel keeps its name unique and removes it with its
//! namespace, so a slot is taken exactly as long as someone holds the namespace. That is all a
//! restarted daemon needs to know.

mod egress;
mod forward_policy;
mod forwarding;
mod limits;
mod link;
mod namespace;
mod pool;
mod resolver;
mod rules;
mod shared;
mod subnet;
mod tool;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbank_engine::{Control, EngineError, NetworkMode, SandboxId};

use self::egress::Egress;
use self::pool::Pool;
pub use self::subnet::{InvalidSubnet, Subnet};
use crate::host::Host;

#[derive(Debug, Clone)]
pub(crate) struct NetworkSettings {
    pub(crate) subnet: Subnet,
    /// Ready namespaces kept per mode.
    pub(crate) pool_size: usize,
    pub(crate) host: Arc<Host>,
    /// Made if it is missing; the instance's subnet is remembered there.
    pub(crate) state_dir: PathBuf,
}

/// A machine's network namespace. It, and its link on the host, live as long as anyone has it.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) netns: OwnedFd,
    pub(crate) slot: Option<u32>,
    pub(crate) resolv_conf: String,
}

pub(crate) struct Networks {
    pool: Arc<Pool>,
    /// Slot of each machine with one.
    taken: Mutex<HashMap<SandboxId, Option<u32>>>,
}

impl Networks {
    /// Makes the first namespaces. Without egress this still succeeds; see
    /// [`Networks::egress_available`].
    pub(crate) async fn open(settings: NetworkSettings) -> Result<Self, EngineError> {
        Self::open_with(settings, resolver::default_files()).await
    }

    /// Tests have resolvers of their own.
    async fn open_with(
        settings: NetworkSettings,
        resolver_files: Vec<PathBuf>,
    ) -> Result<Self, EngineError> {
        let NetworkSettings { subnet, pool_size, host, state_dir } = settings;
        std::fs::create_dir_all(&state_dir)
            .map_err(EngineError::io("create the network's directory"))?;
        let egress = Egress::new(subnet, host, &state_dir, resolver_files);
        let pool = Pool::open(egress, pool_size).await.map_err(|error| {
            EngineError::ControlUnavailable {
                control: Control::NetworkNone,
                reason: format!("no network namespace can be made: {error}; run as root"),
            }
        })?;
        Ok(Self { pool, taken: Mutex::new(HashMap::new()) })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<SandboxId, Option<u32>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether machines can have mode `default` now; if not, why, and what helps.
    pub(crate) fn egress_available(&self) -> Result<(), String> {
        self.pool.egress.outside().map(drop)
    }

    /// A namespace of its own for a machine.
    pub(crate) async fn take(
        &self,
        mode: NetworkMode,
        id: &SandboxId,
    ) -> Result<Network, EngineError> {
        let network = match mode {
            NetworkMode::None => self.pool.take_empty().await?,
            NetworkMode::Default => self.pool.take_wired().await?,
        };
        self.taken().insert(id.clone(), network.slot);
        Ok(network)
    }

    /// Gives back what a dead machine had. Idempotent. Should anything of it still hold the
    /// namespace, it is cut off a few seconds later.
    pub(crate) async fn release(&self, id: &SandboxId) {
        let slot = self.taken().remove(id).flatten();
        if let Some(slot) = slot {
            self.pool.leave(slot);
        }
    }

    /// Takes over a machine that an earlier daemon made.
    pub(crate) async fn adopt(&self, id: &SandboxId, slot: Option<u32>) {
        self.taken().insert(id.clone(), slot);
    }

    /// Gives back the pooled namespaces and, when no machine is left, everything on the host.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

//! What a caller asks for, and the answer.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use sandbank_engine::{ImageName, Limits, NetworkMode, SandboxId, WorkspaceId};
use serde::Serialize;

use crate::SandboxKey;

/// A sandbox to make, or to find by its key.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct CreateRequest {
    pub key: SandboxKey,
    /// The engine that makes its machine; the default one when absent.
    pub engine: Option<String>,
    pub image: ImageName,
    /// A label of the caller's; nothing depends on it.
    pub runtime: String,
    pub idle_ttl: Option<Duration>,
    pub max_lifetime: Option<Duration>,
    pub limits: Limits,
    pub network: NetworkMode,
    /// Ports that may be published.
    pub ports: Vec<u16>,
    /// Base environment of every command. Handed to the engine, never stored or printed.
    pub env: BTreeMap<String, String>,
    /// A kept workspace, made when it is not there; none for one that ends with the sandbox.
    pub workspace: Option<WorkspaceId>,
}

/// Environment variables are where callers put secrets, so only their names are printed.
impl fmt::Debug for CreateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateRequest")
            .field("key", &self.key)
            .field("engine", &self.engine)
            .field("image", &self.image)
            .field("runtime", &self.runtime)
            .field("idle_ttl", &self.idle_ttl)
            .field("max_lifetime", &self.max_lifetime)
            .field("limits", &self.limits)
            .field("network", &self.network)
            .field("ports", &self.ports)
            .field("env", &self.env.keys())
            .field("workspace", &self.workspace)
            .finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Created {
    pub id: SandboxId,
    /// False when a sandbox with this key was there already.
    pub created: bool,
    /// Where the machine came from. Of one that was there before the daemon nobody knows, and it
    /// counts as cold.
    pub source: AcquireSource,
}

/// Where a sandbox's machine came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AcquireSource {
    /// It was ready.
    Pool,
    /// It was made for this sandbox.
    Cold,
}

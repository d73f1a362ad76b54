//! What a pool keeps, and how it fares.

use sandbank_engine::{ImageName, Limits, NetworkMode};

use crate::CreateRequest;

/// Everything about a machine that is decided when it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The default one when absent.
    pub engine: Option<String>,
    pub image: ImageName,
    pub network: NetworkMode,
    pub limits: Limits,
}

impl Recipe {
    /// Only a machine that is exactly what a create would make, of the same engine.
    pub(super) fn serves(&self, request: &CreateRequest) -> bool {
        self.image == request.image
            && self.network == request.network
            && self.limits == request.limits
            && request.workspace.is_none()
    }
}

/// So many ready machines of one recipe. Each recipe stands in a pool once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolEntry {
    pub recipe: Recipe,
    pub size: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolStatus {
    pub engine: &'static str,
    pub image: ImageName,
    pub network: NetworkMode,
    pub target: usize,
    pub ready: usize,
    pub being_made: usize,
    /// Machines that were handed to a create.
    pub claimed_total: u64,
    /// Creates that would have taken one, had there been any.
    pub missed_total: u64,
}

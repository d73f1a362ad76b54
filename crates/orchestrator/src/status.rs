//! The daemon at a glance, in numbers.

use std::collections::BTreeMap;

use crate::context::Context;
use crate::{AcquireSource, PoolStatus};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// How many sandboxes there are, by the name of their state.
    pub sandboxes: BTreeMap<&'static str, u64>,
    /// Sandboxes made since the daemon started, by where their machines came from.
    pub created_from_pool: u64,
    pub created_cold: u64,
    pub pool: Vec<PoolStatus>,
}

impl Status {
    pub(crate) fn of(context: &Context) -> Self {
        let mut sandboxes = BTreeMap::new();
        for sandbox in context.registry.all() {
            let state = sandbox.view.borrow().state.visible();
            *sandboxes.entry(state.as_str()).or_default() += 1;
        }
        Self {
            sandboxes,
            created_from_pool: context.acquired.total(AcquireSource::Pool),
            created_cold: context.acquired.total(AcquireSource::Cold),
            pool: pool(context),
        }
    }
}

/// Of every engine.
pub(crate) fn pool(context: &Context) -> Vec<PoolStatus> {
    context.providers.all().flat_map(|provider| provider.pool.status()).collect()
}

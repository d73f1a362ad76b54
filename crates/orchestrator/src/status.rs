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
    /// Creates that wait for their turn in the engine, and those that have it.
    pub creates_waiting: usize,
    pub creates_making: usize,
    pub pool: Vec<PoolStatus>,
}

impl Status {
    pub(crate) fn of(context: &Context) -> Self {
        let mut sandboxes = BTreeMap::new();
        for sandbox in context.registry.all() {
            let state = sandbox.view.borrow().state.visible();
            *sandboxes.entry(state.as_str()).or_default() += 1;
        }
        let standing = context.providers.all().map(|provider| provider.turns.standing());
        let (creates_making, creates_waiting) =
            standing.fold((0, 0), |sum, (making, waiting)| (sum.0 + making, sum.1 + waiting));
        Self {
            sandboxes,
            created_from_pool: context.acquired.total(AcquireSource::Pool),
            created_cold: context.acquired.total(AcquireSource::Cold),
            creates_waiting,
            creates_making,
            pool: pool(context),
        }
    }
}

/// Of every engine.
pub(crate) fn pool(context: &Context) -> Vec<PoolStatus> {
    context.providers.all().flat_map(|provider| provider.pool.status()).collect()
}

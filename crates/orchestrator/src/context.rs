//! What every part of the orchestrator shares.

use std::sync::Arc;

use sandbank_engine::Engine;
use sandbank_store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::clock::Clock;
use crate::containment::Clearance;
use crate::events::EventLog;
use crate::lifecycle::Rules;
use crate::registry::Registry;

pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) rules: Rules,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: EventLog,
    pub(crate) registry: Registry,
    /// Creates that may be in the engine at the same time.
    pub(crate) creates: Semaphore,
    pub(crate) clearance: Clearance,
    /// Ends the sweep, and tests of containment.
    pub(crate) leaving: CancellationToken,
}

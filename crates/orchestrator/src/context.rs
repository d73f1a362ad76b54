//! What every part of the orchestrator shares.

use std::sync::Arc;

use sandbank_engine::Engine;
use sandbank_store::Store;
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::acquire::Acquired;
use crate::clock::Clock;
use crate::containment::Clearance;
use crate::events::EventLog;
use crate::lifecycle::Rules;
use crate::pool::Pool;
use crate::ports::HostPorts;
use crate::registry::Registry;
use crate::turns::Turns;

pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) rules: Rules,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: EventLog,
    pub(crate) registry: Registry,
    pub(crate) turns: Turns,
    pub(crate) pool: Pool,
    pub(crate) host_ports: HostPorts,
    pub(crate) acquired: Acquired,
    pub(crate) clearance: Arc<Clearance>,
    /// Ends the sweep, the filling of the pool, and tests of containment.
    pub(crate) leaving: CancellationToken,
}

//! What every part of the orchestrator shares.

use std::sync::Arc;

use sandbank_store::Store;
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::acquire::Acquired;
use crate::clock::Clock;
use crate::events::EventLog;
use crate::lifecycle::Rules;
use crate::ports::HostPorts;
use crate::provider::Providers;
use crate::registry::Registry;

pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) rules: Rules,
    pub(crate) providers: Providers,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: EventLog,
    pub(crate) registry: Registry,
    pub(crate) host_ports: HostPorts,
    pub(crate) acquired: Acquired,
    /// Ends the sweep, the filling of the pool, and tests of containment.
    pub(crate) leaving: CancellationToken,
}

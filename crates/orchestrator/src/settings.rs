//! What a configuration decides about sandboxes' lives.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::PoolEntry;
use crate::limits::{LOSS_INTERVAL, TURN_PATIENCE};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Sandboxes that may have a machine at the same time, those being stopped included.
    pub max_sandboxes: usize,
    /// At the limit, stop the least recently used idle sandbox instead of refusing.
    pub evict_idle: bool,
    /// For sandboxes whose creator did not ask for one.
    pub default_idle_ttl: Duration,
    /// The longest any sandbox lives, busy or not; a caller can only ask for less.
    pub max_lifetime: Option<Duration>,
    /// How long making a machine may take, from its turn on.
    pub create_deadline: Duration,
    /// How long a create waits for its turn while no other machine is made.
    pub turn_patience: Duration,
    /// How long one attempt to destroy a machine may take before it is tried again.
    pub stop_deadline: Duration,
    /// How often engine objects and sandboxes are compared.
    pub sweep_interval: Duration,
    /// How often, in between, machines are looked for that are gone; whoever uses one meanwhile may
    /// still be served.
    pub loss_interval: Duration,
    /// Machines made at the same time; what the engine advises when absent.
    pub concurrent_creates: Option<usize>,
    /// Machines to keep ready; none by default.
    pub pool: Vec<PoolEntry>,
    /// Where published ports are reached.
    pub publish_address: IpAddr,
    /// Where they are listened on, if elsewhere: what a container publishes at an address of its
    /// host, it listens on at its own.
    pub listen_address: Option<IpAddr>,
    /// The host ports there are to listen on; any when absent.
    pub port_range: Option<RangeInclusive<u16>>,
    /// Dead sandboxes of which a post-mortem is kept.
    pub keep_post_mortems: usize,
}

impl Settings {
    pub(crate) fn listen_address(&self) -> IpAddr {
        self.listen_address.unwrap_or(self.publish_address)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_sandboxes: 100,
            evict_idle: false,
            default_idle_ttl: Duration::from_secs(900),
            max_lifetime: None,
            create_deadline: Duration::from_secs(30),
            turn_patience: TURN_PATIENCE,
            stop_deadline: Duration::from_secs(15),
            sweep_interval: Duration::from_secs(5),
            loss_interval: LOSS_INTERVAL,
            concurrent_creates: None,
            pool: Vec::new(),
            publish_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            listen_address: None,
            port_range: None,
            keep_post_mortems: 200,
        }
    }
}

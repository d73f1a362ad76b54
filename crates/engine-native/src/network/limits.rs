//! Limits of the network, and what happens at each.

use std::time::Duration;

/// Slots of the largest subnet that is used up; more would not fit an interface's name. When all
/// are taken, `take` answers `Exhausted`.
pub(super) const SLOTS: u32 = 10_000;

/// Connections that one sandbox may have through the host at a time; further ones are refused, so
/// that none fills the host's connection table.
pub(super) const CONNECTIONS: u32 = 4096;

/// Resolvers taken over from the host, as many as the C library looks at; more are left out.
pub(super) const RESOLVERS: usize = 3;

/// How often the host is looked at for changes: resolvers, default routes, lost rules.
pub(super) const UPKEEP_INTERVAL: Duration = Duration::from_secs(15);

/// Largest packet of a sandbox's link; smaller where the host's own link is.
pub(super) const MTU: u32 = 1500;

/// Public addresses of the host that get a prohibiting route in a namespace; the rules on the
/// host refuse all of them.
pub(super) const HOST_ADDRESSES: usize = 64;

/// How long the link of a dead machine may stay before it is cut.
pub(super) const LINK_GRACE: Duration = Duration::from_secs(3);

/// Between two looks at something that is about to go: a link, a lock.
pub(super) const LINK_POLL: Duration = Duration::from_millis(10);

/// How long a lock of an earlier daemon is waited for; then it counts as held.
pub(super) const LOCK_PATIENCE: Duration = Duration::from_millis(250);

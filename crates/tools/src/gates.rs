//! Whether a caller has tools at all. The gates are asked in their order, and the first that is
//! closed gives the reason.

use std::net::IpAddr;
use std::sync::Arc;

use thiserror::Error;

use crate::Provider;
use crate::config::{Access, Config};
use crate::health::Health;

/// What is known of a caller. Nothing in it is what the caller says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller {
    /// Where the connection comes from.
    pub peer: Option<IpAddr>,
    /// Somebody in between says that the request is another's: a proxy on this machine.
    pub forwarded: bool,
    /// It has the admin token, or one of this server's own that may use sandboxes.
    pub has_token: bool,
}

/// A gate that is closed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Closed {
    #[error(
        "the tools are switched off: set enabled = true in [app.bash_tools] of the configuration"
    )]
    Configuration,
    #[error("the tools are switched off: start the server with REMCOCHAT_ENABLE_BASH_TOOL=1")]
    KillSwitch,
    #[error("{0}")]
    Access(&'static str),
    #[error("no sandbox can be had: {0}")]
    Health(String),
}

impl Closed {
    /// For programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Configuration => "tools_disabled",
            Self::KillSwitch => "tools_switched_off",
            Self::Access(_) => "tools_not_for_you",
            Self::Health(_) => "tools_unavailable",
        }
    }
}

pub(crate) struct Gates {
    enabled: bool,
    switched_on: bool,
    access: Access,
    health: Health,
}

impl Gates {
    pub(crate) fn new(config: &Config, provider: Arc<dyn Provider>) -> Self {
        Self {
            enabled: config.enabled,
            switched_on: config.switched_on,
            access: config.access,
            health: Health::new(provider),
        }
    }

    pub(crate) async fn pass(&self, caller: &Caller) -> Result<(), Closed> {
        self.closed_to(caller)?;
        self.health.check().await.map_err(Closed::Health)
    }

    /// All but the last one.
    fn closed_to(&self, caller: &Caller) -> Result<(), Closed> {
        if !self.enabled {
            return Err(Closed::Configuration);
        }
        if !self.switched_on {
            return Err(Closed::KillSwitch);
        }
        allowed(self.access, caller).map_err(Closed::Access)
    }
}

/// `localhost` goes by the connection's other end alone. A request that a proxy on this machine
/// passes on comes from there, too, and is not local for that: it needs the token.
fn allowed(access: Access, caller: &Caller) -> Result<(), &'static str> {
    let is_here = caller.peer.is_some_and(|peer| peer.to_canonical().is_loopback());
    match access {
        Access::Lan if caller.has_token => Ok(()),
        Access::Lan => {
            Err("the tools need the admin token: send REMCOCHAT_ADMIN_TOKEN in the header \
             x-remcochat-admin-token or as a bearer token")
        }
        Access::Localhost if !is_here => {
            Err("the tools are for callers on the server's own machine; \
             access = \"lan\" in [app.bash_tools] lets others in, with a token")
        }
        Access::Localhost if caller.forwarded && !caller.has_token => {
            Err("the request was passed on by a proxy, so it is not from this machine: send \
                 REMCOCHAT_ADMIN_TOKEN in the header x-remcochat-admin-token or as a bearer token")
        }
        Access::Localhost => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(peer: &str, forwarded: bool, has_token: bool) -> Caller {
        Caller { peer: peer.parse().ok(), forwarded, has_token }
    }

    #[test]
    fn localhost_goes_by_the_peer_and_a_proxy_needs_the_token() {
        let open = |peer, forwarded, token| {
            allowed(Access::Localhost, &caller(peer, forwarded, token)).is_ok()
        };
        for here in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(open(here, false, false), "{here}");
            assert!(!open(here, true, false), "{here}");
            assert!(open(here, true, true), "{here}");
        }
        for elsewhere in ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "nobody"] {
            assert!(!open(elsewhere, false, false) && !open(elsewhere, false, true), "{elsewhere}");
        }
    }

    #[test]
    fn lan_goes_by_the_token_alone() {
        for peer in ["127.0.0.1", "10.0.0.1"] {
            assert!(allowed(Access::Lan, &caller(peer, false, true)).is_ok());
            assert!(allowed(Access::Lan, &caller(peer, false, false)).is_err());
        }
    }
}

//! Whose users those of containers are: of the host, or of a user namespace that the engine has.

use std::net::Ipv4Addr;

use bollard::models::{SystemVersion, SystemVersionComponents};

use crate::connection::Client;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    /// Root inside is root outside.
    Hosts,
    /// The engine itself runs in a user namespace, as somebody who is not root.
    Rootless,
    /// The engine puts all containers into one (userns-remap).
    Remapped,
}

/// Where slirp4netns and pasta answer questions for names, in the network that they make for
/// RootlessKit.
const FORWARDER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
const FORWARDING: [&str; 2] = ["slirp4netns", "pasta"];

impl Users {
    pub(super) fn of(options: &[String]) -> Self {
        let has = |name: &str| options.iter().any(|option| option.split(',').any(|o| o == name));
        if has("name=rootless") {
            Self::Rootless
        } else if has("name=userns") {
            Self::Remapped
        } else {
            Self::Hosts
        }
    }

    /// None where containers have no user namespace.
    pub(crate) fn how(self) -> Option<&'static str> {
        match self {
            Self::Hosts => None,
            Self::Rootless => Some("Docker is rootless: root inside is the user who runs it"),
            Self::Remapped => {
                Some("Docker maps the users of all containers to one range (userns-remap)")
            }
        }
    }

    /// Whom containers ask for names, as far as that is particular to these users.
    pub(super) async fn resolvers(self, client: &Client) -> Vec<Ipv4Addr> {
        if self != Self::Rootless {
            return Vec::new();
        }
        let version = client.api().version().await.unwrap_or_default();
        forwarder(&version).into_iter().collect()
    }
}

/// Engines before 23 do not say what makes their network; then it is what their script takes.
fn forwarder(version: &SystemVersion) -> Option<Ipv4Addr> {
    let driver = |part: &SystemVersionComponents| {
        (part.name == "rootlesskit").then(|| part.details.as_ref()?.get("NetworkDriver").cloned())
    };
    let driver = version.components.iter().flatten().find_map(driver).flatten();
    let forwards = driver.is_none_or(|driver| FORWARDING.contains(&driver.as_str()));
    forwards.then_some(FORWARDER)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn user_namespaces_are_seen_in_the_options() {
        let of = |text: &str| Users::of(&[text.to_owned()]);
        assert_eq!(of("name=rootless"), Users::Rootless);
        assert_eq!(of("name=userns"), Users::Remapped);
        assert_eq!(of("name=seccomp,profile=default"), Users::Hosts);
    }

    #[test]
    fn a_rootless_engine_s_forwarder_is_known_by_what_makes_its_network() {
        let of = |driver: Option<&str>| {
            let details =
                driver.map(|name| HashMap::from([("NetworkDriver".to_owned(), name.to_owned())]));
            let part = SystemVersionComponents {
                name: "rootlesskit".to_owned(),
                details,
                ..SystemVersionComponents::default()
            };
            forwarder(&SystemVersion { components: Some(vec![part]), ..SystemVersion::default() })
        };
        assert_eq!(forwarder(&SystemVersion::default()), Some(FORWARDER));
        assert_eq!(of(None), Some(FORWARDER));
        assert_eq!(of(Some("slirp4netns")), Some(FORWARDER));
        assert_eq!(of(Some("vpnkit")), None);
    }
}

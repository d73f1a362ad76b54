//! What an operator may say about registries.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use crate::reference::is_host;

#[derive(Debug, Clone)]
pub struct RegistrySettings {
    /// Asked before the registry itself, in this order.
    pub mirrors: Vec<Mirror>,
    /// Hosts, with their port if it is not the usual one, that are spoken to without TLS.
    pub insecure: Vec<String>,
    /// How long a registry may send nothing.
    pub stall: Duration,
}

impl Default for RegistrySettings {
    fn default() -> Self {
        Self { mirrors: Vec::new(), insecure: Vec::new(), stall: Duration::from_secs(30) }
    }
}

impl RegistrySettings {
    /// Without TLS: what the operator named, and this machine, where nobody listens in.
    pub(crate) fn is_insecure(&self, host: &str) -> bool {
        self.insecure.iter().any(|named| named == host) || is_loopback(host)
    }
}

fn is_loopback(host: &str) -> bool {
    let uri = format!("http://{host}/").parse::<http::Uri>();
    let Some(name) = uri.ok().and_then(|uri| uri.host().map(str::to_owned)) else { return false };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// `docker.io=mirror.example:5000`: a host that has images of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    pub registry: String,
    pub host: String,
}

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no mirror: write registry=host[:port], as in docker.io=mirror.example:5000")]
pub struct InvalidMirror(String);

impl FromStr for Mirror {
    type Err = InvalidMirror;

    fn from_str(text: &str) -> Result<Self, InvalidMirror> {
        match text.split_once('=') {
            Some((registry, host)) if is_host(registry) && is_host(host) => {
                Ok(Self { registry: registry.to_owned(), host: host.to_owned() })
            }
            _ => Err(InvalidMirror(text.chars().take(100).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_and_what_was_named_goes_without_tls() {
        let settings =
            RegistrySettings { insecure: vec!["lan:5000".to_owned()], ..Default::default() };
        for host in
            ["localhost", "localhost:5000", "127.0.0.1:1", "127.9.9.9", "[::1]:5000", "lan:5000"]
        {
            assert!(settings.is_insecure(host), "{host}");
        }
        for host in
            ["lan", "lan:5001", "localhost.example", "127.0.0.1.example", "10.0.0.1", "docker.io"]
        {
            assert!(!settings.is_insecure(host), "{host}");
        }
    }

    #[test]
    fn mirrors_are_pairs_of_hosts() {
        assert!("docker.io=m.example:5000".parse::<Mirror>().is_ok());
        for bad in ["docker.io", "=m", "docker.io=", "docker.io=http://m", "a=b/c", "a=b=c"] {
            assert!(bad.parse::<Mirror>().is_err(), "{bad}");
        }
    }
}

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

/// Of `host[:port]`, without the brackets of an address.
fn name_of(host: &str) -> Option<String> {
    let uri = format!("http://{host}/").parse::<http::Uri>().ok()?;
    let name = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    Some(name)
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let Some(name) = name_of(host) else { return false };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether it names this machine, or what only this machine's own link leads to: services without a
/// password, and the metadata of clouds.
pub(crate) fn is_inside(host: &str) -> bool {
    let Some(name) = name_of(host) else { return true };
    let name = name.trim_end_matches('.');
    if let Ok(address) = name.parse::<IpAddr>() {
        return is_inside_address(address);
    }
    // Resolvers read `127.1`, `0x7f.1` and `2130706433` as addresses, too.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    is_number || name == "localhost" || name.ends_with(".localhost")
}

fn is_inside_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local(),
    }
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
    fn what_only_this_machine_reaches_is_known_however_it_is_written() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "a.localhost",
            "127.0.0.1",
            "127.1:443",
            "2130706433",
            "0x7f.1",
            "0.0.0.0:80",
            "169.254.169.254",
            "[::1]:5000",
            "[::ffff:169.254.169.254]",
            "[fe80::1]",
            "[::]",
            "",
        ] {
            assert!(is_inside(host), "{host}");
        }
        for host in [
            "registry.example",
            "10.0.0.1:5000",
            "8.8.8.8",
            "[2001:db8::1]",
            "s3.example:443",
            "lan",
        ] {
            assert!(!is_inside(host), "{host}");
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

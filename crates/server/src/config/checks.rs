//! The rules that text settings are held to.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use sandbank_engine::{ImageName, SUBNET_PREFIXES, WorkspaceId};

use super::setting::Check;

pub(super) const PATH: Check = Check {
    allowed: "an absolute path",
    accepts: |text| text.starts_with('/') && !text.contains('\0'),
};

pub(super) const BIND_HOST: Check = Check {
    allowed: "an IP address or localhost",
    accepts: |text| parse_bind_host(text).is_some(),
};

pub(super) const ADDRESS: Check =
    Check { allowed: "an IP address", accepts: |text| parse_bind_host(text).is_some() };

pub(super) const PORT_RANGE: Check = Check {
    allowed: "two ports from 1 to 65535, the smaller first, like 20000-20099",
    accepts: |text| parse_port_range(text).is_some(),
};

pub(super) const HOST_NAME: Check = Check {
    allowed: "host names or addresses without scheme, port and path",
    accepts: |text| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b))
    },
};

pub(super) const IPV4: Check = Check {
    allowed: "IPv4 addresses, like 203.0.113.7",
    accepts: |text| text.parse::<std::net::Ipv4Addr>().is_ok(),
};

pub(super) const ORIGIN: Check = Check {
    allowed: "web origins like https://app.example (scheme, host, optional port, nothing else)",
    accepts: |text| {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        rest.is_some_and(|rest| (HOST_NAME.accepts)(rest))
    },
};

pub(super) const IMAGE: Check = Check {
    allowed: "an image name (a-z 0-9 . _ - with an optional /path and :tag)",
    accepts: |text| text.parse::<ImageName>().is_ok(),
};

pub(super) const URL: Check = Check {
    allowed: "an address, like http://host:port or https://host:port",
    accepts: |text| text.starts_with("http://") || text.starts_with("https://"),
};

pub(super) const RATIO: Check = Check {
    allowed: "a number from 0 to 1, like 0.1",
    accepts: |text| text.parse::<f64>().is_ok_and(|ratio| (0.0..=1.0).contains(&ratio)),
};

pub(super) const WORD: Check = Check {
    allowed: "a program or an argument, without control characters",
    accepts: |text| !text.is_empty() && !text.chars().any(char::is_control),
};

pub(super) const WORKSPACE: Check = Check {
    allowed: "the name of a workspace (a-z 0-9 and - between them)",
    accepts: |text| text.parse::<WorkspaceId>().is_ok(),
};

pub(super) const MIRROR: Check = Check {
    allowed: "registry=host, like docker.io=mirror.example:5000",
    accepts: |text| {
        text.split_once('=').is_some_and(|(registry, host)| {
            (HOST_NAME.accepts)(registry) && (HOST_NAME.accepts)(host)
        })
    },
};

pub(super) const REGISTRY_HOST: Check =
    Check { allowed: "a host with an optional port, like registry.lan:5000", ..HOST_NAME };

pub(super) const ENGINE: Check = Check {
    allowed: "native or docker, or both",
    accepts: |text| super::EngineKind::named(text).is_some(),
};

pub(super) const POOL: Check = Check {
    allowed: "image=machines, like host=4, or host@none=4 for machines without network, or \
              node24@docker=4 for those of another engine than the default one",
    accepts: |text| super::pool::parse(text).is_some(),
};

pub(super) const SESSION_POOL: Check = Check {
    allowed: "image=machines, like python=2",
    accepts: |text| !text.contains('@') && super::pool::parse(text).is_some(),
};

pub(super) const SESSION_IMAGE: Check = Check {
    allowed: "an image name, like base, python or node",
    accepts: |text| text.parse::<ImageName>().is_ok(),
};

pub(super) const SUBNET: Check = Check {
    allowed: "a private IPv4 network from /12 to /29, like 10.213.0.0/18",
    accepts: is_private_subnet,
};

pub(super) const DOCKER_HOST: Check = Check {
    allowed: "a path, unix:///path, tcp://host:port or ssh://user@host",
    accepts: |text| {
        let schemes = ["/", "unix:///", "tcp://", "ssh://"];
        !text.contains(char::is_whitespace)
            && schemes.iter().any(|start| text.starts_with(start) && text.len() > start.len())
    },
};

pub(super) const DOCKER_NAME: Check = Check {
    allowed: "a name of Docker's: letters, digits, . _ -",
    accepts: |text| {
        let first = text.bytes().next();
        first.is_some_and(|b| b.is_ascii_alphanumeric())
            && text.len() <= 128
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    },
};

pub(super) const CONTROL_NAME: Check = Check {
    allowed: "control names as `sandbank doctor` shows them",
    accepts: |text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
};

pub(super) const LOG_FILTER: Check = Check {
    allowed: "a level (error, warn, info, debug, trace) or a tracing filter",
    accepts: |text| !text.is_empty() && text.len() <= 1000 && text.is_ascii(),
};

/// `localhost` is 127.0.0.1; brackets around an IPv6 address are accepted.
pub(super) fn parse_bind_host(text: &str) -> Option<IpAddr> {
    if text.eq_ignore_ascii_case("localhost") {
        return Some(IpAddr::from([127, 0, 0, 1]));
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    bare.unwrap_or(text).parse().ok()
}

pub(super) fn parse_port_range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|port: &u16| digits && *port > 0)
    };
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some(first..=last)
}

fn is_private_subnet(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return false };
    let (Ok(address), Ok(prefix)) = (address.parse::<std::net::Ipv4Addr>(), prefix.parse::<u8>())
    else {
        return false;
    };
    let host_bits = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
    SUBNET_PREFIXES.contains(&prefix) && address.is_private() && address.to_bits() & host_bits == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnets_are_private_aligned_and_of_a_sensible_size() {
        let (least, most) = (SUBNET_PREFIXES.start(), SUBNET_PREFIXES.end());
        assert!(SUBNET.allowed.contains(&format!("from /{least} to /{most},")));
        for good in ["10.213.0.0/18", "192.168.4.0/24", "172.16.0.0/12", "10.0.0.8/29"] {
            assert!(is_private_subnet(good), "{good} was refused");
        }
        for bad in [
            "10.0.0.0/8",
            "10.213.0.1/18",
            "8.8.0.0/16",
            "10.0.0.0/30",
            "10.0.0.0",
            "10.0.0.0/99",
            "x/8",
        ] {
            assert!(!is_private_subnet(bad), "{bad} was accepted");
        }
    }

    #[test]
    fn a_range_of_ports_is_two_ports_in_order() {
        assert_eq!(parse_port_range("20000-20099"), Some(20_000..=20_099));
        assert_eq!(parse_port_range("80-80"), Some(80..=80));
        for bad in ["", "80", "80-", "-80", "81-80", "0-9", "1-65536", "1 - 2", "+1-2", "1-2-3"] {
            assert!(!(PORT_RANGE.accepts)(bad), "{bad} was accepted");
        }
    }

    #[test]
    fn origins_have_a_scheme_and_nothing_after_the_port() {
        assert!((ORIGIN.accepts)("http://localhost:3000"));
        for bad in ["localhost:3000", "https://a/b", "null", "*", "https://"] {
            assert!(!(ORIGIN.accepts)(bad), "{bad} was accepted");
        }
    }
}

//! Addresses of sandboxes: a private IPv4 network cut into slots of four.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use sandbank_engine::SUBNET_PREFIXES;

use super::limits::SLOTS;

/// A private IPv4 network in CIDR form, its prefix one of [`SUBNET_PREFIXES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Subnet {
    address: Ipv4Addr,
    prefix: u8,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a private network like 10.213.0.0/18")]
pub struct InvalidSubnet(pub String);

/// Tried in this order where the default clashes with a route of the host.
pub(super) const CANDIDATES: [Subnet; 8] = [
    Subnet { address: Ipv4Addr::new(10, 213, 0, 0), prefix: 18 },
    Subnet { address: Ipv4Addr::new(10, 213, 64, 0), prefix: 18 },
    Subnet { address: Ipv4Addr::new(10, 213, 128, 0), prefix: 18 },
    Subnet { address: Ipv4Addr::new(10, 213, 192, 0), prefix: 18 },
    Subnet { address: Ipv4Addr::new(172, 29, 0, 0), prefix: 18 },
    Subnet { address: Ipv4Addr::new(172, 29, 64, 0), prefix: 18 },
    Subnet { address: Ipv4Addr::new(192, 168, 192, 0), prefix: 18 },
    Subnet { address: Ipv4Addr::new(192, 168, 128, 0), prefix: 18 },
];

impl Default for Subnet {
    fn default() -> Self {
        CANDIDATES[0]
    }
}

impl Subnet {
    pub(super) fn address(self) -> Ipv4Addr {
        self.address
    }

    pub(super) fn prefix(self) -> u8 {
        self.prefix
    }

    pub(super) fn slots(self) -> u32 {
        (1u32 << (30 - self.prefix)).min(SLOTS)
    }

    /// The host's end of a slot's link.
    pub(super) fn gateway(self, slot: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() + 4 * slot + 1)
    }

    /// The sandbox's end of a slot's link.
    pub(super) fn guest(self, slot: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() + 4 * slot + 2)
    }

    pub(super) fn overlaps(self, address: Ipv4Addr, prefix: u8) -> bool {
        let common = self.prefix.min(prefix);
        let mask = u32::MAX.checked_shl(32 - u32::from(common)).unwrap_or(0);
        self.address.to_bits() & mask == address.to_bits() & mask
    }
}

impl FromStr for Subnet {
    type Err = InvalidSubnet;

    fn from_str(text: &str) -> Result<Self, InvalidSubnet> {
        let invalid = || InvalidSubnet(text.chars().take(80).collect());
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let address: Ipv4Addr = address.parse().map_err(|_| invalid())?;
        let prefix: u8 = prefix.parse().map_err(|_| invalid())?;
        // Sandboxes must not be reachable from each other, and private networks are what the
        // rules keep them from.
        let usable = address.is_private() && SUBNET_PREFIXES.contains(&prefix);
        let subnet = Self { address, prefix };
        let aligned = usable && address.to_bits().trailing_zeros() >= u32::from(32 - prefix);
        if aligned { Ok(subnet) } else { Err(invalid()) }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_addresses_of_their_own() {
        let subnet = Subnet::default();
        assert_eq!(subnet.slots(), 4096);
        assert_eq!(subnet.gateway(0).to_string(), "10.213.0.1");
        assert_eq!(subnet.guest(1).to_string(), "10.213.0.6");
        assert_eq!(subnet.guest(4095).to_string(), "10.213.63.254");
    }

    #[test]
    fn only_private_aligned_networks_are_accepted() {
        for good in ["10.213.0.0/18", "192.168.7.0/24", "172.16.0.0/12", "10.0.0.8/29"] {
            assert_eq!(good.parse::<Subnet>().unwrap().to_string(), good);
        }
        for bad in
            ["", "10.0.0.0", "8.8.8.0/24", "10.0.0.1/24", "10.0.0.0/30", "10.0.0.0/8", "::/64"]
        {
            assert!(bad.parse::<Subnet>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn overlaps_are_seen_from_both_sides() {
        let subnet = Subnet::default();
        for (address, prefix) in [([10, 0, 0, 0], 8), ([10, 213, 5, 0], 24), ([10, 213, 0, 0], 18)]
        {
            assert!(subnet.overlaps(address.into(), prefix));
        }
        for (address, prefix) in
            [([10, 213, 64, 0], 18), ([10, 212, 0, 0], 16), ([192, 168, 0, 0], 16)]
        {
            assert!(!subnet.overlaps(address.into(), prefix));
        }
        let all: Vec<Subnet> = CANDIDATES.to_vec();
        for (index, one) in all.iter().enumerate() {
            assert_eq!(one.to_string().parse::<Subnet>(), Ok(*one));
            assert!(
                !all[index + 1..].iter().any(|other| one.overlaps(other.address, other.prefix))
            );
        }
    }
}

//! Destinations that no sandbox may reach, whatever its engine and mode.

use std::net::Ipv4Addr;

const fn range(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> (Ipv4Addr, u8) {
    (Ipv4Addr::new(a, b, c, d), prefix)
}

/// Everything that is not the public internet, and the metadata services of clouds.
pub const BLOCKED: [(Ipv4Addr, u8); 13] = [
    range(0, 0, 0, 0, 8),
    range(10, 0, 0, 0, 8),
    range(100, 64, 0, 0, 10),
    range(127, 0, 0, 0, 8),
    range(168, 63, 129, 16, 32),
    range(169, 254, 0, 0, 16),
    range(172, 16, 0, 0, 12),
    range(192, 0, 0, 0, 24),
    range(192, 88, 99, 0, 24),
    range(192, 168, 0, 0, 16),
    range(198, 18, 0, 0, 15),
    range(224, 0, 0, 0, 4),
    range(240, 0, 0, 0, 4),
];

/// One of each kind that people have: what is tried to see whether it is blocked.
pub const EXAMPLES: [Ipv4Addr; 5] = [
    Ipv4Addr::new(10, 0, 0, 1),
    Ipv4Addr::new(100, 64, 0, 1),
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(172, 16, 0, 1),
    Ipv4Addr::new(192, 168, 0, 1),
];

pub fn is_blocked(address: Ipv4Addr) -> bool {
    BLOCKED.iter().any(|(network, prefix)| {
        let mask = u32::MAX.checked_shl(32 - u32::from(*prefix)).unwrap_or(0);
        address.to_bits() & mask == network.to_bits()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_metadata_addresses_are_blocked_and_public_ones_are_not() {
        let blocked = [
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "127.0.0.1",
            "0.0.0.1",
            "224.0.0.251",
            "255.255.255.255",
        ];
        for address in blocked.map(|address| address.parse().unwrap()).into_iter().chain(EXAMPLES) {
            assert!(is_blocked(address), "{address}");
        }
        for address in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "198.51.100.10", "168.63.129.17"] {
            assert!(!is_blocked(address.parse().unwrap()), "{address}");
        }
    }
}

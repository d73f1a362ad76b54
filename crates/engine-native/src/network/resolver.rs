//! Which resolvers sandboxes may ask: those of the host that are not on its loopback.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use super::limits::RESOLVERS;

/// In this order; the later ones name what a resolver on loopback asks itself.
const FILES: [&str; 3] = [
    "/etc/resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/NetworkManager/no-stub-resolv.conf",
];

pub(super) const NO_NETWORK: &str = "# this sandbox has no network\n";
const NO_RESOLVER: &str =
    "# no resolver: those of the host are all on its loopback or have IPv6 addresses\n";

pub(super) fn default_files() -> Vec<PathBuf> {
    FILES.map(PathBuf::from).to_vec()
}

/// The usable resolvers of the first file that has any.
pub(super) fn find(files: &[PathBuf]) -> Vec<Ipv4Addr> {
    files
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .map(|text| parse(&text))
        .find(|resolvers| !resolvers.is_empty())
        .unwrap_or_default()
}

fn parse(text: &str) -> Vec<Ipv4Addr> {
    let mut resolvers = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        let address = words.next().and_then(|word| word.parse::<Ipv4Addr>().ok());
        if let Some(address) = address
            && !address.is_loopback()
            && !address.is_unspecified()
            && !resolvers.contains(&address)
        {
            resolvers.push(address);
        }
    }
    resolvers.truncate(RESOLVERS);
    resolvers
}

pub(super) fn resolv_conf(resolvers: &[Ipv4Addr]) -> String {
    if resolvers.is_empty() {
        return NO_RESOLVER.to_owned();
    }
    resolvers.iter().map(|address| format!("nameserver {address}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_ipv6_resolvers_are_passed_over() {
        let text = "# comment\nnameserver 127.0.0.53\nnameserver ::1\nnameserver 10.0.0.53 # x\n\
                    nameserver 10.0.0.53\nsearch example\nnameserver 9.9.9.9\nnameserver 1.1.1.1\n\
                    nameserver 8.8.8.8\n";
        let found = parse(text);
        assert_eq!(found.len(), 3);
        assert_eq!(resolv_conf(&found[..2]), "nameserver 10.0.0.53\nnameserver 9.9.9.9\n");
        assert!(resolv_conf(&parse("nameserver 127.0.0.53\n")).starts_with("# no resolver"));
    }

    #[test]
    fn the_first_file_with_a_usable_resolver_counts() {
        let dir = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> =
            ["stub", "missing", "real"].map(|name| dir.path().join(name)).to_vec();
        std::fs::write(&files[0], "nameserver 127.0.0.53\n").unwrap();
        std::fs::write(&files[2], "nameserver 192.0.2.53\n").unwrap();
        assert_eq!(find(&files), [Ipv4Addr::new(192, 0, 2, 53)]);
    }
}

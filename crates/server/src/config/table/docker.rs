//! The Docker Engine.

use super::super::checks;
use super::super::setting::{Kind, Preset, Setting};

pub(super) const ROWS: &[Setting] = &[
    Setting {
        key: "docker.host",
        env: "SANDBANK_DOCKER_HOST",
        aliases: &["SANDBOXD_DOCKER_SOCKET"],
        flag: Some("docker-host"),
        kind: Kind::Text(checks::DOCKER_HOST),
        default: Preset::Computed(
            "as the Docker CLI finds it: DOCKER_HOST, the current context, the usual sockets",
        ),
        help: "Where the Docker Engine listens: a socket's path, unix:///path, tcp://host:port or ssh://user@host.",
    },
    Setting {
        key: "docker.runtime",
        env: "SANDBANK_DOCKER_RUNTIME",
        aliases: &[],
        flag: Some("docker-runtime"),
        kind: Kind::Text(checks::DOCKER_NAME),
        default: Preset::Computed("the engine's own, which is usually runc"),
        help: "Runtime of containers, one of those that the Docker Engine knows, such as runc. With gVisor's runsc sandboxes have a kernel of their own and no network; what that kernel lacks is refused by name until it is accepted with `security.allow_weaker`, and `sandbank doctor` lists it. Kata's was never tried: it needs KVM.",
    },
    Setting {
        key: "docker.network",
        env: "SANDBANK_DOCKER_NETWORK",
        aliases: &["SANDBOXD_NETWORK_NAME"],
        flag: Some("docker-network"),
        kind: Kind::Text(checks::DOCKER_NAME),
        default: Preset::Computed("sandbank-<instance>"),
        help: "Docker network of sandboxes with network. It is made when it is not there; one that is there must be a bridge that keeps containers apart.",
    },
    Setting {
        key: "docker.host_addresses",
        env: "SANDBANK_DOCKER_HOST_ADDRESSES",
        aliases: &[],
        flag: Some("docker-host-addresses"),
        kind: Kind::List(checks::IPV4),
        default: Preset::Computed(
            "this machine's own where Docker's bridge is on it, else unknown",
        ),
        help: "Public addresses of Docker's host, which no sandbox reaches. To be said where the daemon runs in a container or uses a Docker of another machine; a private address says that there is no public one.",
    },
    Setting {
        key: "docker.resolvers",
        env: "SANDBANK_DOCKER_RESOLVERS",
        aliases: &[],
        flag: Some("docker-resolvers"),
        kind: Kind::List(checks::IPV4),
        default: Preset::Computed(
            "as Docker finds them; private ones only where Docker's bridge is on this machine",
        ),
        help: "Whom sandboxes with network on Docker ask for names, on port 53, even at private addresses.",
    },
    Setting {
        key: "docker.default_image",
        env: "SANDBANK_DOCKER_IMAGE",
        aliases: &[],
        flag: Some("docker-image"),
        kind: Kind::Text(checks::IMAGE),
        default: Preset::Empty,
        help: "What sandboxes.default_image is on Docker, where it is `host` otherwise: Docker has no such image.",
    },
];

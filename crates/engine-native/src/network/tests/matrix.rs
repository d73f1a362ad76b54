//! Who reaches whom. Every refusal has its control: the same address answers the host itself.

use sandbank_engine::NetworkMode;

use super::hosts::{
    FakeHost, LAN, METADATA, PUBLIC, RESOLVER, ULA, UPLINK, ask, connect, here, inside, serve,
};
use super::{Instance, on_fake_host, shut, take};

async fn assert_controls() {
    for address in [PUBLIC, LAN, METADATA, ULA, RESOLVER] {
        assert!(connect(here(), address, 80).await.is_ok(), "{address} does not even answer us");
        assert!(ask(here(), address, 53).await.is_ok(), "{address} does not even answer us");
    }
    assert!(connect(here(), UPLINK, 8080).await.is_ok());
}

#[test]
fn default_reaches_the_public_internet_and_the_resolver_and_nothing_else() {
    on_fake_host(async |host: &FakeHost| {
        assert_controls().await;
        let instance = Instance::new();
        let networks = instance.open(host).await;
        networks.egress_available().unwrap();
        let (_, one) = take(&networks, NetworkMode::Default).await;
        let (_, two) = take(&networks, NetworkMode::Default).await;
        assert_ne!(one.slot, two.slot);
        assert_eq!(one.resolv_conf, "nameserver 10.20.0.53\n");

        for network in [&one, &two] {
            let seen = connect(&network.netns, PUBLIC, 80).await.unwrap();
            assert_eq!(seen, UPLINK, "the public internet sees the host's address");
            assert_eq!(ask(&network.netns, PUBLIC, 80).await.unwrap(), UPLINK);
            ask(&network.netns, RESOLVER, 53).await.unwrap();
            connect(&network.netns, RESOLVER, 53).await.unwrap();
        }

        let other = format!("10.213.0.{}", 4 * two.slot.unwrap() + 2);
        serve(&two.netns, "0.0.0.0", 80).await;
        assert!(connect(&two.netns, &other, 80).await.is_ok(), "it reaches itself");
        let gateway = format!("10.213.0.{}", 4 * one.slot.unwrap() + 1);
        let mapped = format!("::ffff:{LAN}");
        let refused = [
            (LAN, 80),
            (METADATA, 80),
            (RESOLVER, 80),
            (UPLINK, 8080),
            (&gateway, 8080),
            (&other, 80),
            (&mapped, 80),
            (ULA, 80),
            ("127.0.0.1", 8080),
            ("::1", 8081),
            ("10.20.0.1", 8080),
            ("169.254.0.1", 8080),
            ("224.0.0.251", 80),
            // Names are asked of the host's resolver only.
            (LAN, 53),
            (PUBLIC, 53),
        ];
        for (address, port) in refused {
            let tcp = connect(&one.netns, address, port).await;
            assert!(tcp.is_err(), "tcp {address}:{port} answered {tcp:?}");
            let udp = ask(&one.netns, address, port).await;
            assert!(udp.is_err(), "udp {address}:{port} answered {udp:?}");
        }

        // Nor does anyone reach it from outside, though the host routes there.
        serve(&one.netns, "0.0.0.0", 80).await;
        let guest = format!("10.213.0.{}", 4 * one.slot.unwrap() + 2);
        for outside in [&host.lan, &host.public] {
            assert!(connect(&outside.fd, &guest, 80).await.is_err());
        }
    });
}

#[test]
fn none_reaches_its_own_loopback_and_nothing_else() {
    on_fake_host(async |host: &FakeHost| {
        assert_controls().await;
        let instance = Instance::new();
        let networks = instance.open(host).await;
        let (_, network) = take(&networks, NetworkMode::None).await;
        assert_eq!(network.slot, None);
        assert!(!network.resolv_conf.contains("nameserver"), "{}", network.resolv_conf);
        for (address, port) in [
            (PUBLIC, 80),
            (PUBLIC, 53),
            (RESOLVER, 53),
            (LAN, 80),
            (METADATA, 80),
            (UPLINK, 8080),
            (ULA, 80),
        ] {
            assert!(connect(&network.netns, address, port).await.is_err(), "tcp {address}:{port}");
            assert!(ask(&network.netns, address, port).await.is_err(), "udp {address}:{port}");
        }
        for loopback in ["127.0.0.1", "::1"] {
            serve(&network.netns, loopback, 80).await;
            assert_eq!(connect(&network.netns, loopback, 80).await.unwrap(), loopback);
        }
        let links = inside(&network.netns, || super::hosts::tool("ip -o link")).await;
        assert_eq!(links.lines().count(), 1, "{links}");
    });
}

#[test]
fn refusals_are_quick_and_low_ports_are_free() {
    on_fake_host(async |host: &FakeHost| {
        let instance = Instance::new();
        let networks = instance.open(host).await;
        let (_, network) = take(&networks, NetworkMode::Default).await;
        for address in [LAN, METADATA, UPLINK] {
            let error = connect(&network.netns, address, 80).await.unwrap_err();
            assert_ne!(error.kind(), std::io::ErrorKind::TimedOut, "{address}: {error}");
        }
        let first = inside(&network.netns, || {
            std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap()
        });
        assert_eq!(first.await.trim(), "0");
        let mtu = inside(&network.netns, || super::hosts::tool("ip -o link show eth0")).await;
        assert!(mtu.contains("mtu 1400"), "the uplink's packets are no larger: {mtu}");
    });
}

/// Where the host did not forward, it forwards for sandboxes only.
#[test]
fn the_host_does_not_become_a_router() {
    on_fake_host(async |host: &FakeHost| {
        let instance = Instance::new();
        let networks = instance.open(host).await;
        networks.egress_available().unwrap();
        let forwards = |link: &str| {
            std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{link}/forwarding")).unwrap()
        };
        // The ways to the internet and to the resolver, and no other.
        let on = ["up0", "lan0", "meta0", "all"].map(|link| forwards(link).trim() == "1");
        assert_eq!(on, [true, true, false, false]);
        let route = "ip route add 10.20.0.0/24 via 203.0.113.2";
        inside(&host.public.fd, move || super::hosts::tool(route)).await;
        for (neighbour, address) in [(&host.public, LAN), (&host.lan, PUBLIC)] {
            let through = connect(&neighbour.fd, address, 80).await;
            assert!(through.is_err(), "the host forwarded for a neighbour: {through:?}");
        }

        // Until its administrator decides otherwise.
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        networks.pool.egress.refresh(&networks.pool.netlink()).await;
        connect(&host.public.fd, LAN, 80).await.unwrap();
        let (_, network) = take(&networks, NetworkMode::Default).await;
        connect(&network.netns, PUBLIC, 80).await.unwrap();
        assert!(connect(&network.netns, LAN, 80).await.is_err());
        drop(network);
        shut(networks).await;
        assert_eq!(forwards("up0").trim(), "1", "it stays the administrator's");
    });
}

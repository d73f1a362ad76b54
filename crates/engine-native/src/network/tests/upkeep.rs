//! Restarts, clashes, other people's firewalls, and leaving no trace.

use std::time::{Duration, Instant};

use sandbank_engine::{Control, EngineError, NetworkMode, SandboxId};

use super::hosts::{FakeHost, LAN, METADATA, PUBLIC, UPLINK, ask, connect, tool};
use super::{Instance, on_fake_host, shut, take};

fn links_of(instance: &Instance) -> usize {
    tool("ip -o link").matches(&instance.links()).count()
}

async fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn assert_no_trace(instance: &Instance) {
    assert_eq!(links_of(instance), 0, "a link is left");
    assert!(!tool("nft list tables").contains(&instance.table()), "the table is left");
    let forwards = std::fs::read_to_string("/proc/sys/net/ipv4/conf/up0/forwarding").unwrap();
    assert_eq!(forwards.trim(), "0", "forwarding is left on");
    assert!(!instance.dir.path().join("subnet").exists());
}

#[test]
fn everything_is_gone_after_the_last_machine() {
    on_fake_host(async |host: &FakeHost| {
        let instance = Instance::new();
        let networks = instance.open_on(host, super::Subnet::default(), 3).await;
        wait_for("the pool fills", || links_of(&instance) == 3).await;
        let (id, network) = take(&networks, NetworkMode::Default).await;
        let (other, _) = take(&networks, NetworkMode::None).await;
        networks.close().await;
        assert_eq!(links_of(&instance), 1, "the machine keeps its link");
        connect(&network.netns, PUBLIC, 80).await.expect("a machine goes on without the daemon");
        assert!(tool("nft list tables").contains(&instance.table()));

        networks.release(&id).await;
        networks.release(&id).await;
        networks.release(&other).await;
        networks.release(&SandboxId::random()).await;
        shut(networks).await;
        assert!(connect(&network.netns, PUBLIC, 80).await.is_err(), "it is cut off");
        assert_no_trace(&instance);
    });
}

#[test]
fn a_dropped_namespace_takes_its_link_with_it() {
    on_fake_host(async |host: &FakeHost| {
        let instance = Instance::new();
        let networks = instance.open_on(host, super::Subnet::default(), 2).await;
        wait_for("the pool fills", || links_of(&instance) == 2).await;
        let (_, network) = take(&networks, NetworkMode::Default).await;
        // As `kill -9` does: nothing is closed in order.
        drop(networks);
        wait_for("pooled links go", || links_of(&instance) == 1).await;
        drop(network);
        wait_for("the machine's link goes", || links_of(&instance) == 0).await;
    });
}

#[test]
fn a_restarted_daemon_does_not_reuse_a_live_slot() {
    on_fake_host(async |host: &FakeHost| {
        let instance = Instance::new();
        let subnet = "10.99.0.0/28".parse().unwrap();
        let networks = instance.open_on(host, subnet, 0).await;
        let (id, network) = take(&networks, NetworkMode::Default).await;
        drop(networks);

        let networks = instance.open_on(host, subnet, 0).await;
        networks.egress_available().unwrap();
        networks.adopt(&id, network.slot).await;
        let mut slots = vec![network.slot.unwrap()];
        let mut held = Vec::new();
        for _ in 0..3 {
            let (id, network) = take(&networks, NetworkMode::Default).await;
            slots.push(network.slot.unwrap());
            held.push((id, network));
        }
        slots.sort_unstable();
        assert_eq!(slots, [0, 1, 2, 3]);
        let full = networks.take(NetworkMode::Default, &SandboxId::random()).await;
        assert!(matches!(full, Err(EngineError::Exhausted(_))), "{full:?}");
        connect(&network.netns, PUBLIC, 80).await.expect("the adopted machine still has its link");

        networks.release(&id).await;
        // Someone still has the namespace, but the slot is needed.
        let (last, again) = take(&networks, NetworkMode::Default).await;
        assert_eq!(again.slot, network.slot);
        assert!(connect(&network.netns, PUBLIC, 80).await.is_err(), "it is cut off");
        networks.release(&last).await;
        wait_for("a link that stays is cut", || links_of(&instance) == 3).await;
        connect(&held[0].1.netns, PUBLIC, 80).await.expect("the others keep theirs");
    });
}

#[test]
fn two_instances_have_subnets_of_their_own_and_do_not_meet() {
    on_fake_host(async |host: &FakeHost| {
        let (first, second) = (Instance::new(), Instance::new());
        let one = first.open(host).await;
        let two = second.open(host).await;
        let (_, a) = take(&one, NetworkMode::Default).await;
        let (id, b) = take(&two, NetworkMode::Default).await;
        for network in [&a, &b] {
            connect(&network.netns, PUBLIC, 80).await.unwrap();
        }
        super::hosts::serve(&b.netns, "0.0.0.0", 80).await;
        let guest = format!("10.213.64.{}", 4 * b.slot.unwrap() + 2);
        connect(&b.netns, &guest, 80).await.expect("the second instance has the next subnet");
        assert!(connect(&a.netns, &guest, 80).await.is_err());
        two.release(&id).await;
        shut(two).await;
        assert_eq!(links_of(&second), 0);
        assert!(!tool("nft list tables").contains(&second.table()));
        connect(&a.netns, PUBLIC, 80).await.expect("the first does not notice");
    });
}

/// Daemons that were killed and never came back.
#[test]
fn what_dead_instances_left_is_cleared_away() {
    on_fake_host(async |host: &FakeHost| {
        let mut machine = None;
        for round in 0..12 {
            let dead = Instance::new();
            let networks = dead.open(host).await;
            networks.egress_available().unwrap();
            if round == 3 {
                machine = Some((take(&networks, NetworkMode::Default).await, dead.table()));
            }
        }
        let ((_, network), table) = machine.unwrap();
        let last = Instance::new();
        wait_for("links of the dead go", || tool("ip -o link").matches("sbk").count() == 1).await;
        let networks = last.open(host).await;
        networks.egress_available().unwrap();
        let tables = tool("nft list tables");
        assert_eq!(tables.matches("sandbank_").count(), 2, "{tables}");
        assert!(tables.contains(&table), "a machine still needs its table");
        connect(&network.netns, PUBLIC, 80).await.unwrap();
        assert!(connect(&network.netns, LAN, 80).await.is_err());
        shut(networks).await;
        connect(&network.netns, PUBLIC, 80).await.expect("it outlives the other's daemon");
        drop(network);
        wait_for("its link goes", || tool("ip -o link").matches("sbk").count() == 0).await;
        let networks = last.open(host).await;
        shut(networks).await;
        let forwards = std::fs::read_to_string("/proc/sys/net/ipv4/conf/up0/forwarding").unwrap();
        assert_eq!(forwards.trim(), "0", "the last one undoes what the first one did");
    });
}

#[test]
fn a_subnet_that_the_host_routes_is_not_taken() {
    on_fake_host(async |host: &FakeHost| {
        tool("ip route add 10.0.0.0/8 via 10.20.0.5");
        let instance = Instance::new();
        let networks = instance.open(host).await;
        let (_, network) = take(&networks, NetworkMode::Default).await;
        assert_eq!(connect(&network.netns, PUBLIC, 80).await.unwrap(), UPLINK);
        assert!(tool("ip addr").contains("172.29.0.1/30"));

        let configured = Instance::new();
        let networks = configured.open_on(host, "10.99.0.0/24".parse().unwrap(), 0).await;
        let reason = networks.egress_available().unwrap_err();
        assert!(reason.contains("10.99.0.0/24") && reason.contains("configure"), "{reason}");
        let refused = networks.take(NetworkMode::Default, &SandboxId::random()).await;
        match refused {
            Err(EngineError::ControlUnavailable { control: Control::NetworkEgress, .. }) => {}
            other => panic!("{other:?}"),
        }
        networks.take(NetworkMode::None, &SandboxId::random()).await.unwrap();
    });
}

/// `nft flush ruleset` is what restarting a firewall does.
#[test]
fn flushed_rules_do_not_open_the_private_networks_and_come_back() {
    on_fake_host(async |host: &FakeHost| {
        let instance = Instance::new();
        let networks = instance.open(host).await;
        let (_, network) = take(&networks, NetworkMode::Default).await;
        tool("nft flush ruleset");
        let gateway = format!("10.213.0.{}", 4 * network.slot.unwrap() + 1);
        for (address, port) in [(LAN, 80), (METADATA, 80), (UPLINK, 8080), (&gateway, 8080)] {
            assert!(connect(&network.netns, address, port).await.is_err(), "tcp {address}");
            assert!(ask(&network.netns, address, port).await.is_err(), "udp {address}");
        }
        networks.pool.egress.refresh(&networks.pool.netlink()).await;
        connect(&network.netns, PUBLIC, 80).await.unwrap();
    });
}

#[test]
fn new_resolvers_are_noticed() {
    on_fake_host(async |host: &FakeHost| {
        let instance = Instance::new();
        let networks = instance.open(host).await;
        std::fs::write(instance.dir.path().join("resolv.conf"), format!("nameserver {LAN}\n"))
            .unwrap();
        networks.pool.egress.refresh(&networks.pool.netlink()).await;
        let (_, network) = take(&networks, NetworkMode::Default).await;
        assert_eq!(network.resolv_conf, format!("nameserver {LAN}\n"));
        ask(&network.netns, LAN, 53).await.unwrap();
        assert!(ask(&network.netns, super::hosts::RESOLVER, 53).await.is_err());
    });
}

#[test]
fn docker_s_drop_policy_is_passed_through_the_chain_it_leaves_to_administrators() {
    on_fake_host(async |host: &FakeHost| {
        if crate::network::tool::is_installed("iptables") {
            return println!("skipped: iptables is installed, and this is about hosts without");
        }
        tool("nft add table ip filter");
        tool(
            "nft add chain ip filter FORWARD { type filter hook forward priority 0 ; policy drop ; }",
        );
        let without = Instance::new();
        let networks = without.open(host).await;
        let reason = networks.egress_available().unwrap_err();
        assert!(reason.contains("FORWARD") && reason.contains("nft insert rule"), "{reason}");
        shut(networks).await;
        assert_no_trace(&without);

        tool("nft add chain ip filter DOCKER-USER");
        tool("nft add rule ip filter FORWARD jump DOCKER-USER");
        let instance = Instance::new();
        let networks = instance.open(host).await;
        networks.egress_available().unwrap();
        networks.pool.egress.refresh(&networks.pool.netlink()).await;
        let (id, network) = take(&networks, NetworkMode::Default).await;
        connect(&network.netns, PUBLIC, 80).await.unwrap();
        assert!(connect(&network.netns, LAN, 80).await.is_err());
        let rules = tool("nft list chain ip filter DOCKER-USER");
        assert_eq!(rules.matches(&instance.table()).count(), 2, "{rules}");
        networks.release(&id).await;
        shut(networks).await;
        assert_no_trace(&instance);
        let rules = tool("nft list chain ip filter DOCKER-USER");
        assert!(!rules.contains("accept"), "{rules}");
    });
}

/// The rules of a daemon that was killed are in a chain of Docker's, not in a table of its own.
#[test]
fn the_passage_of_a_dead_daemon_through_docker_s_chain_is_closed() {
    on_fake_host(async |host: &FakeHost| {
        if crate::network::tool::is_installed("iptables") {
            return println!("skipped: iptables is installed, and this is about hosts without");
        }
        tool("nft add table ip filter");
        tool(
            "nft add chain ip filter FORWARD { type filter hook forward priority 0 ; policy drop ; }",
        );
        tool("nft add chain ip filter DOCKER-USER");
        tool("nft add rule ip filter FORWARD jump DOCKER-USER");
        let dead = Instance::new();
        let networks = dead.open(host).await;
        networks.egress_available().unwrap();
        // As `kill -9` does: nothing is closed in order.
        drop(networks);
        wait_for("links of the dead go", || links_of(&dead) == 0).await;
        assert!(tool("nft list chain ip filter DOCKER-USER").contains(&dead.table()));

        let living = Instance::new();
        let networks = living.open(host).await;
        networks.egress_available().unwrap();
        let rules = tool("nft list chain ip filter DOCKER-USER");
        assert!(!rules.contains(&dead.table()), "{rules}");
        assert_eq!(rules.matches(&living.table()).count(), 2, "{rules}");
        shut(networks).await;
    });
}

#[test]
fn daemons_that_stop_at_the_same_time_leave_no_trace() {
    on_fake_host(async |host: &FakeHost| {
        for _ in 0..10 {
            let (one, other) = (Instance::new(), Instance::new());
            let (first, second) = (one.open(host).await, other.open(host).await);
            first.egress_available().unwrap();
            second.egress_available().unwrap();
            tokio::join!(shut(first), shut(second));
            assert_no_trace(&one);
            assert_no_trace(&other);
        }
    });
}

#[test]
fn a_host_without_nft_is_told_what_to_install() {
    on_fake_host(async |host: &FakeHost| {
        for dir in ["/usr/sbin", "/usr/local/sbin", "/sbin"] {
            // In the mount namespace of this thread only.
            let flags = rustix::mount::MountFlags::empty();
            if std::fs::canonicalize(dir).is_ok_and(|real| real == std::path::Path::new(dir)) {
                rustix::mount::mount(c"tmpfs", dir, c"tmpfs", flags, c"").unwrap();
            }
        }
        let instance = Instance::new();
        let networks = instance.open(host).await;
        let reason = networks.egress_available().unwrap_err();
        assert!(reason.contains("install the package nftables"), "{reason}");
        networks.take(NetworkMode::None, &SandboxId::random()).await.unwrap();
        shut(networks).await;
    });
}

#[test]
fn a_host_that_refuses_to_forward_is_told_the_setting() {
    on_fake_host(async |host: &FakeHost| {
        let path = "/proc/sys/net/ipv4/conf/up0/forwarding";
        tool(&format!("mount --bind {path} {path}"));
        tool(&format!("mount -o remount,bind,ro {path}"));
        let instance = Instance::new();
        let networks = instance.open(host).await;
        let reason = networks.egress_available().unwrap_err();
        assert!(reason.contains("sysctl -w net.ipv4.ip_forward=1"), "{reason}");
        shut(networks).await;
        assert_no_trace(&instance);
    });
}

//! What a machine in Docker withstands, from inside and from outside.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use sandbank_engine::{Control, Engine, NetworkMode, Standing};
use sandbank_protocol::containment::Outcome;
use support::{TestEngine, attack, wait_for};

/// Probes that prove nothing here, and why that is known.
const NOT_CLAIMED: [&str; 3] = ["nested_user_namespace", "host_identity", "host_ownership"];
const NOT_TRIED: [&str; 1] = ["disk_fill"];

#[tokio::test(flavor = "multi_thread")]
async fn every_attack_on_a_machine_fails() {
    let Some(test) = TestEngine::start().await else { return };
    for network in [NetworkMode::None, NetworkMode::Default] {
        let id = test.create_with(|spec| spec.network = network).await.id;
        for (probe, finding, known) in attack(&test, &id).await {
            let shown = format!("{}: {}", probe.name, finding.evidence);
            match finding.outcome {
                Outcome::Held => {}
                Outcome::Failed => {
                    assert!(known && NOT_CLAIMED.contains(&probe.name), "{shown}");
                }
                Outcome::NotTried => {
                    let other = match network {
                        NetworkMode::None => "private_addresses",
                        NetworkMode::Default => "loopback_only",
                    };
                    let known = NOT_TRIED.contains(&probe.name) || probe.name == other;
                    assert!(known, "{shown}");
                }
            }
        }
        test.engine.destroy(&id).await.unwrap();
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_was_asked_for_every_hardening_and_for_no_path_of_the_host() {
    let Some(test) = TestEngine::start().await else { return };
    let offline = test.create().await.id;
    let online = test.create_with(|spec| spec.network = NetworkMode::Default).await.id;
    for (id, has_network) in [(offline, false), (online, true)] {
        let shown = test.inspect(&id);
        let (config, host) = (&shown["Config"], &shown["HostConfig"]);
        assert_eq!(host["ReadonlyRootfs"], true);
        assert_eq!(host["Privileged"], false);
        assert_eq!(host["CapDrop"], serde_json::json!(["ALL"]));
        let mut capabilities = vec!["CHOWN", "KILL", "SETGID", "SETPCAP", "SETUID"];
        capabilities.extend(has_network.then_some("NET_ADMIN"));
        assert_eq!(host["CapAdd"], serde_json::json!(capabilities));
        let options = host["SecurityOpt"].as_array().unwrap();
        assert_eq!(options[0], "no-new-privileges:true");
        assert!(options[1].as_str().unwrap().starts_with("seccomp={\"architectures\""));
        assert_eq!(host["Memory"], host["MemorySwap"]);
        assert_eq!(host["PidsLimit"], 64);
        assert_eq!((&host["CpuQuota"], &host["CpuPeriod"]), (&100_000.into(), &100_000.into()));
        assert_eq!(host["LogConfig"]["Type"], "none");
        assert_eq!(host["RestartPolicy"]["Name"], "no");
        assert_eq!(
            (&host["Binds"], &host["Devices"]),
            (&serde_json::Value::Null, &serde_json::json!(null))
        );
        assert!(host["PortBindings"].as_object().is_none_or(|ports| ports.is_empty()));
        for mount in shown["Mounts"].as_array().unwrap() {
            assert_eq!(mount["Type"], "volume", "{mount}");
            let is_runner = mount["Destination"] == "/.sandbank";
            assert_eq!(mount["RW"], !is_runner, "{mount}");
        }
        assert_eq!(config["OpenStdin"], true);
        assert_eq!((&config["StdinOnce"], &config["Tty"]), (&false.into(), &false.into()));
        assert_eq!(config["Labels"]["sandbank.sandbox"], id.as_str());
        let network = host["NetworkMode"].as_str().unwrap();
        let expected = if has_network {
            format!("sandbank-{}", test.settings.instance)
        } else {
            "none".to_owned()
        };
        assert_eq!(network, expected);
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_network_reaches_public_addresses_and_nothing_private() {
    let Some(test) = TestEngine::start().await else { return };
    // A public host and a private one, both played by the namespace that Docker is in.
    let (public, private) = ("203.0.113.9", "10.99.0.9");
    for address in [public, private] {
        let mut ip = test.docker.enter("ip").unwrap();
        let added = ip.args(["address", "add", &format!("{address}/32"), "dev", "lo"]).status();
        assert!(added.unwrap().success());
    }
    let mut server = test.docker.enter("busybox").unwrap();
    let mut server = server.args(["nc", "-ll", "-p", "7777", "-e", "/bin/cat"]).spawn().unwrap();
    let id = test.create_with(|spec| spec.network = NetworkMode::Default).await.id;
    let ask = |address: String| {
        let script = format!("echo reached | nc -w 3 {address} 7777");
        let test = &test;
        let id = &id;
        async move { test.sh(id, &script).await.stdout }
    };
    let public_answer = ask(public.to_owned()).await;
    let private_answer = ask(private.to_owned()).await;
    let gateway = test.sh(&id, "ip route | grep default | tr -s ' ' | cut -d' ' -f3").await.stdout;
    let gateway_answer = ask(gateway.trim().to_owned()).await;
    let _ = server.kill();
    let _ = server.wait();
    assert!(public_answer.contains("reached"), "{public_answer}");
    assert!(!private_answer.contains("reached"), "{private_answer}");
    assert!(!gateway_answer.contains("reached"), "{gateway}: {gateway_answer}");
    // Two machines on the bridge do not reach each other.
    let other = test.create_with(|spec| spec.network = NetworkMode::Default).await.id;
    let client = test.client(&other).await;
    let listening = support::command(&["nc", "-ll", "-p", "7777", "-e", "/bin/cat"]);
    client.start(&listening).await.unwrap();
    let own = test.sh(&other, "ip -4 addr show eth0 | grep inet | tr -s ' ' | cut -d' ' -f3").await;
    let address = own.stdout.trim().split('/').next().unwrap().to_owned();
    assert!(!address.is_empty(), "{}", own.stdout);
    let there = test.sh(&other, &format!("echo reached | nc -w 3 {address} 7777")).await.stdout;
    assert!(there.contains("reached"), "it listens: {there}");
    let sibling = ask(address.clone()).await;
    assert!(!sibling.contains("reached"), "{address}: {sibling}");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_docker_s_host_are_refused_once_they_are_known() {
    let Some(test) = TestEngine::start().await else { return };
    // Docker is in a namespace of its own, as for a daemon in a container: its host's addresses are
    // not ours.
    let (host, public, resolver) = ("203.0.113.20", "203.0.113.21", "10.99.0.53");
    for address in [host, public, resolver] {
        let mut ip = test.docker.enter("ip").unwrap();
        let added = ip.args(["address", "add", &format!("{address}/32"), "dev", "lo"]).status();
        assert!(added.unwrap().success());
    }
    let servers = ["7778", "53"].map(|port| {
        let mut server = test.docker.enter("busybox").unwrap();
        server.args(["nc", "-ll", "-p", port, "-e", "/bin/cat"]).spawn().unwrap()
    });
    let told = TestEngine::on(test.docker.clone(), |settings| {
        settings.host_addresses = vec![host.parse().unwrap()];
        settings.resolvers = vec![resolver.parse().unwrap()];
    });
    let told = told.await.unwrap();
    let script = format!(
        "for to in '{host} 7778' '{public} 7778' '{resolver} 53' '{resolver} 7778'; do \
         echo $to | nc -w 3 $to 2>/dev/null; done"
    );
    let mut seen = Vec::new();
    for engine in [&test, &told] {
        let id = engine.create_with(|spec| spec.network = NetworkMode::Default).await.id;
        seen.push(engine.sh(&id, &script).await.stdout);
        let dns = engine.inspect(&id)["HostConfig"]["Dns"].clone();
        let reports = engine.engine.controls().await;
        let egress = reports.iter().find(|one| one.control == Control::NetworkEgress).unwrap();
        seen.push(format!("{dns} {:?} {:?}", egress.standing, egress.fix));
    }
    for mut server in servers {
        let _ = server.kill();
        let _ = server.wait();
    }
    assert_eq!(seen[0], format!("{host} 7778\n{public} 7778\n"), "nobody said whose they are");
    assert!(seen[1].contains("Weaker"), "{}", seen[1]);
    assert!(seen[1].contains("SANDBANK_DOCKER_HOST_ADDRESSES"), "{}", seen[1]);
    assert_eq!(seen[2], format!("{public} 7778\n{resolver} 53\n"));
    assert_eq!(seen[3], format!("[\"{resolver}\"] InForce None"));
    told.finish().await;
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_says_what_is_weaker_than_on_the_native_engine() {
    let Some(test) = TestEngine::start().await else { return };
    let reports = test.engine.controls().await;
    for report in &reports {
        let expected = match report.control {
            Control::UserNamespace | Control::IdMappedMounts => Standing::Weaker,
            // Docker is not on our host here, as far as networks go.
            Control::NetworkEgress => Standing::Weaker,
            Control::DiskQuota => Standing::Missing,
            _ => Standing::InForce,
        };
        assert_eq!(report.standing, expected, "{report:?}");
        assert_eq!(report.fix.is_none(), expected == Standing::InForce, "{report:?}");
        if report.control == Control::NetworkEgress {
            assert!(report.detail.starts_with("tried: "), "{report:?}");
        }
    }
    assert_eq!(reports.len(), Control::ALL.len());
    assert!(!test.engine.relies_on(Control::UserNamespace));
    assert!(test.engine.relies_on(Control::Seccomp));
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_a_machine_that_the_engine_looks_at_for_one_without_an_owner() {
    let Some(test) = TestEngine::start().await else { return };
    let label = format!("label=sandbank.instance={}", test.settings.instance);
    let there_is_one = |test: &TestEngine| {
        // What an image was looked into with is not a machine.
        let machines = ["--filter", &label, "--filter", "label=sandbank.sandbox"];
        let ps = [&["ps", "--all", "--quiet"][..], &machines].concat();
        !test.docker.said(&ps).unwrap().is_empty()
    };
    let mut looking = Box::pin(test.engine.controls());
    let mut seen = false;
    let reports = loop {
        tokio::select! {
            reports = &mut looking => break reports,
            listed = test.engine.list() => {
                assert_eq!(listed.unwrap(), [], "whoever sweeps would destroy it");
                seen |= there_is_one(&test);
            }
        }
    };
    assert!(seen, "there was none to be seen");
    let root = reports.iter().find(|report| report.control == Control::ReadOnlyRoot).unwrap();
    assert_eq!(root.standing, Standing::InForce, "{root:?}");
    drop(looking);

    // Whoever stops waiting for the report leaves a machine that has no owner indeed.
    let test = test.restart().await;
    let mut looking = Box::pin(test.engine.controls());
    while !there_is_one(&test) {
        tokio::select! {
            reports = &mut looking => panic!("it was not seen: {reports:?}"),
            _ = test.engine.list() => {}
        }
    }
    drop(looking);
    wait_for("it is listed", async || !test.engine.list().await.unwrap().is_empty()).await;
    test.finish().await;
}

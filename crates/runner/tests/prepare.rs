//! A runner that nobody confined from outside: it closes its network and gives up what it had.
//!
//! These need root, as a container engine has it; without, they have nothing to say and pass.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(unsafe_code, reason = "namespaces and devices need raw system calls")]

mod closed_network;
mod commanding;
mod live_runner;

use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use closed_network::*;
use commanding::{run, shell, spec};
use live_runner::{LiveRunner, wait_for};
use sandbank_protocol::{EgressConfig, PrepareConfig, RunnerConfig, WorkloadIdentity};
use sandbank_test_support::skip_unless_root;

const WORKLOAD: u32 = 1_000;

/// What the engine asks of a container's runner.
fn prepared(config: &mut RunnerConfig) {
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(Path::new(&config.workspace).parent().unwrap(), open).unwrap();
    config.workload = Some(WorkloadIdentity { uid: WORKLOAD, gid: WORKLOAD });
    let egress = EgressConfig {
        refused: vec![HOST.parse().unwrap()],
        resolvers: vec!["127.0.0.11".parse().unwrap(), RESOLVER.parse().unwrap()],
    };
    config.prepare = Some(PrepareConfig {
        own_workspace: true,
        watch_memory: true,
        egress: Some(egress),
        ..PrepareConfig::default()
    });
}

/// As a container engine starts it: root with these capabilities and no others.
fn container(namespace: OwnedFd) -> Command {
    let mut command = Command::new("setpriv");
    let few = "-all,+chown,+net_admin,+setuid,+setgid,+setpcap,+kill";
    command.args(["--inh-caps=-all", &format!("--bounding-set={few}"), "--"]);
    command.arg(env!("CARGO_BIN_EXE_runner"));
    // SAFETY: setns is all it does between fork and exec.
    unsafe {
        command.pre_exec(move || {
            enter(&namespace);
            Ok(())
        });
    }
    command
}

/// Everything that must not be reached from inside.
const NEAR: [&str; 6] = [GATEWAY, SIBLING, LAN, METADATA, CARRIER, HOST];

#[tokio::test]
async fn only_the_public_internet_is_left_of_the_network() {
    if skip_unless_root() {
        return;
    }
    let network = ClosedNetwork::new();
    // Before, everything is within reach: what is refused below is refused by the runner.
    for address in NEAR.into_iter().chain([PUBLIC, RESOLVER]) {
        network.connect(address, 80, false).unwrap_or_else(|error| panic!("{address}: {error}"));
    }
    for address in [GATEWAY, SIBLING, LAN, HOST] {
        // A neighbour's address by its device: routes have no say in this.
        network.connect(address, 80, true).unwrap_or_else(|error| panic!("{address}: {error}"));
    }
    for address in [BROADCAST, MULTICAST, SIBLING] {
        let text = format!("before {address}");
        wait_for(&text, async || {
            network.shout(address, &text);
            network.has_heard(&text)
        })
        .await;
    }
    if network.has_v6 {
        network.connect(NEIGHBOUR_V6, 80, false).unwrap();
    }

    let runner = LiveRunner::start_by(&mut container(network.inside()), prepared);
    network.connect(PUBLIC, 80, false).unwrap();
    network.connect(PUBLIC, 80, true).unwrap();
    for address in NEAR {
        let error = network.connect(address, 80, false).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{address}: {error}");
        network.connect(address, 80, true).expect_err(address);
    }
    for address in [BROADCAST, MULTICAST, SIBLING, METADATA] {
        network.shout(address, &format!("after {address}"));
    }
    // It takes the same way, and came later.
    wait_for("the public address hears", async || {
        network.shout(PUBLIC, "the last word");
        network.has_heard("the last word")
    })
    .await;
    for address in [BROADCAST, MULTICAST, SIBLING, METADATA] {
        assert!(!network.has_heard(&format!("after {address}")), "{address} was reached");
    }
    if network.has_v6 {
        network.connect(NEIGHBOUR_V6, 80, false).unwrap_err();
        network.connect(NEIGHBOUR_V6, 80, true).unwrap_err();
    }

    // Names are asked for, and nothing else.
    network.connect(RESOLVER, 53, false).unwrap();
    network.connect(RESOLVER, 80, false).unwrap_err();
    network.connect(LAN, 53, false).unwrap_err();

    let client = runner.client().await;
    let reach = |address: &str| format!("exec 3<>/dev/tcp/{address}/80");
    let heard = run(&client, &spec("p", &["bash", "-c", &reach(PUBLIC)])).await;
    assert_eq!(heard.code(), Some(0), "{}", heard.errors());
    let heard = run(&client, &spec("g", &["bash", "-c", &reach(GATEWAY)])).await;
    assert_eq!(heard.code(), Some(1));
}

#[tokio::test]
async fn loopback_stays_as_it_was() {
    if skip_unless_root() {
        return;
    }
    let network = ClosedNetwork::new();
    let namespace = network.inside();
    let resolver = std::thread::spawn(move || {
        enter(&namespace);
        std::net::TcpListener::bind("127.0.0.11:53").unwrap()
    });
    let _resolver = resolver.join().unwrap();
    network.connect("127.0.0.11", 53, false).unwrap();
    let _runner = LiveRunner::start_by(&mut container(network.inside()), prepared);
    network.connect("127.0.0.11", 53, false).unwrap();
}

#[tokio::test]
async fn a_prepared_runner_has_what_a_spawner_would_have_left_it() {
    if skip_unless_root() {
        return;
    }
    let network = ClosedNetwork::new();
    let runner = LiveRunner::start_by(&mut container(network.inside()), prepared);
    let status = std::fs::read_to_string(format!("/proc/{}/status", runner.pid())).unwrap();
    // KILL, SETGID and SETUID.
    for line in [
        "CapInh:\t0000000000000000",
        "CapPrm:\t00000000000000e0",
        "CapEff:\t00000000000000e0",
        "CapBnd:\t0000000000000000",
        "CapAmb:\t0000000000000000",
    ] {
        assert!(status.contains(line), "{line} is not in\n{status}");
    }
    let workspace = std::fs::metadata(runner.inside("")).unwrap();
    assert_eq!((workspace.uid(), workspace.gid()), (WORKLOAD, WORKLOAD));

    let client = runner.client().await;
    let script = "id -u; echo mine > file; grep Cap /proc/self/status; ip route del default 2>&1";
    let heard = run(&client, &shell("c", script)).await;
    assert!(heard.text().starts_with("1000\n"), "{}", heard.text());
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(heard.text().contains(&format!("{set}:\t0000000000000000")), "{}", heard.text());
    }
    assert_ne!(heard.code(), Some(0), "a command changed a route: {}", heard.text());
    assert_eq!(std::fs::metadata(runner.inside("file")).unwrap().uid(), WORKLOAD);
}

#[tokio::test]
async fn only_the_workspace_directory_changes_hands_and_only_from_root() {
    if skip_unless_root() {
        return;
    }
    let network = ClosedNetwork::new();
    let runner = LiveRunner::start_by(&mut container(network.inside()), |config| {
        prepared(config);
        std::fs::write(Path::new(&config.workspace).join("roots"), "").unwrap();
    });
    assert_eq!(std::fs::metadata(runner.inside("")).unwrap().uid(), WORKLOAD);
    assert_eq!(std::fs::metadata(runner.inside("roots")).unwrap().uid(), 0);

    let runner = LiveRunner::start_with(|config| {
        prepared(config);
        config.prepare.as_mut().unwrap().egress = None;
        std::os::unix::fs::chown(&config.workspace, Some(77), Some(77)).unwrap();
    });
    assert_eq!(std::fs::metadata(runner.inside("")).unwrap().uid(), 77);
}

#[test]
fn a_network_that_cannot_be_closed_ends_the_runner() {
    if skip_unless_root() {
        return;
    }
    let network = ClosedNetwork::new();
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    let mut config = RunnerConfig {
        workspace: workspace.to_str().unwrap().to_owned(),
        ..RunnerConfig::default()
    };
    prepared(&mut config);
    let start = |config: &RunnerConfig, capabilities: &str| {
        let namespace = network.inside();
        let mut command = Command::new("setpriv");
        command.args(["--inh-caps=-all", &format!("--bounding-set={capabilities}"), "--"]);
        command.arg(env!("CARGO_BIN_EXE_runner"));
        command.args(["serve", "--config", &serde_json::to_string(config).unwrap(), "--listen"]);
        command.arg(workspace.join("socket"));
        // SAFETY: setns is all it does between fork and exec.
        unsafe {
            command.pre_exec(move || {
                enter(&namespace);
                Ok(())
            });
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = start(&config, "-all,+chown,+setuid,+setgid,+setpcap,+kill");
    assert_eq!(code, Some(70));
    // By these words the engine knows which control is missing.
    assert!(said.starts_with("runner: cannot close the network"), "{said}");
    config.workload = None;
    let (code, said) = start(&config, "+all");
    assert_eq!(code, Some(70));
    assert!(said.contains("no workload"), "{said}");
}

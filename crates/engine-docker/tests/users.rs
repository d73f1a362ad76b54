//! Engines whose containers have not the host's users: a rootless Docker, and one that maps them.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use sandbank_engine::{Control, Engine, EngineError, NetworkMode, Standing};
use sandbank_engine_docker::DockerEngine;
use sandbank_protocol::containment::Outcome;
use sandbank_test_support::PrivateDocker;
use support::{TestEngine, attack, settings, spec};

const LIMITS: [Control; 3] = [Control::MemoryLimit, Control::CpuLimit, Control::PidsLimit];

/// What every engine of this kind goes without.
const NOT_HERE: [&str; 2] = ["nested_user_namespace", "host_ownership"];

async fn withstands_all_but(test: &TestEngine, network: NetworkMode, lacking: &[&str]) {
    let id = test.create_with(|spec| spec.network = network).await.id;
    for (probe, finding, known) in attack(test, &id).await {
        let expected = known && [&NOT_HERE, lacking].concat().contains(&probe.name);
        let held = finding.outcome != Outcome::Failed;
        assert!(held || expected, "{}: {}", probe.name, finding.evidence);
    }
    test.engine.destroy(&id).await.unwrap();
}

/// Names of the controls that are not in force.
async fn weak(engine: &DockerEngine, standing: Standing) -> Vec<&'static str> {
    let reports = engine.controls().await;
    let weak = reports.iter().filter(|report| report.standing == standing);
    weak.map(|report| report.control.name()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rootless_docker_without_cgroups_is_used_once_its_lack_of_limits_is_accepted() {
    let Some(docker) = PrivateDocker::rootless().unwrap() else { return };
    let docker = Arc::new(docker);
    if docker.said(&["info", "--format", "{{.CgroupDriver}}"]).unwrap() != "none" {
        println!("skipped: this rootless Docker has cgroups");
        return;
    }
    let unaware = DockerEngine::start(settings(&docker)).await.unwrap();
    let accepted = TestEngine::on(docker, |settings| settings.allow_weaker = LIMITS.to_vec());
    let Some(test) = accepted.await else { return };

    match unaware.create(&spec()).await {
        Err(EngineError::ControlUnavailable { control: Control::MemoryLimit, reason }) => {
            assert!(reason.contains("Docker is rootless and has no cgroups"), "{reason}");
            let accept = "SANDBANK_ALLOW_WEAKER=memory_limit,cpu_limit,pids_limit";
            assert!(reason.ends_with(accept), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    // The report looks at a machine all the same, so it says what is in force, too.
    let missing = ["memory_limit", "cpu_limit", "pids_limit", "disk_quota"];
    assert_eq!(weak(&unaware, Standing::Missing).await, missing);
    let weaker = ["user_namespace", "id_mapped_mounts", "network_egress"];
    assert_eq!(weak(&unaware, Standing::Weaker).await, weaker);
    unaware.shutdown().await;

    let id = test.create_with(|spec| spec.network = NetworkMode::Default).await.id;
    // Its cgroups would be those of whoever started Docker.
    let said = test.sh(&id, "id -u; echo kept > f; cat f; ls -A /sys/fs/cgroup").await;
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("1000\nkept\n", ""));
    let used = test.engine.stats(&id).await.unwrap();
    assert_eq!((used.memory_bytes, used.cpu_usage_us), (0, 0), "nobody counts it");
    assert!(!test.engine.capabilities().pause);
    // Names are asked for where rootless networks have their forwarder.
    let told = test.inspect(&id)["Config"]["Cmd"].to_string();
    assert!(told.contains("10.0.2.3"), "{told}");
    test.engine.destroy(&id).await.unwrap();

    let unlimited = ["host_memory_limit", "host_cpu_limit", "host_pids_limit"];
    let unlimited = [&unlimited[..], &["process_burst"]].concat();
    for network in [NetworkMode::None, NetworkMode::Default] {
        withstands_all_but(&test, network, &unlimited).await;
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_docker_maps_users_a_machine_withstands_as_much_and_its_root_is_nobody() {
    let Some(docker) = PrivateDocker::with_mapped_users().unwrap() else { return };
    let Some(test) = TestEngine::on(Arc::new(docker), |_| {}).await else { return };
    let id = test.create().await.id;
    let script = "id -u; echo kept > f; cat f; touch /tmp/a /var/tmp/a /dev/shm/a; \
        read inside outside count < /proc/self/uid_map; echo $inside $count; echo $outside >&2";
    let said = test.sh(&id, script).await;
    assert_eq!(said.stdout, "1000\nkept\n0 65536\n", "{}", said.stderr);
    assert_ne!(said.stderr.trim(), "0");
    assert!(test.engine.stats(&id).await.unwrap().memory_bytes > 0);
    test.engine.destroy(&id).await.unwrap();

    assert_eq!(weak(&test.engine, Standing::Missing).await, ["disk_quota"]);
    for network in [NetworkMode::None, NetworkMode::Default] {
        withstands_all_but(&test, network, &[]).await;
    }
    test.finish().await;
}

//! Containers of another runtime than runc: gVisor, whose own kernel answers their system calls.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use sandbank_channel::{ByteRange, full_body};
use sandbank_engine::{Control, Engine, EngineError, MachineSpec, NetworkMode};
use sandbank_engine_docker::{DockerEngine, DockerSettings};
use sandbank_protocol::containment::Outcome;
use sandbank_protocol::{Ending, MoveRequest};
use sandbank_test_support::{PrivateDocker, find_program};
use support::{TestEngine, attack, command, settings, spec};

/// What its kernel lacks, by the names that the configuration has to accept.
const LACKS: [Control; 7] = [
    Control::Namespaces,
    Control::ReadOnlyRoot,
    Control::MaskedKernelFiles,
    Control::NoCapabilities,
    Control::Landlock,
    Control::PidsLimit,
    Control::SeparateRunnerIdentity,
];

/// What `runsc` is called with: machines of these tests have no network, and that of Debian 13
/// takes any network of a new kernel for the host's.
const WITHOUT_NETWORK: &str = "#!/bin/sh\nexec RUNSC --network=none \"$@\"\n";

/// A Docker that knows `runsc`; None, with a counted reason, where there is none.
fn docker(directory: &tempfile::TempDir) -> Option<Arc<PrivateDocker>> {
    let Some(runsc) = find_program("runsc") else {
        println!("skipped: there is no runsc here; Debian has it from 13 on, as a package");
        return None;
    };
    let wrapper = directory.path().join("runsc");
    let script = WITHOUT_NETWORK.replace("RUNSC", runsc.to_str().unwrap());
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).unwrap();
    let option = format!("--add-runtime=gvisor={}", wrapper.display());
    PrivateDocker::start_with(false, vec![option]).unwrap().map(Arc::new)
}

/// With any program that is one: which it is called by is what counts.
#[tokio::test(flavor = "multi_thread")]
async fn machines_are_of_the_runtime_that_was_asked_for_or_of_the_usual_one() {
    let Some(runc) = find_program("runc") else {
        println!("skipped: there is no runc here; see scripts/setup.sh --test");
        return;
    };
    let option = format!("--add-runtime=other={}", runc.display());
    let Some(docker) = PrivateDocker::start_with(false, vec![option]).unwrap() else { return };
    let docker = Arc::new(docker);
    for (asked, runtime) in [(Some("other"), "other"), (None, "runc")] {
        let ask = |settings: &mut DockerSettings| settings.runtime = asked.map(str::to_owned);
        let Some(test) = TestEngine::on(docker.clone(), ask).await else { return };
        let version = test.engine.version();
        assert!(version.contains(&format!("({runtime}, ")), "{version}");
        let id = test.create().await.id;
        assert_eq!(test.inspect(&id)["HostConfig"]["Runtime"], runtime);
        assert_eq!(test.sh(&id, "echo works").await.stdout, "works\n");
        test.finish().await;
    }
}

async fn accepting(docker: Arc<PrivateDocker>) -> Option<TestEngine> {
    TestEngine::on(docker, |settings| {
        settings.runtime = Some("gvisor".to_owned());
        settings.allow_weaker = LACKS.to_vec();
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_gvisor_is_made_only_where_all_that_its_kernel_lacks_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let Some(docker) = docker(&directory) else { return };
    let Some(test) = accepting(docker.clone()).await else { return };
    for missing in LACKS {
        let mut settings = settings(&docker);
        settings.runtime = Some("gvisor".to_owned());
        settings.allow_weaker = LACKS.into_iter().filter(|control| *control != missing).collect();
        let unaware = DockerEngine::start(settings).await.unwrap();
        match unaware.create(&spec()).await {
            Err(EngineError::ControlUnavailable { control, reason }) if control == missing => {
                assert!(reason.contains("gVisor"), "{reason}");
            }
            other => panic!("{missing:?}: {other:?}"),
        }
        unaware.shutdown().await;
    }
    // Its network cannot be closed to anything, so there is none.
    let online = MachineSpec { network: NetworkMode::Default, ..spec() };
    match test.engine.create(&online).await {
        Err(EngineError::ControlUnavailable { control: Control::NetworkEgress, .. }) => {}
        other => panic!("{other:?}"),
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_gvisor_runs_commands_and_keeps_files_as_any_other() {
    let directory = tempfile::tempdir().unwrap();
    let Some(docker) = docker(&directory) else { return };
    let Some(test) = accepting(docker).await else { return };
    let id = test.create().await.id;
    let said = test.sh(&id, "cat /proc/version; id -u; echo $((6 * 7)) > f; cat f").await;
    assert_eq!(said.code(), Some(0), "{}", said.stderr);
    let lines: Vec<&str> = said.stdout.lines().collect();
    let host = std::fs::read_to_string("/proc/version").unwrap();
    assert!(lines[0].starts_with("Linux version") && lines[0] != host.trim(), "{lines:?}");
    assert_eq!(lines[1..], ["1000", "42"]);

    // A machine has one link: a command of the test's takes it over.
    let client = test.client(&id).await;
    client.write_file("made/here", None, full_body("content")).await.unwrap();
    let mut download = client.read_file("made/here", ByteRange::default()).await.unwrap();
    assert_eq!(download.chunk().await.unwrap().unwrap(), "content");
    let owner = test.sh(&id, "stat -c %u:%g made/here; ln -s /etc/passwd out").await;
    assert_eq!(owner.stdout, "1000:1000\n", "{}", owner.stderr);
    let client = test.client(&id).await;
    assert!(client.read_file("out", ByteRange::default()).await.is_err(), "it leads outside");
    let request = MoveRequest { from: "f".into(), to: "made/here".into(), overwrite: false };
    client.rename(&request).await.unwrap_err();
    client.rename(&MoveRequest { overwrite: true, ..request }).await.unwrap();
    assert_eq!(test.sh(&id, "cat made/here").await.stdout, "42\n");
    let client = test.client(&id).await;
    client.remove("made", true).await.unwrap();

    let mut endless = command(&["sh", "-c", "sleep 600 & sleep 600"]);
    endless.timeout_ms = Some(200);
    client.start(&endless).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), client.wait(&endless.id));
    let status = ended.await.unwrap().unwrap();
    assert_eq!(status.ending(), Some(&Ending::TimedOut), "{status:?}");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attack_on_a_machine_of_gvisor_succeeds_but_for_what_is_known_to_be_missing() {
    let directory = tempfile::tempdir().unwrap();
    let Some(docker) = docker(&directory) else { return };
    let Some(test) = accepting(docker).await else { return };
    // As little as the machine has that a daemon attacks before it serves.
    let little = |spec: &mut MachineSpec| {
        (spec.limits.memory_bytes, spec.limits.pids) = (64 << 20, 24);
    };
    let id = test.create_with(little).await.id;
    let mut surprises = Vec::new();
    for (probe, finding, known) in attack(&test, &id).await {
        if finding.outcome == Outcome::Failed && !known {
            surprises.push(format!("{} of {}: {}", probe.name, probe.control, finding.evidence));
        }
    }
    assert!(surprises.is_empty(), "{surprises:#?}");
    // Its kernel shows the runner's descriptors, and what commands say can be opened there, as it
    // can between commands of one user on any; the streams of the runner's orders cannot.
    let script = "streams=0; for fd in /proc/1/fd/*; do \
                  case $(readlink $fd) in host:*) streams=$((streams + 1)) ;; esac; \
                  if (: <$fd) 2>/dev/null || (: >>$fd) 2>/dev/null; then readlink $fd; fi; done; \
                  echo $streams";
    let said = test.sh(&id, script).await;
    let (opened, streams) = said.stdout.trim().rsplit_once('\n').unwrap();
    assert!(streams.parse::<u32>().unwrap() >= 2, "the control: they are there: {streams}");
    assert!(!opened.contains("host:"), "{opened}");
    test.finish().await;
}

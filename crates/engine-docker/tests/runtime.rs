//! Containers of another runtime than runc: gVisor, whose own kernel answers their system calls.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use sandbank_engine::{Control, Engine, EngineError};
use sandbank_engine_docker::DockerEngine;
use sandbank_test_support::{PrivateDocker, find_program};
use support::{TestEngine, settings, spec};

/// What `runsc` is called with: machines of this test have no network, and that of Debian 13 takes
/// any network of a new kernel for the host's.
const WITHOUT_NETWORK: &str = "#!/bin/sh\nexec RUNSC --network=none \"$@\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_gvisor_runs_commands_or_says_what_its_kernel_lacks() {
    let Some(runsc) = find_program("runsc") else {
        println!("skipped: there is no runsc here; Debian has it from 13 on, as a package");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let wrapper = directory.path().join("runsc");
    let script = WITHOUT_NETWORK.replace("RUNSC", runsc.to_str().unwrap());
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).unwrap();
    let option = format!("--add-runtime=runsc={}", wrapper.display());
    let Some(docker) = PrivateDocker::start_with(false, vec![option]).unwrap() else { return };
    let docker = Arc::new(docker);

    let mut unaware = settings(&docker);
    unaware.runtime = Some("runsc".to_owned());
    let unaware = DockerEngine::start(unaware).await.unwrap();
    let accepted = TestEngine::on(docker, |settings| {
        settings.runtime = Some("runsc".to_owned());
        settings.allow_weaker = vec![Control::Landlock];
    });
    let Some(test) = accepted.await else { return };
    match unaware.create(&spec()).await {
        Err(EngineError::ControlUnavailable { control: Control::Landlock, reason }) => {
            assert!(reason.contains("runsc"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    unaware.shutdown().await;

    match test.engine.create(&spec()).await {
        Ok(machine) => {
            let script = "cat /proc/version; id -u; echo $((6 * 7)) > f; cat f";
            let said = test.sh(&machine.id, script).await;
            assert_eq!(said.code(), Some(0), "{}", said.stderr);
            let lines: Vec<&str> = said.stdout.lines().collect();
            let host = std::fs::read_to_string("/proc/version").unwrap();
            assert!(lines[0].starts_with("Linux version") && lines[0] != host.trim(), "{lines:?}");
            assert_eq!(lines[1..], ["1000", "42"]);
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("no openat2") && text.contains("another runtime"), "{text}");
            println!("skipped: the runsc that is here has no openat2, so it makes no machine");
        }
    }
    test.finish().await;
}

//! The v2 interface, as far as this host has it: placement, freezing, killing and removal work
//! without controllers; limits need a host whose controllers are not bound to v1.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use sandbank_engine::{Control, Engine, EngineError, MachineState};
use sandbank_engine_native::{CgroupChoice, NativeSettings};
use support::{TestEngine, cannot_run, residue};

sandbank_engine_native::spawner_entry!();

fn no_v2() -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let missing = !mounts.contains(" - cgroup2 ");
    if missing {
        println!("skipped: no cgroup2 file system is mounted");
    }
    missing
}

fn v2(settings: &mut NativeSettings) {
    settings.cgroups = CgroupChoice::V2;
    settings.allow_weaker = vec![Control::MemoryLimit, Control::CpuLimit, Control::PidsLimit];
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_lives_pauses_and_dies_in_one_directory() {
    if cannot_run() || no_v2() {
        return;
    }
    let test = TestEngine::start_with(v2).await;
    let machine = test.create().await;
    let started = "sleep 1000 > /dev/null 2>&1 & echo up";
    assert_eq!(test.sh(&machine.id, started).await.stdout, "up\n");
    let places = residue::cgroups(machine.id.as_str());
    assert_eq!(places.len(), 1, "{places:?}");
    let own = test.sh(&machine.id, "grep ^0:: /proc/self/cgroup").await.stdout;
    assert!(own.starts_with("0::/") && !own.contains(machine.id.as_str()), "{own}");

    test.engine.pause(&machine.id).await.unwrap();
    assert_eq!(test.engine.list().await.unwrap()[0].state, MachineState::Paused);
    test.engine.resume(&machine.id).await.unwrap();
    assert_eq!(test.sh(&machine.id, "echo alive").await.stdout, "alive\n");
    assert!(test.engine.stats(&machine.id).await.unwrap().cpu_usage_us > 0);

    test.engine.pause(&machine.id).await.unwrap();
    test.engine.destroy(&machine.id).await.unwrap();
    assert_eq!(residue::cgroups(machine.id.as_str()), Vec::<String>::new());
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_controller_is_refused_by_its_controls_name() {
    if cannot_run() || no_v2() {
        return;
    }
    let test = TestEngine::start_with(|settings| settings.cgroups = CgroupChoice::V2).await;
    match test.engine.create(&support::spec()).await {
        Ok(_) => println!("this host has every controller on v2, so nothing is refused"),
        Err(EngineError::ControlUnavailable { control, .. }) => {
            let limits = [Control::MemoryLimit, Control::CpuLimit, Control::PidsLimit];
            assert!(limits.contains(&control), "{control:?}");
        }
        Err(error) => panic!("{error}"),
    }
    test.finish().await;
}

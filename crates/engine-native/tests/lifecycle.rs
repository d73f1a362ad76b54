//! Machines from the first to the last moment, as root, for real.

#![allow(unsafe_code, clippy::unwrap_used, reason = "tests kill processes of their own machines")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use sandbank_channel::RunnerClient;
use sandbank_engine::{DeathCause, Engine, EngineError, MachineState, NetworkMode, SandboxId};
use support::{TestEngine, cannot_run, residue, spec, wait_for};

sandbank_engine_native::spawner_entry!();

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_answers_hello_and_runs_true() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    assert_eq!(machine.state, MachineState::Running);
    let output = test.sh(&machine.id, "true").await;
    assert_eq!(output.code(), Some(0), "{}", output.stderr);
    test.engine.destroy(&machine.id).await.unwrap();
    let error = test.engine.connect(&machine.id).await.err();
    assert!(matches!(error, Some(EngineError::NotFound(_))), "{error:?}");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn destroying_a_busy_machine_leaves_nothing_on_the_host() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let pid = machine.pid.unwrap();
    let started = "sleep 1000 & nohup setsid sleep 1000 & echo x > file; mkdir -p a/b; echo up";
    assert_eq!(test.sh(&machine.id, started).await.stdout, "up\n");
    let uid_base = uid_of(pid);
    assert!(residue::processes_of_range(uid_base).len() >= 3, "the workload runs");
    assert!(!residue::cgroups(machine.id.as_str()).is_empty());

    test.engine.destroy(&machine.id).await.unwrap();
    assert_eq!(residue::processes_of_range(uid_base), Vec::<i32>::new());
    assert_eq!(residue::cgroups(machine.id.as_str()), Vec::<String>::new());
    assert!(!test.settings.data_dir.join("machines").join(machine.id.as_str()).exists());
    test.engine.destroy(&machine.id).await.unwrap();
    test.finish().await;
}

/// As when the pool of all workspaces is unmounted on the host: machines still have theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_outlives_the_host_losing_sight_of_all_workspaces() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let workspaces = test.settings.data_dir.join("workspaces");
    let elsewhere = test.settings.data_dir.join("elsewhere");
    std::fs::rename(&workspaces, &elsewhere).unwrap();
    let seen = |test: &TestEngine| {
        let engine = Arc::clone(&test.engine);
        async move { engine.list().await.unwrap()[0].state }
    };
    assert_eq!(seen(&test).await, MachineState::Running, "nothing is there");
    std::fs::create_dir(&workspaces).unwrap();
    assert_eq!(seen(&test).await, MachineState::Running, "the mount point is bare");
    assert_eq!(test.sh(&machine.id, "echo alive > file; cat file").await.stdout, "alive\n");

    std::fs::remove_dir(&workspaces).unwrap();
    std::fs::rename(&elsewhere, &workspaces).unwrap();
    assert_eq!(seen(&test).await, MachineState::Running);
    std::fs::remove_dir_all(workspaces.join(machine.id.as_str())).unwrap();
    assert_eq!(seen(&test).await, MachineState::Dead, "its own is gone");
    test.engine.destroy(&machine.id).await.unwrap();
    test.finish().await;
}

fn uid_of(pid: i32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_daemon_finds_the_machine_with_its_command_still_running() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let stream = test.engine.connect(&machine.id).await.unwrap();
    let (_, before) = RunnerClient::connect(stream).await.unwrap();
    test.sh(&machine.id, "sleep 1000 > /dev/null 2>&1 & echo $! > pid").await;

    let test = test.restart().await;
    let found = test.engine.list().await.unwrap();
    assert_eq!(found, std::slice::from_ref(&machine));
    let stream = test.engine.connect(&machine.id).await.unwrap();
    let (_, after) = RunnerClient::connect(stream).await.unwrap();
    assert_eq!(before.epoch, after.epoch);
    assert_eq!(test.sh(&machine.id, "kill -0 $(cat pid)").await.code(), Some(0));

    // Its death is seen although it is nobody's child any more.
    let engine = Arc::clone(&test.engine);
    let id = machine.id.clone();
    let waiting = tokio::spawn(async move { engine.wait_dead(&id).await });
    kill(machine.pid.unwrap());
    waiting.await.unwrap().unwrap();
    let found = test.engine.list().await.unwrap();
    assert_eq!(found[0].state, MachineState::Dead);
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_outlive_the_spawner_and_the_next_one_is_made_by_another() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let first = test.create().await;
    let spawner = test.engine.spawner_pid().await.unwrap();
    kill(spawner as i32);
    let second = test.create().await;
    for machine in [&first, &second] {
        assert_eq!(test.sh(&machine.id, "echo alive").await.stdout, "alive\n");
    }
    wait_for("another spawner runs", async || {
        test.engine.spawner_pid().await.is_some_and(|pid| pid != spawner)
    })
    .await;
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_creates_at_once_make_thirty_machines() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let creates: Vec<_> = (0..30)
        .map(|_| {
            let engine = Arc::clone(&test.engine);
            tokio::spawn(async move {
                let machine = engine.create(&spec()).await.unwrap();
                let stream = engine.connect(&machine.id).await.unwrap();
                RunnerClient::connect(stream).await.unwrap();
                machine.id
            })
        })
        .collect();
    let mut ids: Vec<SandboxId> = Vec::new();
    for create in creates {
        ids.push(create.await.unwrap());
    }
    assert_eq!(test.engine.list().await.unwrap().len(), 30);
    let hosts = test.sh(&ids[0], "cat /etc/hostname; hostname").await.stdout;
    assert_eq!(hosts, format!("{0}\n{0}\n", ids[0]));
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_runner_is_reported_dead_with_its_signal() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    kill(machine.pid.unwrap());
    let cause = test.engine.wait_dead(&machine.id).await.unwrap();
    assert_eq!(cause, DeathCause::Signaled { signal: libc::SIGKILL });
    let error = test.engine.connect(&machine.id).await.err();
    assert!(matches!(error, Some(EngineError::Dead(_))), "{error:?}");
    let paused = test.engine.pause(&machine.id).await;
    assert!(matches!(paused, Err(EngineError::Dead(_))), "{paused:?}");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_half_made_is_listed_and_can_be_destroyed() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let half = SandboxId::random();
    let machines = test.settings.data_dir.join("machines");
    std::fs::create_dir(machines.join(half.as_str())).unwrap();

    // A machine whose clone was never written down: only its cgroup knows its process.
    let lost = test.create().await;
    let record = machines.join(lost.id.as_str()).join("machine.json");
    let text = std::fs::read_to_string(&record).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["process"] = serde_json::Value::Null;
    std::fs::write(&record, value.to_string()).unwrap();

    let test = test.restart().await;
    let found = test.engine.list().await.unwrap();
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|machine| machine.state == MachineState::Dead), "{found:?}");
    for id in [&half, &lost.id] {
        let error = test.engine.connect(id).await.err();
        assert!(matches!(error, Some(EngineError::Dead(_))), "{error:?}");
        test.engine.destroy(id).await.unwrap();
    }
    let process = format!("/proc/{}", lost.pid.unwrap());
    wait_for("its process is reaped", async || !std::path::Path::new(&process).exists()).await;
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_fails_leaves_nothing_and_an_id_is_used_once() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let mut unknown = spec();
    unknown.image = "no-such-image".parse().unwrap();
    let error = test.engine.create(&unknown).await.unwrap_err();
    assert!(matches!(error, EngineError::ImageNotFound(_)), "{error}");
    assert!(test.engine.list().await.unwrap().is_empty());
    assert_eq!(residue::cgroups(unknown.id.as_str()), Vec::<String>::new());

    let machine = test.create().await;
    let again = test.engine.create(&support::spec_with_id(&machine.id)).await;
    assert!(again.is_err());
    assert_eq!(test.sh(&machine.id, "echo alive").await.stdout, "alive\n");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_stops_waiting_leaves_a_machine_that_is_listed() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let spec = spec();
    let impatient = tokio::time::timeout(Duration::from_micros(200), test.engine.create(&spec));
    drop(impatient.await);
    wait_for("the machine is whole or gone", async || {
        let listed = test.engine.list().await.unwrap();
        listed.is_empty() || listed[0].state == MachineState::Running
    })
    .await;
    test.engine.destroy(&spec.id).await.unwrap();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_an_earlier_boot_names_no_process() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let file = test.settings.data_dir.join("machines").join(machine.id.as_str());
    let file = file.join("machine.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
    record["boot"] = "another".into();
    std::fs::write(&file, record.to_string()).unwrap();
    let test = test.restart().await;
    assert_eq!(test.engine.list().await.unwrap()[0].state, MachineState::Dead);
    test.engine.destroy(&machine.id).await.unwrap();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_network_has_one_more_interface_than_none() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let none = test.create().await;
    let interfaces = "ls /sys/class/net | tr '\\n' ' '; wc -c < /etc/resolv.conf";
    assert_eq!(test.sh(&none.id, "ls /sys/class/net").await.stdout, "lo\n");
    if !test.engine.capabilities().network_egress {
        println!("skipped: this host cannot filter packets, so there is no default network");
    } else {
        let machine = test.create_with(|spec| spec.network = NetworkMode::Default).await;
        let seen = test.sh(&machine.id, interfaces).await.stdout;
        assert!(seen.split_whitespace().count() >= 3, "{seen}");
        assert!(seen.contains("lo"), "{seen}");
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_can_have_a_terminal() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let client = test.client(&machine.id).await;
    let output = support::run_on_terminal(&client, &["/usr/bin/tty"]).await;
    assert_eq!(output.stderr.trim(), "/dev/pts/0");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_is_kept_away_from_the_directory() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let second = sandbank_engine_native::NativeEngine::start(test.settings.clone()).await;
    assert!(matches!(second, Err(EngineError::Taken(_))));
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_control_is_measured_and_in_force_as_root() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let report = test.engine.controls().await;
    assert_eq!(report.len(), 18);
    for line in &report {
        println!("{:?} {:?}: {} {:?}", line.standing, line.control, line.detail, line.fix);
    }
    let lacking = report.iter().filter(|line| {
        use sandbank_engine::{Control, Standing};
        let optional = [Control::DiskQuota, Control::NetworkEgress];
        line.standing != Standing::InForce && !optional.contains(&line.control)
    });
    assert_eq!(lacking.count(), 0);
    assert!(test.engine.list().await.unwrap().is_empty(), "the measured machine is gone");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_while_controls_are_measured_leaves_no_machine() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let left = tokio::time::timeout(std::time::Duration::ZERO, test.engine.controls()).await;
    assert!(left.is_err(), "nothing had to be waited for");
    test.engine.controls().await;
    let machines = test.settings.data_dir.join("machines");
    let left = || machines.read_dir().unwrap().flatten().any(|entry| entry.path().is_dir());
    wait_for("no machine is left", async || !left()).await;
    test.finish().await;
}

fn kill(pid: i32) {
    // SAFETY: the pid is of a process that this test started.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
}

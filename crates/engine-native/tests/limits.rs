//! Limits that hold, pausing, and what is counted.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbank_engine::{Control, DeathCause, Engine, EngineError, MachineState};
use sandbank_protocol::Ending;
use support::{TestEngine, cannot_run, wait_for};

sandbank_engine_native::spawner_entry!();

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_hog_dies_and_its_machine_lives() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create_with(|spec| spec.limits.memory_bytes = 64 << 20).await;
    let hog = test.sh(&machine.id, "exec awk 'BEGIN { s = \"x\"; while (1) s = s s }'").await;
    assert_eq!(hog.ending, Ending::OomKilled);
    assert_eq!(test.sh(&machine.id, "echo alive").await.stdout, "alive\n");
    let stats = test.engine.stats(&machine.id).await.unwrap();
    assert!(stats.oom_kills >= 1, "{stats:?}");
    assert!(stats.memory_peak_bytes > 32 << 20, "{stats:?}");
    assert!(stats.memory_peak_bytes <= 64 << 20, "{stats:?}");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_out_of_memory_kill_that_a_machine_survived_is_not_what_it_dies_of() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create_with(|spec| spec.limits.memory_bytes = 64 << 20).await;
    let hog = test.sh(&machine.id, "exec awk 'BEGIN { s = \"x\"; while (1) s = s s }'").await;
    assert_eq!(hog.ending, Ending::OomKilled);
    assert!(test.engine.stats(&machine.id).await.unwrap().oom_kills >= 1);
    // Until then the kill may have been the machine's own.
    let seen = Instant::now();
    wait_for("the kill lies behind it", async || seen.elapsed() > Duration::from_millis(2100))
        .await;
    let pid = machine.pid.unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    let cause = test.engine.wait_dead(&machine.id).await.unwrap();
    assert_eq!(cause, DeathCause::Signaled { signal: 9 });
    test.engine.destroy(&machine.id).await.unwrap();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scratch_space_is_bounded_and_counts_as_memory() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create_with(|spec| spec.limits.tmp_bytes = 4 << 20).await;
    let fill =
        |place: &str| format!("head -c 200000000 /dev/zero > {place}/fill; wc -c < {place}/fill");
    let tmp: u64 = test.sh(&machine.id, &fill("/tmp")).await.stdout.trim().parse().unwrap();
    assert!(tmp <= 4 << 20, "{tmp} bytes in /tmp");
    let shm: u64 = test.sh(&machine.id, &fill("/dev/shm")).await.stdout.trim().parse().unwrap();
    assert!(shm <= 64 << 20, "{shm} bytes in /dev/shm");
    let stats = test.engine.stats(&machine.id).await.unwrap();
    assert!(stats.memory_bytes >= tmp + shm, "{stats:?}");
    let many = "i=0; while true > /tmp/file$i; do i=$((i + 1)); done 2>/dev/null; echo $i";
    let files: u64 = test.sh(&machine.id, many).await.stdout.trim().parse().unwrap();
    assert!(files <= 1024, "{files} files in 4 MiB");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_stops_at_the_limit_of_processes() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create_with(|spec| spec.limits.pids = 40).await;
    let many = "for i in $(seq 200); do sleep 30 & done > /dev/null 2>&1; echo unreachable";
    let client = test.client(&machine.id).await;
    let bomb = support::run(&client, &["/bin/sh", "-c", many]).await;
    assert_ne!(bomb.code(), Some(0), "{}", bomb.stdout);
    let stats = test.engine.stats(&machine.id).await.unwrap();
    assert!(stats.pids <= 40, "{stats:?}");
    test.engine.destroy(&machine.id).await.unwrap();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processor_time_is_limited_and_counted() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create_with(|spec| spec.limits.cpu_millis = 100).await;
    let before = test.engine.stats(&machine.id).await.unwrap().cpu_usage_us;
    let started = std::time::Instant::now();
    test.sh(&machine.id, "timeout 2 sh -c 'while :; do :; done'").await;
    let used = test.engine.stats(&machine.id).await.unwrap().cpu_usage_us - before;
    let wall = started.elapsed().as_micros() as u64;
    // A tenth of a core, with room for the period that was running at either end.
    assert!(used <= wall / 10 + 100_000, "{used} us of {wall} us");
    assert!(used > 0);
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_machine_stands_still_and_goes_on_where_it_was() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let count = "i=0; while :; do i=$((i + 1)); echo $i > count; sleep 0.01; done";
    let client = test.client(&machine.id).await;
    let counting =
        tokio::spawn(async move { support::run(&client, &["/bin/sh", "-c", count]).await.ending });
    let file = test.settings.data_dir.join("workspaces").join(machine.id.as_str()).join("count");
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    wait_for("it counts", async || !read().is_empty()).await;

    test.engine.pause(&machine.id).await.unwrap();
    assert_eq!(test.engine.list().await.unwrap()[0].state, MachineState::Paused);
    let before = read();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(read(), before, "it moved while it was paused");

    // The next daemon sees it paused, too.
    counting.abort();
    let test = test.restart().await;
    assert_eq!(test.engine.list().await.unwrap()[0].state, MachineState::Paused);
    test.engine.resume(&machine.id).await.unwrap();
    assert_eq!(test.engine.list().await.unwrap()[0].state, MachineState::Running);
    wait_for("it goes on", async || read() != before).await;
    assert_eq!(test.sh(&machine.id, "echo alive").await.stdout, "alive\n");

    test.engine.pause(&machine.id).await.unwrap();
    test.engine.destroy(&machine.id).await.unwrap();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resource_limits_are_inherited_by_commands() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create_with(|spec| spec.limits.pids = 77).await;
    let limits = test.sh(&machine.id, "cat /proc/self/limits").await.stdout;
    let hard = |name: &str| -> Option<&str> {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().nth(1)
    };
    assert_eq!(hard("Max core file size"), Some("0"));
    assert_eq!(hard("Max processes"), Some("77"));
    assert_eq!(hard("Max realtime priority"), Some("0"));
    let files: u64 = test.sh(&machine.id, "ulimit -Hn").await.stdout.trim().parse().unwrap();
    assert!((1024..=65_536).contains(&files), "{files}");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_that_cannot_be_enforced_is_refused_by_name_unless_that_is_accepted() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let mut spec = support::spec();
    spec.limits.disk_bytes = Some(1 << 30);
    let error = test.engine.create(&spec).await.unwrap_err();
    let EngineError::ControlUnavailable { control, .. } = error else { panic!("{error}") };
    assert_eq!(control, Control::DiskQuota);
    test.finish().await;

    let test = TestEngine::start_with(|settings| {
        settings.allow_weaker = vec![Control::DiskQuota];
    })
    .await;
    let machine = test.engine.create(&spec).await.unwrap();
    assert_eq!(test.sh(&machine.id, "echo alive").await.stdout, "alive\n");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_quota_stops_a_writer_where_btrfs_can_be_had() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start_with(|settings| {
        settings.storage = sandbank_engine_native::StorageKind::Auto;
        settings.pool_bytes = 1 << 30;
    })
    .await;
    if !test.engine.capabilities().disk_quota {
        println!("skipped: this host has no btrfs, so nothing can enforce a quota");
        return test.finish().await;
    }
    let machine = test.create_with(|spec| spec.limits.disk_bytes = Some(32 << 20)).await;
    let fill = "head -c 200000000 /dev/urandom > fill; sync; wc -c < fill; rm fill; echo x > small";
    let output = test.sh(&machine.id, fill).await;
    let written: u64 = output.stdout.trim().parse().unwrap();
    assert!(written <= 32 << 20, "{written} bytes in a quota of 32 MiB");
    assert_eq!(output.code(), Some(0), "what was freed can be used again: {}", output.stderr);
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_cannot_live_within_its_limits_is_not_made() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let mut spec = support::spec();
    spec.limits.memory_bytes = 64 << 10;
    match test.engine.create(&spec).await {
        Err(_) => assert!(test.engine.list().await.unwrap().is_empty()),
        // It started just before its limit was set, and dies of it.
        Ok(machine) => {
            let cause = test.engine.wait_dead(&machine.id).await.unwrap();
            assert_eq!(cause, DeathCause::OutOfMemory);
        }
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_machines_bomb_does_not_slow_anothers_creation_to_a_halt() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let busy = test.create_with(|spec| spec.limits.pids = 64).await;
    let client = test.client(&busy.id).await;
    let spin = "for i in $(seq 50); do while :; do :; done & done 2>/dev/null; wait";
    let spinning =
        tokio::spawn(async move { support::run(&client, &["/bin/sh", "-c", spin]).await.ending });
    let engine = Arc::clone(&test.engine);
    let spec = support::spec();
    let made = tokio::time::timeout(Duration::from_secs(10), engine.create(&spec));
    made.await.expect("a machine is made in time").unwrap();
    spinning.abort();
    test.engine.destroy(&busy.id).await.unwrap();
    drop(engine);
    test.finish().await;
}

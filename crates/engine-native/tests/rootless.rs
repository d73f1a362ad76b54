//! Machines of a daemon that is an ordinary user. Run by root, each test runs itself again as one.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use sandbank_engine::{Control, Engine, EngineError, NetworkMode, Standing};
use support::{TestEngine, spec};

sandbank_engine_native::spawner_entry!();

/// Nobody in particular.
const ORDINARY: u32 = 4242;

/// True when the test is to go on: as an ordinary user, who may make user namespaces.
fn as_ordinary_user(test: &str) -> bool {
    let root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    if root {
        let home = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(home.path(), Some(ORDINARY), Some(ORDINARY)).unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env("TMPDIR", home.path())
            .uid(ORDINARY)
            .gid(ORDINARY)
            .status();
        match status {
            Ok(status) => assert!(status.success(), "the same test as an ordinary user"),
            Err(error) => println!("skipped: this program cannot be run by others: {error}"),
        }
        return false;
    }
    let allowed = Command::new("unshare").args(["-U", "true"]).status();
    let allowed = allowed.is_ok_and(|status| status.success());
    if !allowed {
        println!("skipped: this host lets no ordinary user make a user namespace");
    }
    allowed
}

async fn weaker_engine() -> TestEngine {
    TestEngine::start_with(|settings| {
        settings.allow_weaker = vec![
            Control::SeparateRunnerIdentity,
            Control::MemoryLimit,
            Control::CpuLimit,
            Control::PidsLimit,
        ];
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_weaker_without_root_must_be_accepted_by_name() {
    if !as_ordinary_user("what_is_weaker_without_root_must_be_accepted_by_name") {
        return;
    }
    let test = TestEngine::start().await;
    let error = test.engine.create(&spec()).await.unwrap_err();
    let EngineError::ControlUnavailable { control, .. } = error else { panic!("{error}") };
    assert_eq!(control, Control::SeparateRunnerIdentity);
    test.finish().await;

    let test = weaker_engine().await;
    let mut wired = spec();
    wired.network = NetworkMode::Default;
    let error = test.engine.create(&wired).await.unwrap_err();
    let EngineError::ControlUnavailable { control, .. } = error else { panic!("{error}") };
    assert_eq!(control, Control::NetworkEgress);
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_root_is_confined_as_far_as_the_kernel_allows() {
    if !as_ordinary_user("a_machine_without_root_is_confined_as_far_as_the_kernel_allows") {
        return;
    }
    let test = weaker_engine().await;
    let machine = test.create().await;
    let status = test.sh(&machine.id, "cat /proc/self/status").await.stdout;
    for line in [
        "CapInh:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        "Uid:\t1000\t1000\t1000\t1000",
    ] {
        assert!(status.contains(line), "{line} is not in {status}");
    }
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
        let host = std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
        let own = test.sh(&machine.id, &format!("readlink /proc/self/ns/{name}")).await.stdout;
        assert_ne!(own.trim(), host.to_str().unwrap());
    }
    let writable = "echo x > file && cat file && touch /tmp/a /dev/shm/a && \
        ! touch /usr/a && ! touch /etc/a && ! touch /a && ! touch /run/a && echo done > /dev/null && id -un && \
        ls /sys/class/net";
    let output = test.sh(&machine.id, writable).await;
    assert_eq!(output.stdout, "x\nuser\nlo\n", "{}", output.stderr);
    for attempt in ["unshare -U true", "mount -t tmpfs none /tmp", "ls /host", "cat /proc/1/maps"] {
        assert_ne!(test.sh(&machine.id, attempt).await.code(), Some(0), "{attempt} worked");
    }
    let client = test.client(&machine.id).await;
    let terminal = support::run_on_terminal(&client, &["/usr/bin/tty"]).await;
    assert_eq!(terminal.stderr.trim(), "/dev/pts/0");
    drop(client);

    let test = test.restart().await;
    assert_eq!(test.sh(&machine.id, "cat file").await.stdout, "x\n");
    test.engine.destroy(&machine.id).await.unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}/root", machine.pid.unwrap())).exists());
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_workspace_works_without_root() {
    if !as_ordinary_user("a_kept_workspace_works_without_root") {
        return;
    }
    let test = weaker_engine().await;
    let kept = || test.create_with(|spec| spec.workspace = Some("project".parse().unwrap()));
    let (first, second) = (kept().await, kept().await);
    assert!(first.made_workspace && !second.made_workspace);
    assert_eq!(test.sh(&first.id, "echo shared > file").await.code(), Some(0));
    let seen = test.sh(&second.id, "cat file; stat -c %u:%g file; echo more >> file").await;
    assert_eq!(seen.stdout, "shared\n1000:1000\n", "{}", seen.stderr);
    for machine in [&first, &second] {
        let refused = test.engine.remove_workspace(&"project".parse().unwrap()).await;
        assert!(matches!(refused, Err(EngineError::WorkspaceInUse { .. })), "{refused:?}");
        test.engine.destroy(&machine.id).await.unwrap();
    }
    let third = kept().await;
    assert_eq!(test.sh(&third.id, "cat file").await.stdout, "shared\nmore\n");
    test.engine.destroy(&third.id).await.unwrap();
    assert!(test.engine.remove_workspace(&"project".parse().unwrap()).await.unwrap());
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_without_root_says_what_is_weaker() {
    if !as_ordinary_user("the_report_without_root_says_what_is_weaker") {
        return;
    }
    let test = weaker_engine().await;
    let report = test.engine.controls().await;
    for line in &report {
        println!("{:?} {:?}: {} {:?}", line.standing, line.control, line.detail, line.fix);
    }
    let standing = |control| report.iter().find(|line| line.control == control).unwrap().standing;
    for control in [
        Control::Namespaces,
        Control::ReadOnlyRoot,
        Control::MaskedKernelFiles,
        Control::NoCapabilities,
        Control::NoNewPrivileges,
        Control::Seccomp,
        Control::Landlock,
        Control::ResourceLimits,
        Control::NetworkNone,
    ] {
        assert_eq!(standing(control), Standing::InForce, "{control:?}");
    }
    assert_eq!(standing(Control::UserNamespace), Standing::Weaker);
    assert_eq!(standing(Control::SeparateRunnerIdentity), Standing::Missing);
    assert_eq!(standing(Control::NetworkEgress), Standing::Missing);
    test.finish().await;
}

//! The battery of attacks against real machines: it holds where everything is in force, and names
//! exactly the control that was left out.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use std::collections::BTreeSet;

use sandbank_engine::{Control, Engine, ImageName, NetworkMode};
use sandbank_engine_native::StorageKind;
use sandbank_protocol::containment::{Finding, Outcome};
use support::{TestEngine, battery, cannot_run};

sandbank_engine_native::spawner_entry!();

fn not_tried(findings: &[Finding]) -> BTreeSet<&str> {
    let left = findings.iter().filter(|finding| finding.outcome == Outcome::NotTried);
    left.map(|finding| finding.probe.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_withstands_every_attack_and_lives_on() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create_with(|spec| spec.limits.pids = 24).await;
    let findings = battery::attack(&test, &machine.id).await;
    assert_eq!(battery::failures(&findings), Vec::<&Finding>::new());
    assert_eq!(not_tried(&findings), BTreeSet::from(["private_addresses"]));
    assert!(findings.len() > 25, "{findings:#?}");
    assert_eq!(test.sh(&machine.id, "echo alive; ls -A").await.stdout, "alive\n");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_a_network_and_a_quota_withstands_them_too() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start_with(|settings| {
        settings.storage = StorageKind::Auto;
        settings.pool_bytes = 1 << 30;
    })
    .await;
    let has = test.engine.capabilities();
    if !has.network_egress || !has.disk_quota {
        println!("skipped: this host lacks nftables or btrfs: {has:?}");
        return test.finish().await;
    }
    let machine = test
        .create_with(|spec| {
            spec.network = NetworkMode::Default;
            spec.limits.disk_bytes = Some(4 << 20);
        })
        .await;
    let findings = battery::attack(&test, &machine.id).await;
    assert_eq!(battery::failures(&findings), Vec::<&Finding>::new());
    assert_eq!(not_tried(&findings), BTreeSet::from(["loopback_only"]));
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_any_program_is_attacked_all_the_same() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let path = test.settings.data_dir.join("empty.tar");
    let mut tar = tar::Builder::new(std::fs::File::create(&path).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    tar.append_data(&mut header, "etc/motd", &b""[..]).unwrap();
    tar.finish().unwrap();
    let name: ImageName = "empty".parse().unwrap();
    test.engine.import_image(&name, &path, &|_| {}).await.unwrap();
    let machine = test
        .create_with(|spec| {
            spec.image = name.clone();
            spec.limits.pids = 24;
        })
        .await;
    let findings = battery::attack(&test, &machine.id).await;
    assert_eq!(battery::failures(&findings), Vec::<&Finding>::new());
    test.finish().await;
}

/// A release leaves nothing out. Says so and counts as skipped.
fn leaves_nothing_out() -> bool {
    if !cfg!(debug_assertions) {
        println!("skipped: controls are left out in builds with debug assertions only");
    }
    !cfg!(debug_assertions)
}

/// What is left out, and which controls the battery must name. Without its own identity a command
/// is the runner, with its capabilities and its groups.
const LEFT_OUT: &[(&[Control], &[&str])] = &[
    (&[Control::Seccomp], &["seccomp"]),
    (&[Control::Landlock], &["landlock"]),
    (&[Control::NoCapabilities], &["no_capabilities"]),
    (&[Control::UserNamespace], &["user_namespace"]),
    (&[Control::MaskedKernelFiles], &["masked_kernel_files"]),
    (&[Control::ResourceLimits], &["resource_limits"]),
    (&[Control::MemoryLimit], &["memory_limit"]),
    (&[Control::CpuLimit], &["cpu_limit"]),
    (&[Control::PidsLimit], &["pids_limit"]),
    (&[Control::PidsLimit, Control::ResourceLimits], &["pids_limit", "resource_limits"]),
    // The other two would set it themselves.
    (
        &[Control::NoNewPrivileges, Control::Seccomp, Control::Landlock],
        &["landlock", "no_new_privileges", "seccomp"],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_control_that_is_left_out_is_named_and_no_other() {
    if cannot_run() || leaves_nothing_out() {
        return;
    }
    for (omitted, expected) in LEFT_OUT {
        let test =
            TestEngine::start_with(|settings| settings.omitted = omitted.to_vec().into()).await;
        let machine = test.create_with(|spec| spec.limits.pids = 24).await;
        let findings = battery::attack(&test, &machine.id).await;
        let named: Vec<_> = battery::failed_controls(&findings).into_iter().collect();
        assert_eq!(named, *expected, "without {omitted:?}: {:#?}", battery::failures(&findings));
        test.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_the_runners_user_is_found_out() {
    if cannot_run() || leaves_nothing_out() {
        return;
    }
    let test = TestEngine::start_with(|settings| {
        settings.omitted = vec![Control::SeparateRunnerIdentity].into();
    })
    .await;
    let machine = test.create().await;
    let findings = battery::attack(&test, &machine.id).await;
    let named = battery::failed_controls(&findings);
    assert!(named.contains("separate_runner_identity"), "{findings:#?}");
    assert!(named.contains("no_capabilities"), "{findings:#?}");
    test.finish().await;
}

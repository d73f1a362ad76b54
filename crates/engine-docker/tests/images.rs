//! Images, kept workspaces and the runner's volume, against a real Docker daemon.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sandbank_engine::{Engine, EngineError, ImageName, WorkspaceId};
use sandbank_test_support::PrivateDocker;
use support::{TestEngine, soon, spec};

/// In the test's image, `/tmp` is root's alone.
#[tokio::test(flavor = "multi_thread")]
async fn temporary_directories_are_everybodys_whatever_the_image_has_there() {
    let Some(test) = TestEngine::start().await else { return };
    let id = test.create().await.id;
    let look = "for d in /tmp /var/tmp /dev/shm; do touch $d/file && stat -c %a $d; done";
    let seen = test.sh(&id, look).await;
    assert_eq!(seen.stdout, "1777\n1777\n1777\n", "{}", seen.stderr);
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_become_images_by_what_they_are() {
    let Some(test) = TestEngine::start().await else { return };
    let root = test.docker.dir().join("root.tar");
    let packed = test.docker.dir().join("root.tar.zst");
    let content = std::fs::read(&root).unwrap();
    std::fs::write(&packed, zstd::encode_all(&content[..], 1).unwrap()).unwrap();
    let saved = test.docker.dir().join("saved.tar");
    test.docker.said(&["save", "--output", saved.to_str().unwrap(), support::IMAGE]).unwrap();
    for (name, archive) in [("from/root:1", &packed), ("from/saved", &saved)] {
        let name: ImageName = name.parse().unwrap();
        let (done, total) = (AtomicU64::new(0), AtomicU64::new(0));
        let told = |step: sandbank_engine::ImportProgress| {
            done.store(step.bytes_done, Ordering::Relaxed);
            total.store(step.bytes_total, Ordering::Relaxed);
        };
        let made = test.engine.import_image(&name, archive, &told).await.unwrap();
        assert!(made.digest.unwrap().starts_with("sha256:"));
        assert_eq!(total.load(Ordering::Relaxed), 2 * archive.metadata().unwrap().len());
        assert_eq!(done.load(Ordering::Relaxed), total.load(Ordering::Relaxed), "{name}");
        let listed = test.engine.images().await.unwrap();
        assert!(listed.iter().any(|found| found.name == name), "{name} in {listed:?}");
        let id = test.create_with(|spec| spec.image = name.clone()).await.id;
        assert_eq!(test.sh(&id, "echo works").await.stdout, "works\n");
        let in_use = test.engine.remove_image(&name).await.err().unwrap();
        assert!(matches!(in_use, EngineError::ImageInUse(_)), "{in_use}");
        test.engine.destroy(&id).await.unwrap();
        test.engine.remove_image(&name).await.unwrap();
        let gone = test.engine.remove_image(&name).await.err().unwrap();
        assert!(matches!(gone, EngineError::ImageNotFound(_)), "{gone}");
    }
    let junk = test.docker.dir().join("junk");
    std::fs::write(&junk, b"no archive at all").unwrap();
    let refused = test.engine.import_image(&"junk".parse().unwrap(), &junk, &|_| {}).await;
    assert!(matches!(refused, Err(EngineError::BadImage(_))), "{refused:?}");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_image_says_of_itself_is_kept_from_the_machine_or_kept_to() {
    let Some(test) = TestEngine::start().await else { return };
    let archive = test.docker.dir().join("root.tar");
    test.docker
        .said(&[
            "import",
            "--change",
            "ENV COLOUR=green",
            "--change",
            "VOLUME /data",
            "--change",
            "HEALTHCHECK --interval=1s CMD touch /tmp/checked",
            "--change",
            "USER 4242",
            "--change",
            "ENTRYPOINT [\"/bin/false\"]",
            archive.to_str().unwrap(),
            "opinionated",
        ])
        .unwrap();
    let id = test.create_with(|spec| spec.image = "opinionated".parse().unwrap()).await.id;
    let script =
        "echo $COLOUR; id -u; touch /data/x 2>/dev/null || echo read-only; ls -A /data | wc -l";
    assert_eq!(test.sh(&id, script).await.stdout, "green\n1000\nread-only\n0\n");
    assert_eq!(test.inspect(&id)["State"]["Health"], serde_json::Value::Null);
    test.engine.destroy(&id).await.unwrap();
    assert_eq!(
        test.docker
            .said(&["volume", "ls", "-q", "--filter", "dangling=true"])
            .unwrap()
            .lines()
            .filter(|name| !name.starts_with("sandbank-"))
            .count(),
        0
    );
    test.engine.remove_image(&"opinionated".parse().unwrap()).await.unwrap();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_workspace_outlives_its_machines_and_is_removed_when_nobody_has_it() {
    let Some(test) = TestEngine::start().await else { return };
    let kept: WorkspaceId = "my-project".parse().unwrap();
    let mut wanted = spec();
    wanted.workspace = Some(kept.clone());
    assert!(!test.engine.has_workspace(&kept).await.unwrap());
    let first = test.engine.create(&wanted).await.unwrap();
    assert!(first.made_workspace);
    test.sh(&first.id, "echo precious > file").await;
    let mut again = spec();
    again.workspace = Some(kept.clone());
    let second = test.engine.create(&again).await.unwrap();
    assert!(!second.made_workspace);
    assert_eq!(test.sh(&second.id, "cat file").await.stdout, "precious\n");
    let shown = test.engine.workspaces().await.unwrap();
    assert_eq!((shown.len(), shown[0].in_use_by.len()), (1, 2));
    assert!(shown[0].bytes > 0, "{shown:?}");
    let refused = test.engine.remove_workspace(&kept).await.err().unwrap();
    assert!(matches!(refused, EngineError::WorkspaceInUse { .. }), "{refused}");
    test.engine.destroy(&first.id).await.unwrap();
    test.engine.destroy(&second.id).await.unwrap();
    assert!(test.engine.has_workspace(&kept).await.unwrap());
    assert!(test.engine.list().await.unwrap().is_empty(), "a kept workspace is no machine");
    assert!(test.engine.remove_workspace(&kept).await.unwrap());
    assert!(!test.engine.remove_workspace(&kept).await.unwrap());
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_missing_or_half_there_is_copied_again() {
    let Some(docker) = sandbank_test_support::PrivateDocker::start(false).unwrap() else { return };
    let docker = std::sync::Arc::new(docker);
    let Some(test) = TestEngine::on(docker.clone(), |_| {}).await else { return };
    let id = test.create().await.id;
    test.engine.destroy(&id).await.unwrap();
    let volume = test.docker.said(&["volume", "ls", "-q"]).unwrap();
    assert!(volume.starts_with("sandbank-runner-"), "{volume}");
    // Removed behind its back: the next machine brings it again.
    test.docker.said(&["volume", "rm", &volume]).unwrap();
    let id = test.create().await.id;
    assert_eq!(test.sh(&id, "echo again").await.stdout, "again\n");
    test.engine.destroy(&id).await.unwrap();
    // Half of it, as a daemon leaves it that died while it copied; and two that notice at once.
    let place = test.docker.said(&["volume", "inspect", "-f", "{{.Mountpoint}}", &volume]).unwrap();
    let file = std::path::Path::new(&place).join("runner");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let one = TestEngine::on(docker.clone(), |_| {}).await.unwrap();
    let two = TestEngine::on(docker.clone(), |_| {}).await.unwrap();
    let (a, b) = tokio::join!(one.create(), two.create());
    assert_eq!(std::fs::read(&file).unwrap(), whole);
    assert_eq!(one.sh(&a.id, "echo one").await.stdout, "one\n");
    assert_eq!(two.sh(&b.id, "echo two").await.stdout, "two\n");
    one.finish().await;
    two.finish().await;
    assert_eq!(test.docker.said(&["ps", "-aq"]).unwrap(), "", "no helper stays");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_daemon_left_while_it_copied_the_runner_delays_no_create_of_the_next() {
    // Of its own: nobody else's engine may look at the volume meanwhile.
    let Some(docker) = PrivateDocker::start(false).unwrap() else { return };
    let Some(test) = TestEngine::on(Arc::new(docker), |_| {}).await else { return };
    let id = test.create().await.id;
    test.engine.destroy(&id).await.unwrap();
    let volumes = ["volume", "ls", "--quiet", "--filter", "label=sandbank.runner"];
    let helper = format!("{}-helper", test.docker.said(&volumes).unwrap());
    let label = format!("sandbank.instance={}", test.settings.instance);
    let create = ["create", "--name", &helper, "--label", &label, support::IMAGE, "true"];
    test.docker.said(&create).unwrap();
    let test = test.restart().await;
    assert_eq!(test.docker.said(&["ps", "-aq"]).unwrap(), "", "the next start takes it back");
    // As if it had been made just after that.
    test.docker.said(&create).unwrap();
    let id = soon("a machine", test.create()).await.id;
    assert_eq!(test.sh(&id, "echo works").await.stdout, "works\n");
    test.finish().await;
}

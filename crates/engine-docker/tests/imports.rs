//! Archives that become images of a real Docker daemon: nothing of Docker's changes but the name
//! that was asked for, and what is refused leaves nothing there.

#![allow(clippy::unwrap_used, reason = "tests")]

mod archives;
mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use archives::{Saved, root, tar_of};
use sandbank_engine::{Engine, EngineError, ImageName, PullRequest, WorkspaceId};
use sandbank_test_support::PrivateDocker;
use support::{TestEngine, spec};
use tokio_util::sync::CancellationToken;

/// A Docker of the test's own: others' images would come and go in a shared one.
async fn start() -> Option<TestEngine> {
    let docker = PrivateDocker::start(false).unwrap()?;
    TestEngine::on(Arc::new(docker), |settings| {
        settings.import_limits.bytes = 64 << 20;
        settings.import_limits.entries = 5000;
        settings.import_limits.layers = 3;
    })
    .await
}

/// Everything that Docker calls an image: names, ids, and those without a name.
fn images(docker: &PrivateDocker) -> Vec<String> {
    let format = "{{.Repository}}:{{.Tag}} {{.ID}}";
    let said = docker.said(&["images", "--all", "--no-trunc", "--format", format]).unwrap();
    let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn id_of(docker: &PrivateDocker, name: &str) -> String {
    docker.said(&["inspect", "--format", "{{.Id}}", name]).unwrap()
}

/// Layers and unfinished ones, as Docker keeps them on disk.
fn layers(docker: &PrivateDocker) -> Vec<String> {
    let data = docker.dir().join("data");
    let mut found = Vec::new();
    for part in ["image/overlay2/layerdb/sha256", "image/overlay2/layerdb/tmp", "overlay2", "tmp"] {
        let entries = std::fs::read_dir(data.join(part)).into_iter().flatten().flatten();
        found.extend(entries.map(|entry| format!("{part}/{}", entry.file_name().display())));
    }
    found.sort();
    found
}

async fn import(test: &TestEngine, name: &str, archive: &Path) -> Result<(), EngineError> {
    let name: ImageName = name.parse().unwrap();
    test.engine.import_image(&name, archive, &|_| {}).await.map(drop)
}

fn written(test: &TestEngine, name: &str, content: &[u8]) -> PathBuf {
    let path = test.docker.dir().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_changes_nothing_in_docker_but_the_name_it_was_asked_for() {
    let Some(test) = start().await else { return };
    let docker = &test.docker;
    let root = docker.dir().join("root.tar");
    let make = |value: &str| {
        let change = format!("ENV WHICH={value}");
        docker.said(&["import", "--change", &change, root.to_str().unwrap(), "precious"]).unwrap()
    };
    // The archive calls its image as Docker calls another by now.
    let old = make("old");
    let saved = docker.dir().join("saved.tar");
    let two = docker.dir().join("two.tar");
    docker.said(&["save", "--output", saved.to_str().unwrap(), "precious"]).unwrap();
    docker.said(&["save", "--output", two.to_str().unwrap(), "precious", support::IMAGE]).unwrap();
    let new = make("new");
    docker.said(&["rmi", &old]).unwrap();
    let before = (images(docker), layers(docker));

    let refused = import(&test, "mine", &two).await.unwrap_err();
    assert!(matches!(&refused, EngineError::BadImage(text) if text.contains("2 images")));
    assert_eq!((images(docker), layers(docker)), before, "two images");

    import(&test, "mine", &saved).await.unwrap();
    assert_eq!(id_of(docker, "precious"), new, "somebody else's name was taken");
    assert_eq!(id_of(docker, "mine"), old);
    let mut expected = before.0.clone();
    expected.push(format!("mine:latest {old}"));
    expected.sort();
    assert_eq!(images(docker), expected);

    // Once more, under another name: one image, which the first name still stands for.
    import(&test, "mine/too:1", &saved).await.unwrap();
    test.engine.remove_image(&"mine/too:1".parse().unwrap()).await.unwrap();
    assert_eq!(images(docker), expected);
    // What is refused later goes with its name: it has no other.
    test.engine.remove_image(&"mine".parse().unwrap()).await.unwrap();
    assert_eq!((images(docker), layers(docker)), before);
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_of_every_form_become_images_that_run() {
    let Some(test) = start().await else { return };
    let root = std::fs::read(test.docker.dir().join("root.tar")).unwrap();
    let greeting = tar_of(&[("greeting", b"hello\n")]);
    let saved = Saved::new(&[&root, &greeting]);
    for (name, content) in [
        ("saved", saved.docker()),
        ("packed", zstd::encode_all(&saved.docker()[..], 1).unwrap()),
        ("layout", saved.oci()),
    ] {
        import(&test, name, &written(&test, "archive", &content)).await.unwrap();
        let id = test.create_with(|spec| spec.image = name.parse().unwrap()).await.id;
        assert_eq!(test.sh(&id, "cat /greeting; echo $WHO").await.stdout, "hello\nme\n", "{name}");
        test.engine.destroy(&id).await.unwrap();
        test.engine.remove_image(&name.parse().unwrap()).await.unwrap();
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_archive_is_said_before_docker_has_any_of_it() {
    let Some(test) = start().await else { return };
    let docker = &test.docker;
    let small = tar_of(&[("etc/motd", b"hello")]);
    let honest = Saved::new(&[&small]);
    let mut other = Saved::new(&[&small]);
    other.architecture = "s390x";
    let mut damaged = Saved::new(&[&small]);
    damaged.layers[0][600] ^= 1;
    let (mut foreign, mut padded) = (root(), vec![0; 20]);
    padded[..6].copy_from_slice(b"\x7fELF\x02\x01");
    padded[18] = 183;
    foreign.push(("bin/sh", &padded));
    let names: Vec<String> = (0..5001).map(|number| format!("usr/{number}")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b""[..])).collect();
    let zeros = vec![0; 65 << 20];
    let large = tar_of(&[("usr/large", &zeros)]);
    let bomb = Saved::new(&[&zstd::encode_all(&large[..], 1).unwrap()]);
    assert!(bomb.docker().len() < 1 << 20, "it is no bomb");
    let cases: [(&str, Vec<u8>, &str); 11] = [
        ("another machine", other.docker(), "for linux/s390x"),
        ("another machine's layout", other.oci(), "it has no image for"),
        ("another machine's program", tar_of(&foreign), "is for arm64"),
        ("a damaged layer", damaged.docker(), "as its image says"),
        ("a damaged archive", honest.docker()[..2000].to_vec(), "it ends in the middle"),
        ("a name that leads out", archives::leading_out(), "leads out of the image"),
        ("too many entries", tar_of(&many), "more than 5000 entries"),
        ("too many bytes", large, "more than 67108864 bytes"),
        (
            "too many bytes, packed",
            zstd::encode_all(&tar_of(&[("usr/large", &zeros)])[..], 1).unwrap(),
            "more than 67108864 bytes",
        ),
        ("a bomb in a layer", bomb.docker(), "more than 67108864 bytes"),
        ("too many layers", Saved::new(&[&small, &small, &small, &small]).docker(), "3 layers"),
    ];
    let before = (images(docker), layers(docker));
    for (what, content, words) in cases {
        let archive = written(&test, "archive", &content);
        match import(&test, "refused", &archive).await {
            Err(EngineError::BadImage(text)) => assert!(text.contains(words), "{what}: {text}"),
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!((images(docker), layers(docker)), before, "{what}");
    }
    import(&test, "honest", &written(&test, "archive", &honest.docker())).await.unwrap();
    test.engine.remove_image(&"honest".parse().unwrap()).await.unwrap();
    test.finish().await;
}

/// Docker takes it, and would only warn as a container is made of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_docker_s_for_another_machine_is_refused_with_how_to_get_the_right_one() {
    let Some(test) = start().await else { return };
    let mut other = Saved::new(&[&tar_of(&root())]);
    other.architecture = "s390x";
    let archive = written(&test, "archive", &other.docker());
    test.docker.said(&["load", "--input", archive.to_str().unwrap()]).unwrap();
    let mut wanted = spec();
    wanted.image = "taken".parse().unwrap();
    match test.engine.create(&wanted).await {
        Err(EngineError::BadImage(text)) => {
            assert!(text.contains("taken is for linux/s390x"), "{text}");
            assert!(text.contains("`docker pull --platform linux/"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(test.residue(), Vec::<String>::new());
    let tested = test.engine.images_to_test().await.unwrap();
    assert!(tested.iter().all(|image| image.name != wanted.image), "{tested:?}");
    test.docker.said(&["rmi", "taken:latest", "taken:too"]).unwrap();
    // The same for this machine makes one.
    let archive = written(&test, "archive", &Saved::new(&[&tar_of(&root())]).docker());
    test.docker.said(&["load", "--input", archive.to_str().unwrap()]).unwrap();
    wanted.id = spec().id;
    test.engine.create(&wanted).await.unwrap();
    test.engine.destroy(&wanted.id).await.unwrap();
    test.docker.said(&["rmi", "taken:latest", "taken:too"]).unwrap();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_in_an_archive_lead_docker_nowhere() {
    let Some(test) = start().await else { return };
    let outside = tempfile::tempdir().unwrap();
    let canary = outside.path().join("canary");
    std::fs::write(&canary, "untouched").unwrap();
    for (what, layer) in archives::links_to(outside.path()) {
        let before = (images(&test.docker), layers(&test.docker));
        for (form, content) in [("root", layer.clone()), ("saved", Saved::new(&[&layer]).docker())]
        {
            let taken = import(&test, "links", &written(&test, "archive", &content)).await;
            assert_eq!(std::fs::read_to_string(&canary).unwrap(), "untouched", "{what} {form}");
            assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1, "{what} {form}");
            match taken {
                Ok(()) => {
                    test.engine.remove_image(&"links".parse().unwrap()).await.map(drop).unwrap()
                }
                Err(EngineError::BadImage(_)) => {}
                Err(other) => panic!("{what} {form}: {other}"),
            }
            assert_eq!((images(&test.docker), layers(&test.docker)), before, "{what} {form}");
        }
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_a_shell_makes_a_machine_and_a_missing_one_is_named() {
    let Some(test) = start().await else { return };
    let bare = written(&test, "archive", &tar_of(&[("etc/motd", b"hello")]));
    import(&test, "bare", &bare).await.unwrap();
    let id = test.create_with(|spec| spec.image = "bare".parse().unwrap()).await.id;
    let client = test.client(&id).await;
    let output = support::run(&client, &["bash", "-lc", "true"]).await;
    assert_eq!(output.code(), Some(127), "{:?}", output.ending);
    let next =
        "there is no sh. Run a program that is there, with its arguments as a list, or use an";
    assert!(output.stderr.contains(next), "{}", output.stderr);
    drop(client);
    test.engine.destroy(&id).await.unwrap();
    test.engine.remove_image(&"bare".parse().unwrap()).await.unwrap();
    let mut wanted = spec();
    wanted.image = "no/such:image".parse().unwrap();
    let missing = test.engine.create(&wanted).await.unwrap_err();
    assert!(matches!(&missing, EngineError::ImageNotFound(name) if *name == wanted.image));
    assert_eq!(test.residue(), Vec::<String>::new());

    // Docker pulls its images itself.
    let reference = "registry.example/no/such:image".to_owned();
    let request = PullRequest { reference, credentials: None };
    let never = CancellationToken::new();
    let swap: sandbank_engine::BeforeSwap = Arc::new(|| {});
    let pulled = test.engine.pull_image(&wanted.image, &request, &|_| {}, &never, &swap).await;
    match pulled.unwrap_err() {
        EngineError::NotPulled { hint, .. } => {
            assert!(hint.contains("docker pull registry.example/no/such:image"), "{hint}");
        }
        other => panic!("{other}"),
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_empty_workspace_that_nobody_has_goes_with_a_failed_create() {
    let Some(test) = start().await else { return };
    let kept: WorkspaceId = "project".parse().unwrap();
    assert!(!test.engine.remove_empty_workspace(&kept).await.unwrap(), "there is none");
    let mut wanted = spec();
    wanted.workspace = Some(kept.clone());
    let id = test.engine.create(&wanted).await.unwrap().id;
    assert!(!test.engine.remove_empty_workspace(&kept).await.unwrap(), "somebody has it");
    test.sh(&id, "mkdir only").await;
    test.engine.destroy(&id).await.unwrap();
    assert!(!test.engine.remove_empty_workspace(&kept).await.unwrap(), "something is in it");
    wanted.id = spec().id;
    let id = test.engine.create(&wanted).await.unwrap().id;
    assert_eq!(test.sh(&id, "ls && rmdir only").await.stdout, "only\n");
    test.engine.destroy(&id).await.unwrap();
    assert!(test.engine.remove_empty_workspace(&kept).await.unwrap());
    assert!(!test.engine.has_workspace(&kept).await.unwrap());
    assert!(test.engine.list().await.unwrap().is_empty(), "nothing stays of the look");
    test.finish().await;
}

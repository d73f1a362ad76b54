//! Images that were made to lead our mounts astray, and volumes that they declare.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs::File;
use std::path::Path;

use sandbank_engine::{Engine, EngineError, WorkspaceId};
use support::{TestEngine, spec};

/// What an image has beside a busybox.
enum Extra {
    Link(&'static str, &'static str),
    File(&'static str),
    Directory(&'static str),
}
use Extra::{Directory, File as Plain, Link};

impl Extra {
    fn path(&self) -> &'static str {
        match self {
            Link(path, _) | Plain(path) | Directory(path) => path,
        }
    }
}

/// Imports the test's image with other things in some places, and with `changes` of its description.
fn image(test: &TestEngine, name: &str, extra: &[Extra], changes: &[&str]) {
    let plain = test.docker.dir().join("root.tar");
    let packed = test.docker.dir().join(format!("{name}.tar"));
    let mut archive = tar::Builder::new(File::create(&packed).unwrap());
    for entry in tar::Archive::new(File::open(plain).unwrap()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().into_owned();
        if extra.iter().any(|extra| Path::new(extra.path()) == path) {
            continue;
        }
        let mut header = entry.header().clone();
        match entry.link_name().unwrap().map(|target| target.into_owned()) {
            Some(target) => archive.append_link(&mut header, path, target).unwrap(),
            None => archive.append_data(&mut header, path, &mut entry).unwrap(),
        }
    }
    for extra in extra {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(0);
        match extra {
            Link(path, target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                archive.append_link(&mut header, path, target).unwrap();
            }
            Plain(path) => archive.append_data(&mut header, path, std::io::empty()).unwrap(),
            Directory(path) => {
                header.set_entry_type(tar::EntryType::Directory);
                archive.append_data(&mut header, path, std::io::empty()).unwrap();
            }
        }
    }
    archive.finish().unwrap();
    let changes = changes.iter().flat_map(|change| ["--change", change]);
    let words = ["import"].into_iter().chain(changes);
    let words: Vec<&str> = words.chain([packed.to_str().unwrap(), name]).collect();
    test.docker.said(&words).unwrap();
}

async fn refusal(test: &TestEngine, name: &str) -> String {
    let mut wanted = spec();
    wanted.image = name.parse().unwrap();
    match test.engine.create(&wanted).await {
        Err(error @ EngineError::BadImage(_)) => error.to_string(),
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_with_a_link_in_one_of_our_places_is_refused_and_leaves_nothing() {
    let Some(test) = TestEngine::start().await else { return };
    for (name, path, extra) in [
        ("link-runner", "/.sandbank", Link(".sandbank", "workspace")),
        ("link-root", "/.sandbank", Link(".sandbank", "/")),
        ("link-workspace", "/workspace", Link("workspace", ".sandbank")),
        ("link-parent", "/vercel", Link("vercel", "/.sandbank")),
        ("link-home", "/home", Link("home", "../..")),
        ("link-tmp", "/tmp", Link("tmp", ".sandbank")),
        ("link-below", "/var/tmp", Link("var/tmp", "/.sandbank")),
        ("link-run", "/run", Link("run", "workspace")),
        ("file-parent", "/vercel", Plain("vercel")),
    ] {
        image(&test, name, &[extra], &[]);
        let text = refusal(&test, name).await;
        assert!(text.contains(name) && text.contains(path), "{text}");
        assert!(text.contains("another image"), "it says what to do: {text}");
        assert_eq!(refusal(&test, name).await, text, "it is remembered");
        assert_eq!(test.residue(), Vec::<String>::new(), "{name}");
    }
    // Links that lead nowhere of ours are the image's affair.
    let harmless = [Link("opt", "/.sandbank"), Link("srv", "/"), Directory("home")];
    image(&test, "link-elsewhere", &harmless, &[]);
    let id = test.create_with(|spec| spec.image = "link-elsewhere".parse().unwrap()).await.id;
    assert_eq!(test.sh(&id, "echo works; readlink /opt").await.stdout, "works\n/.sandbank\n");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_that_an_image_declares_are_neither_made_nor_left() {
    let Some(test) = TestEngine::start().await else { return };
    let anonymous = || {
        let volumes = test.docker.said(&["volume", "ls", "-q"]).unwrap();
        volumes.lines().filter(|name| !name.starts_with("sandbank-")).count()
    };
    let declared =
        ["VOLUME /data/", "VOLUME /workspace", "VOLUME /home", "VOLUME /var/lib/db", "VOLUME /run"];
    image(&test, "declares", &[Directory("data")], &declared[..4]);
    let id = test.create_with(|spec| spec.image = "declares".parse().unwrap()).await.id;
    assert_eq!(anonymous(), 0, "nothing but the workspace is writable and stays");
    let script = "for d in /data /home /var/lib/db; do touch $d/x 2>/dev/null && echo $d; done; \
                  echo kept > /workspace/x && cat /home/user/x";
    assert_eq!(test.sh(&id, script).await.stdout, "kept\n");
    test.engine.destroy(&id).await.unwrap();
    // In these places we have something ourselves, whatever mode the image's own has.
    image(&test, "declares-tmp", &[], &["VOLUME /tmp", declared[4]]);
    let id = test.create_with(|spec| spec.image = "declares-tmp".parse().unwrap()).await.id;
    let mounts = "echo x > /tmp/x && grep ' /tmp ' /proc/mounts | cut -d' ' -f1,3";
    assert_eq!(test.sh(&id, mounts).await.stdout, "tmpfs tmpfs\n");
    test.engine.destroy(&id).await.unwrap();
    assert_eq!(anonymous(), 0, "whatever Docker made went with the container");
    for (name, change, path) in [
        ("declares-runner", "VOLUME /.sandbank", "/.sandbank"),
        ("declares-inside", "VOLUME /workspace/cache", "/workspace/cache"),
    ] {
        image(&test, name, &[], &[change]);
        let text = refusal(&test, name).await;
        assert!(text.contains(name) && text.contains(path), "{text}");
        assert_eq!((test.residue().len(), anonymous()), (0, 0), "{name}");
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_daemon_left_of_its_look_into_an_image_goes_at_the_next_start() {
    let Some(test) = TestEngine::start().await else { return };
    let instance = format!("sandbank.instance={}", test.settings.instance);
    let other = "sandbank.instance=somebody-else";
    for label in [instance.as_str(), other] {
        let look = ["--label", "sandbank.looked-at=x", support::IMAGE, "/nothing"];
        test.docker.said(&[&["create", "--label", label][..], &look].concat()).unwrap();
    }
    assert_eq!(test.residue().len(), 1);
    let test = test.restart().await;
    assert_eq!(test.residue(), Vec::<String>::new());
    let theirs = test.docker.said(&["ps", "-aq", "--filter", &format!("label={other}")]).unwrap();
    assert!(!theirs.is_empty(), "another daemon's stays");
    test.docker.said(&["rm", &theirs]).unwrap();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runners_of_other_versions_go_when_nobody_uses_them() {
    let Some(test) = TestEngine::start().await else { return };
    let label = ["--label", "sandbank.runner="];
    let (old, used) = ("sandbank-runner-0123456789abcdef", "sandbank-runner-fedcba9876543210");
    let (foreign, other) = ("sandbank-runner-00000000", "sandbank-runner-backup");
    for (name, label) in [(old, &label[..]), (used, &label), (other, &label), (foreign, &[])] {
        test.docker.said(&[&["volume", "create"][..], label, &[name]].concat()).unwrap();
    }
    let holder = format!("{used}:/x");
    let holder = test.docker.said(&["create", "-v", &holder, support::IMAGE, "/bin/sh"]).unwrap();
    // The first machine of a daemon brings its runner.
    let next = TestEngine::on(test.docker.clone(), |_| {}).await.unwrap();
    next.create().await;
    let left = test.docker.said(&["volume", "ls", "-q"]).unwrap();
    let left: Vec<&str> = left.lines().collect();
    assert!(!left.contains(&old), "{left:?}");
    for name in [used, foreign, other] {
        assert!(left.contains(&name), "{name} is in use, or not ours: {left:?}");
    }
    test.docker.said(&["rm", &holder]).unwrap();
    test.docker.said(&["volume", "rm", used, foreign, other]).unwrap();
    next.finish().await;
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_s_privileged_programs_and_devices_are_worth_nothing() {
    let Some(test) = TestEngine::start().await else { return };
    let kept: WorkspaceId = "dangerous".parse().unwrap();
    let id = test.create_with(|spec| spec.workspace = Some(kept)).await.id;
    let volume = format!("sandbank-{}-kept-dangerous", test.settings.instance);
    let show = ["volume", "inspect", "-f", "{{.Mountpoint}}", &volume];
    let place = test.docker.said(&show).unwrap();
    // As somebody with more rights may leave them there.
    let script = "cp /bin/busybox $0/id && chmod 4755 $0/id && mknod -m 666 $0/disk b 8 0 && \
                  mknod -m 666 $0/zero c 1 5";
    let mut leave = test.docker.enter("busybox").unwrap();
    assert!(leave.args(["sh", "-c", script, &place]).status().unwrap().success());
    let script = "test -u id && ./id -u; head -c1 zero | wc -c; head -c1 disk 2>&1 | tail -c 24";
    let said = test.sh(&id, script).await.stdout;
    assert_eq!(said, "1000\n1\nOperation not permitted\n");
    test.finish().await;
}

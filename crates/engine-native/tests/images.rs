//! Roots made of layers, friendly and hostile.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use sandbank_engine::{Engine, ImageName};
use support::{TestEngine, cannot_run, residue};

sandbank_engine_native::spawner_entry!();

/// A root file system whose only program is the static runner itself.
fn archive(path: &std::path::Path, extra: impl FnOnce(&mut tar::Builder<std::fs::File>)) {
    let mut tar = tar::Builder::new(std::fs::File::create(path).unwrap());
    let mut file = |name: &str, mode: u32, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(33);
        header.set_mtime(0);
        tar.append_data(&mut header, name, content).unwrap();
    };
    file("bin/program", 0o755, sandbank_runner_binary::RUNNER);
    file("etc/motd", 0o640, b"from the image\n");
    extra(&mut tar);
    tar.finish().unwrap();
}

fn link(tar: &mut tar::Builder<std::fs::File>, name: &str, target: &str) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    header.set_mode(0o777);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    tar.append_link(&mut header, name, target).unwrap();
}

async fn import(
    test: &TestEngine,
    name: &str,
    extra: impl FnOnce(&mut tar::Builder<std::fs::File>),
) -> ImageName {
    let path = test.settings.data_dir.join(format!("{name}.tar"));
    archive(&path, extra);
    let name: ImageName = name.parse().unwrap();
    test.engine.import_image(&name, &path, &|_| {}).await.unwrap();
    name
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_image_is_a_read_only_overlay_with_mapped_owners() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let image = import(&test, "small", |_| {}).await;
    let machine = test.create_with(|spec| spec.image = image.clone()).await;
    let client = test.client(&machine.id).await;
    let output = support::run(&client, &["/bin/program", "--no-such-option"]).await;
    assert!(matches!(output.code(), Some(1..=125)), "the image's program ran: {}", output.stderr);

    let pid = machine.pid.unwrap();
    let mounts = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
    let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/")).unwrap();
    assert!(root.contains(" - overlay ") && root.contains(" ro,"), "{root}");
    use std::os::unix::fs::MetadataExt;
    let motd = std::fs::metadata(format!("/proc/{pid}/root/etc/motd")).unwrap();
    let base = motd.uid();
    assert!(base >= 0x7000_0000 && motd.gid() == base + 33, "{}:{}", motd.uid(), motd.gid());

    let busy = test.engine.remove_image(&image).await;
    assert!(busy.is_err(), "an image in use stays");
    test.engine.destroy(&machine.id).await.unwrap();
    test.engine.remove_image(&image).await.unwrap();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_full_of_links_redirects_no_mount() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let canary = test.settings.data_dir.join("canary");
    std::fs::create_dir_all(&canary).unwrap();
    let target = canary.to_str().unwrap().to_owned();
    let before = residue::mounts(&test.settings.data_dir);
    let image = import(&test, "hostile", |tar| {
        for name in ["dev", "proc", "sys", "tmp", "run", "vercel", "workspace", "var"] {
            link(tar, name, &target);
        }
    })
    .await;
    let machine = test.create_with(|spec| spec.image = image.clone()).await;
    let pid = machine.pid.unwrap();
    let mounts = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
    for place in ["/dev", "/proc", "/sys", "/tmp", "/run", "/vercel/sandbox/workspace"] {
        let there = mounts.lines().any(|line| line.split(' ').nth(4) == Some(place));
        assert!(there, "{place} is not mounted");
    }
    assert_eq!(residue::mounts(&test.settings.data_dir), before);
    assert_eq!(std::fs::read_dir(&canary).unwrap().count(), 0);
    test.finish().await;
}

/// T08: also where the links are relative, lead to each other, or stand in place of single files.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_whose_places_are_links_runs_with_fresh_ones() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let canary = test.settings.data_dir.join("canary");
    std::fs::create_dir_all(&canary).unwrap();
    std::fs::write(canary.join("file"), "untouched").unwrap();
    let outside = canary.to_str().unwrap().to_owned();
    let file = format!("{outside}/file");
    let places = ["dev", "proc", "sys", "tmp", "run", "workspace", "vercel", "home"];
    let cases: [(&str, &[(&str, &str)]); 4] = [
        ("up", &[]),
        ("ring", &[]),
        ("self", &[]),
        (
            "inner",
            &[
                ("dev/null", &file),
                ("dev/pts", &outside),
                ("dev/shm", &outside),
                ("proc/self", &outside),
                ("etc/passwd", &file),
                ("etc/hosts", &file),
                ("etc/resolv.conf", &file),
                ("vercel/sandbox/workspace", &outside),
                ("home/user", &outside),
            ],
        ),
    ];
    for (name, links) in cases {
        let image = import(&test, name, |tar| {
            for (at, place) in places.iter().enumerate() {
                match name {
                    "up" => link(tar, place, &format!("../../../../..{outside}")),
                    "ring" => link(tar, place, places[(at + 1) % places.len()]),
                    "self" => link(tar, place, "/proc/self/root"),
                    _ => {}
                }
            }
            links.iter().for_each(|(place, target)| link(tar, place, target));
        })
        .await;
        let machine = test.create_with(|spec| spec.image = image.clone()).await;
        let root = format!("/proc/{}/root", machine.pid.unwrap());
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let null = std::fs::symlink_metadata(format!("{root}/dev/null")).unwrap();
        assert!(null.file_type().is_char_device(), "{name}");
        assert_eq!(null.rdev(), rustix::fs::makedev(1, 3), "{name}");
        for etc in ["passwd", "hosts", "resolv.conf"] {
            let path = format!("{root}/etc/{etc}");
            assert!(std::fs::symlink_metadata(&path).unwrap().is_file(), "{name}: {etc}");
            assert!(!std::fs::read_to_string(&path).unwrap().contains("untouched"), "{name}");
        }
        let client = test.client(&machine.id).await;
        let body = sandbank_channel::full_body("inside");
        client.write_file("/workspace/written", None, body).await.unwrap();
        assert!(std::path::Path::new(&format!("{root}/vercel/sandbox/workspace/written")).exists());
        test.engine.destroy(&machine.id).await.unwrap();
        let left: Vec<_> =
            std::fs::read_dir(&canary).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["file"], "{name}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "untouched", "{name}");
    }
    test.finish().await;
}

/// T47: what cannot be run is told in the command's own ending, and the machine lives.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_a_shell_or_with_a_program_of_another_kind_still_makes_a_machine() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let image = import(&test, "bare", |tar| {
        let mut file = |name: &str, content: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o755);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            tar.append_data(&mut header, name, content).unwrap();
        };
        file("bin/empty", b"");
        file("bin/noise", &[0xfe; 4096]);
        file("bin/cut", &sandbank_runner_binary::RUNNER[..64]);
        file("bin/script", b"#!/bin/no-such-shell\n");
    })
    .await;
    let machine = test.create_with(|spec| spec.image = image.clone()).await;
    let client = test.client(&machine.id).await;
    for (program, codes) in [
        ("bash", [127, 127]),
        ("/bin/script", [126, 127]),
        ("/bin/noise", [126, 126]),
        ("/bin/cut", [126, 126]),
    ] {
        let output = support::run(&client, &[program, "-c", "true"]).await;
        assert!(codes.contains(&output.code().unwrap()), "{program}: {:?}", output.ending);
    }
    let output = support::run(&client, &["/bin/program", "--no-such-option"]).await;
    assert!(matches!(output.code(), Some(1..=125)), "the machine lives: {}", output.stderr);
    let missing: ImageName = "no/such:image".parse().unwrap();
    let mut spec = support::spec();
    spec.image = missing.clone();
    let error = test.engine.create(&spec).await.unwrap_err();
    assert!(matches!(error, sandbank_engine::EngineError::ImageNotFound(name) if name == missing));
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mounts_of_a_machine_do_not_spread_to_a_shared_host_tree() {
    if cannot_run() {
        return;
    }
    let shared = tempfile::Builder::new().prefix("sandbank-shared-").tempdir().unwrap();
    let mount = |arguments: &[&str]| {
        let path = shared.path().to_str().unwrap();
        let arguments: Vec<&str> =
            arguments.iter().map(|word| if *word == "@" { path } else { word }).collect();
        std::process::Command::new(arguments[0]).args(&arguments[1..]).status().unwrap()
    };
    assert!(mount(&["mount", "--bind", "@", "@"]).success());
    assert!(mount(&["mount", "--make-shared", "@"]).success());
    let before = residue::mounts(shared.path());
    let test =
        TestEngine::start_with(|settings| settings.data_dir = shared.path().join("data")).await;
    let machine = test.create().await;
    assert_eq!(test.sh(&machine.id, "echo alive").await.stdout, "alive\n");
    assert_eq!(residue::mounts(shared.path()), before);
    test.engine.destroy(&machine.id).await.unwrap();
    test.engine.shutdown().await;
    drop(test);
    assert!(mount(&["umount", "-l", "@"]).success());
}

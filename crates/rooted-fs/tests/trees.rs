//! Removing trees that are deep, wide, read-only, or changing.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use playground::Playground;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};
use sandbank_rooted_fs::RootedError;

/// Deeper than any path text can be.
fn dig(play: &Playground, depth: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    fs::create_dir(play.inside("deep")).unwrap();
    let mut dir = openat(CWD, play.inside("deep"), flags, Mode::empty()).unwrap();
    for level in 0..depth {
        if level % 100 == 0 {
            let file = openat(&dir, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
            drop(file);
            mkdirat(&dir, "side", Mode::RWXU).unwrap();
        }
        mkdirat(&dir, "next", Mode::RWXU).unwrap();
        dir = openat(&dir, "next", flags, Mode::empty()).unwrap();
    }
}

#[test]
fn a_tree_of_five_thousand_levels_is_removed_with_few_descriptors() {
    let play = Playground::new();
    dig(&play, 5000);
    let before = getrlimit(Resource::Nofile);
    let few = Rlimit { current: Some(256), maximum: before.maximum };
    setrlimit(Resource::Nofile, few).unwrap();
    let removed = play.root.remove_all(&play.path("deep"));
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(removed, Ok(()));
    assert_eq!(play.names(""), [] as [&str; 0]);
}

#[test]
fn a_wide_tree_is_removed_in_bounded_steps() {
    let play = Playground::new();
    for directory in 0..20 {
        fs::create_dir_all(play.inside(&format!("wide/{directory}"))).unwrap();
        for file in 0..300 {
            fs::write(play.inside(&format!("wide/{directory}/{file}")), b"").unwrap();
        }
    }
    let mut removal = play.root.begin_removal(&play.path("wide")).unwrap();
    let mut steps = 1;
    while !removal.step().unwrap() {
        steps += 1;
    }
    assert!(steps > 20, "the work comes in pieces, not {steps}");
    assert!(!play.inside("wide").exists());
    assert!(removal.step().unwrap(), "a finished removal stays finished");
}

#[test]
fn a_read_only_directory_of_ones_own_does_not_stop_a_removal() {
    let play = Playground::new();
    fs::create_dir_all(play.inside("cache/module/sub")).unwrap();
    fs::write(play.inside("cache/module/file"), b"").unwrap();
    for directory in ["cache/module/sub", "cache/module", "cache", ""] {
        let _ = std::os::unix::fs::chown(play.inside(directory), Some(1000), Some(1000));
        let mode = if directory.is_empty() { 0o755 } else { 0o555 };
        fs::set_permissions(play.inside(directory), fs::Permissions::from_mode(mode)).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Root would not notice the mode. Only this thread changes its identity.
            let (user, group) = (Uid::from_raw(1000), Gid::from_raw(1000));
            let _ = set_thread_res_gid(group, group, group);
            let _ = set_thread_res_uid(user, user, user);
            assert!(fs::remove_file(play.inside("cache/module/file")).is_err(), "the control");
            assert_eq!(play.root.remove_all(&play.path("cache")), Ok(()));
        });
    });
}

#[test]
fn a_tree_that_grows_meanwhile_is_removed_or_reported_as_changing() {
    let play = Playground::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0u64;
            while !stop.load(Ordering::Relaxed) {
                let directory = play.inside(&format!("tree/{}/{}", round % 7, round % 3));
                let _ = fs::create_dir_all(&directory);
                let _ = fs::write(directory.join("file"), b"");
                let _ = fs::rename(play.inside("tree/1"), play.inside("tree/2/moved"));
                round += 1;
            }
        });
        for _ in 0..300 {
            match play.root.remove_all(&play.path("tree")) {
                Ok(()) | Err(RootedError::NotFound(_) | RootedError::Contended(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let _ = play.root.remove_all(&play.path("tree"));
    assert!(!play.inside("tree").exists());
    play.assert_outside_untouched();
}

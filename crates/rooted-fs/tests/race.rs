//! An attacker swaps a directory, and a file, against links to the outside with
//! `renameat2(EXCHANGE)` as fast as it can while every operation runs thousands of times.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use playground::{CANARY, Playground};
use sandbank_rooted_fs::{
    Directory, FileKind, Links, Order, Overwrite, RootedError, Visit, Visitor, walk,
};
use sandbank_test_support::{Meanwhile, Swapper};

const ROUNDS: u32 = 6_000;

/// `dir` ⇄ `link → outside`, and `dir/…` files whose names exist outside, too.
fn battlefield() -> (Playground, Vec<(PathBuf, PathBuf)>) {
    let play = Playground::new();
    play.write("dir/canary", b"inside");
    symlink(play.outside(""), play.inside("link")).unwrap();
    play.write("file", b"inside");
    symlink("../outside/canary", play.inside("file-link")).unwrap();
    let pairs = vec![
        (play.inside("dir"), play.inside("link")),
        (play.inside("file"), play.inside("file-link")),
    ];
    (play, pairs)
}

#[test]
fn reads_never_show_what_is_outside() {
    let (play, pairs) = battlefield();
    let attacker = Swapper::start(pairs);
    let mut seen = 0;
    for _ in 0..ROUNDS {
        for path in ["dir/canary", "file", "link/canary"] {
            let path = play.path(path);
            if let Ok(file) = play.root.open_read(&path) {
                let content = file.read_at(0, 100).unwrap();
                assert_ne!(content, CANARY, "read through to the outside");
                seen += 1;
            }
            if let Ok(stat) = play.root.stat(&path, Links::Follow) {
                assert_ne!(stat.size, CANARY.len() as u64, "looked at the outside");
            }
        }
        if let Ok((entries, _)) = play.root.list(&play.path("dir"), 10) {
            assert!(entries.iter().all(|entry| entry.stat.size != CANARY.len() as u64));
        }
    }
    assert!(seen > 0, "the control: some reads reach the file inside");
    assert!(attacker.swaps() > 0);
}

#[test]
fn writes_never_reach_the_outside() {
    let (play, pairs) = battlefield();
    let attacker = Swapper::start(pairs);
    let mut written = 0;
    for round in 0..ROUNDS {
        for path in ["dir/canary", "dir/new", "file"] {
            let path = play.path(path);
            if let Ok(mut file) = play.root.create(&path, None) {
                file.write_all(b"inside").unwrap();
                written += u32::from(file.commit().is_ok());
            }
            if let Ok(file) = play.root.open_write(&path) {
                file.write_all_at(0, b"inside").unwrap();
            }
        }
        let _ = play.root.mkdir_all(&play.path(&format!("dir/made/{}", round % 50)));
        if round % 1000 == 0 {
            play.assert_outside_untouched();
        }
    }
    drop(attacker);
    assert!(written > 0, "the control: some writes succeed");
    play.assert_outside_untouched();
}

#[test]
fn deletes_and_moves_never_reach_the_outside() {
    let (play, mut pairs) = battlefield();
    play.write("tree/sub/canary", b"inside");
    symlink(play.outside(""), play.inside("tree/sublink")).unwrap();
    pairs.push((play.inside("tree/sub"), play.inside("tree/sublink")));
    let attacker = Swapper::start(pairs);
    let mut removed = 0;
    for _ in 0..ROUNDS / 2 {
        removed += u32::from(play.root.remove(&play.path("dir/canary")).is_ok());
        let _ = play.root.rename(&play.path("dir/canary"), &play.path("moved"), Overwrite::Yes);
        let tree = play.root.remove_all(&play.path("tree"));
        let acceptable =
            matches!(tree, Ok(()) | Err(RootedError::NotFound(_) | RootedError::Contended(_)));
        assert!(acceptable, "{tree:?}");
        let _ = fs::create_dir_all(play.inside("tree/sub"));
        let _ = fs::write(play.inside("tree/sub/canary"), b"inside");
        let _ = symlink(play.outside(""), play.inside("tree/sublink"));
        let _ = play.root.create(&play.path("dir/canary"), None).map(|file| file.commit());
    }
    drop(attacker);
    assert!(removed > 0, "the control: some removals succeed");
    play.assert_outside_untouched();
}

/// What is its `..` is inside at one time and outside at another.
#[test]
fn a_directory_that_is_moved_out_takes_nobody_along() {
    let play = Playground::new();
    play.write("dir/canary", b"inside");
    fs::create_dir(play.inside("dir/sub")).unwrap();
    symlink("../canary", play.inside("dir/sub/up")).unwrap();
    let (inside, outside) = (play.inside("dir/sub"), play.outside("sub"));
    let attacker = Meanwhile::repeat(move || {
        let _ = fs::rename(&inside, &outside);
        let _ = fs::rename(&outside, &inside);
    });
    let mut seen = 0;
    for _ in 0..ROUNDS {
        if let Ok(file) = play.root.open_read(&play.path("dir/sub/up")) {
            assert_eq!(file.read_at(0, 100).unwrap(), b"inside", "read through to the outside");
            seen += 1;
        }
    }
    drop(attacker);
    assert!(seen > 0, "the control: some reads reach the file inside");
}

/// Nothing of what a copy made, or modes changed, is outside or from outside.
#[test]
fn copies_walks_and_modes_never_reach_the_outside() {
    let (play, mut pairs) = battlefield();
    play.write("tree/sub/canary", b"inside");
    symlink(play.outside(""), play.inside("tree/sublink")).unwrap();
    symlink("../../outside/canary", play.inside("tree/link")).unwrap();
    play.write("tree/file", b"inside");
    pairs.push((play.inside("tree/sub"), play.inside("tree/sublink")));
    pairs.push((play.inside("tree/file"), play.inside("tree/link")));
    let before = fs::metadata(play.outside("canary")).unwrap().permissions();
    let attacker = Swapper::start(pairs);
    let (mut copied, mut changed, mut walked) = (0, 0, 0);
    for round in 0..ROUNDS / 8 {
        let to = play.path("copy");
        for from in ["tree", "dir/canary", "file"] {
            if play.root.copy(&play.path(from), &to, Overwrite::No, &|| true).is_ok() {
                copied += 1;
                assert_inside(&play.inside("copy"));
                play.root.remove_all(&to).unwrap();
            }
        }
        let _ =
            play.root.copy(&play.path("file"), &play.path("dir/copied"), Overwrite::Yes, &|| true);
        let mode = if round % 2 == 0 { 0o755 } else { 0o700 };
        for (path, recursive) in [("tree", true), ("dir/canary", false), ("file", false)] {
            let answer = play.root.chmod(&play.path(path), mode, recursive, &|| true);
            changed += u32::from(answer.is_ok());
        }
        let mut count = Count(0);
        walk(play.root.open_directory(&play.path("tree")).unwrap(), Order::Found, &mut count);
        walked += count.0;
    }
    drop(attacker);
    assert!(copied > 0 && changed > 0 && walked > 0, "the control: {copied} {changed} {walked}");
    play.assert_outside_untouched();
    assert_eq!(fs::metadata(play.outside("canary")).unwrap().permissions(), before);
}

/// Counts entries, and fails at one that has the canary's size.
struct Count(u32);

impl Visitor for Count {
    fn entry(&mut self, dir: &Directory, _: usize, name: &OsStr, kind: FileKind) -> Visit {
        self.0 += 1;
        if kind == FileKind::File
            && let Ok(file) = dir.open_file(name)
        {
            assert_ne!(file.stat().size, CANARY.len() as u64, "looked at the outside");
        }
        Visit::Go
    }

    fn failed(&mut self, _: RootedError) -> Visit {
        Visit::Go
    }
}

/// No file of the tree has the canary's content.
fn assert_inside(path: &Path) {
    let kind = fs::symlink_metadata(path).unwrap().file_type();
    if kind.is_file() {
        assert_ne!(fs::read(path).unwrap(), CANARY, "{path:?} is from outside");
    } else if kind.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            assert_inside(&entry.unwrap().path());
        }
    }
}

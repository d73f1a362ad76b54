//! An attacker swaps a directory, and a file, against links to the outside with
//! `renameat2(EXCHANGE)` as fast as it can while every operation runs thousands of times.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use playground::{CANARY, Playground};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use sandbank_rooted_fs::{Links, Overwrite, RootedError};

const ROUNDS: u32 = 6_000;

/// Swaps pairs of names until it is dropped.
struct Attacker {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Attacker {
    fn start(pairs: Vec<(PathBuf, PathBuf)>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let swaps = Arc::new(AtomicU64::new(0));
        let (stopped, counted) = (stop.clone(), swaps.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for (one, other) in &pairs {
                    if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok() {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.take().expect("joined once").join();
        assert!(joined.is_ok(), "the attacker panicked");
    }
}

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
    let attacker = Attacker::start(pairs);
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
    assert!(attacker.swaps.load(Ordering::Relaxed) > 0);
}

#[test]
fn writes_never_reach_the_outside() {
    let (play, pairs) = battlefield();
    let attacker = Attacker::start(pairs);
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
    let attacker = Attacker::start(pairs);
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

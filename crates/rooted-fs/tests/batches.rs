//! Several files at once: all or none.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use std::fs;

use playground::Playground;
use sandbank_rooted_fs::{Batch, RootedError};

fn stage(play: &Playground, batch: &mut Batch<'_>, path: &str, content: &[u8]) {
    let mut file = play.root.create(&play.path(path), Some(0o644)).unwrap();
    file.write_all(content).unwrap();
    batch.add(file).unwrap();
}

#[test]
fn all_files_appear_and_no_temporary_stays() {
    let play = Playground::new();
    play.write("old", b"old");
    let mut batch = Batch::new(&play.root);
    for (path, content) in [("old", b"one"), ("d/new", b"two"), ("d/new", b"six")] {
        stage(&play, &mut batch, path, content);
    }
    assert_eq!(play.read("old"), b"old", "nothing is replaced before the commit");
    batch.commit().unwrap();
    assert_eq!(play.read("old"), b"one");
    assert_eq!(play.read("d/new"), b"six", "the last version of a path wins");
    assert_eq!(play.names(""), ["d", "old"]);
    assert_eq!(play.names("d"), ["new"]);
}

#[test]
fn a_batch_that_is_dropped_leaves_nothing() {
    let play = Playground::new();
    let mut batch = Batch::new(&play.root);
    stage(&play, &mut batch, "a", b"1");
    stage(&play, &mut batch, "b", b"2");
    drop(batch);
    assert_eq!(play.names(""), [] as [&str; 0]);
}

#[test]
fn a_failure_at_the_last_file_puts_every_old_version_back() {
    let play = Playground::new();
    play.write("first", b"old first");
    let mut batch = Batch::new(&play.root);
    stage(&play, &mut batch, "first", b"new first");
    stage(&play, &mut batch, "second", b"new second");
    stage(&play, &mut batch, "third", b"new third");
    fs::create_dir(play.inside("third")).unwrap();
    assert!(matches!(batch.commit(), Err(RootedError::WrongKind { .. })));
    assert_eq!(play.names(""), ["first", "third"]);
    assert_eq!(play.read("first"), b"old first");
}

#[test]
fn a_batch_may_have_more_files_than_descriptors_are_allowed() {
    let play = Playground::new();
    let mut batch = Batch::new(&play.root);
    for index in 0..3000 {
        stage(&play, &mut batch, &format!("{}/{index}", index % 1500), b"x");
    }
    batch.commit().unwrap();
    assert_eq!(play.names("").len(), 1500);
    assert_eq!(play.read("7/1507"), b"x");
}

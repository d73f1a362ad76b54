//! Each operation as its callers use it.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use playground::Playground;
use sandbank_rooted_fs::{FileKind, Links, Overwrite, RootedError};

#[test]
fn a_file_is_created_with_its_parents_and_read_back_in_ranges() {
    let play = Playground::new();
    play.write("/workspace/a/b/c.txt", b"0123456789");
    let file = play.root.open_read(&play.path("a/b/c.txt")).unwrap();
    assert_eq!(file.stat().size, 10);
    assert_eq!(file.read_at(3, 4).unwrap(), b"3456");
    assert_eq!(file.read_at(8, 100).unwrap(), b"89");
    assert_eq!(file.read_at(10, 1).unwrap(), b"");
    assert_eq!(play.names("a/b"), ["c.txt"]);
}

#[test]
fn a_file_that_is_not_committed_leaves_nothing() {
    let play = Playground::new();
    play.write("kept", b"old");
    let mut file = play.root.create(&play.path("kept"), None).unwrap();
    file.write_all(b"half of the new").unwrap();
    assert_eq!(play.read("kept"), b"old");
    drop(file);
    assert_eq!(play.names(""), ["kept"]);
    assert_eq!(play.read("kept"), b"old");
}

#[test]
fn replacing_keeps_the_mode_unless_one_is_given() {
    let play = Playground::new();
    let mode = |path: &str| play.root.stat(&play.path(path), Links::Keep).unwrap().mode;
    play.write("new", b"");
    assert_eq!(mode("new"), 0o644);
    fs::set_permissions(play.inside("new"), fs::Permissions::from_mode(0o755)).unwrap();
    play.write("new", b"x");
    assert_eq!(mode("new"), 0o755);
    let file = play.root.create(&play.path("new"), Some(0o4600)).unwrap();
    assert_eq!(file.commit().unwrap().mode, 0o600, "set-id bits are never written");
}

#[test]
fn writing_in_place_changes_only_its_range() {
    let play = Playground::new();
    play.write("f", b"aaaaaa");
    play.root.open_write(&play.path("f")).unwrap().write_all_at(2, b"XX").unwrap();
    assert_eq!(play.read("f"), b"aaXXaa");
    let missing = play.root.open_write(&play.path("nope"));
    assert!(matches!(missing, Err(RootedError::NotFound(_))));
}

#[test]
fn listings_are_sorted_bounded_and_describe_links() {
    let play = Playground::new();
    for name in ["b", "a", "c"] {
        play.write(&format!("d/{name}"), name.as_bytes());
    }
    std::os::unix::fs::symlink("nowhere", play.inside("d/link")).unwrap();
    let (entries, truncated) = play.root.list(&play.path("d"), 100).unwrap();
    let names: Vec<_> = entries.iter().map(|entry| entry.name.to_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c", "link"]);
    assert!(!truncated);
    assert_eq!(entries[3].stat.kind, FileKind::Symlink);
    assert_eq!(entries[3].target.as_deref(), Some("nowhere".as_ref()));
    let (entries, truncated) = play.root.list(&play.path("d"), 2).unwrap();
    assert_eq!((entries.len(), truncated), (2, true));
    let (entries, truncated) = play.root.list(&play.path("d"), 4).unwrap();
    assert_eq!((entries.len(), truncated), (4, false));
    let file = play.root.list(&play.path("d/a"), 10);
    assert!(matches!(file, Err(RootedError::WrongKind { found: FileKind::File, .. })), "{file:?}");
}

#[test]
fn mkdir_makes_parents_only_when_asked() {
    let play = Playground::new();
    let deep = play.path("x/y/z");
    assert!(matches!(play.root.mkdir(&deep), Err(RootedError::NotFound(_))));
    assert_eq!(play.root.mkdir_all(&deep).unwrap().kind, FileKind::Directory);
    assert_eq!(play.root.mkdir_all(&deep).unwrap().kind, FileKind::Directory);
    assert!(matches!(play.root.mkdir(&deep), Err(RootedError::AlreadyExists(_))));
    play.write("x/file", b"");
    let on_file = play.root.mkdir_all(&play.path("x/file"));
    assert!(matches!(on_file, Err(RootedError::WrongKind { .. })), "{on_file:?}");
    let through_file = play.root.mkdir_all(&play.path("x/file/y"));
    assert!(matches!(through_file, Err(RootedError::NotADirectory(_))), "{through_file:?}");
    assert!(play.root.mkdir_all(&play.path("/workspace")).is_ok());
}

#[test]
fn rename_replaces_only_when_asked() {
    let play = Playground::new();
    play.write("a", b"A");
    play.write("d/b", b"B");
    let (a, b) = (play.path("a"), play.path("d/b"));
    let refused = play.root.rename(&a, &b, Overwrite::No);
    assert_eq!(refused, Err(RootedError::AlreadyExists(b.clone())));
    play.root.rename(&a, &b, Overwrite::Yes).unwrap();
    assert_eq!(play.read("d/b"), b"A");
    let gone = play.root.rename(&a, &play.path("e"), Overwrite::No);
    assert_eq!(gone, Err(RootedError::NotFound(a)));
    let into_itself = play.root.rename(&play.path("d"), &play.path("d/e"), Overwrite::No);
    assert_eq!(into_itself, Err(RootedError::IntoItself(play.path("d"))));
}

#[test]
fn remove_takes_files_and_empty_directories_but_not_full_ones() {
    let play = Playground::new();
    play.write("d/f", b"");
    let full = play.root.remove(&play.path("d"));
    assert_eq!(full, Err(RootedError::NotEmpty(play.path("d"))));
    play.root.remove(&play.path("d/f")).unwrap();
    play.root.remove(&play.path("d")).unwrap();
    assert_eq!(play.root.remove(&play.path("d")), Err(RootedError::NotFound(play.path("d"))));
    assert_eq!(play.root.remove_all(&play.path("d")), Err(RootedError::NotFound(play.path("d"))));
}

#[test]
fn the_root_itself_cannot_be_replaced_moved_or_removed() {
    let play = Playground::new();
    let root = play.path(".");
    assert!(matches!(play.root.create(&root, None), Err(RootedError::IsRoot)));
    assert_eq!(play.root.remove(&root), Err(RootedError::IsRoot));
    assert_eq!(play.root.remove_all(&root), Err(RootedError::IsRoot));
    let moved = play.root.rename(&root, &play.path("a"), Overwrite::No);
    assert_eq!(moved, Err(RootedError::IsRoot));
    assert_eq!(play.root.stat(&root, Links::Keep).unwrap().kind, FileKind::Directory);
    assert!(play.root.list(&root, 10).unwrap().0.is_empty());
}

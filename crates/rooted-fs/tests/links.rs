//! Links stay inside or are refused.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use std::fs;
use std::os::unix::fs::symlink;

use playground::{CANARY, Playground};
use sandbank_rooted_fs::{FileKind, Links, Overwrite, RootedError};

/// A root with links out of it, final and on the way, absolute and relative.
fn with_links_out() -> (Playground, Vec<&'static str>) {
    let play = Playground::new();
    symlink(play.outside("canary"), play.inside("absolute")).unwrap();
    symlink("../outside/canary", play.inside("relative")).unwrap();
    symlink(play.outside(""), play.inside("directory")).unwrap();
    symlink("../outside", play.inside("relative-directory")).unwrap();
    symlink("/proc/self/root", play.inside("magic")).unwrap();
    symlink("absolute", play.inside("twice")).unwrap();
    symlink("/", play.inside("slash")).unwrap();
    symlink("circle", play.inside("circle")).unwrap();
    // Begins with a name of the root and leaves it again.
    symlink("/workspace/../outside/canary", play.inside("alias-out")).unwrap();
    symlink("/workspace2/canary", play.inside("alias-boundary")).unwrap();
    let paths = vec![
        "absolute",
        "relative",
        "directory/canary",
        "relative-directory/canary",
        "magic/etc/passwd",
        "twice",
        "slash/etc/passwd",
        "circle",
        "alias-out",
        "alias-boundary",
    ];
    (play, paths)
}

#[test]
fn no_link_out_of_the_root_is_read_written_or_looked_at() {
    let (play, paths) = with_links_out();
    for text in paths {
        let path = play.path(text);
        let escapes = Err(RootedError::Escapes(path.clone()));
        assert_eq!(play.root.open_read(&path).map(drop), escapes, "read {text}");
        assert_eq!(play.root.open_write(&path).map(drop), escapes, "write {text}");
        assert_eq!(play.root.stat(&path, Links::Follow).map(drop), escapes, "stat {text}");
        assert_eq!(play.root.list(&path, 10).map(drop), escapes, "list {text}");
    }
    play.assert_outside_untouched();
}

#[test]
fn nothing_is_made_moved_or_removed_through_a_directory_link_out() {
    let (play, _) = with_links_out();
    play.write("mine", b"");
    for directory in ["directory", "relative-directory", "slash", "magic"] {
        let inside = play.path(&format!("{directory}/new"));
        let canary = play.path(&format!("{directory}/canary"));
        let mine = play.path("mine");
        assert!(matches!(play.root.create(&inside, None), Err(RootedError::Escapes(_))));
        assert!(matches!(play.root.mkdir(&inside), Err(RootedError::Escapes(_))));
        assert!(matches!(play.root.mkdir_all(&inside), Err(RootedError::Escapes(_))));
        assert!(matches!(play.root.remove(&canary), Err(RootedError::Escapes(_))));
        assert!(matches!(play.root.remove_all(&canary), Err(RootedError::Escapes(_))));
        let out = play.root.rename(&mine, &inside, Overwrite::Yes);
        assert!(matches!(out, Err(RootedError::Escapes(_))));
        let into = play.root.rename(&canary, &play.path("stolen"), Overwrite::Yes);
        assert!(matches!(into, Err(RootedError::Escapes(_))));
    }
    play.assert_outside_untouched();
}

#[test]
fn replacing_a_link_replaces_the_link_itself() {
    let (play, _) = with_links_out();
    play.write("absolute", b"mine now");
    assert_eq!(play.read("absolute"), b"mine now");
    play.write("target", b"target");
    symlink("target", play.inside("inner")).unwrap();
    play.write("inner", b"new");
    assert_eq!(play.read("target"), b"target");
    assert_eq!(play.read("inner"), b"new");
    play.assert_outside_untouched();
}

#[test]
fn removing_a_link_or_a_tree_with_links_never_touches_the_targets() {
    let (play, _) = with_links_out();
    play.write("tree/file", b"");
    symlink(play.outside(""), play.inside("tree/out")).unwrap();
    symlink("..", play.inside("tree/up")).unwrap();
    play.root.remove_all(&play.path("directory")).unwrap();
    play.root.remove(&play.path("relative-directory")).unwrap();
    play.root.remove_all(&play.path("tree")).unwrap();
    assert!(!play.inside("tree").exists());
    play.assert_outside_untouched();
}

#[test]
fn links_that_stay_inside_work_relative_or_absolute_under_any_name() {
    let play = Playground::new();
    play.write("data/file", b"content");
    let own = play.inside("data");
    symlink("data/file", play.inside("relative")).unwrap();
    symlink("../data/../data/file", play.inside("data/up")).unwrap();
    symlink(own.join("file"), play.inside("absolute")).unwrap();
    symlink("/workspace/data", play.inside("alias")).unwrap();
    symlink("alias", play.inside("twice")).unwrap();
    symlink("/workspace", play.inside("data/top")).unwrap();
    for path in ["relative", "data/up", "absolute", "alias/file", "twice/file", "data/top/twice/up"]
    {
        assert_eq!(play.read(path), b"content", "{path}");
    }
    play.write("twice/new/deep", b"made");
    assert_eq!(fs::read(play.inside("data/new/deep")).unwrap(), b"made");
    let link = play.root.stat(&play.path("alias/up"), Links::Keep).unwrap();
    assert_eq!(link.kind, FileKind::Symlink);
    let (entries, _) = play.root.list(&play.path("alias"), 10).unwrap();
    assert_eq!(entries.len(), 4);
}

#[test]
fn a_hard_link_to_a_file_outside_is_broken_by_an_atomic_write() {
    let play = Playground::new();
    fs::hard_link(play.outside("canary"), play.inside("hard")).unwrap();
    play.write("hard", b"mine");
    assert_eq!(fs::read(play.outside("canary")).unwrap(), CANARY);
}

#[test]
fn a_dangling_link_is_missing_not_made() {
    let play = Playground::new();
    symlink("nowhere", play.inside("dangling")).unwrap();
    let read = play.root.open_read(&play.path("dangling")).map(drop);
    assert_eq!(read, Err(RootedError::NotFound(play.path("dangling"))));
    let made = play.root.mkdir_all(&play.path("dangling/below")).map(drop);
    assert!(matches!(made, Err(RootedError::NotFound(_))), "{made:?}");
    assert!(!play.inside("nowhere").exists());
}

#[test]
fn a_hard_link_onto_another_name_of_the_same_file_leaves_nothing_behind() {
    let play = Playground::new();
    play.write("a", b"content");
    for _ in 0..2 {
        play.root.hardlink(&play.path("b"), &play.path("a")).unwrap();
    }
    let mut names: Vec<_> = std::fs::read_dir(play.inside(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
}

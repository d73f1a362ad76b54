//! Pipes, sockets, devices and directories are refused quickly, and odd names are only names.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use playground::Playground;
use rustix::fs::{CWD, Mode};
use sandbank_rooted_fs::{FileKind, Links, Overwrite, RootedError};

#[test]
fn only_regular_files_are_read_written_or_replaced() {
    let play = Playground::new();
    rustix::fs::mkfifoat(CWD, play.inside("pipe"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(play.inside("socket")).unwrap();
    fs::create_dir(play.inside("directory")).unwrap();
    for (name, kind) in
        [("pipe", FileKind::Other), ("socket", FileKind::Other), ("directory", FileKind::Directory)]
    {
        let path = play.path(name);
        let wanted = FileKind::File;
        let wrong = Err(RootedError::WrongKind { path: path.clone(), found: kind, wanted });
        assert_eq!(play.root.open_read(&path).map(drop), wrong, "read {name}");
        assert_eq!(play.root.open_write(&path).map(drop), wrong, "write {name}");
        assert_eq!(play.root.create(&path, None).map(drop), wrong, "replace {name}");
        assert_eq!(play.root.stat(&path, Links::Keep).unwrap().kind, kind);
    }
    assert_eq!(play.names(""), ["directory", "pipe", "socket"], "nothing was left behind");
}

#[test]
fn a_pipe_at_the_end_of_a_link_is_refused_too_and_can_be_removed() {
    let play = Playground::new();
    rustix::fs::mkfifoat(CWD, play.inside("pipe"), Mode::RWXU).unwrap();
    symlink("pipe", play.inside("link")).unwrap();
    let read = play.root.open_read(&play.path("link"));
    assert!(matches!(read, Err(RootedError::WrongKind { found: FileKind::Other, .. })));
    play.root.remove_all(&play.path("pipe")).unwrap();
    play.root.remove(&play.path("link")).unwrap();
}

#[test]
fn odd_names_make_the_whole_round() {
    let play = Playground::new();
    let long = vec![b'x'; 255];
    let names: [&[u8]; 8] = [
        b"new\nline",
        b"-rf",
        b"--help",
        b" lead and trail ",
        b"not utf-8 \xff\xfe",
        b"\\..\\x",
        b"\x1b[31mred",
        &long,
    ];
    for name in names {
        let path = play.root.parse(name).unwrap();
        let mut file = play.root.create(&path, None).unwrap();
        file.write_all(name).unwrap();
        file.commit().unwrap();
    }
    let (entries, _) = play.root.list(&play.path("."), 100).unwrap();
    assert_eq!(entries.len(), names.len());
    for entry in &entries {
        assert!(names.contains(&entry.name.as_bytes()), "{:?}", entry.name);
        let path = play.root.parse(entry.name.as_bytes()).unwrap();
        let content = play.root.open_read(&path).unwrap().read_at(0, 300).unwrap();
        assert_eq!(OsStr::from_bytes(&content), entry.name);
        let moved = play.root.parse([b"d", entry.name.as_bytes()].join(&b'/')).unwrap();
        play.root.mkdir_all(&play.path("d")).unwrap();
        play.root.rename(&path, &moved, Overwrite::No).unwrap();
        play.root.remove(&moved).unwrap();
    }
    assert_eq!(play.names("d"), [] as [&str; 0]);
}

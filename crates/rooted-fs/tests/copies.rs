//! Copies and permission bits: what they make, what they refuse, what a failure leaves.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

use playground::{CANARY, Playground};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sandbank_rooted_fs::{Expected, FileKind, FileStat, Links, Overwrite, RootedError};

fn copy(
    play: &Playground,
    from: &str,
    to: &str,
    overwrite: Overwrite,
) -> Result<FileStat, RootedError> {
    play.root.copy(&play.path(from), &play.path(to), overwrite, &|| true)
}

fn mode(play: &Playground, path: &str) -> u32 {
    fs::symlink_metadata(play.inside(path)).unwrap().mode() & 0o7777
}

fn set_mode(play: &Playground, path: &str, mode: u32) {
    fs::set_permissions(play.inside(path), fs::Permissions::from_mode(mode)).unwrap();
}

fn fifo(play: &Playground, path: &str) {
    mknodat(CWD, play.inside(path), FileType::Fifo, Mode::RWXU, 0).unwrap();
}

#[test]
fn a_file_is_copied_with_its_mode_and_without_its_privilege() {
    let play = Playground::new();
    let content: Vec<u8> = (0..9_000_000u32).map(|at| (at % 251) as u8).collect();
    fs::write(play.inside("f"), &content).unwrap();
    set_mode(&play, "f", 0o4751);
    let stat = copy(&play, "f", "g", Overwrite::No).unwrap();
    assert_eq!((stat.size, stat.mode, stat.kind), (9_000_000, 0o751, FileKind::File));
    assert!(fs::read(play.inside("g")).unwrap() == content);
    assert_eq!(
        copy(&play, "f", "g", Overwrite::No),
        Err(RootedError::AlreadyExists(play.path("g")))
    );
    fs::write(play.inside("f"), b"new").unwrap();
    copy(&play, "f", "g", Overwrite::Yes).unwrap();
    assert_eq!(play.read("g"), b"new");
    assert_eq!(play.names(""), ["f", "g"]);
}

#[test]
fn holes_stay_holes() {
    let play = Playground::new();
    let file = fs::File::create(play.inside("sparse")).unwrap();
    file.set_len(1 << 30).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"middle", 500 << 20).unwrap();
    drop(file);
    let stat = copy(&play, "sparse", "copy", Overwrite::No).unwrap();
    let blocks = fs::metadata(play.inside("copy")).unwrap().blocks();
    assert_eq!(stat.size, 1 << 30);
    assert!(blocks * 512 < 64 << 20, "{blocks} blocks were written");
    let path = play.path("copy");
    assert_eq!(play.root.open_read(&path).unwrap().read_at(500 << 20, 6).unwrap(), b"middle");
}

#[test]
fn a_tree_is_copied_with_links_as_links_and_odd_names() {
    let play = Playground::new();
    play.write("tree/dir/file", b"content");
    set_mode(&play, "tree/dir", 0o1750);
    set_mode(&play, "tree", 0o555);
    set_mode(&play, "tree", 0o755);
    symlink(play.outside("canary"), play.inside("tree/out")).unwrap();
    symlink("dir", play.inside("tree/in")).unwrap();
    let odd = OsStr::from_bytes(b"-\xff\n\"");
    fs::write(play.inside("tree").join(odd), b"odd").unwrap();
    fs::write(play.inside("tree").join("x".repeat(255)), b"long").unwrap();
    let stat = copy(&play, "tree", "copy", Overwrite::No).unwrap();
    assert_eq!(stat.kind, FileKind::Directory);
    assert_eq!(play.read("copy/dir/file"), b"content");
    assert_eq!(mode(&play, "copy/dir"), 0o750);
    assert_eq!(fs::read_link(play.inside("copy/out")).unwrap(), play.outside("canary"));
    assert_eq!(fs::read_link(play.inside("copy/in")).unwrap().to_str(), Some("dir"));
    assert_eq!(fs::read(play.inside("copy").join(odd)).unwrap(), b"odd");
    assert_eq!(fs::read(play.inside("copy").join("x".repeat(255))).unwrap(), b"long");
    let link = copy(&play, "tree/out", "link", Overwrite::No).unwrap();
    assert_eq!(link.kind, FileKind::Symlink);
    play.assert_outside_untouched();
}

#[test]
fn what_is_no_file_is_refused_by_name_and_nothing_stays() {
    let play = Playground::new();
    play.write("tree/a", b"");
    fs::create_dir_all(play.inside("tree/deep/er")).unwrap();
    fifo(&play, "tree/deep/er/pipe");
    let refused = copy(&play, "tree", "copy", Overwrite::No).unwrap_err();
    assert_eq!(refused.path(), Some(&play.path("tree/deep/er/pipe")));
    assert!(matches!(refused, RootedError::WrongKind { found: FileKind::Other, .. }));
    let single = copy(&play, "tree/deep/er/pipe", "copy", Overwrite::No);
    assert!(matches!(single, Err(RootedError::WrongKind { .. })), "{single:?}");
    assert_eq!(play.names(""), ["tree"]);
    fs::remove_file(play.inside("tree/deep/er/pipe")).unwrap();
    copy(&play, "tree", "copy", Overwrite::No).unwrap();
}

#[test]
fn nothing_is_copied_into_itself_also_not_through_a_link() {
    let play = Playground::new();
    play.write("a/b/file", b"");
    symlink("a/b", play.inside("to-b")).unwrap();
    for target in ["a/x", "a/b/x", "to-b/x"] {
        let refused = copy(&play, "a", target, Overwrite::No);
        assert!(matches!(refused, Err(RootedError::IntoItself(_))), "{target}: {refused:?}");
    }
    assert_eq!((play.names("a"), play.names("a/b")), (vec!["b".into()], vec!["file".into()]));
    copy(&play, "a/b", "c", Overwrite::No).unwrap();
    for (from, to) in [(".", "x"), ("a", ".")] {
        assert_eq!(copy(&play, from, to, Overwrite::Yes), Err(RootedError::IsRoot));
    }
}

#[test]
fn only_what_fits_is_replaced() {
    let play = Playground::new();
    play.write("file", b"file");
    play.write("full/file", b"");
    fs::create_dir(play.inside("empty")).unwrap();
    fifo(&play, "pipe");
    symlink(play.outside("canary"), play.inside("link")).unwrap();
    let yes = Overwrite::Yes;
    assert!(matches!(copy(&play, "file", "empty", yes), Err(RootedError::WrongKind { .. })));
    assert!(matches!(copy(&play, "file", "pipe", yes), Err(RootedError::WrongKind { .. })));
    assert!(matches!(copy(&play, "empty", "file", yes), Err(RootedError::WrongKind { .. })));
    assert!(matches!(copy(&play, "empty", "full", yes), Err(RootedError::NotEmpty(_))));
    assert!(matches!(copy(&play, "file", "none/x", yes), Err(RootedError::NotFound(_))));
    assert!(matches!(copy(&play, "none", "x", yes), Err(RootedError::NotFound(_))));
    copy(&play, "full", "empty", yes).unwrap();
    copy(&play, "file", "link", yes).unwrap();
    assert_eq!(play.names("empty"), ["file"]);
    assert_eq!(fs::read(play.outside("canary")).unwrap(), CANARY);
    assert!(fs::symlink_metadata(play.inside("pipe")).unwrap().file_type().is_fifo());
    assert_eq!(play.names(""), ["empty", "file", "full", "link", "pipe"]);
}

#[test]
fn a_copy_that_nobody_wants_any_more_ends_and_leaves_nothing() {
    let play = Playground::new();
    for file in 0..100 {
        play.write(&format!("tree/{file}"), b"x");
    }
    let asked = Cell::new(0);
    let wanted = || {
        asked.set(asked.get() + 1);
        asked.get() < 50
    };
    let ended = play.root.copy(&play.path("tree"), &play.path("copy"), Overwrite::No, &wanted);
    assert!(matches!(ended, Err(RootedError::Abandoned(_))), "{ended:?}");
    assert_eq!(play.names(""), ["tree"]);
}

#[test]
fn modes_are_nine_bits_and_never_go_through_a_link() {
    let play = Playground::new();
    play.write("f", b"");
    symlink("f", play.inside("near")).unwrap();
    symlink(play.outside("canary"), play.inside("out")).unwrap();
    fifo(&play, "pipe");
    let before = fs::metadata(play.outside("canary")).unwrap().mode();
    let chmod = |path: &str, mode| play.root.chmod(&play.path(path), mode, false, &|| true);
    assert_eq!(chmod("f", 0o4711).unwrap().mode, 0o711);
    for refused in ["near", "out", "pipe"] {
        let answer = chmod(refused, 0o777);
        assert!(matches!(answer, Err(RootedError::WrongKind { .. })), "{refused}: {answer:?}");
    }
    assert_eq!(chmod(".", 0o700), Err(RootedError::IsRoot));
    assert!(matches!(chmod("none", 0o700), Err(RootedError::NotFound(_))));
    assert_eq!(mode(&play, "f"), 0o711);
    assert_eq!(fs::metadata(play.outside("canary")).unwrap().mode(), before);
}

#[test]
fn a_tree_changes_its_modes_but_not_what_its_links_point_to() {
    let play = Playground::new();
    play.write("tree/dir/file", b"");
    play.write("beside", b"");
    symlink("../beside", play.inside("tree/near")).unwrap();
    symlink(play.outside("canary"), play.inside("tree/out")).unwrap();
    let before = (mode(&play, "beside"), fs::metadata(play.outside("canary")).unwrap().mode());
    for bits in [0o700, 0o000, 0o755] {
        play.root.chmod(&play.path("tree"), bits, true, &|| true).unwrap();
        for path in ["tree", "tree/dir", "tree/dir/file"] {
            assert_eq!(mode(&play, path), bits, "{path}");
        }
    }
    let after = (mode(&play, "beside"), fs::metadata(play.outside("canary")).unwrap().mode());
    assert_eq!(before, after);
}

#[test]
fn a_change_happens_to_the_expected_version_only() {
    let play = Playground::new();
    let path = play.path("dir/f");
    let write = |expected: Expected, content: &[u8]| {
        let mut file = play.root.create_if(&path, None, expected)?;
        file.write_all(content)?;
        file.commit()
    };
    let changed = Err(RootedError::Changed(path.clone()));
    assert_eq!(write(Expected::Something, b"x"), changed);
    assert_eq!(play.names(""), [] as [&str; 0], "not even the directory");
    let first = write(Expected::Nothing, b"first").unwrap();
    assert_eq!(write(Expected::Nothing, b"second"), changed);
    let version = |stat: &FileStat| Expected::Version(vec![stat.tag.unwrap()]);
    let second = write(version(&first), b"other").unwrap();
    assert_eq!((first.size, second.size), (5, 5));
    assert_eq!(write(version(&first), b"third"), changed);
    assert_eq!(play.root.require(&path, &version(&first)), Err(RootedError::Changed(path.clone())));
    assert_eq!(play.root.require(&path, &version(&second)), Ok(()));
    // Between the beginning and the end of a write.
    let mut late = play.root.create_if(&path, None, version(&second)).unwrap();
    late.write_all(b"late").unwrap();
    play.write("dir/f", b"meanwhile");
    assert_eq!(late.commit(), changed);
    let mut new = play.root.create_if(&play.path("new"), None, Expected::Nothing).unwrap();
    new.write_all(b"late").unwrap();
    play.write("new", b"meanwhile");
    assert_eq!(new.commit(), Err(RootedError::Changed(play.path("new"))));
    assert_eq!((play.read("dir/f"), play.read("new")), (b"meanwhile".into(), b"meanwhile".into()));
    assert_eq!(
        (play.names(""), play.names("dir")),
        (vec!["dir".into(), "new".into()], vec!["f".into()])
    );
}

#[test]
fn a_tag_tells_versions_apart_that_size_and_time_do_not() {
    let play = Playground::new();
    play.write("f", b"one");
    let stat = || play.root.stat(&play.path("f"), Links::Keep).unwrap();
    let before = stat();
    assert_eq!(before.tag, stat().tag, "it stays while nothing happens");
    let times = fs::metadata(play.inside("f")).unwrap().modified().unwrap();
    play.write("f", b"two");
    let file = fs::File::options().write(true).open(play.inside("f")).unwrap();
    file.set_modified(times).unwrap();
    let after = stat();
    assert_eq!((before.size, before.modified_ms), (after.size, after.modified_ms));
    assert_ne!(before.tag, after.tag);
    set_mode(&play, "f", 0o600);
    assert_ne!(stat().tag, after.tag, "a mode is part of a version");
}

#[test]
fn links_are_made_in_the_place_of_files_and_a_hard_link_only_of_files() {
    let play = Playground::new();
    play.write("f", b"f");
    play.write("g", b"g");
    symlink(play.outside("canary"), play.inside("out")).unwrap();
    play.root.symlink(&play.path("g"), OsStr::new("/etc/passwd")).unwrap();
    assert_eq!(fs::read_link(play.inside("g")).unwrap().to_str(), Some("/etc/passwd"));
    play.root.hardlink(&play.path("d/h"), &play.path("f")).unwrap();
    assert_eq!(fs::metadata(play.inside("f")).unwrap().nlink(), 2);
    play.root.hardlink(&play.path("d/h"), &play.path("f")).unwrap();
    for bad in ["out", "d"] {
        let answer = play.root.hardlink(&play.path("x"), &play.path(bad));
        assert!(matches!(answer, Err(RootedError::WrongKind { .. })), "{bad}: {answer:?}");
    }
    assert_eq!(play.names(""), ["d", "f", "g", "out"]);
    play.assert_outside_untouched();
}

#[test]
fn a_directory_as_a_root_of_its_own_is_not_left() {
    let play = Playground::new();
    play.write("sub/f", b"");
    symlink("../f", play.inside("sub/up")).unwrap();
    symlink(play.inside(""), play.inside("sub/absolute")).unwrap();
    play.write("f", b"above");
    let below = play.root.below(&play.path("sub")).unwrap();
    assert!(below.open_read(&below.parse("f").unwrap()).is_ok());
    for out in ["up", "absolute/f"] {
        let answer = below.open_read(&below.parse(out).unwrap());
        assert!(matches!(answer, Err(RootedError::Escapes(_))), "{out}");
    }
    assert!(below.parse("/workspace/f").is_err());
}

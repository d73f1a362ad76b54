//! Walks through trees that are deep, wide, unreadable or changing.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use playground::Playground;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandbank_rooted_fs::{Directory, FileKind, Order, RelPath, RootedError, Visit, Visitor, walk};

#[derive(Default)]
struct Seen {
    paths: Vec<Vec<u8>>,
    deepest: usize,
    failures: Vec<RootedError>,
    left: u64,
    most: usize,
}

impl Visitor for Seen {
    fn entry(&mut self, dir: &Directory, depth: usize, name: &OsStr, _: FileKind) -> Visit {
        self.deepest = self.deepest.max(depth);
        self.paths.push(dir.path().join(name).as_bytes().to_vec());
        if self.most > 0 && self.paths.len() == self.most { Visit::Stop } else { Visit::Go }
    }

    fn leave(&mut self, _: &Directory, _: usize) -> Visit {
        self.left += 1;
        Visit::Go
    }

    fn failed(&mut self, error: RootedError) -> Visit {
        self.failures.push(error);
        Visit::Go
    }
}

fn seen(play: &Playground, path: &str, order: Order) -> Seen {
    let mut seen = Seen::default();
    let top = play.root.open_directory(&play.path(path)).unwrap();
    assert!(walk(top, order, &mut seen));
    seen
}

#[test]
fn everything_is_visited_once_and_links_are_not_entered() {
    let play = Playground::new();
    play.write("a/b/file", b"");
    play.write("a/.hidden", b"");
    play.write("z", b"");
    symlink(play.outside(""), play.inside("a/out")).unwrap();
    symlink(".", play.inside("a/loop")).unwrap();
    let seen = seen(&play, ".", Order::Sorted);
    let paths: Vec<_> = seen.paths.iter().map(|path| std::str::from_utf8(path).unwrap()).collect();
    assert_eq!(paths, ["a", "z", "a/.hidden", "a/b", "a/loop", "a/out", "a/b/file"]);
    assert_eq!((seen.failures.len(), seen.left), (0, 3));
    let mut found = self::seen(&play, ".", Order::Found).paths;
    found.sort();
    let mut sorted = seen.paths;
    sorted.sort();
    assert_eq!(found, sorted);
}

#[test]
fn a_visitor_can_stop_and_pass_directories_over() {
    let play = Playground::new();
    play.write("a/file", b"");
    play.write("b/file", b"");
    let mut few = Seen { most: 1, ..Seen::default() };
    let top = play.root.open_directory(&RelPath::root()).unwrap();
    assert!(!walk(top, Order::Found, &mut few));
    assert_eq!(few.paths.len(), 1);
    struct OnlyTop(u64);
    impl Visitor for OnlyTop {
        fn entry(&mut self, _: &Directory, _: usize, _: &OsStr, _: FileKind) -> Visit {
            self.0 += 1;
            Visit::Skip
        }
        fn failed(&mut self, error: RootedError) -> Visit {
            panic!("{error}")
        }
    }
    let mut top = OnlyTop(0);
    assert!(walk(play.root.open_directory(&RelPath::root()).unwrap(), Order::Found, &mut top));
    assert_eq!(top.0, 2);
}

/// The limit is the whole process's: tests that lower it take turns.
static FEW_DESCRIPTORS: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Deeper than any path text can be, with something beside the way now and then.
fn dig(play: &Playground, depth: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    fs::create_dir(play.inside("deep")).unwrap();
    let mut dir = openat(CWD, play.inside("deep"), flags, Mode::empty()).unwrap();
    for level in 0..depth {
        if level % 100 == 0 {
            mkdirat(&dir, "side", Mode::RWXU).unwrap();
            openat(&dir, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
        }
        mkdirat(&dir, "next", Mode::RWXU).unwrap();
        dir = openat(&dir, "next", flags, Mode::empty()).unwrap();
    }
}

#[test]
fn five_thousand_levels_are_walked_and_not_copied_nor_changed() {
    let _alone = FEW_DESCRIPTORS.lock().unwrap_or_else(|lock| lock.into_inner());
    let play = Playground::new();
    dig(&play, 5000);
    let before = getrlimit(Resource::Nofile);
    let few = Rlimit { current: Some(256), maximum: before.maximum };
    setrlimit(Resource::Nofile, few).unwrap();
    let seen = seen(&play, "deep", Order::Found);
    let copied = play.root.copy(
        &play.path("deep"),
        &play.path("copy"),
        sandbank_rooted_fs::Overwrite::No,
        &|| true,
    );
    let changes = [0o711, 0o400]
        .map(|mode| play.root.chmod(&play.path("deep"), mode, true, &|| true).unwrap_err());
    let left = fs::read_dir(play.inside("")).unwrap().count();
    let removed = play.root.remove_all(&play.path("deep"));
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!((seen.paths.len(), seen.deepest), (5100, 5000));
    assert!(seen.failures.is_empty(), "{:?}", seen.failures);
    assert!(matches!(copied, Err(RootedError::TooDeep(_))));
    assert!(changes.iter().all(|error| matches!(error, RootedError::TooDeep(_))));
    assert_eq!((left, removed), (1, Ok(())), "of the copy nothing is left");
}

#[test]
fn nearly_a_thousand_levels_are_copied_and_changed_with_few_descriptors() {
    let _alone = FEW_DESCRIPTORS.lock().unwrap_or_else(|lock| lock.into_inner());
    let play = Playground::new();
    dig(&play, 998);
    let before = getrlimit(Resource::Nofile);
    let few = Rlimit { current: Some(256), maximum: before.maximum };
    setrlimit(Resource::Nofile, few).unwrap();
    let overwrite = sandbank_rooted_fs::Overwrite::No;
    let copied = play.root.copy(&play.path("deep"), &play.path("copy"), overwrite, &|| true);
    let again = seen(&play, "copy", Order::Found);
    let changed = play.root.chmod(&play.path("copy"), 0o711, true, &|| true);
    let removed = ["deep", "copy"].map(|name| play.root.remove_all(&play.path(name)));
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(copied.unwrap().kind, FileKind::Directory);
    assert_eq!((again.paths.len(), again.deepest), (1018, 998));
    assert_eq!(changed.unwrap().mode, 0o711);
    assert_eq!(removed, [Ok(()), Ok(())]);
}

#[test]
fn a_tree_that_changes_all_the_time_is_walked_to_an_end() {
    let play = Playground::new();
    for directory in 0..40 {
        for file in 0..20 {
            play.write(&format!("tree/{directory}/sub/{file}"), b"");
        }
    }
    let base = play.inside("tree");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0u64;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let (one, other): (PathBuf, PathBuf) = (
                    base.join(format!("{}", round % 40)),
                    base.join(format!("{}", (round * 7) % 40)),
                );
                let _ = fs::rename(one.join("sub"), other.join("moved"));
                let _ = fs::rename(other.join("moved"), one.join("sub"));
                let _ = fs::remove_file(one.join("sub/1"));
                round += 1;
            }
        });
        for _ in 0..200 {
            let seen = seen(&play, "tree", Order::Found);
            assert!(seen.paths.len() >= 40);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

//! The kernel's `openat2` and this walk, on the same trees: they must give the same answers.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;
use rustix::fs::{CWD, Gid, Uid, fcntl_getfl, mkfifoat, openat2};
use rustix::process::geteuid;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::*;

#[derive(Debug, Clone)]
enum Kind {
    Directory,
    File,
    Pipe,
    Link(String),
}

/// `top/` is where paths begin, `outside/` is beside it.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["top", "outside"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        fs::write(directory.path().join("outside/a"), "outside").unwrap();
        Self(directory)
    }

    fn top(&self) -> OwnedFd {
        open_top(&self.0.path().join("top"))
    }

    /// Nothing where something is already; a missing or odd parent is passed over.
    fn plant(&self, path: &str, kind: &Kind, mode: u32) {
        let at = self.0.path().join("top").join(path);
        // The test itself must not follow its own links.
        let real = |parent: &Path| fs::symlink_metadata(parent).is_ok_and(|found| found.is_dir());
        let top = self.0.path().join("top");
        if !at.ancestors().skip(1).take_while(|above| *above != top).all(real) {
            return;
        }
        let _ = match kind {
            Kind::Directory => fs::create_dir(&at),
            Kind::File => fs::File::create_new(&at).map(drop),
            Kind::Pipe => mkfifoat(CWD, &at, Mode::RWXU).map_err(Into::into),
            Kind::Link(target) => symlink(target.replace("TOP", top.to_str().unwrap()), &at),
        };
        if real(&at) {
            fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

fn open_top(path: &Path) -> OwnedFd {
    openat(CWD, path, LOOK | OFlags::DIRECTORY, Mode::empty()).unwrap()
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const TARGETS: [&str; 22] = [
    "a",
    "b",
    "b/",
    "c/d",
    "./a",
    "../b",
    "../../c",
    "..",
    ".",
    "a/..",
    "a/../b",
    "b//c",
    "d/.",
    "/",
    "/outside",
    "TOP/a",
    "../outside",
    "../outside/a",
    "../top/a",
    "nowhere",
    "a/a/a/../../b",
    "c/../../d",
];
/// For everybody alike: all, to read, to search, nothing.
const MODES: [u32; 4] = [0o777, 0o444, 0o111, 0o000];

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Directory),
        2 => Just(Kind::File),
        1 => Just(Kind::Pipe),
        4 => prop::sample::select(&TARGETS[..]).prop_map(|target| Kind::Link(target.to_owned())),
    ]
}

fn planted() -> impl Strategy<Value = (String, Kind, u32)> {
    let path = prop::collection::vec(prop::sample::select(&NAMES[..]), 1..5);
    let mode = prop_oneof![8 => Just(MODES[0]), 1 => prop::sample::select(&MODES[..])];
    (path.prop_map(|names| names.join("/")), kind(), mode)
}

/// As links have them, which is more than clients may write.
fn path() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        6 => prop::sample::select(&NAMES[..]),
        1 => Just(".."),
        1 => Just("."),
        1 => Just(""),
    ];
    prop::collection::vec(name, 1..7).prop_map(|names| names.join("/"))
}

fn flags() -> impl Strategy<Value = OFlags> {
    let quick = OFlags::NONBLOCK | OFlags::NOCTTY;
    let all = [
        OFlags::PATH,
        OFlags::PATH | OFlags::NOFOLLOW,
        OFlags::PATH | OFlags::DIRECTORY,
        OFlags::RDONLY | quick,
        OFlags::RDONLY | OFlags::NOFOLLOW | quick,
        OFlags::WRONLY | quick,
        OFlags::RDONLY | OFlags::DIRECTORY,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW,
    ];
    prop::sample::select(all.to_vec()).prop_map(|flags| flags | OFlags::CLOEXEC)
}

fn resolve() -> impl Strategy<Value = ResolveFlags> {
    let always = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let extra = [
        ResolveFlags::empty(),
        ResolveFlags::NO_SYMLINKS,
        ResolveFlags::NO_XDEV,
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
    ];
    prop::sample::select(extra.to_vec()).prop_map(move |extra| always | extra)
}

/// What was opened, and how; or why not.
type Answer = Result<((u64, u64), OFlags), Errno>;

fn answer(opened: Result<OwnedFd, Errno>) -> Answer {
    let found = Found::new(opened?)?;
    let how = OFlags::ACCMODE | OFlags::PATH | OFlags::NONBLOCK;
    Ok((found.identity, fcntl_getfl(&found.fd)? & how))
}

fn both(top: &OwnedFd, path: &str, flags: OFlags, resolve: ResolveFlags) -> (Answer, Answer) {
    let kernel = openat2(top, path, flags, Mode::empty(), resolve);
    (answer(kernel), answer(open(top.as_fd(), path.as_bytes(), flags, resolve)))
}

/// The file modes mean nothing to root.
fn as_nobody<T: Send>(check: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let checking = scope.spawn(|| {
            if geteuid().is_root() {
                let (user, group) = (Uid::from_raw(65_534), Gid::from_raw(65_534));
                set_thread_groups(&[]).unwrap();
                set_thread_res_gid(group, group, group).unwrap();
                set_thread_res_uid(user, user, user).unwrap();
            }
            check()
        });
        checking.join().unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_path_in_any_tree_leads_where_the_kernel_leads(
        plants in prop::collection::vec(planted(), 0..24),
        questions in prop::collection::vec((path(), flags(), resolve()), 1..24),
    ) {
        let tree = Tree::new();
        // Modes come last, or nothing could be planted below.
        for (path, kind, _) in &plants {
            tree.plant(path, kind, 0o777);
        }
        let mut below: Vec<_> = plants.iter().filter(|(_, _, mode)| *mode != 0o777).collect();
        below.sort_by_key(|(path, ..)| std::cmp::Reverse(path.len()));
        for (path, kind, mode) in below {
            tree.plant(path, kind, *mode);
        }
        let top = tree.top();
        let differing = as_nobody(|| {
            questions.iter().find_map(|(path, flags, resolve)| {
                let (kernel, own) = both(&top, path, *flags, *resolve);
                (kernel != own).then(|| format!("{path:?} {flags:?} {resolve:?}: {kernel:?} {own:?}"))
            })
        });
        if !geteuid().is_root() {
            for (path, kind, _) in &plants {
                tree.plant(path, kind, 0o777);
            }
        }
        prop_assert_eq!(differing, None);
    }
}

#[test]
fn as_many_links_are_followed_as_by_the_kernel_and_no_more() {
    let tree = Tree::new();
    tree.plant("0", &Kind::File, 0);
    for number in 1..=MAX_LINKS + 1 {
        tree.plant(&number.to_string(), &Kind::Link((number - 1).to_string()), 0);
    }
    let top = tree.top();
    let beneath = ResolveFlags::BENEATH;
    for (number, follows) in [(1, true), (MAX_LINKS, true), (MAX_LINKS + 1, false)] {
        let (kernel, own) = both(&top, &number.to_string(), OFlags::PATH, beneath);
        assert_eq!(kernel, own, "{number} links");
        assert_eq!(own.is_ok(), follows, "{number} links");
    }
}

#[test]
fn names_and_paths_are_as_long_as_for_the_kernel() {
    let tree = Tree::new();
    let top = tree.top();
    let long = |length: usize| "./".repeat(length)[..length].to_owned();
    for path in ["x".repeat(255), "x".repeat(256), long(4095), long(4096), String::new()] {
        let (kernel, own) = both(&top, &path, OFlags::PATH, ResolveFlags::BENEATH);
        assert_eq!(kernel, own, "{} bytes", path.len());
    }
}

#[test]
fn no_magic_link_is_followed_and_no_other_mount_entered_where_that_is_asked() {
    let top = open_top(Path::new("/"));
    let quiet = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for path in ["proc/self/cwd", "proc/self/root/etc", "proc/self/fd/0", "proc/self/exe"] {
        assert_eq!(open(top.as_fd(), path.as_bytes(), LOOK, quiet).map(drop), Err(Errno::LOOP));
    }
    let (kernel, own) = both(&top, "proc/version", OFlags::PATH, quiet);
    assert_eq!(kernel, own);
    assert!(own.is_ok(), "the control: another mount is entered where nobody forbids it");
    let (kernel, own) = both(&top, "proc/version", OFlags::PATH, quiet | ResolveFlags::NO_XDEV);
    assert_eq!((kernel, own), (Err(Errno::XDEV), Err(Errno::XDEV)));
}

#[test]
fn an_absolute_path_is_followed_as_any_program_does() {
    let tree = Tree::new();
    tree.plant("a", &Kind::Directory, 0o777);
    tree.plant("a/b", &Kind::File, 0);
    tree.plant("c", &Kind::Link("TOP/a".to_owned()), 0);
    tree.plant("d", &Kind::Link("../../../../../../../../proc/version".to_owned()), 0);
    let root = open_top(Path::new("/"));
    for name in ["a/b", "c/b", "c/../c/b", "d", "nothing", "a/b/c", "../outside/a"] {
        let path = format!("{}/top/{name}", tree.0.path().display());
        let (kernel, own) = both(&root, &path, OFlags::PATH, ResolveFlags::NO_MAGICLINKS);
        assert_eq!(kernel, own, "{name}");
    }
}

//! A root directory with a canary outside of it, shared by the tests.

#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::path::PathBuf;

use sandbank_rooted_fs::{RelPath, Root};

pub(crate) const CANARY: &[u8] = b"the canary sings outside";

pub(crate) struct Playground {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) root: Root,
}

impl Playground {
    /// `inside/` is the root, also known as `/workspace`; `outside/` has the canary.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("inside")).unwrap();
        fs::create_dir(directory.path().join("outside")).unwrap();
        fs::write(directory.path().join("outside/canary"), CANARY).unwrap();
        let root = Root::open(directory.path().join("inside"), ["/workspace"]).unwrap();
        Self { directory, root }
    }

    pub(crate) fn inside(&self, path: &str) -> PathBuf {
        self.directory.path().join("inside").join(path)
    }

    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.directory.path().join("outside").join(path)
    }

    pub(crate) fn path(&self, text: &str) -> RelPath {
        self.root.parse(text).unwrap()
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let mut file = self.root.create(&self.path(path), None).unwrap();
        file.write_all(content).unwrap();
        file.commit().unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        self.root.open_read(&self.path(path)).unwrap().read_at(0, 1 << 20).unwrap()
    }

    /// The outside directory holds the canary and nothing else.
    pub(crate) fn assert_outside_untouched(&self) {
        let names: Vec<_> = fs::read_dir(self.outside(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["canary"], "something appeared or vanished outside");
        assert_eq!(fs::read(self.outside("canary")).unwrap(), CANARY);
    }

    /// Names in a directory, temporary files included.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.inside(path))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

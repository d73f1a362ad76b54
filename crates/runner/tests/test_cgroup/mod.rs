//! A cgroup of this test alone, removed with everything in it.

#![allow(dead_code, reason = "each test file uses a part")]

use std::fs::File;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) struct TestCgroup {
    path: PathBuf,
}

impl TestCgroup {
    /// None where the host has no such hierarchy, or we may not write to it.
    pub(crate) fn new(hierarchy: &Path) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sandbank-test-{}-{number}", std::process::id());
        let path = hierarchy.join(name);
        let present = hierarchy.join("cgroup.procs").exists();
        (present && std::fs::create_dir(&path).is_ok()).then_some(Self { path })
    }

    pub(crate) fn v1(controller: &str) -> Option<Self> {
        Self::new(&Path::new("/sys/fs/cgroup").join(controller))
    }

    pub(crate) fn v2() -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let pure = root.join("cgroup.controllers").exists();
        Self::new(&if pure { root.to_owned() } else { root.join("unified") })
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path.join(file), text).unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path.join(file)).unwrap()
    }

    /// A descriptor for a child process to inherit; "" is the directory itself.
    pub(crate) fn descriptor(&self, file: &str) -> RawFd {
        inheritable(File::open(self.path.join(file)).unwrap())
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    pub(crate) fn children(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.path).unwrap().map(|entry| entry.unwrap());
        entries.filter(|e| e.file_type().unwrap().is_dir()).map(|entry| entry.path()).collect()
    }
}

/// Stays open in this process, too: tests are short.
pub(crate) fn inheritable(descriptor: impl AsRawFd + IntoRawFd) -> RawFd {
    // SAFETY: F_SETFD takes plain integers.
    unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) };
    descriptor.into_raw_fd()
}

impl Drop for TestCgroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut paths = self.children();
        paths.push(self.path.clone());
        for path in paths {
            let procs = std::fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
            for pid in procs.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0) {
                // SAFETY: kill takes plain integers; the process is in our own cgroup.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            while std::fs::remove_dir(&path).is_err() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

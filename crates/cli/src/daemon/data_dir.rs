//! The data directory: private to its user, and one daemon's at a time.
//!
//! The lock file also says who holds it, so that the command line finds a server on any port and
//! never sends a token to a stranger who listens where a server once was.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::failure::{Exit, Failure};
use crate::limits::{LOCK_PATIENCE, STARTING_LIMIT};

const LOCK: &str = "lock";
const STARTING: &str = "starting";
const PRIVATE: &str = "private";
const BRIEF: &str = "brief";

/// Who has a data directory now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holder {
    Nobody,
    /// A server that will listen in a moment, or somebody who will be done in one.
    Starting,
    /// A server at this address.
    Server(String),
    /// A `sandbank run` that started its own parts.
    Private,
    /// The directory is not ours to look into, or not there.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    lock: File,
}

impl DataDir {
    /// Makes the directory when it is not there, and takes it for this process.
    pub(crate) fn take(path: &Path) -> Result<Self, Failure> {
        let unusable = |error: std::io::Error| unusable(path, &error);
        // Making it would only say that something exists.
        if fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
            return Err(is_a_file(path));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
        let found = fs::metadata(path).map_err(unusable)?;
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(path, PermissionsExt::from_mode(0o700)).map_err(unusable)?;
        }
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(path.join(LOCK)).map_err(unusable)?;
        match lock_patiently(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path)),
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        // Whoever had it may have removed it meanwhile.
        if !fs::metadata(path.join(LOCK)).is_ok_and(|there| is_same(&there, &lock)) {
            return Err(in_use(path));
        }
        let mut data_dir = Self { path: path.to_owned(), lock };
        data_dir.say(STARTING)?;
        Ok(data_dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Nobody else has the directory before this is gone, too.
    pub(crate) fn hold(&self) -> Result<File, Failure> {
        self.lock.try_clone().map_err(|error| unusable(&self.path, &error))
    }

    pub(crate) fn announce_server(&mut self, url: &str) -> Result<(), Failure> {
        self.say(url)
    }

    pub(crate) fn announce_private(&mut self) -> Result<(), Failure> {
        self.say(PRIVATE)
    }

    pub(crate) fn announce_brief(&mut self) -> Result<(), Failure> {
        self.say(BRIEF)
    }

    fn say(&mut self, text: &str) -> Result<(), Failure> {
        let written = self
            .lock
            .set_len(0)
            .and_then(|()| self.lock.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(self.lock, "{text}"));
        written.map_err(|error| unusable(&self.path, &error))
    }
}

fn is_same(there: &fs::Metadata, lock: &File) -> bool {
    lock.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
}

/// Somebody who only looks has the lock for a moment, too.
fn lock_patiently(lock: &File) -> Result<(), TryLockError> {
    let start = Instant::now();
    loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if start.elapsed() < patience(lock) => {
                std::thread::sleep(LOCK_PATIENCE / 20);
            }
            result => return result,
        }
    }
}

fn patience(lock: &File) -> Duration {
    if said(lock).trim() == BRIEF { STARTING_LIMIT } else { LOCK_PATIENCE }
}

/// What the holder wrote; from the start, wherever the file stands.
fn said(lock: &File) -> String {
    let mut bytes = [0; 256];
    let length = lock.read_at(&mut bytes, 0).unwrap_or_default();
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Looks without keeping anything.
pub(crate) fn holder(path: &Path) -> Holder {
    let Ok(lock) = File::open(path.join(LOCK)) else { return Holder::Unknown };
    match lock.try_lock_shared() {
        Ok(()) => Holder::Nobody,
        Err(TryLockError::Error(_)) => Holder::Unknown,
        Err(TryLockError::WouldBlock) => match said(&lock).trim() {
            PRIVATE => Holder::Private,
            url if url.starts_with("http://") => Holder::Server(url.to_owned()),
            _ => Holder::Starting,
        },
    }
}

fn in_use(path: &Path) -> Failure {
    let path = path.display();
    Failure::new(Exit::Temporary, format!("another sandbank uses the data directory {path}"))
        .hint("stop it, or name another directory with --data-dir or SANDBANK_DATA_DIR")
}

fn is_a_file(path: &Path) -> Failure {
    let message = format!("{} is a file, not a directory", path.display());
    Failure::new(Exit::CannotWrite, message)
        .hint("choose another --data-dir, or another SANDBANK_DATA_DIR")
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    use std::io::ErrorKind as Kind;
    let message = format!("the data directory {} cannot be used: {error}", path.display());
    let hint = match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => "free some space on its file system",
        Kind::NotADirectory => "a part of its path is a file; choose another --data-dir",
        Kind::ReadOnlyFilesystem => "name a writable one with --data-dir or SANDBANK_DATA_DIR",
        _ => {
            "run as a user who may write there, or name another with --data-dir or SANDBANK_DATA_DIR"
        }
    };
    Failure::new(Exit::CannotWrite, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_one_daemons_at_a_time_and_says_whose() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        assert_eq!(holder(&path), Holder::Unknown);
        let mut taken = DataDir::take(&path).unwrap();
        assert_eq!(holder(&path), Holder::Starting);
        assert_eq!(DataDir::take(&path).unwrap_err().exit, Exit::Temporary);
        taken.announce_server("http://127.0.0.1:9").unwrap();
        assert_eq!(holder(&path), Holder::Server("http://127.0.0.1:9".into()));
        taken.announce_private().unwrap();
        assert_eq!(holder(&path), Holder::Private);
        taken.announce_brief().unwrap();
        assert_eq!(holder(&path), Holder::Starting, "it is waited for");
        drop(taken);
        assert_eq!(holder(&path), Holder::Nobody);
        assert!(DataDir::take(&path).is_ok());
    }

    #[test]
    fn a_directory_is_nobody_elses_while_somebody_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let taken = DataDir::take(dir.path()).unwrap();
        let held = taken.hold().unwrap();
        drop(taken);
        assert_eq!(DataDir::take(dir.path()).unwrap_err().exit, Exit::Temporary);
        drop(held);
        assert!(DataDir::take(dir.path()).is_ok());
    }

    #[test]
    fn a_lock_that_was_removed_meanwhile_is_not_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let there = |path: &Path| fs::metadata(path.join(LOCK)).unwrap();
        let taken = DataDir::take(dir.path()).unwrap();
        assert!(is_same(&there(dir.path()), &taken.lock));
        fs::remove_file(dir.path().join(LOCK)).unwrap();
        let _other = File::create(dir.path().join("other")).unwrap();
        File::create(dir.path().join(LOCK)).unwrap();
        assert!(!is_same(&there(dir.path()), &taken.lock));
    }

    #[test]
    fn looking_does_not_keep_a_daemon_from_starting() {
        let dir = tempfile::tempdir().unwrap();
        drop(DataDir::take(dir.path()).unwrap());
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    holder(dir.path());
                    std::thread::yield_now();
                }
            });
            let taken: Vec<_> = (0..20).map(|_| DataDir::take(dir.path()).map(drop)).collect();
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(taken.iter().all(Result::is_ok), "{taken:?}");
        });
    }

    #[test]
    fn the_directory_is_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        DirBuilder::new().mode(0o755).create(&path).unwrap();
        let _taken = DataDir::take(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_in_its_place_is_refused_with_a_next_step() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let failure = DataDir::take(file.path()).unwrap_err();
        assert_eq!(failure.exit, Exit::CannotWrite);
        assert!(failure.message.ends_with("is a file, not a directory"), "{}", failure.message);
        assert!(failure.hint.unwrap().contains("choose another --data-dir"));
        let below = DataDir::take(&file.path().join("data")).unwrap_err();
        assert!(below.hint.unwrap().contains("a part of its path is a file"));
    }
}

//! Whether the data directory is still the one the daemon started with, and can be written.
//!
//! A daemon whose directory was deleted goes on answering from memory and open files; whoever
//! watches it must learn that what it writes now is lost.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::limits::{DATA_DIR_AGE, DATA_DIR_PATIENCE};

/// Made and removed again; its name says what it is should a crash leave it.
const PROBE: &str = ".health-probe";

pub(crate) struct DataDirHealth {
    place: Arc<Place>,
    seen: Arc<Mutex<Seen>>,
}

struct Place {
    path: PathBuf,
    /// Device and inode at start; none when it was not there even then.
    identity: Option<(u64, u64)>,
}

#[derive(Default)]
struct Seen {
    /// When the last look began.
    began: Option<Instant>,
    /// It has not ended. On a file system that hangs it never does, and no second one begins.
    looking: bool,
    /// What the one before found.
    trouble: Option<String>,
}

impl DataDirHealth {
    pub(crate) fn new(path: PathBuf) -> Self {
        let identity = fs::metadata(&path).ok().map(|found| (found.dev(), found.ino()));
        Self { place: Arc::new(Place { path, identity }), seen: Arc::default() }
    }

    /// What was wrong when it was last looked at. Asking has it looked at again, on a thread that
    /// may block: whoever asks does not wait for a disk.
    pub(crate) fn trouble(&self) -> Option<String> {
        let mut seen = lock(&self.seen);
        let age = seen.began.map(|began| began.elapsed());
        if seen.looking {
            let hangs = age.is_some_and(|age| age > DATA_DIR_PATIENCE);
            return hangs.then(|| "its disk does not answer".to_owned()).or(seen.trouble.clone());
        }
        if age.is_none_or(|age| age >= DATA_DIR_AGE) {
            (seen.began, seen.looking) = (Some(Instant::now()), true);
            let (place, seen) = (Arc::clone(&self.place), Arc::clone(&self.seen));
            tokio::task::spawn_blocking(move || {
                let trouble = place.look().err().map(|error| error.to_string());
                let mut seen = lock(&seen);
                (seen.looking, seen.trouble) = (false, trouble);
            });
        }
        seen.trouble.clone()
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Place {
    fn look(&self) -> io::Result<()> {
        let found = fs::metadata(&self.path)?;
        if self.identity != Some((found.dev(), found.ino())) {
            return Err(io::Error::other("it is not the directory that the daemon started with"));
        }
        let probe = self.path.join(PROBE);
        match OpenOptions::new().write(true).create_new(true).open(&probe) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        fs::remove_file(probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_went_or_was_replaced_is_noticed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("data");
        fs::create_dir(&path).unwrap();
        let health = DataDirHealth::new(path.clone()).place;
        assert!(health.look().is_ok());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        fs::rename(&path, place.path().join("moved")).unwrap();
        assert!(health.look().is_err());
        fs::create_dir(&path).unwrap();
        assert!(health.look().is_err(), "another one in its place");
    }
}

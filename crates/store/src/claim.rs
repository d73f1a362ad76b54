//! One daemon per database: an advisory lock on a file beside it, released by the kernel when
//! the process dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::StoreError;

pub(crate) struct Claim {
    path: PathBuf,
    held: Mutex<Option<File>>,
}

impl Claim {
    pub(crate) fn beside(database: &Path) -> Self {
        let mut name = database.as_os_str().to_owned();
        name.push(".lock");
        Self { path: name.into(), held: Mutex::new(None) }
    }

    pub(crate) fn take(&self) -> Result<(), StoreError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_some() {
            return Ok(());
        }
        let failed = |error| StoreError::from_io(&self.path, &error);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&self.path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                *held = Some(file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: self.path.clone() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    pub(crate) fn release(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

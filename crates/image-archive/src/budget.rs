//! What all layers of one import may still take.

use std::os::fd::AsFd;

use sandbank_engine::EngineError;

use crate::limits::{DISK_CHECK_BYTES, DISK_RESERVE_BYTES};
use crate::{ImportLimits, bad};

pub struct Budget {
    limits: ImportLimits,
    entries: u64,
    bytes: u64,
    /// By the entries seen, read or not.
    promised: u64,
    until_check: u64,
}

impl Budget {
    pub fn new(limits: ImportLimits) -> Self {
        Self { limits, entries: 0, bytes: 0, promised: 0, until_check: 0 }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    pub fn take_entry(&mut self) -> Result<(), EngineError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(bad(format!("it has more than {} entries", self.limits.entries)));
        }
        Ok(())
    }

    /// An entry says that it has as many: together no more than may be written.
    pub fn promise_bytes(&mut self, bytes: u64) -> Result<(), EngineError> {
        self.promised = self.promised.saturating_add(bytes);
        self.within(self.promised)
    }

    fn within(&self, bytes: u64) -> Result<(), EngineError> {
        if bytes > self.limits.bytes {
            return Err(bad(format!("it unpacks to more than {} bytes", self.limits.bytes)));
        }
        Ok(())
    }

    /// Before writing `bytes` to the file system of `fd`.
    pub fn take_bytes(&mut self, bytes: u64, fd: impl AsFd) -> Result<(), EngineError> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.within(self.bytes)?;
        if self.until_check >= bytes {
            self.until_check -= bytes;
            return Ok(());
        }
        self.until_check = DISK_CHECK_BYTES;
        let stat = rustix::fs::fstatvfs(fd)
            .map_err(|errno| EngineError::io("measure the free space")(errno.into()))?;
        let free = stat.f_bavail * stat.f_frsize;
        if free < DISK_RESERVE_BYTES {
            return Err(EngineError::StorageFull(format!(
                "unpacking stopped with {free} bytes free; {DISK_RESERVE_BYTES} are kept in reserve"
            )));
        }
        Ok(())
    }
}

//! The digest of a layer, taken while it is read.

use std::io::{self, Read};

use sandbank_engine::hex;
use sha2::{Digest, Sha256};

use crate::Skip;

/// Hashes what it passes on, and ends a stream that grows beyond the limit or that nobody wants
/// any more.
pub struct Hashed<'a, R> {
    inner: R,
    is_cancelled: &'a dyn Fn() -> bool,
    hash: Sha256,
    left: u64,
}

impl<'a, R: Read> Hashed<'a, R> {
    pub fn new(inner: R, most: u64, is_cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { inner, is_cancelled, hash: Sha256::new(), left: most }
    }

    /// Of what `most` allowed.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Of what was read.
    pub fn digest(self) -> String {
        hex(&self.hash.finalize())
    }
}

impl<R: Read> Read for Hashed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.is_cancelled)() {
            return Err(io::Error::other("it was cancelled"));
        }
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other("a layer is larger than an image may be"))?;
        Ok(read)
    }
}

impl<R: Read> Skip for Hashed<'_, R> {}

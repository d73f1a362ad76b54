//! Where the threads of a search put their findings, so that those of one file stay together.
//!
//! A file's findings wait in its thread until the file is done. If they become many, the thread
//! takes the output for itself until then and the others wait when they have something to say.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use serde::Serialize;

use crate::limits::MAX_WAITING_FINDINGS_BYTES;
use crate::offload::{Findings, Gone};

#[derive(Debug)]
pub(super) struct Output(Mutex<Findings>);

/// Of one thread.
#[derive(Debug)]
pub(super) struct FileOutput<'a> {
    output: &'a Output,
    waiting: Vec<u8>,
    held: Option<MutexGuard<'a, Findings>>,
}

impl Output {
    pub(super) fn new(findings: Findings) -> Self {
        Self(Mutex::new(findings))
    }

    /// Sends what has waited for long, and tells whether anybody reads on. When another thread is
    /// about to say something, it will be told.
    pub(super) fn look(&self) -> Result<(), Gone> {
        match self.0.try_lock() {
            Ok(mut findings) => findings.bytes(b""),
            Err(TryLockError::Poisoned(findings)) => findings.into_inner().bytes(b""),
            Err(TryLockError::WouldBlock) => Ok(()),
        }
    }

    pub(super) fn into_findings(self) -> Findings {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Findings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> FileOutput<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        Self { output, waiting: Vec::new(), held: None }
    }

    /// Adds a line about the file in hand.
    pub(super) fn record(&mut self, record: &impl Serialize) -> Result<(), Gone> {
        serde_json::to_writer(&mut self.waiting, record).expect("protocol types are plain data");
        self.waiting.push(b'\n');
        if self.held.is_none() && self.waiting.len() < MAX_WAITING_FINDINGS_BYTES {
            return Ok(());
        }
        let findings = self.held.get_or_insert_with(|| self.output.lock());
        findings.bytes(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    /// The file in hand is done.
    pub(super) fn finish_file(&mut self) -> Result<(), Gone> {
        if self.waiting.is_empty() {
            self.held = None;
            return Ok(());
        }
        let mut findings = self.held.take().unwrap_or_else(|| self.output.lock());
        let sent = findings.bytes(&self.waiting);
        self.waiting.clear();
        sent
    }

    /// As [`Output::look`], also in the middle of a file.
    pub(super) fn look(&mut self) -> Result<(), Gone> {
        match &mut self.held {
            Some(findings) => findings.bytes(b""),
            None => self.output.look(),
        }
    }
}

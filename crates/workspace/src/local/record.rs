//! What is remembered of a runner that outlives who started it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sandbank_protocol::PROTOCOL_VERSION;
use serde::{Deserialize, Serialize};

use super::process::Process;

const RECORD: &str = "runner.json";
const DRAFT: &str = "runner.json.new";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(flatten)]
    pub(crate) process: Process,
    /// Device and inode of the workspace: a directory of the same name may be another one.
    pub(crate) root: (u64, u64),
    /// Of the program that was started.
    pub(crate) version: String,
    pub(crate) protocol: u32,
}

impl Record {
    pub(crate) fn new(process: Process, root: (u64, u64)) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { process, root, version, protocol: PROTOCOL_VERSION }
    }

    /// None when there is none, or none that makes sense: a runner without a record is nobody's.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(directory.join(RECORD)).ok()?).ok()
    }

    /// Whole or not at all.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let draft = directory.join(DRAFT);
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&serde_json::to_vec(self).expect("numbers and texts"))?;
        file.sync_all()?;
        fs::rename(draft, directory.join(RECORD))
    }

    pub(crate) fn remove(directory: &Path) {
        let _ = fs::remove_file(directory.join(RECORD));
    }
}

//! What earlier self-tests found, in the data directory: a test holds as long as its key does.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Containment;

const FILE: &str = "containment.json";
const DRAFT: &str = "containment.json.new";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    held: Vec<Held>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    key: String,
    report: Containment,
}

impl Record {
    /// One that is missing or not understood is as good as none.
    pub(super) fn read(data_dir: &Path) -> Self {
        let bytes = fs::read(data_dir.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub(super) fn find(&self, key: &str) -> Option<&Containment> {
        self.held.iter().find(|held| held.key == key).map(|held| &held.report)
    }

    pub(super) fn add(&mut self, key: String, report: Containment) {
        self.forget(&key);
        self.held.push(Held { key, report });
    }

    pub(super) fn forget(&mut self, key: &str) {
        self.held.retain(|held| held.key != key);
    }

    /// Forgets all but these.
    pub(super) fn keep(&mut self, keys: &[String]) {
        self.held.retain(|held| keys.contains(&held.key));
    }

    pub(super) fn write(&self, data_dir: &Path) -> io::Result<()> {
        let draft: PathBuf = data_dir.join(DRAFT);
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true).mode(0o600);
        options.open(&draft)?.write_all(&serde_json::to_vec_pretty(self)?)?;
        fs::rename(draft, data_dir.join(FILE))
    }
}

//! What earlier self-tests found, in the data directory: a test holds as long as its key does.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::Containment;

const FILE: &str = "containment.json";
const DRAFT: &str = "containment.json.new";

/// Engines are tested at the same time, and share the file.
static WRITING: Mutex<()> = Mutex::new(());

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

    /// Forgets all but these of the keys that begin with `mark`, which are one engine's.
    pub(super) fn keep(&mut self, mark: &str, keys: &[String]) {
        self.held.retain(|held| !held.key.starts_with(mark) || keys.contains(&held.key));
    }

    /// Forgets what is of none of these engines, or was written before engines were told apart.
    pub(super) fn keep_only(engines: &[&str], data_dir: &Path) -> io::Result<()> {
        let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let before = Self::read(data_dir);
        let marks: Vec<_> = engines.iter().map(|engine| mark(engine)).collect();
        let mut all = before.clone();
        all.held.retain(|held| marks.iter().any(|mark| held.key.starts_with(mark)));
        if all == before { Ok(()) } else { all.replace(data_dir) }
    }

    /// What begins with `mark`; the rest stays as it was found, or written meanwhile.
    pub(super) fn write(&self, mark: &str, data_dir: &Path) -> io::Result<()> {
        let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Self::read(data_dir);
        all.held.retain(|held| !held.key.starts_with(mark));
        all.held.extend(self.held.iter().filter(|held| held.key.starts_with(mark)).cloned());
        all.replace(data_dir)
    }

    fn replace(&self, data_dir: &Path) -> io::Result<()> {
        let draft: PathBuf = data_dir.join(DRAFT);
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true).mode(0o600);
        options.open(&draft)?.write_all(&serde_json::to_vec_pretty(self)?)?;
        fs::rename(draft, data_dir.join(FILE))
    }
}

/// What the keys of an engine begin with.
pub(super) fn mark(engine: &str) -> String {
    format!("engine {engine}; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_share_the_file_and_leave_each_others_results_alone() {
        let data = tempfile::tempdir().unwrap();
        let report = || Containment { probes: Vec::new(), duration_ms: 1 };
        let keys = |record: &Record| -> Vec<String> {
            record.held.iter().map(|held| held.key.clone()).collect()
        };
        let (mut one, mut other) = (Record::read(data.path()), Record::read(data.path()));
        one.add("engine a; old".to_owned(), report());
        other.add("engine b; x".to_owned(), report());
        one.write("engine a; ", data.path()).unwrap();
        other.write("engine b; ", data.path()).unwrap();
        let mut one = Record::read(data.path());
        assert_eq!(keys(&one), ["engine a; old", "engine b; x"]);
        one.add("engine a; new".to_owned(), report());
        one.keep("engine a; ", &["engine a; new".to_owned()]);
        one.write("engine a; ", data.path()).unwrap();
        assert_eq!(keys(&Record::read(data.path())), ["engine b; x", "engine a; new"]);
        Record::keep_only(&["a", "b"], data.path()).unwrap();
        assert_eq!(keys(&Record::read(data.path())), ["engine b; x", "engine a; new"]);

        let mut old = Record::read(data.path());
        old.add("of a version without engines".to_owned(), report());
        old.replace(data.path()).unwrap();
        Record::keep_only(&["b"], data.path()).unwrap();
        assert_eq!(keys(&Record::read(data.path())), ["engine b; x"]);
    }
}

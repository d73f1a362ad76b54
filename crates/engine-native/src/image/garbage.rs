//! Removes layers and skeletons that no image and no machine is made of.

use std::collections::BTreeSet;

use sandbank_engine::{EngineError, Freed, ImageName};

use super::record::{self, Record};
use super::store::{HOST_SKELETON, ImageStore, lock, skeleton_key};
use crate::storage::{disk_usage, remove_tree};

impl ImageStore {
    /// What was replaced is needed as long as a machine of its name exists: that may be older.
    /// `in_use` is asked as by [`ImageStore::remove`].
    pub(crate) fn prune(&self, in_use: &dyn Fn(&ImageName) -> bool) -> Result<Freed, EngineError> {
        {
            let _guard = lock(&self.records);
            self.forget_replaced(|record| !in_use(&record.name))?;
        }
        match self.lock_no_import()? {
            Some(_importing) => self.collect_garbage(),
            None => Err(EngineError::Taken(
                "an image is being imported; prune again when it is there".to_owned(),
            )),
        }
    }

    pub(super) fn forget_replaced(
        &self,
        gone: impl Fn(&Record) -> bool,
    ) -> Result<(), EngineError> {
        let dir = self.dir.join("replaced");
        for (file, record) in record::read_all(&dir)? {
            if gone(&record) {
                std::fs::remove_file(dir.join(file))
                    .map_err(EngineError::io("remove a replaced image's record"))?;
            }
        }
        Ok(())
    }

    /// An import's layers have no record yet. What stays for its sake goes at the next open.
    pub(super) fn collect_garbage_unless_importing(&self) -> Result<Freed, EngineError> {
        match self.lock_no_import()? {
            Some(_importing) => self.collect_garbage(),
            None => Ok(Freed::default()),
        }
    }

    /// Removes layers and skeletons that no record names. The host's skeletons stay.
    pub(super) fn collect_garbage(&self) -> Result<Freed, EngineError> {
        let records = self.all_records()?;
        let layers: BTreeSet<&str> =
            records.iter().flat_map(|record| &record.layers).map(|layer| &*layer.id).collect();
        let skeletons: BTreeSet<String> = records.iter().map(skeleton_key).collect();
        let freed = self.keep_only("layers", |name| layers.contains(name))?;
        self.keep_only("skeletons", |name| {
            name.starts_with(HOST_SKELETON) || skeletons.contains(name)
        })?;
        Ok(freed)
    }

    fn keep_only(&self, part: &str, keep: impl Fn(&str) -> bool) -> Result<Freed, EngineError> {
        let step = "remove an unused layer";
        let mut freed = Freed::default();
        for entry in std::fs::read_dir(self.dir.join(part)).map_err(EngineError::io(step))? {
            let entry = entry.map_err(EngineError::io(step))?;
            if !entry.file_name().to_str().is_some_and(&keep) {
                let bytes = disk_usage(&entry.path()).unwrap_or(0);
                remove_tree(&entry.path()).map_err(EngineError::io(step))?;
                freed.layers += 1;
                freed.bytes += bytes;
            }
        }
        Ok(freed)
    }
}

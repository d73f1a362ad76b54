//! What is remembered of each imported image, one file per name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use sandbank_engine::{EngineError, ImageInfo, ImageName};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LayerRecord {
    /// Sha-256 of the uncompressed tar: also the name of its directory.
    pub(super) id: String,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) name: ImageName,
    pub(super) digest: String,
    /// From the bottom up.
    pub(super) layers: Vec<LayerRecord>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) imported_at_ms: u64,
}

impl Record {
    pub(super) fn info(&self) -> ImageInfo {
        ImageInfo {
            name: self.name.clone(),
            digest: Some(format!("sha256:{}", self.digest)),
            size_bytes: self.layers.iter().map(|layer| layer.bytes).sum(),
            layers: u32::try_from(self.layers.len()).unwrap_or(u32::MAX),
            imported_at_ms: Some(self.imported_at_ms),
        }
    }

    /// Ids topmost first, each once: overlayfs refuses a directory that is stacked twice, and a
    /// lower copy of a layer shows nothing that the upper one does not.
    pub(super) fn stack(&self) -> Vec<&str> {
        let mut stack: Vec<&str> = Vec::with_capacity(self.layers.len());
        for layer in self.layers.iter().rev() {
            if !stack.contains(&layer.id.as_str()) {
                stack.push(&layer.id);
            }
        }
        stack
    }
}

/// The file of a name. `/` and `:` cannot be in a file name, `+` and `@` not in an image's.
pub(super) fn file_name(name: &ImageName) -> String {
    format!("{}.json", name.as_str().replace('/', "+").replace(':', "@"))
}

/// Writes a record so that a crash leaves the old one or the new one.
pub(super) fn write(dir: &Path, file: &str, record: &Record) -> Result<(), EngineError> {
    let step = "write an image's record";
    let content = serde_json::to_vec_pretty(record).expect("a record is plain data");
    let unfinished = dir.join(format!(".{file}.new"));
    let write = || {
        let mut out = File::create(&unfinished)?;
        out.write_all(&content)?;
        out.sync_all()?;
        std::fs::rename(&unfinished, dir.join(file))?;
        File::open(dir)?.sync_all()
    };
    write().map_err(EngineError::io(step))
}

/// Every readable record of a directory by its file name. A damaged one is an error: forgetting
/// it would free layers that it still names.
pub(super) fn read_all(dir: &Path) -> Result<BTreeMap<String, Record>, EngineError> {
    let mut records = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(EngineError::io("list the images"))? {
        let entry = entry.map_err(EngineError::io("list the images"))?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.starts_with('.') || !file.ends_with(".json") {
            continue;
        }
        let content =
            std::fs::read(entry.path()).map_err(EngineError::io("read an image's record"))?;
        let record = serde_json::from_slice(&content).map_err(|error| {
            EngineError::Internal(format!(
                "the image record {} is damaged ({error}); remove it and import the image again",
                entry.path().display()
            ))
        })?;
        records.insert(file, record);
    }
    Ok(records)
}

//! An image of a registry as an archive: its blobs in one unnamed file, which a crash or a
//! cancellation leaves no trace of. Layers that are here already are holes in it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;

use sandbank_engine::{EngineError, ImageName, ImportProgress};
use sandbank_image_archive::limits::DISK_RESERVE_BYTES;
use sandbank_image_archive::{Archive, Member, Plan, bad, configured, machine};
use sandbank_registry::{Image, Layer, Room};

use super::import::{Import, KnownLayers};
use super::record::Record;
use super::store::ImageStore;

/// Each with its place.
type Blobs = Vec<(Layer, Room)>;

/// Room for a found image, to be filled and then unpacked.
pub(crate) struct Pulled {
    archive: Archive,
    plan: Plan,
    /// What has to be downloaded, each blob once.
    pub(crate) missing: Blobs,
    /// Of the uncompressed layers that are not downloaded.
    here: Vec<String>,
}

impl ImageStore {
    /// Judges an image by its manifest and configuration, and makes room for it.
    pub(crate) fn make_room(&self, image: &Image) -> Result<Pulled, EngineError> {
        let (count, limits) = (image.layers.len(), self.limits);
        if count > limits.layers {
            return Err(bad(format!("it has {count} layers, more than {}", limits.layers)));
        }
        let file = File::options()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE)
            .open(self.dir.join("work"))
            .map_err(EngineError::io("create a file for the layers"))?;
        let step = "write the image's configuration";
        file.write_all_at(&image.config, 0).map_err(EngineError::io(step))?;
        let mut end = image.config.len() as u64;
        let mut members =
            HashMap::from([(blob(&image.config_digest), Member { offset: 0, size: end })]);
        for layer in &image.layers {
            if let Entry::Vacant(place) = members.entry(blob(&layer.digest)) {
                place.insert(Member { offset: end, size: layer.size });
                end = end.saturating_add(layer.size);
            }
        }
        if end > limits.bytes {
            return Err(bad(format!("its layers have more than {} bytes", limits.bytes)));
        }
        let copy = file.try_clone().map_err(EngineError::io(step))?;
        let archive = Archive::assembled(copy, end, members);
        let names = image.layers.iter().map(|layer| blob(&layer.digest)).collect();
        let plan = configured(&archive, &blob(&image.config_digest), names, machine())?;
        let file = Arc::new(file);
        let (missing, here) = self.missing(image, &plan, &file)?;
        let needed = missing.iter().map(|(layer, _)| layer.size).sum();
        check_room(&file, needed)?;
        Ok(Pulled { archive, plan, missing, here })
    }

    /// What is not here, and the ids of what is.
    fn missing(
        &self,
        image: &Image,
        plan: &Plan,
        file: &Arc<File>,
    ) -> Result<(Blobs, Vec<String>), EngineError> {
        let known = self.known_layers()?;
        let (mut missing, mut here) = (Blobs::new(), Vec::new());
        for (layer, (member, id)) in image.layers.iter().zip(&plan.layers) {
            let id = id.as_deref().unwrap_or_default();
            if known.contains_key(id) {
                here.push(id.to_owned());
            } else if !missing.iter().any(|(other, _)| other.digest == layer.digest) {
                let room = Room { file: file.clone(), offset: member.offset };
                missing.push((layer.clone(), room));
            }
        }
        Ok((missing, here))
    }
}

fn blob(digest: &sandbank_registry::Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

/// Before the first byte is downloaded; what is unpacked is watched as it grows.
fn check_room(file: &File, needed: u64) -> Result<(), EngineError> {
    let stat = rustix::fs::fstatvfs(file)
        .map_err(|errno| EngineError::io("measure the free space")(errno.into()))?;
    let free = stat.f_bavail * stat.f_frsize;
    if free < needed.saturating_add(DISK_RESERVE_BYTES) {
        return Err(EngineError::StorageFull(format!(
            "{free} bytes are free, and the image's layers need {needed} and {DISK_RESERVE_BYTES} to spare"
        )));
    }
    Ok(())
}

impl Pulled {
    /// Bytes to download.
    pub(crate) fn bytes(&self) -> u64 {
        self.missing.iter().map(|(layer, _)| layer.size).sum()
    }

    /// After everything that was missing is in its place.
    pub(super) fn unpack(
        &self,
        import: &Import<'_>,
        name: &ImageName,
        report: &dyn Fn(ImportProgress),
        known: KnownLayers<'_>,
    ) -> Result<Record, EngineError> {
        // Nothing was locked while the rest was on its way.
        if self.here.iter().any(|id| known(id).is_none()) {
            return Err(EngineError::NotPulled {
                message: "another image was removed meanwhile, whose layers it shares".to_owned(),
                hint: "pull it again".to_owned(),
                retryable: true,
            });
        }
        import.unpack(name, &self.archive, &self.plan, known, self.bytes(), report)
    }
}

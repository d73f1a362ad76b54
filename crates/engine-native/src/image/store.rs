//! The images of one data directory: names, their layers, and what is no longer needed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use sandbank_engine::{EngineError, Freed, ImageInfo, ImageName, ImportProgress, SandboxId, hex};
use sandbank_image_archive::{ImportLimits, bad};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::host::HostPieces;
use super::import::{Import, KnownLayers};
use super::limits::LOCK_PATIENCE;
use super::pull::Pulled;
use super::record::{self, Record};
use super::scratch::{self, Scratch};
use super::{ResolvedImage, skeleton};
use crate::storage::remove_tree;

pub(super) const HOST_SKELETON: &str = "host-";

pub(crate) struct ImageStore {
    pub(super) dir: PathBuf,
    pub(super) limits: ImportLimits,
    /// Guards the records on disk, which are the truth.
    pub(super) records: Mutex<()>,
}

pub(super) fn lock(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    // The guarded truth is on disk, so a panic elsewhere leaves nothing half-changed here.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts the layers in place.
type Unpack<'a> = &'a dyn Fn(&Import<'_>, KnownLayers<'_>) -> Result<Record, EngineError>;

/// Held by an import, whose layers no record names yet, in whatever process.
pub(super) struct Importing(
    #[expect(dead_code, reason = "the lock lives as long as the file")] File,
);

impl ImageStore {
    /// Opens the store and removes what a crash or a reboot left without use.
    pub(crate) fn open(dir: &Path) -> Result<Self, EngineError> {
        Self::open_with(dir, ImportLimits::default())
    }

    pub(super) fn open_with(dir: &Path, limits: ImportLimits) -> Result<Self, EngineError> {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        let step = "create the image directory";
        for part in ["names", "replaced", "layers", "skeletons", "work"] {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir.join(part))
                .map_err(EngineError::io(step))?;
        }
        // Host users have no way to files that images brought.
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
            .map_err(EngineError::io(step))?;
        let dir = dir.canonicalize().map_err(EngineError::io(step))?;
        let store = Self { dir, limits, records: Mutex::new(()) };
        scratch::clean(&store.dir.join("work"))?;
        store.forget_after_reboot()?;
        store.collect_garbage_unless_importing()?;
        Ok(store)
    }

    fn lock_imports(&self) -> Result<Importing, EngineError> {
        let step = "lock the image directory";
        let file = self.lock_file()?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)
            .map_err(|errno| EngineError::io(step)(errno.into()))?;
        Ok(Importing(file))
    }

    /// None when an import is going on. One that has just ended may still hold the lock for a
    /// moment, through a child of its process between fork and exec.
    pub(super) fn lock_no_import(&self) -> Result<Option<Importing>, EngineError> {
        let file = self.lock_file()?;
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Importing(file))),
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(errno) => return Err(EngineError::io("lock the images")(errno.into())),
            }
        }
    }

    /// A new descriptor each time, so that the lock keeps out threads of this process too.
    fn lock_file(&self) -> Result<File, EngineError> {
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.dir.join("lock"))
            .map_err(EngineError::io("open the image directory's lock"))
    }

    fn records(&self) -> Result<BTreeMap<String, Record>, EngineError> {
        record::read_all(&self.dir.join("names"))
    }

    /// `host` first, then imported images by name.
    pub(crate) fn list(&self) -> Vec<ImageInfo> {
        let host = ImageInfo {
            name: ImageName::host(),
            digest: None,
            size_bytes: 0,
            layers: 0,
            imported_at_ms: None,
        };
        let _guard = lock(&self.records);
        let records = self.records().unwrap_or_else(|error| {
            tracing::error!(%error, "failed to list the images");
            BTreeMap::new()
        });
        let mut infos: Vec<ImageInfo> = records.values().map(Record::info).collect();
        infos.sort_by(|a, b| a.name.cmp(&b.name));
        infos.insert(0, host);
        infos
    }

    /// Reads an archive and gives it a name. An image that had the name stays on disk until
    /// [`ImageStore::remove`] or a reboot: machines may run from it.
    pub(crate) fn import(
        &self,
        name: &ImageName,
        archive: &Path,
        progress: &dyn Fn(ImportProgress),
    ) -> Result<ImageInfo, EngineError> {
        let never = CancellationToken::new();
        self.add(name, &never, &|| {}, &|import, known| import.run(name, archive, progress, known))
    }

    /// The same for an image whose layers were pulled. Ends early once `cancelled`.
    pub(crate) fn import_pulled(
        &self,
        name: &ImageName,
        pulled: &Pulled,
        progress: &dyn Fn(ImportProgress),
        cancelled: &CancellationToken,
        before_swap: &dyn Fn(),
    ) -> Result<ImageInfo, EngineError> {
        let unpack: Unpack<'_> = &|import, known| pulled.unpack(import, name, progress, known);
        self.add(name, cancelled, before_swap, unpack)
    }

    /// Whether an image may be called so.
    pub(crate) fn check_name(&self, name: &ImageName) -> Result<(), EngineError> {
        match name.is_host() {
            true => Err(bad("the name `host` stands for this machine; choose another")),
            false => Ok(()),
        }
    }

    fn add(
        &self,
        name: &ImageName,
        cancelled: &CancellationToken,
        before_swap: &dyn Fn(),
        unpack: Unpack<'_>,
    ) -> Result<ImageInfo, EngineError> {
        self.check_name(name)?;
        let _importing = self.lock_imports()?;
        let imported = self.import_layers(cancelled, unpack);
        let result = imported.and_then(|new| {
            before_swap();
            self.name_image(name, new)
        });
        if result.is_err()
            && let Err(error) = self.collect_garbage()
        {
            tracing::warn!(%error, "failed to clean up after an import");
        }
        result
    }

    /// Layers that images have, by their id, with their size.
    pub(super) fn known_layers(&self) -> Result<BTreeMap<String, u64>, EngineError> {
        let records = self.all_records()?.into_iter().flat_map(|record| record.layers);
        Ok(records.map(|layer| (layer.id, layer.bytes)).collect())
    }

    fn import_layers(
        &self,
        cancelled: &CancellationToken,
        unpack: Unpack<'_>,
    ) -> Result<Record, EngineError> {
        let known = self.known_layers()?;
        let layers = self.dir.join("layers");
        let scratch = Scratch::new(&self.dir.join("work"))?;
        let import = Import { limits: self.limits, layers: &layers, scratch: &scratch, cancelled };
        let record = unpack(&import, &|id| known.get(id).copied())?;
        self.skeleton_of(&record)?;
        // The record must not survive a power cut that its layers did not.
        File::open(&layers)
            .and_then(|dir| Ok(rustix::fs::syncfs(dir)?))
            .map_err(EngineError::io("write the image to disk"))?;
        Ok(record)
    }

    fn name_image(&self, name: &ImageName, new: Record) -> Result<ImageInfo, EngineError> {
        let _guard = lock(&self.records);
        let (names, file) = (self.dir.join("names"), record::file_name(name));
        if let Some(old) = self.records()?.get(&file)
            && old.layers != new.layers
        {
            let place = format!("{}.json", SandboxId::random());
            record::write(&self.dir.join("replaced"), &place, old)?;
        }
        record::write(&names, &file, &new)?;
        Ok(new.info())
    }

    /// Forgets a name and frees the layers that no other image has. `in_use` is asked under the
    /// store's lock whether a machine of that image exists; a machine counts from before its
    /// image is resolved.
    pub(crate) fn remove(
        &self,
        name: &ImageName,
        in_use: &dyn Fn(&ImageName) -> bool,
    ) -> Result<Freed, EngineError> {
        {
            let _guard = lock(&self.records);
            let file = record::file_name(name);
            if !name.is_host() && !self.records()?.contains_key(&file) {
                return Err(EngineError::ImageNotFound(name.clone()));
            }
            if name.is_host() || in_use(name) {
                return Err(EngineError::ImageInUse(name.clone()));
            }
            let step = EngineError::io("remove an image's record");
            std::fs::remove_file(self.dir.join("names").join(file)).map_err(step)?;
            self.forget_replaced(|record| record.name == *name)?;
        }
        self.collect_garbage_unless_importing()
    }

    /// What a machine's root is made of, now.
    pub(crate) fn resolve(&self, name: &ImageName) -> Result<ResolvedImage, EngineError> {
        let _guard = lock(&self.records);
        if name.is_host() {
            return self.resolve_host();
        }
        let path = self.dir.join("names").join(record::file_name(name));
        let content = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(EngineError::ImageNotFound(name.clone()));
            }
            other => other.map_err(EngineError::io("read an image's record"))?,
        };
        let record: Record = serde_json::from_slice(&content)
            .map_err(|error| EngineError::Internal(format!("image {name} is damaged: {error}")))?;
        let mut lower = vec![self.skeleton_of(&record)?];
        lower.extend(self.stack(&record));
        Ok(ResolvedImage { lower, binds: Vec::new(), env: record.env })
    }

    fn resolve_host(&self) -> Result<ResolvedImage, EngineError> {
        let host = HostPieces::look_in(Path::new("/"));
        let key = format!("{HOST_SKELETON}{}", host.fingerprint());
        let skeleton = self.skeleton(&key, |root| host.build(root))?;
        Ok(ResolvedImage { lower: vec![skeleton], binds: host.binds(), env: BTreeMap::new() })
    }

    fn stack(&self, record: &Record) -> Vec<PathBuf> {
        record.stack().into_iter().map(|id| self.dir.join("layers").join(id)).collect()
    }

    fn skeleton_of(&self, record: &Record) -> Result<PathBuf, EngineError> {
        let stack = self.stack(record);
        self.skeleton(&skeleton_key(record), |root| skeleton::build_for_layers(root, &stack))
    }

    fn skeleton(
        &self,
        key: &str,
        build: impl FnOnce(&Path) -> Result<(), EngineError>,
    ) -> Result<PathBuf, EngineError> {
        let place = self.dir.join("skeletons").join(key);
        if !place.exists() {
            let scratch = Scratch::new(&self.dir.join("work"))?;
            let root = scratch.directory("skeleton")?;
            build(&root)?;
            scratch::publish(&root, &place)?;
        }
        Ok(place)
    }

    pub(super) fn all_records(&self) -> Result<Vec<Record>, EngineError> {
        let _guard = lock(&self.records);
        let replaced = record::read_all(&self.dir.join("replaced"))?;
        Ok(self.records()?.into_values().chain(replaced.into_values()).collect())
    }

    /// No machine outlives a reboot, so nothing runs from replaced images or old skeletons.
    fn forget_after_reboot(&self) -> Result<(), EngineError> {
        let (marker, step) = (self.dir.join("boot"), "remember this boot");
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map_err(EngineError::io("identify this boot"))?;
        if std::fs::read_to_string(&marker).is_ok_and(|last| last == boot) {
            return Ok(());
        }
        self.forget_replaced(|_| true)?;
        let skeletons = self.dir.join("skeletons");
        remove_tree(&skeletons)
            .and_then(|()| std::fs::create_dir(&skeletons))
            .and_then(|()| std::fs::write(&marker, boot))
            .map_err(EngineError::io(step))
    }
}

pub(super) fn skeleton_key(record: &Record) -> String {
    let mut hash = Sha256::new();
    hash.update(skeleton::VERSION.to_le_bytes());
    for layer in &record.layers {
        hash.update(layer.id.as_bytes());
    }
    hex(&hash.finalize()[..16])
}

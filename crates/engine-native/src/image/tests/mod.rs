//! Imports of archives made in the test, honest and hostile, and the roots made of them.

mod archives;
mod formats;
mod host;
mod hostile;
mod lifecycle;

use std::fs::File;
use std::path::{Path, PathBuf};

use sandbank_engine::{EngineError, ImageInfo, ImageName};
use tempfile::TempDir;

use self::archives::Tar;
use super::{ImageStore, ResolvedImage};
use sandbank_image_archive::ImportLimits;

/// A store with a directory beside it whose content no import may touch.
struct Fixture {
    dir: TempDir,
    store: ImageStore,
}

const CANARY: &str = "untouched";

impl Fixture {
    fn new() -> Self {
        Self::with_limits(ImportLimits::default())
    }

    fn with_limits(limits: ImportLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        std::fs::write(dir.path().join("outside/canary"), CANARY).unwrap();
        let store = ImageStore::open_with(&dir.path().join("images"), limits).unwrap();
        Self { dir, store }
    }

    fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    fn import_bytes(&self, name: &str, archive: &[u8]) -> Result<ImageInfo, EngineError> {
        let path = self.dir.path().join("archive.tar");
        std::fs::write(&path, archive).unwrap();
        self.store.import(&image(name), &path, &|_| {})
    }

    fn import(&self, name: &str, tar: Tar) -> Result<ImageInfo, EngineError> {
        self.import_bytes(name, &tar.finish())
    }

    fn resolve(&self, name: &str) -> ResolvedImage {
        self.store.resolve(&image(name)).unwrap()
    }

    fn names_in(&self, part: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join("images").join(part)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The import failed because of the archive, and left nothing anywhere.
    fn assert_refused(&self, what: &str, archive: &[u8]) -> String {
        let reason = match self.import_bytes("bad", archive) {
            Err(EngineError::BadImage(reason)) => reason,
            other => panic!("{what}: not refused as a bad image: {other:?}"),
        };
        self.assert_clean(what);
        reason
    }

    fn assert_clean(&self, what: &str) {
        for part in ["names", "replaced", "layers", "work", "skeletons"] {
            assert_eq!(self.names_in(part), [""; 0], "{what}: {part} is not empty");
        }
        self.assert_canary(what);
    }

    fn assert_canary(&self, what: &str) {
        let outside = self.outside();
        assert_eq!(std::fs::read_to_string(outside.join("canary")).unwrap(), CANARY, "{what}");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "{what}: outside has grown");
        let mode = File::open(outside.join("canary")).unwrap().metadata().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
        assert_eq!(mode & 0o7000, 0, "{what}: the canary's mode changed");
    }
}

fn image(name: &str) -> ImageName {
    name.parse().unwrap()
}

/// An overlay of a resolved image, in a mount namespace of the calling thread alone.
struct Root(TempDir);

impl Root {
    fn mount(image: &ResolvedImage) -> Self {
        // SAFETY: it gives this thread a mount namespace of its own; no memory is involved.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_FS | libc::CLONE_NEWNS) }, 0);
        let follow = rustix::mount::MountPropagationFlags::DOWNSTREAM
            | rustix::mount::MountPropagationFlags::REC;
        rustix::mount::mount_change("/", follow).unwrap();
        let root = tempfile::tempdir().unwrap();
        let lower: Vec<&str> = image.lower.iter().map(|path| path.to_str().unwrap()).collect();
        let options = std::ffi::CString::new(format!("lowerdir={}", lower.join(":"))).unwrap();
        let flags = rustix::mount::MountFlags::RDONLY;
        rustix::mount::mount(c"overlay", root.path(), c"overlay", flags, &*options).unwrap();
        Self(root)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        rustix::mount::unmount(self.0.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

/// Runs in a thread of its own, because a root changes the thread's mount namespace.
fn in_root(image: &ResolvedImage, check: impl FnOnce(&Root) + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| check(&Root::mount(image))).join().unwrap();
    });
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).unwrap().is_symlink()
}

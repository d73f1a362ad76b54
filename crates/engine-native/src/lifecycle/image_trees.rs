//! Images as trees of mounts, put together once and copied for each machine.
//!
//! A tree is in no mount namespace: nothing of it shows on the host, and it goes with the daemon.
//! Kernels before 6.15 cannot copy such a tree; there the binds of an image are mounted one by
//! one inside each machine.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::fs::CWD;
use sandbank_engine::{EngineError, ImageName};

use crate::image::{ImageStore, ResolvedImage};
use crate::kernel::mount::{
    NODEV, NOSUID, RDONLY, attach, clone_tree, map_ids, open_target, set_attributes,
};
use crate::limits::{IMAGE_FRESH_FOR, MAX_BINDS, MAX_LOWER};
use crate::user_namespace::UserNamespace;

const FIXED: u64 = RDONLY | NOSUID | NODEV;

#[derive(Default)]
pub(super) struct ImageTrees {
    kept: Mutex<HashMap<ImageName, Arc<ImageTree>>>,
}

pub(super) struct ImageTree {
    pub(super) image: ResolvedImage,
    /// Root and binds in one, where the kernel can copy that.
    whole: Option<OwnedFd>,
    made: Instant,
}

/// The mounts of one machine's image.
pub(super) struct ImageMounts {
    pub(super) lower: Vec<OwnedFd>,
    /// To be attached to the image's bind targets; none when they are in place already.
    pub(super) binds: Vec<OwnedFd>,
}

impl ImageTrees {
    pub(super) fn get(
        &self,
        images: &ImageStore,
        name: &ImageName,
    ) -> Result<Arc<ImageTree>, EngineError> {
        let kept = self.kept().get(name).cloned();
        if let Some(tree) = kept.filter(|tree| tree.made.elapsed() < IMAGE_FRESH_FOR) {
            return Ok(tree);
        }
        let image = images.resolve(name)?;
        if image.lower.len() > MAX_LOWER || image.binds.len() > MAX_BINDS {
            let (layers, binds) = (image.lower.len(), image.binds.len());
            let text = format!("{layers} layers and {binds} binds are too many");
            return Err(EngineError::BadImage(text));
        }
        let whole = if is_root() { whole(&image) } else { None };
        let tree = Arc::new(ImageTree { image, whole, made: Instant::now() });
        self.kept().insert(name.clone(), Arc::clone(&tree));
        Ok(tree)
    }

    /// The image was replaced or removed.
    pub(super) fn forget(&self, name: &ImageName) {
        self.kept().remove(name);
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<ImageName, Arc<ImageTree>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ImageTree {
    /// Read-only. The layers' ids are mapped to the machine's; those of the host's own directories
    /// are not, so that nobody in a machine owns a file of the host.
    pub(super) fn copy(&self, user_namespace: &UserNamespace) -> Result<ImageMounts, EngineError> {
        if let Some(root) = self.whole.as_ref().and_then(|tree| clone_tree(tree, "", true).ok()) {
            own(&root, user_namespace).map_err(EngineError::io("mount the image"))?;
            return Ok(ImageMounts { lower: vec![root], binds: Vec::new() });
        }
        let layer = |path: &std::path::PathBuf| {
            let tree = read_only(path, false)?;
            own(&tree, user_namespace).map_err(EngineError::io("mount the image"))?;
            Ok(tree)
        };
        let bind = |bind: &crate::image::Bind| read_only(&bind.source, true);
        Ok(ImageMounts {
            lower: self.image.lower.iter().map(layer).collect::<Result<_, EngineError>>()?,
            binds: self.image.binds.iter().map(bind).collect::<Result<_, EngineError>>()?,
        })
    }
}

/// Nobody else can make mounts here.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// None where the kernel refuses to build on a tree that is mounted nowhere, and for images that
/// need an overlay, which cannot be mapped.
fn whole(image: &ResolvedImage) -> Option<OwnedFd> {
    let [root] = image.lower.as_slice() else { return None };
    let root = read_only(root, false).ok()?;
    for bind in &image.binds {
        let target = open_target(&root, bind.target.to_str()?).ok()?;
        attach(read_only(&bind.source, true).ok()?, target).ok()?;
    }
    clone_tree(&root, "", true).ok().map(|_| root)
}

fn read_only(path: &Path, recursive: bool) -> Result<OwnedFd, EngineError> {
    let mount = || -> io::Result<OwnedFd> {
        let tree = clone_tree(CWD, path, recursive)?;
        set_attributes(tree.as_fd(), FIXED)?;
        Ok(tree)
    };
    mount().map_err(|source| {
        let text = format!("{}: {source}", path.display());
        EngineError::Io { step: "mount the image", source: io::Error::new(source.kind(), text) }
    })
}

/// Where ids cannot be mapped, files show as nobody's, which hides more rather than less.
fn own(root: &OwnedFd, user_namespace: &UserNamespace) -> io::Result<()> {
    match map_ids(root.as_fd(), user_namespace.fd.as_fd()) {
        Err(error) if super::mounts::cannot_map(&error) => Ok(()),
        other => other,
    }
}

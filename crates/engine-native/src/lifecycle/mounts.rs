//! The machine's image and workspace, as mounts ready to be attached or, without root, as paths.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use sandbank_engine::{Control, EngineError, MachineSpec};
use sandbank_fault_points::Point;

use super::image_trees::ImageTree;
use super::{Parts, reach, workspaces};
use crate::image::Bind;
use crate::kernel::mount::{NODEV, NOSUID, clone_tree, map_ids, set_attributes};
use crate::machine::WORKLOAD_ID;
use crate::spawner::wire::{HostPaths, Role};
use crate::user_namespace::{UserNamespace, uid_base};

#[derive(Default)]
pub(super) struct Mounts {
    pub(super) descriptors: Vec<(Role, OwnedFd)>,
    /// Where the binds go.
    pub(super) bind_targets: Vec<String>,
    pub(super) host_paths: Option<HostPaths>,
    /// The kept workspace was not there before.
    pub(super) made_workspace: bool,
}

pub(super) fn gather(
    parts: &Parts,
    spec: &MachineSpec,
    image: &ImageTree,
    user_namespace: &UserNamespace,
) -> Result<Mounts, EngineError> {
    let (workspace, made_workspace) = match &spec.workspace {
        None => (parts.storage.create(&spec.id, parts.quota(spec))?, false),
        Some(kept) => workspaces::provide(parts, kept)?,
    };
    reach(Point::StorageMade)?;
    if parts.rootless {
        return Ok(Mounts { made_workspace, ..by_path(image, &workspace)? });
    }
    let workspace = map_workspace(&workspace, user_namespace, spec.workspace.is_some())?;
    let image_mounts = image.copy(user_namespace)?;
    let mut mounts = Mounts { made_workspace, ..Mounts::default() };
    if !image_mounts.binds.is_empty() {
        mounts.bind_targets = targets(&image.image.binds)?;
    }
    mounts.descriptors.push((Role::Workspace, workspace));
    mounts.descriptors.extend(image_mounts.lower.into_iter().map(|fd| (Role::Lower, fd)));
    mounts.descriptors.extend(image_mounts.binds.into_iter().map(|fd| (Role::Bind, fd)));
    Ok(mounts)
}

fn by_path(image: &ImageTree, workspace: &Path) -> Result<Mounts, EngineError> {
    let [root] = image.image.lower.as_slice() else {
        return Err(EngineError::ControlUnavailable {
            control: Control::IdMappedMounts,
            reason: "without root only the image host can be used".to_owned(),
        });
    };
    let binds = image.image.binds.iter().map(|bind| text(&bind.source));
    let host_paths = HostPaths {
        root: text(root)?,
        binds: binds.collect::<Result<_, _>>()?,
        workspace: text(workspace)?,
    };
    Ok(Mounts {
        descriptors: Vec::new(),
        bind_targets: targets(&image.image.binds)?,
        host_paths: Some(host_paths),
        made_workspace: false,
    })
}

fn targets(binds: &[Bind]) -> Result<Vec<String>, EngineError> {
    binds.iter().map(|bind| text(&bind.target)).collect()
}

fn text(path: &Path) -> Result<String, EngineError> {
    let absolute = std::path::absolute(path).map_err(EngineError::io("resolve a path"))?;
    let text = absolute.into_os_string().into_string();
    text.map_err(|path| EngineError::Internal(format!("{} is not UTF-8", path.display())))
}

/// The workspace with its ids mapped, or, where the file system cannot, given to the machine's
/// own ids: the machine sees the same either way. A kept one cannot be given to one machine's ids.
fn map_workspace(
    path: &Path,
    user_namespace: &UserNamespace,
    kept: bool,
) -> Result<OwnedFd, EngineError> {
    let mount = "mount the workspace";
    let tree = clone_tree(CWD, path, false).map_err(EngineError::io(mount))?;
    set_attributes(tree.as_fd(), NOSUID | NODEV).map_err(EngineError::io(mount))?;
    match map_ids(tree.as_fd(), user_namespace.fd.as_fd()) {
        Ok(()) => {}
        Err(error) if cannot_map(&error) && kept => {
            return Err(EngineError::ControlUnavailable {
                control: Control::IdMappedMounts,
                reason:
                    "a kept workspace must show the same owners in every sandbox, and the file \
                         system of the data directory cannot map ids; keep it on ext4, xfs or btrfs"
                        .to_owned(),
            });
        }
        Err(error) if cannot_map(&error) => {
            let owner = Some(uid_base(user_namespace.slot) + WORKLOAD_ID);
            std::os::unix::fs::chown(path, owner, owner).map_err(EngineError::io(mount))?;
        }
        Err(error) => return Err(EngineError::io(mount)(error)),
    }
    Ok(tree)
}

/// The file system or this kernel lacks idmapped mounts.
pub(super) fn cannot_map(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EPERM))
}

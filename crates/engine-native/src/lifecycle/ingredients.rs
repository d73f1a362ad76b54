//! All that a machine is made from, gathered by the daemon and handed to the spawner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::CWD;
use rustix::pipe::PipeFlags;
use sandbank_engine::{Control, EngineError, MachineSpec};

use super::Parts;
use crate::cgroup::Placement;
use crate::image::{Bind, ResolvedImage};
use crate::kernel::mount::{NODEV, NOSUID, clone_tree, map_ids, set_attributes};
use crate::limits::{MAX_OPEN_FILES, SHM_BYTES};
use crate::machine::{Fences, Record, WORKLOAD_ID, config_file};
use crate::network::Network;
use crate::spawner::wire::{MachinePlan, Role};
use crate::user_namespace::{UserNamespace, uid_base};

pub(super) struct Ingredients {
    pub(super) plan: MachinePlan,
    status: OwnedFd,
    descriptors: Vec<(Role, OwnedFd)>,
}

impl Ingredients {
    /// With the runner, which all machines share.
    pub(super) fn descriptors<'a>(&'a self, runner: &'a OwnedFd) -> Vec<(Role, BorrowedFd<'a>)> {
        let own = self.descriptors.iter().map(|(role, fd)| (*role, fd.as_fd()));
        own.chain([(Role::Runner, runner.as_fd())]).collect()
    }

    /// The pipe through which the new machine says what failed. All that was handed over is closed
    /// here: the end of the pipe, and the death of the listener, are seen only then.
    pub(super) fn into_status(self) -> OwnedFd {
        self.status
    }
}

/// Blocking. Everything it makes is found through the machine's directory, which it makes first.
pub(super) fn gather(
    parts: &Parts,
    record: &Record,
    user_namespace: UserNamespace,
    network: Network,
) -> Result<Ingredients, EngineError> {
    let spec = &record.spec;
    parts.directory.make(&spec.id).map_err(EngineError::io("make the machine's directory"))?;
    let listener = parts.directory.listen(&spec.id).map_err(EngineError::io("make its socket"))?;
    let image = parts.image_trees.get(&parts.images, &spec.image)?;
    let base = uid_base(record.uid_slot);
    let placement = parts.cgroups.prepare(&spec.id)?;
    let workspace = workspace(parts, spec, &user_namespace)?;
    let mounts = image.copy(&user_namespace)?;
    let config = runner_config(parts, spec, &image.image, &placement)?;
    let (status, status_writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
        .map_err(io::Error::from)
        .map_err(EngineError::io("make a pipe"))?;

    let targets = if mounts.binds.is_empty() { &[][..] } else { &image.image.binds[..] };
    let plan = plan(spec, base, &network, targets);
    let mut descriptors = vec![
        (Role::Status, status_writer),
        (Role::UserNamespace, user_namespace.fd),
        (Role::NetNamespace, network.netns),
        (Role::Listener, listener),
        (Role::Config, config),
        (Role::Workspace, workspace),
    ];
    descriptors.extend(placement.tasks.into_iter().map(|fd| (Role::Tasks, fd)));
    descriptors.extend(placement.into.map(|fd| (Role::IntoCgroup, fd)));
    descriptors.extend(placement.commands.map(|fd| (Role::CommandCgroup, fd)));
    descriptors.extend(placement.oom_events.map(|fd| (Role::OomEvents, fd)));
    descriptors.extend(mounts.lower.into_iter().map(|fd| (Role::Lower, fd)));
    descriptors.extend(mounts.binds.into_iter().map(|fd| (Role::Bind, fd)));
    Ok(Ingredients { plan, status, descriptors })
}

fn plan(spec: &MachineSpec, base: u32, network: &Network, binds: &[Bind]) -> MachinePlan {
    let name = spec.id.as_str();
    MachinePlan {
        uid_base: base,
        host_name: name.to_owned(),
        resolv_conf: network.resolv_conf.clone(),
        hosts: format!("127.0.0.1\tlocalhost {name}\n::1\tlocalhost ip6-localhost {name}\n"),
        bind_targets: binds.iter().map(|bind| bind.target.to_string_lossy().into_owned()).collect(),
        tmp_bytes: spec.limits.tmp_bytes,
        shm_bytes: SHM_BYTES.min(spec.limits.memory_bytes),
        open_files: MAX_OPEN_FILES,
        processes: u64::from(spec.limits.pids),
    }
}

fn runner_config(
    parts: &Parts,
    spec: &MachineSpec,
    image: &ResolvedImage,
    placement: &Placement,
) -> Result<OwnedFd, EngineError> {
    let mut env = image.env.clone();
    env.extend(spec.env.clone());
    let cgroup = placement.commands.is_some().then_some(placement.version);
    let counts_oom = placement.oom_events.is_some();
    let fences = Fences {
        landlock: parts.has(Control::Landlock),
        seccomp_hex: parts.has(Control::Seccomp).then_some(parts.seccomp_hex.as_str()),
    };
    config_file(env, cgroup, counts_oom, fences)
        .map_err(EngineError::io("write the runner's configuration"))
}

/// The workspace with its ids mapped, or, where the file system cannot, given to the machine's
/// own ids: the machine sees the same either way.
fn workspace(
    parts: &Parts,
    spec: &MachineSpec,
    user_namespace: &UserNamespace,
) -> Result<OwnedFd, EngineError> {
    let path = parts.storage.create(&spec.id, parts.quota(spec))?;
    let mount = "mount the workspace";
    let tree = clone_tree(CWD, &path, false).map_err(EngineError::io(mount))?;
    set_attributes(tree.as_fd(), NOSUID | NODEV).map_err(EngineError::io(mount))?;
    match map_ids(tree.as_fd(), user_namespace.fd.as_fd()) {
        Ok(()) => {}
        Err(error) if cannot_map(&error) => {
            let owner = Some(uid_base(user_namespace.slot) + WORKLOAD_ID);
            std::os::unix::fs::chown(&path, owner, owner).map_err(EngineError::io(mount))?;
        }
        Err(error) => return Err(EngineError::io(mount)(error)),
    }
    Ok(tree)
}

/// The file system or this kernel lacks idmapped mounts.
pub(super) fn cannot_map(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EPERM))
}

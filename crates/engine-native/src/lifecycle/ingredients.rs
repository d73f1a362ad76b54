//! All that a machine is made from, gathered by the daemon and handed to the spawner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pipe::PipeFlags;
use sandbank_engine::{Control, EngineError, MachineSpec};
use sandbank_fault_points::Point;

use super::mounts::{self, Mounts};
use super::{Parts, reach};
use crate::cgroup::Placement;
use crate::image::ResolvedImage;
use crate::limits::{MAX_OPEN_FILES, SHM_BYTES};
use crate::machine::{Fences, Record, WORKLOAD_ID, config_file};
use crate::network::Network;
use crate::spawner::wire::{MachinePlan, Role};
use crate::user_namespace::{UserNamespace, uid_base};

pub(super) struct Ingredients {
    pub(super) plan: MachinePlan,
    /// Its kept workspace was not there before.
    pub(super) made_workspace: bool,
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
    network: Option<Network>,
) -> Result<Ingredients, EngineError> {
    let spec = &record.spec;
    parts.directory.make(&spec.id).map_err(EngineError::io("make the machine's directory"))?;
    reach(Point::DirectoryMade)?;
    let listener = parts.directory.listen(&spec.id).map_err(EngineError::io("make its socket"))?;
    reach(Point::SocketMade)?;
    let log = parts.directory.make_log(&spec.id).map_err(EngineError::io("make its log"))?;
    let image = parts.image_trees.get(&parts.images, &spec.image)?;
    let placement = parts.cgroups.prepare(&spec.id)?;
    reach(Point::CgroupMade)?;
    let mounts = mounts::gather(parts, spec, &image, &user_namespace)?;
    let config = runner_config(parts, spec, &image.image, &placement)?;
    let (status, status_writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
        .map_err(io::Error::from)
        .map_err(EngineError::io("make a pipe"))?;

    let plan = plan(parts, record, network.as_ref(), &mounts);
    let mut descriptors = vec![
        (Role::Status, status_writer),
        (Role::UserNamespace, user_namespace.fd),
        (Role::Listener, listener),
        (Role::Config, config),
        (Role::Log, log),
    ];
    descriptors.extend(network.map(|network| (Role::NetNamespace, network.netns)));
    descriptors.extend(placement.tasks.into_iter().map(|fd| (Role::Tasks, fd)));
    descriptors.extend(placement.into.map(|fd| (Role::IntoCgroup, fd)));
    descriptors.extend(placement.commands.map(|fd| (Role::CommandCgroup, fd)));
    descriptors.extend(placement.oom_events.map(|fd| (Role::OomEvents, fd)));
    descriptors.extend(mounts.descriptors);
    Ok(Ingredients { plan, made_workspace: mounts.made_workspace, status, descriptors })
}

/// The group that owns terminals, by convention.
const TTY_GROUP: u32 = 5;

fn plan(parts: &Parts, record: &Record, network: Option<&Network>, mounts: &Mounts) -> MachinePlan {
    let (spec, name) = (&record.spec, record.spec.id.as_str());
    // Without root there is one id, which the spawner knows as 0.
    let base = if parts.rootless { 0 } else { uid_base(record.uid_slot) };
    let only_id = parts.rootless.then_some(base);
    MachinePlan {
        uid_base: base,
        workload: only_id.unwrap_or(base + WORKLOAD_ID),
        terminals: (!parts.rootless).then_some(base + TTY_GROUP),
        host_paths: mounts.host_paths.clone(),
        host_name: name.to_owned(),
        resolv_conf: network.map(|network| network.resolv_conf.clone()).unwrap_or_default(),
        hosts: format!("127.0.0.1\tlocalhost {name}\n::1\tlocalhost ip6-localhost {name}\n"),
        bind_targets: mounts.bind_targets.clone(),
        tmp_bytes: spec.limits.tmp_bytes,
        shm_bytes: SHM_BYTES.min(spec.limits.memory_bytes),
        open_files: MAX_OPEN_FILES,
        processes: u64::from(spec.limits.pids),
        omitted: parts.settings.omitted.of(&spec.image),
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
    let left_out = parts.settings.omitted.of(&spec.image);
    let omitted = |control| left_out.contains(control);
    let has = |control| parts.has(control) && !omitted(control);
    let fences = Fences {
        own_identity: !parts.rootless && !omitted(Control::SeparateRunnerIdentity),
        landlock: has(Control::Landlock),
        seccomp_hex: has(Control::Seccomp).then_some(parts.seccomp_hex.as_str()),
        keep_capabilities: omitted(Control::NoCapabilities),
    };
    config_file(env, cgroup, counts_oom, fences)
        .map_err(EngineError::io("write the runner's configuration"))
}

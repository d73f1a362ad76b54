//! The machine's first process, from clone to exec of the runner.
//!
//! It starts as real root with a copy of the spawner's memory and the spawner's empty root. It
//! builds the machine's file system, enters it, and only then the user namespace: the machine's
//! root owns none of its other namespaces, so it can undo none of this, whatever it gains later.

mod descriptors;
mod dev;
mod identity;
mod kernel_files;
mod limits;
mod probe;
mod root;

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use sandbank_engine::Control;

use super::rootless::{self, HostMounts};
use super::scaffold::{self, Scaffold};
use super::wire::{Descriptors, MachinePlan, Role};
use super::{Failure, Step};

/// The descriptors a machine is made from.
pub(super) struct Parts {
    status: OwnedFd,
    user_namespace: OwnedFd,
    /// None: a new one with nothing but loopback.
    net_namespace: Option<OwnedFd>,
    listener: OwnedFd,
    config: OwnedFd,
    log: OwnedFd,
    runner: OwnedFd,
    /// This, `lower` and `binds` are found by path when the daemon is not root.
    workspace: Option<OwnedFd>,
    tasks: Vec<OwnedFd>,
    pub(super) into_cgroup: Option<OwnedFd>,
    command_cgroup: Option<OwnedFd>,
    oom_events: Option<OwnedFd>,
    lower: Vec<OwnedFd>,
    binds: Vec<OwnedFd>,
}

impl Parts {
    /// None when something is missing.
    pub(super) fn collect(plan: &MachinePlan, mut from: Descriptors) -> Option<Self> {
        let parts = Self {
            status: from.one(Role::Status)?,
            user_namespace: from.one(Role::UserNamespace)?,
            net_namespace: from.one(Role::NetNamespace),
            listener: from.one(Role::Listener)?,
            config: from.one(Role::Config)?,
            log: from.one(Role::Log)?,
            runner: from.one(Role::Runner)?,
            workspace: from.one(Role::Workspace),
            tasks: from.all(Role::Tasks),
            into_cgroup: from.one(Role::IntoCgroup),
            command_cgroup: from.one(Role::CommandCgroup),
            oom_events: from.one(Role::OomEvents),
            lower: from.all(Role::Lower),
            binds: from.all(Role::Bind),
        };
        let (binds, mounted) = match &plan.host_paths {
            Some(paths) => (paths.binds.len(), true),
            None => (parts.binds.len(), !parts.lower.is_empty() && parts.workspace.is_some()),
        };
        (mounted && binds == plan.bind_targets.len()).then_some(parts)
    }
}

pub(super) fn run(scaffold: &Scaffold, plan: &MachinePlan, parts: &Parts) -> ! {
    let Err(failure) = assemble(scaffold, plan, parts);
    let _ = rustix::io::write(&parts.status, &failure.to_bytes());
    // SAFETY: leaves without running the spawner's exit handlers a second time.
    unsafe { libc::_exit(71) }
}

fn assemble(scaffold: &Scaffold, plan: &MachinePlan, parts: &Parts) -> Result<Infallible, Failure> {
    limits::reset_scheduling().map_err(Failure::at(Step::Session))?;
    join_cgroups(parts).map_err(Failure::at(Step::JoinCgroup))?;
    // After joining: the namespace's root is the cgroup its maker is in.
    // SAFETY: this process has one thread.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWCGROUP) }
        .map_err(io::Error::from)
        .map_err(Failure::at(Step::CgroupNamespace))?;
    enter_network(parts).map_err(Failure::at(Step::NetNamespace))?;
    rustix::system::sethostname(plan.host_name.as_bytes())
        .map_err(io::Error::from)
        .map_err(Failure::at(Step::HostName))?;

    let host = plan.host_paths.as_ref().map(HostMounts::open).transpose();
    let host = host.map_err(Failure::at(Step::Root))?;
    let (lower, binds, workspace) = match &host {
        Some(host) => (std::slice::from_ref(&host.root), &host.binds, Some(&host.workspace)),
        None => (&parts.lower[..], &parts.binds, parts.workspace.as_ref()),
    };
    let root = root::mount(lower).map_err(Failure::at(Step::Root))?;
    root::bind(&root, &plan.bind_targets, binds).map_err(Failure::at(Step::Bind))?;
    kernel_files::mount(scaffold, &root, plan)?;
    dev::mount(&root, plan).map_err(Failure::at(Step::Dev))?;
    root::mount_scratch(&root, plan).map_err(Failure::at(Step::Tmp))?;
    root::mount_etc(&root, plan).map_err(Failure::at(Step::Etc))?;
    root::mount_workspace(&root, workspace).map_err(Failure::at(Step::Workspace))?;
    enter(&root).map_err(Failure::at(Step::Pivot))?;

    limits::start_session().map_err(Failure::at(Step::Session))?;
    if !plan.omitted.contains(Control::ResourceLimits) {
        limits::apply(plan).map_err(Failure::at(Step::Rlimits))?;
    }
    identity::assume(scaffold, plan, parts)?;
    probe::root_is_read_only().map_err(Failure::at(Step::RootProbe))?;
    probe::workspace_is_writable().map_err(Failure::at(Step::WriteProbe))?;
    descriptors::arrange(parts).map_err(Failure::at(Step::Descriptors))?;
    identity::drop_privileges(scaffold, plan)?;
    Err(Failure::at(Step::Exec)(descriptors::exec(&parts.runner)))
}

fn enter_network(parts: &Parts) -> io::Result<()> {
    match &parts.net_namespace {
        Some(namespace) => {
            let network = Some(LinkNameSpaceType::Network);
            Ok(rustix::thread::move_into_link_name_space(namespace.as_fd(), network)?)
        }
        None => {
            // SAFETY: this process has one thread.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
            rootless::raise_loopback()
        }
    }
}

fn join_cgroups(parts: &Parts) -> io::Result<()> {
    for tasks in &parts.tasks {
        // "0" is the writer. `cgroup.procs` would wait for an RCU grace period.
        rustix::io::write(tasks, b"0")?;
    }
    Ok(())
}

/// Makes `root` the root and the current directory, and checks that it is so.
fn enter(root: &OwnedFd) -> io::Result<()> {
    rustix::process::fchdir(root)?;
    scaffold::enter_current_directory()?;
    let mut place = [0u8; 64];
    // SAFETY: the buffer is as long as stated. The raw call, unlike getcwd(3), never falls back to
    // searching and marks a directory outside of the root.
    let length = unsafe { libc::syscall(libc::SYS_getcwd, place.as_mut_ptr(), place.len()) };
    if length == 2 && place.starts_with(b"/\0") {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EXDEV))
    }
}

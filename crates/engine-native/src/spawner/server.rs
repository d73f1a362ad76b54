//! The spawner's loop: one request at a time, and the deaths of its children.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Resource, Rlimit, WaitOptions};

use super::scaffold::Scaffold;
use super::wire::{Descriptors, MachinePlan, Order, Reply, Request};
use super::{Failure, Step, child, rootless, socket, user_namespace};
use crate::kernel::clone::{Cloned, clone_process};
use crate::kernel::process::ExitStatus;
use crate::limits::MAX_WIRE_BYTES;

const NAMESPACES: i32 =
    libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;

pub(super) fn run(socket: RawFd) -> ! {
    // SAFETY: the daemon passed this descriptor for the spawner alone.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    match serve(&socket) {
        Ok(()) => std::process::exit(0),
        // The daemon went while it was being answered.
        Err(error) if is_gone(&error) => std::process::exit(0),
        Err(error) => {
            // The daemon's log may be gone, which must not matter here.
            let _ = writeln!(io::stderr(), "sandbank spawner: {error}");
            std::process::exit(70)
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn serve(socket: &OwnedFd) -> io::Result<()> {
    // Away from the daemon's terminal: Ctrl-C there is the daemon's business.
    let _ = rustix::process::setsid();
    lift_own_limits();
    let children = block_child_signals()?;
    let scaffold = prepare();
    let mut buffer = vec![0; MAX_WIRE_BYTES];
    loop {
        let mut ready = [PollFd::new(socket, PollFlags::IN), PollFd::new(&children, PollFlags::IN)];
        match rustix::event::poll(&mut ready, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let (asked, died) = (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
        if died {
            report_deaths(socket, &children)?;
        }
        if asked {
            match socket::receive(socket, &mut buffer)? {
                Some((length, fds)) => answer(socket, scaffold.as_ref(), &buffer[..length], fds)?,
                None => return Ok(()),
            }
        }
    }
}

/// Where it fails, every request is answered with the reason.
fn prepare() -> Result<Scaffold, Failure> {
    let rootless = !rustix::process::geteuid().is_root();
    if rootless {
        rootless::become_root().map_err(Failure::at(Step::BecomeRoot))?;
    }
    Scaffold::raise(rootless).map_err(Failure::at(Step::Scaffold))
}

fn answer(
    socket: &OwnedFd,
    scaffold: Result<&Scaffold, &Failure>,
    message: &[u8],
    fds: Vec<OwnedFd>,
) -> io::Result<()> {
    let request: Request = serde_json::from_slice(message)?;
    let serial = request.serial;
    let done = match scaffold {
        Ok(scaffold) => obey(scaffold, request, fds),
        Err(failure) => Err(*failure),
    };
    match done {
        Ok((pid, fd)) => send(socket, &Reply::Done { serial, pid }, &[fd.as_fd()]),
        Err(Failure { step, errno }) => {
            send(socket, &Reply::Failed { serial, step: step as u32, errno }, &[])
        }
    }
}

fn obey(
    scaffold: &Scaffold,
    request: Request,
    fds: Vec<OwnedFd>,
) -> Result<(i32, OwnedFd), Failure> {
    let descriptors = Descriptors::assign(&request.roles, fds)
        .ok_or(Failure { step: Step::Message, errno: libc::EBADMSG })?;
    match request.order {
        Order::UserNamespace { uid_base } => user_namespace::make(scaffold, uid_base)
            .map(|namespace| (0, namespace))
            .map_err(Failure::at(Step::UserNamespaceMade)),
        Order::Machine(plan) => spawn(scaffold, &plan, descriptors),
    }
}

fn spawn(
    scaffold: &Scaffold,
    plan: &MachinePlan,
    descriptors: Descriptors,
) -> Result<(i32, OwnedFd), Failure> {
    let parts = child::Parts::collect(plan, descriptors)
        .ok_or(Failure { step: Step::Message, errno: libc::EBADMSG })?;
    let cgroup = parts.into_cgroup.as_ref().map(AsFd::as_fd);
    // SAFETY: the spawner has one thread.
    let cloned = unsafe { clone_process(NAMESPACES, cgroup) };
    match cloned.map_err(Failure::at(Step::Clone))? {
        Cloned::Child => child::run(scaffold, plan, &parts),
        Cloned::Parent { pid, pidfd } => Ok((pid, pidfd)),
    }
}

fn send(socket: &OwnedFd, reply: &Reply, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(reply)?;
    socket::send(socket, &bytes, fds)
}

fn report_deaths(socket: &OwnedFd, children: &OwnedFd) -> io::Result<()> {
    // Signals coalesce, so one record stands for any number of dead children.
    let mut record = [0; size_of::<libc::signalfd_siginfo>()];
    rustix::io::read(children, &mut record)?;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if let Some(status) = ExitStatus::from_wait(status.as_raw()) {
                    let pid = pid.as_raw_nonzero().get();
                    send(socket, &Reply::Died { pid, status }, &[])?;
                }
            }
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn block_child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is used, and signalfd returns a new
    // descriptor or -1.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// A user namespace remembers its maker's limits as the most that all of it may use.
fn lift_own_limits() {
    for resource in [Resource::Nproc, Resource::Memlock, Resource::Sigpending, Resource::Msgqueue] {
        let unlimited = Rlimit { current: None, maximum: None };
        if rustix::process::setrlimit(resource, unlimited).is_err() {
            let own = rustix::process::getrlimit(resource);
            let _ = rustix::process::setrlimit(
                resource,
                Rlimit { current: own.maximum, maximum: own.maximum },
            );
        }
    }
}

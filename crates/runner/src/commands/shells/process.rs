//! A shell's process, and the descriptors it is spoken to with.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{Access, AtFlags, CWD, MemfdFlags, Mode, OFlags};
use rustix::pipe::PipeFlags;
use rustix::termios::{LocalModes, OptionalActions};
use sandbank_protocol::{Fault, PtySize, ShellKind, ShellName, StreamKind};
use tokio::io::Interest;

use super::report::{Reports, last_words};
use super::words;
use crate::cgroups::Lease;
use crate::commands::death::Death;
use crate::commands::environment::{DEFAULT_PATH, Environment, MARKER};
use crate::commands::launch::{Launcher, output_pipe, refused, watch};
use crate::commands::source::{AsyncDescriptor, Source};
use crate::limits::{MAX_SHELL_REPORT_BYTES, SHELL_TERMINAL};
use crate::spawn::{Program, ShellEnds};
use crate::tree::{self, Tree};
use crate::{descriptors, pty};

/// Descriptors that go to a shell are kept above the numbers that they get there.
const ABOVE_SHELL_ENDS: i32 = 300;

pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) kind: ShellKind,
    pub(super) lease: Option<Lease>,
    pub(super) tree: Rc<Tree>,
    pub(super) control: Rc<OwnedFd>,
    script: OwnedFd,
    pub(super) controller: AsyncDescriptor,
    pub(super) answers: AsyncDescriptor,
    pub(super) reports: Reports,
    pub(super) stdout: Source,
    pub(super) stderr: Source,
    pub(super) terminal: Source,
    pub(super) death: Rc<Death>,
}

impl Process {
    /// In `cwd`, or in the workspace where that is gone.
    pub(super) fn start(
        launcher: &Launcher,
        name: &ShellName,
        cwd: Option<&str>,
    ) -> Result<Self, Fault> {
        let (path, directory) = match launcher.open_cwd(cwd) {
            Err(_) if cwd.is_some() => launcher.open_cwd(None)?,
            // By the name that the shell before it had for it, where that was another.
            Ok((path, directory)) => (cwd.map_or(path, str::to_owned), directory),
            Err(fault) => return Err(fault),
        };
        let mut environment = launcher.base_environment();
        environment.insert("PWD".to_owned(), path);
        let marker = format!("shell:{name}");
        environment.insert(MARKER.to_owned(), marker.clone());
        let kind = kind_in(&environment);
        let words: Vec<String> = words::program(kind).iter().map(|word| (*word).into()).collect();
        let mut program = Program::new(&words, &environment, DEFAULT_PATH).map_err(|error| {
            Fault::new(sandbank_protocol::FaultCode::Invalid, error.to_string())
        })?;
        let ends = Ends::open().map_err(|error| refused("streams", &error))?;
        let lease = launcher.lease()?;
        let stamp = launcher.stamp(lease.as_ref());
        let around = ShellEnds {
            terminal: ends.theirs.terminal.as_fd(),
            ends: [
                ends.theirs.answers.as_fd(),
                ends.theirs.script.as_fd(),
                ends.theirs.terminal.as_fd(),
                ends.theirs.stdout.as_fd(),
                ends.theirs.stderr.as_fd(),
            ],
            first: words::first(kind),
        };
        let control = ends.theirs.control.as_fd();
        let spawned =
            launcher.spawn_shell(&mut program, control, &directory, around, lease.as_ref(), stamp);
        let pid = match spawned {
            Ok(pid) => pid,
            Err(fault) => {
                launcher.return_lease(lease.as_ref());
                return Err(fault);
            }
        };
        let Ours { control, script, controller, answers, stdout, stderr } = ends.ours;
        let process = Self {
            pid,
            kind,
            tree: Rc::new(Tree::new(&marker, pid, lease.clone(), stamp)),
            lease,
            control: Rc::new(control),
            script,
            terminal: Source::new(controller.clone(), StreamKind::Pty),
            controller,
            answers,
            reports: Reports::default(),
            stdout,
            stderr,
            death: Rc::default(),
        };
        process.say(&words::beginning(kind)).map_err(|error| refused("a first word", &error))?;
        Ok(process)
    }

    pub(super) fn say(&self, line: &str) -> io::Result<()> {
        say(&self.control, line)
    }

    /// What the shell evaluates next.
    pub(super) fn set_script(&self, script: &[u8]) -> io::Result<()> {
        rustix::fs::ftruncate(&self.script, 0)?;
        let mut written = 0;
        while written < script.len() {
            written += rustix::io::pwrite(&self.script, &script[written..], written as u64)?;
        }
        Ok(())
    }

    /// What a shell that ended by itself left in place of its script.
    pub(super) fn last_words(&self) -> Option<(String, Vec<u8>)> {
        let mut left = vec![0; MAX_SHELL_REPORT_BYTES];
        let count = rustix::io::pread(&self.script, &mut left, 0).ok()?;
        last_words(&left[..count])
    }

    /// As a terminal for people, or as one that only passes input on.
    pub(super) fn set_terminal(&self, size: Option<PtySize>) -> io::Result<()> {
        pty::resize(self.controller.get_ref(), size.map_or(SHELL_TERMINAL, PtySize::clamped))?;
        let mut modes = rustix::termios::tcgetattr(self.controller.get_ref())?;
        modes.local_modes.set(LocalModes::ECHO, size.is_some());
        rustix::termios::tcsetattr(self.controller.get_ref(), OptionalActions::Now, &modes)?;
        Ok(())
    }

    /// Everything the shell has started and that lives. `is_known` are the leaders of commands and
    /// shells.
    pub(super) fn started(&self, is_known: impl Fn(&i32) -> bool) -> Vec<i32> {
        // Spares a walk through all processes where there is neither child nor orphan.
        let is_alone = || {
            let orphans = tree::children(std::process::id() as i32)?;
            Some(orphans.iter().all(is_known) && tree::children(self.pid)?.is_empty())
        };
        match self.lease.is_none() && is_alone() == Some(true) {
            true => Vec::new(),
            false => self.tree.started(),
        }
    }
}

pub(super) fn say(control: &OwnedFd, line: &str) -> io::Result<()> {
    rustix::io::write(control, line.as_bytes())?;
    Ok(())
}

/// How much of what was said has not been read.
pub(super) fn unread(control: &OwnedFd) -> u64 {
    rustix::io::ioctl_fionread(control).unwrap_or(0)
}

/// The first that the environment's `PATH` leads to.
fn kind_in(environment: &Environment) -> ShellKind {
    let path = environment.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    let is_there = |directory: &str| {
        let file = format!("{directory}/bash");
        rustix::fs::accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
    };
    if path.split(':').any(is_there) { ShellKind::Bash } else { ShellKind::Sh }
}

struct Ends {
    ours: Ours,
    theirs: Theirs,
}

struct Ours {
    control: OwnedFd,
    script: OwnedFd,
    controller: AsyncDescriptor,
    answers: AsyncDescriptor,
    stdout: Source,
    stderr: Source,
}

struct Theirs {
    control: OwnedFd,
    script: OwnedFd,
    terminal: OwnedFd,
    answers: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Ends {
    fn open() -> io::Result<Self> {
        let (control, our_control) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&our_control, true)?;
        let (our_answers, answers) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let our_script = rustix::fs::memfd_create("script", MemfdFlags::CLOEXEC)?;
        // Another one for the shell, who may read it only, and from the beginning each time.
        let script = rustix::fs::open(
            format!("/proc/self/fd/{}", our_script.as_raw_fd()),
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let (stdout, our_stdout) = output_pipe(StreamKind::Stdout)?;
        let (stderr, our_stderr) = output_pipe(StreamKind::Stderr)?;
        let pty = pty::open(SHELL_TERMINAL)?;
        let both = Interest::READABLE | Interest::WRITABLE;
        Ok(Self {
            ours: Ours {
                control: our_control,
                script: our_script,
                controller: Rc::new(descriptors::watch(pty.controller, both)?),
                answers: watch(our_answers, Interest::READABLE)?,
                stdout: our_stdout,
                stderr: our_stderr,
            },
            theirs: Theirs {
                control,
                script: above(script)?,
                terminal: above(pty.terminal)?,
                answers: above(answers)?,
                stdout: above(stdout)?,
                stderr: above(stderr)?,
            },
        })
    }
}

fn above(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, ABOVE_SHELL_ENDS)?)
}

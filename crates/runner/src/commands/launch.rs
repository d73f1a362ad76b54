//! From a spec to a running process: validation, environment, streams, cgroup, spawn.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use sandbank_protocol::{
    CgroupVersion, CommandSpec, Fault, FaultCode, RunnerConfig, StdinMode, StreamKind,
};
use sandbank_rooted_fs::open_absolute;
use tokio::io::Interest;

use super::command::{Command, Owner, Parts};
use super::environment::{self, DEFAULT_PATH, Environment};
use super::output::Output;
use super::shells::Turn;
use super::source::{AsyncDescriptor, Source};
use super::stdin::{Sink, Stdin};
use crate::cgroups::{CommandCgroups, Lease, OomKills, OomMark};
use crate::privileges::{AsRunner, FileIdentity};
use crate::spawn::{Placement, Program, ShellEnds, SpawnError, Spawner, Surroundings};
use crate::stamp::{Stamp, Stamps};
use crate::tree::Tree;
use crate::{descriptors, pty};

/// What all commands of this sandbox share.
pub(crate) struct Launcher {
    workspace: String,
    workspace_aliases: Vec<String>,
    base_environment: RefCell<Environment>,
    /// Kept per command unless it asks otherwise, and at most.
    journal_bytes: u64,
    max_journal_bytes: u64,
    identity: FileIdentity,
    spawner: Spawner,
    cgroups: Option<CommandCgroups>,
    oom: Option<OomKills>,
    stamps: Stamps,
    null: OwnedFd,
}

pub(super) struct Launched {
    pub(super) command: Command,
    pub(super) sources: Vec<Source>,
    /// The command's side of its terminal.
    pub(super) kept_open: Option<OwnedFd>,
    /// Out-of-memory kills before the command began.
    pub(super) oom_mark: OomMark,
}

/// The ends of a command's streams: the command's, and ours.
struct Streams {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: Option<OwnedFd>,
    sink: Option<Sink>,
    sources: Vec<Source>,
    terminal: Option<AsyncDescriptor>,
}

impl Launcher {
    pub(crate) fn new(
        config: &RunnerConfig,
        identity: FileIdentity,
        spawner: Spawner,
        cgroups: Option<CommandCgroups>,
        oom: Option<OomKills>,
    ) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        Ok(Self {
            workspace: config.workspace.clone(),
            workspace_aliases: config.workspace_aliases.clone(),
            base_environment: RefCell::new(environment::base(config)),
            journal_bytes: config.journal_bytes,
            max_journal_bytes: config.journal_total_bytes,
            identity,
            spawner,
            cgroups,
            oom,
            stamps: Stamps::new()?,
            null: rustix::fs::open("/dev/null", flags, Mode::empty())?,
        })
    }

    /// A script that its shell will evaluate when it is its turn.
    pub(super) fn queue(&self, spec: CommandSpec, number: u64, turn: Rc<Turn>) -> Command {
        let takes_input = spec.pty.is_some() || spec.stdin == StdinMode::Open;
        Command::new(Parts {
            number,
            pid: 0,
            output: Output::new(self.budget(&spec)),
            stdin: Stdin::new(takes_input.then_some(Sink::Later)),
            terminal: None,
            owner: Owner::Shell(turn),
            spec,
        })
    }

    fn budget(&self, spec: &CommandSpec) -> u64 {
        spec.journal_bytes.unwrap_or(self.journal_bytes).min(self.max_journal_bytes)
    }

    /// Nothing of a command that is refused is left behind.
    pub(super) fn launch(&self, spec: CommandSpec, number: u64) -> Result<Launched, Fault> {
        if spec.timeout_ms == Some(0) {
            let message = "a timeout of 0 ms leaves no time to run; leave it out for none";
            return Err(Fault::new(FaultCode::Invalid, message));
        }
        let (cwd_path, cwd) = self.open_cwd(spec.cwd.as_deref())?;
        let base = self.base_environment.borrow();
        let variables = environment::of_command(&base, &spec, &cwd_path);
        drop(base);
        let mut program = Program::new(&spec.argv, &variables, DEFAULT_PATH)
            .map_err(|error| Fault::new(FaultCode::Invalid, error.to_string()))?;
        let streams = Streams::open(&spec).map_err(|error| refused("streams", &error))?;
        let lease = self.lease()?;
        let oom_mark = self.look_for_oom_kills();

        let stamp = self.stamp(lease.as_ref());
        let pid = match self.spawn(&mut program, &streams, &cwd, lease.as_ref(), stamp) {
            Ok(pid) => pid,
            Err(fault) => {
                self.return_lease(lease.as_ref());
                return Err(fault);
            }
        };
        let command = Command::new(Parts {
            number,
            pid,
            output: Output::new(self.budget(&spec)),
            stdin: Stdin::new(streams.sink),
            terminal: streams.terminal,
            owner: Owner::Itself(Tree::new(&spec.id, pid, lease, stamp)),
            spec,
        });
        let kept_open = command.spec().pty.is_some().then_some(streams.stdout);
        Ok(Launched { command, sources: streams.sources, kept_open, oom_mark })
    }

    pub(super) fn extend_environment(&self, variables: Environment) {
        self.base_environment.borrow_mut().extend(variables);
    }

    pub(super) fn base_environment(&self) -> Environment {
        self.base_environment.borrow().clone()
    }

    pub(super) fn lease(&self) -> Result<Option<Lease>, Fault> {
        let lease = self.cgroups.as_ref().map(CommandCgroups::take).transpose();
        lease.map_err(|error| refused("a cgroup", &error))
    }

    /// What stands for a cgroup where there is none.
    pub(super) fn stamp(&self, lease: Option<&Lease>) -> Option<Stamp> {
        lease.is_none().then(|| self.stamps.next())
    }

    pub(super) fn return_lease(&self, lease: Option<&Lease>) {
        if let (Some(cgroups), Some(lease)) = (&self.cgroups, lease) {
            cgroups.give_back(lease);
        }
    }

    /// A shell reads words of the runner; what it says of itself is nobody's business.
    pub(super) fn spawn_shell(
        &self,
        program: &mut Program,
        control: BorrowedFd<'_>,
        cwd: &OwnedFd,
        shell: ShellEnds<'_>,
        lease: Option<&Lease>,
        stamp: Option<Stamp>,
    ) -> Result<i32, Fault> {
        let around = Surroundings {
            stdin: control,
            stdout: self.null.as_fd(),
            stderr: self.null.as_fd(),
            terminal: false,
            cwd: cwd.as_fd(),
            placement: Placement::Inherit,
            stamp,
            shell: Some(shell),
        };
        self.place(program, around, lease)
    }

    /// A program of the runner's own, whose input is a file.
    pub(super) fn spawn_aside(
        &self,
        program: &mut Program,
        streams: [BorrowedFd<'_>; 3],
        cwd: BorrowedFd<'_>,
        lease: Option<&Lease>,
        stamp: Option<Stamp>,
    ) -> Result<i32, Fault> {
        let [stdin, stdout, stderr] = streams;
        let around = Surroundings {
            stdin,
            stdout,
            stderr,
            terminal: false,
            cwd,
            placement: Placement::Inherit,
            stamp,
            shell: None,
        };
        self.place(program, around, lease)
    }

    /// The workspace's path without links, as what runs in it sees it.
    pub(super) fn real_workspace(&self) -> io::Result<std::path::PathBuf> {
        std::fs::canonicalize(&self.workspace)
    }

    /// Out-of-memory kills in this sandbox so far; none where the engine does not tell.
    pub(super) fn look_for_oom_kills(&self) -> OomMark {
        self.oom.as_ref().map(OomKills::look).unwrap_or_default()
    }

    pub(super) fn claim_oom_kill(&self, mark: OomMark) -> bool {
        self.oom.as_ref().is_some_and(|oom| oom.claim(mark))
    }

    /// The cgroup of an ended command serves another one once it is empty.
    pub(super) fn give_back(&self, command: &Command) {
        self.return_lease(command.tree().and_then(Tree::lease));
    }

    /// With the workload's rights, but in the runner: no link of `/proc` may lead to one of the
    /// runner's descriptors, and from there out. The child enters the very directory that was
    /// checked here.
    pub(super) fn open_cwd(&self, cwd: Option<&str>) -> Result<(String, OwnedFd), Fault> {
        let path = self.resolve_cwd(cwd.unwrap_or_default());
        match open_absolute(&path, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(directory) => Ok((path, directory)),
            Err(error) => {
                let message = format!("the working directory {path:?} cannot be entered: {error}");
                Err(Fault::new(FaultCode::Invalid, message))
            }
        }
    }

    fn resolve_cwd(&self, cwd: &str) -> String {
        if cwd.is_empty() {
            return self.workspace.clone();
        }
        if !cwd.starts_with('/') {
            return format!("{}/{cwd}", self.workspace);
        }
        let below = |alias: &String| {
            let rest = cwd.strip_prefix(alias.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        };
        match self.workspace_aliases.iter().find_map(below) {
            Some(rest) => format!("{}{rest}", self.workspace),
            None => cwd.to_owned(),
        }
    }

    fn spawn(
        &self,
        program: &mut Program,
        streams: &Streams,
        cwd: &OwnedFd,
        lease: Option<&Lease>,
        stamp: Option<Stamp>,
    ) -> Result<i32, Fault> {
        let stdin = streams.stdin.as_ref().unwrap_or(&self.null).as_fd();
        let stdout = streams.stdout.as_fd();
        let stderr = streams.stderr.as_ref().unwrap_or(&streams.stdout).as_fd();
        let stdin = if streams.terminal.is_some() { stdout } else { stdin };
        let around = Surroundings {
            stdin,
            stdout,
            stderr,
            terminal: streams.terminal.is_some(),
            cwd: cwd.as_fd(),
            placement: Placement::Inherit,
            stamp,
            shell: None,
        };
        self.place(program, around, lease)
    }

    /// Spawns in the command's own cgroup, where there is one.
    fn place<'a>(
        &self,
        program: &mut Program,
        mut around: Surroundings<'a>,
        lease: Option<&'a Lease>,
    ) -> Result<i32, Fault> {
        let Some(group) = lease.and_then(Lease::group) else {
            return self.spawner.spawn(program, &around).map_err(spawn_fault);
        };
        if group.version() == CgroupVersion::V2 {
            around.placement = Placement::Clone(group.directory());
            // The kernel checks the right to write into the cgroup against the runner's files.
            let _rights = AsRunner::enter(self.identity);
            match self.spawner.spawn(program, &around) {
                Err(SpawnError::Clone(error)) if error.raw_os_error() == Some(libc::ENOSYS) => {}
                result => return result.map_err(spawn_fault),
            }
        }
        let file = group.join_file().map_err(|error| refused("a cgroup", &error))?;
        around.placement = Placement::Write(file);
        self.spawner.spawn(program, &around).map_err(spawn_fault)
    }
}

impl Streams {
    fn open(spec: &CommandSpec) -> io::Result<Self> {
        if let Some(size) = spec.pty {
            let pty = pty::open(size.clamped())?;
            let both = Interest::READABLE | Interest::WRITABLE;
            let controller = Rc::new(descriptors::watch(pty.controller, both)?);
            return Ok(Self {
                stdin: None,
                stdout: pty.terminal,
                stderr: None,
                sink: Some(Sink::Terminal(controller.clone())),
                sources: vec![Source::new(controller.clone(), StreamKind::Pty)],
                terminal: Some(controller),
            });
        }
        let (stdin, sink) = match spec.stdin {
            StdinMode::Null => (None, None),
            StdinMode::Open => {
                let (theirs, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
                (Some(theirs), Some(Sink::Pipe(watch(ours, Interest::WRITABLE)?)))
            }
        };
        let (stdout, stdout_source) = output_pipe(StreamKind::Stdout)?;
        let (stderr, stderr_source) = output_pipe(StreamKind::Stderr)?;
        let sources = vec![stdout_source, stderr_source];
        Ok(Self { stdin, stdout, stderr: Some(stderr), sink, sources, terminal: None })
    }
}

pub(super) fn output_pipe(stream: StreamKind) -> io::Result<(OwnedFd, Source)> {
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((theirs, Source::new(watch(ours, Interest::READABLE)?, stream)))
}

/// Non-blocking on our side only: the two ends of a pipe do not share that flag.
pub(super) fn watch(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncDescriptor> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    Ok(Rc::new(descriptors::watch(descriptor, interest)?))
}

fn spawn_fault(error: SpawnError) -> Fault {
    match &error {
        SpawnError::Clone(cause) => Fault::new(resource_code(cause), error.to_string()),
        SpawnError::Step { .. } => Fault::new(FaultCode::Internal, error.to_string()),
    }
}

pub(super) fn refused(what: &str, error: &io::Error) -> Fault {
    let message = format!("the kernel refuses {what} for the command: {error}");
    Fault::new(resource_code(error), message)
}

/// Out of processes, descriptors or memory is a limit, anything else a surprise.
fn resource_code(error: &io::Error) -> FaultCode {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOSPC) => {
            FaultCode::LimitReached
        }
        _ => FaultCode::Internal,
    }
}

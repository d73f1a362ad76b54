//! One command: what was asked for, what it has written, how it ended.
//!
//! Its state changes in one place, the driver in `drive.rs`; requests only read it and ask.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use sandbank_protocol::{
    CommandSpec, CommandState, CommandStatus, Ending, Fault, FaultCode, PtySize, Screen,
    ShellStatus, SignalRequest, StdinMode,
};
use tokio::sync::Notify;

use super::death::Death;
use super::ending::Circumstances;
use super::output::Output;
use super::screens::Model;
use super::shells::Turn;
use super::source::AsyncDescriptor;
use super::stdin::{Sink, Stdin};
use crate::clock::now_ms;
use crate::limits::MAX_BY_CHARS;
use crate::tree::{Tree, send};

pub(crate) struct Command {
    spec: CommandSpec,
    /// Its place in the order of starts.
    number: u64,
    pid: Cell<i32>,
    started_at_ms: u64,
    output: Output,
    stdin: Stdin,
    /// Of a running command on a terminal.
    terminal: RefCell<Option<AsyncDescriptor>>,
    /// What that terminal shows, when the spec asks for it.
    screen: RefCell<Option<Box<Model>>>,
    owner: Owner,
    shell: RefCell<Option<ShellStatus>>,
    circumstances: RefCell<Circumstances>,
    /// Of its own process; a script in a shell has none.
    death: Rc<Death>,
    /// Set once, by the driver.
    end: OnceCell<End>,
    ended: Notify,
}

/// Whose processes the command's are.
pub(super) enum Owner {
    Itself(Tree),
    Shell(Rc<Turn>),
}

struct End {
    ending: Ending,
    time_ms: u64,
}

/// What exists of a command once its process runs.
pub(super) struct Parts {
    pub(super) spec: CommandSpec,
    pub(super) number: u64,
    pub(super) pid: i32,
    pub(super) output: Output,
    pub(super) stdin: Stdin,
    pub(super) terminal: Option<AsyncDescriptor>,
    pub(super) owner: Owner,
}

impl Command {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            spec: parts.spec,
            number: parts.number,
            pid: Cell::new(parts.pid),
            started_at_ms: now_ms(),
            output: parts.output,
            stdin: parts.stdin,
            terminal: RefCell::new(parts.terminal),
            screen: RefCell::default(),
            owner: parts.owner,
            shell: RefCell::default(),
            circumstances: RefCell::default(),
            death: Rc::default(),
            end: OnceCell::new(),
            ended: Notify::new(),
        }
    }

    pub(crate) fn spec(&self) -> &CommandSpec {
        &self.spec
    }

    pub(super) fn started_at_ms(&self) -> u64 {
        self.started_at_ms
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.get()
    }

    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    pub(crate) fn stdin(&self) -> &Stdin {
        &self.stdin
    }

    /// None of a script in a shell.
    pub(super) fn tree(&self) -> Option<&Tree> {
        match &self.owner {
            Owner::Itself(tree) => Some(tree),
            Owner::Shell(_) => None,
        }
    }

    /// Its turn has come.
    pub(super) fn set_process(&self, pid: i32, terminal: AsyncDescriptor) {
        self.pid.set(pid);
        if self.spec.pty.is_some() {
            *self.terminal.borrow_mut() = Some(terminal.clone());
        }
        if self.spec.pty.is_some() || self.spec.stdin == StdinMode::Open {
            self.stdin.open(Sink::Terminal(terminal));
        }
    }

    pub(super) fn shell(&self) -> Option<ShellStatus> {
        self.shell.borrow().clone()
    }

    pub(super) fn set_shell(&self, status: ShellStatus) {
        *self.shell.borrow_mut() = Some(status);
    }

    pub(super) fn set_shell_cwd(&self, cwd: &str) {
        if let Some(shell) = &mut *self.shell.borrow_mut() {
            shell.cwd = Some(cwd.to_owned());
        }
    }

    pub(super) fn circumstances(&self) -> &RefCell<Circumstances> {
        &self.circumstances
    }

    pub(super) fn death(&self) -> &Rc<Death> {
        &self.death
    }

    /// Whether the leader's pid is still its own.
    pub(super) fn leader_lives(&self) -> bool {
        self.death.status().is_none()
    }

    pub(super) fn set_ended(&self, ending: Ending, time_ms: u64) {
        let _ = self.end.set(End { ending, time_ms });
        self.stdin.close();
        self.terminal.borrow_mut().take();
        self.ended.notify_waiters();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end.get().is_some()
    }

    /// Resolves when the ending is known.
    pub(crate) async fn ended(&self) {
        let ended = self.ended.notified();
        if !self.has_ended() {
            ended.await;
        }
    }

    pub(crate) fn status(&self) -> CommandStatus {
        let end = self.end.get();
        let journal = self.output.journal();
        CommandStatus {
            id: self.spec.id.clone(),
            argv: self.spec.argv.clone(),
            cwd: self.spec.cwd.clone(),
            pty: self.spec.pty.is_some(),
            state: match end {
                None => CommandState::Running,
                Some(end) => CommandState::Ended { ending: end.ending.clone() },
            },
            pid: self.pid.get(),
            started_at_ms: self.started_at_ms,
            ended_at_ms: end.map(|end| end.time_ms),
            stdout_bytes: self.output.stdout_bytes(),
            stderr_bytes: self.output.stderr_bytes(),
            dropped_bytes: journal.dropped_bytes(),
            last_seq: journal.last_seq(),
            stdin_offset: self.stdin.next_offset(),
            shell: self.shell(),
        }
    }

    /// Signals the process group, or everything the command started. What an ended command left
    /// behind can be reached as a tree only.
    pub(crate) async fn signal(&self, request: SignalRequest) -> Result<(), Fault> {
        let SignalRequest { signal, by, tree } = request;
        if !(1..=64).contains(&signal) {
            return Err(Fault::new(FaultCode::Invalid, format!("there is no signal {signal}")));
        }
        let over = match &self.owner {
            Owner::Itself(_) => !self.leader_lives(),
            Owner::Shell(_) => self.has_ended(),
        };
        if over && !(tree && self.left_something()) {
            return Err(Fault::new(FaultCode::Closed, "the command has ended"));
        }
        if !over {
            let by = by.chars().take(MAX_BY_CHARS).collect();
            self.circumstances.borrow_mut().requested.insert(signal, by);
        }
        let sent = match &self.owner {
            Owner::Shell(turn) => return turn.signal(signal, tree),
            Owner::Itself(own) if tree => own.signal(signal, || self.leader_lives()).await,
            Owner::Itself(_) => send(-self.pid.get(), signal),
        };
        sent.map_err(|error| {
            Fault::new(FaultCode::Internal, format!("the signal cannot be sent: {error}"))
        })
    }

    fn left_something(&self) -> bool {
        self.tree().is_some_and(|tree| !tree.is_empty(self.leader_lives()))
    }

    pub(super) fn set_screen(&self, model: Option<Model>) {
        *self.screen.borrow_mut() = model.map(Box::new);
    }

    pub(super) fn forget_screen(&self) {
        self.screen.borrow_mut().take();
    }

    /// What comes after the ending has no number, so no screen shows it either.
    pub(super) fn feed_screen(&self, output: &[u8]) {
        if let Some(model) = &mut *self.screen.borrow_mut()
            && !self.has_ended()
        {
            model.feed(output);
        }
    }

    pub(crate) fn screen(&self) -> Result<Screen, Fault> {
        if let Some(model) = &*self.screen.borrow() {
            return Ok(model.screen(self.output.journal().last_seq()));
        }
        Err(match self.spec.screen {
            true => Fault::new(FaultCode::Closed, "the screen of an ended command is kept no more"),
            false => Fault::new(FaultCode::Conflict, "the command was not started with a screen"),
        })
    }

    /// One size for all who look at it: the last one counts.
    pub(crate) fn resize(&self, size: PtySize) -> Result<(), Fault> {
        if self.spec.pty.is_none() {
            let message = "the command does not run on a terminal";
            return Err(Fault::new(FaultCode::Conflict, message));
        }
        let terminal = self.terminal.borrow();
        let ended = || Fault::new(FaultCode::Closed, "the command has ended");
        let terminal = terminal.as_ref().ok_or_else(ended)?;
        let size = size.clamped();
        let mut screen = self.screen.borrow_mut();
        screen.as_ref().map_or(Ok(()), |model| model.admit(size))?;
        crate::pty::resize(terminal.get_ref(), size).map_err(|error| {
            Fault::new(FaultCode::Internal, format!("the terminal cannot be resized: {error}"))
        })?;
        screen.iter_mut().for_each(|model| model.resize(size));
        Ok(())
    }
}

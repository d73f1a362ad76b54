//! Shells that remember: `cd`, variables, functions, aliases, options and jobs of one script are
//! there for the next.
//!
//! A shell is an interactive one on a terminal of its own, whose standard input is a pipe that only
//! the runner writes to (see `words.rs`). Scripts of one shell take turns. Each is a command like
//! any other, with a journal and one ending; only its process is the shell's.

mod begin;
mod drive;
mod idle;
mod probe;
mod process;
mod report;
mod streams;
mod watch;
mod words;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use sandbank_protocol::{CommandSpec, Fault, FaultCode, ShellKind, ShellName};
use tokio::sync::{Mutex, Notify};

use super::source::AsyncDescriptor;
use super::{Command, Commands};
use crate::limits::{MAX_SHELL_QUEUE, MAX_SHELLS, SIGNAL_FOLLOW_UPS};
use crate::tree::{Tree, send, send_all};
use idle::IdleOutput;
use process::Process;
use report::Said;

#[derive(Default)]
pub(super) struct Shells {
    all: RefCell<BTreeMap<ShellName, Rc<Shell>>>,
}

pub(crate) struct Shell {
    name: ShellName,
    memory: RefCell<Memory>,
    /// Whoever has it reads all that the process says. Scripts get it in the order they came.
    process: Mutex<Option<Process>>,
    /// Tells the reader of idle output to let go.
    wanted: Notify,
    current: RefCell<Option<Current>>,
    idle: RefCell<IdleOutput>,
    waiting: Cell<usize>,
}

/// What a new process begins with, from what the last script left.
#[derive(Default)]
struct Memory {
    has_begun: bool,
    cwd: Option<String>,
    exports: Vec<u8>,
    status: u8,
    /// The last turn that was reported: what it exported comes behind the report.
    reported: u64,
}

impl Memory {
    fn keep_exports(&mut self, turn: u64, exports: Option<Vec<u8>>) {
        if let Some(exports) = exports.filter(|_| turn == self.reported) {
            self.exports = exports;
        }
    }

    /// For a shell that does not say more.
    fn hear_rest(&mut self, process: &mut Process) {
        for said in process.reports.push(&streams::answer_now(&process.answers)) {
            if let Said::Exports { turn, exports } = said {
                self.keep_exports(turn, exports);
            }
        }
    }
}

/// The script that runs, as those see it who signal it.
struct Current {
    turn: u64,
    pid: i32,
    kind: ShellKind,
    tree: Rc<Tree>,
    controller: AsyncDescriptor,
    control: Rc<OwnedFd>,
    /// What earlier scripts had left running: none of this one's business.
    before: HashSet<i32>,
}

/// A script's place in its shell.
pub(crate) struct Turn {
    pub(super) shell: Rc<Shell>,
    /// 0 until it begins, then a number that nobody could guess, so that no script can answer for
    /// the next one.
    number: Cell<u64>,
    /// The shell had read the script's line, and was asked again.
    asked: Cell<bool>,
}

impl Shells {
    pub(super) fn turn(&self, spec: &CommandSpec) -> Result<Option<Turn>, Fault> {
        let Some(used) = &spec.shell else { return Ok(None) };
        let invalid = |message: &str| Err(Fault::new(FaultCode::Invalid, message));
        if spec.argv.len() != 1 {
            return invalid("a shell takes one text, the script, as argv");
        }
        if !spec.env.is_empty() || spec.cwd.is_some() {
            return invalid("a shell has an environment and a directory: use export and cd");
        }
        let mut all = self.all.borrow_mut();
        let full = |message: String| Err(Fault::new(FaultCode::LimitReached, message));
        if !all.contains_key(&used.name) && all.len() >= MAX_SHELLS {
            return full(format!("there are {MAX_SHELLS} shells already"));
        }
        let shell = all.entry(used.name.clone()).or_insert_with(|| Shell::new(&used.name)).clone();
        if shell.waiting.get() >= MAX_SHELL_QUEUE {
            return full(format!("{MAX_SHELL_QUEUE} scripts wait for this shell already"));
        }
        Ok(Some(Turn { shell, number: Cell::new(0), asked: Cell::new(false) }))
    }
}

impl Shell {
    fn new(name: &ShellName) -> Rc<Self> {
        Rc::new(Self {
            name: name.clone(),
            memory: RefCell::default(),
            process: Mutex::new(None),
            wanted: Notify::new(),
            current: RefCell::default(),
            idle: RefCell::default(),
            waiting: Cell::new(0),
        })
    }
}

impl Turn {
    /// Evaluates the script once it is its turn.
    pub(super) async fn run(self: Rc<Self>, commands: Rc<Commands>, command: Rc<Command>) {
        let shell = &self.shell;
        shell.waiting.set(shell.waiting.get() + 1);
        shell.wanted.notify_one();
        let mut process = shell.process.lock().await;
        shell.waiting.set(shell.waiting.get() - 1);
        let script = drive::Script { commands: &commands, command: &command, turn: &self };
        let ending = script.evaluate(&mut process).await;
        shell.current.borrow_mut().take();
        drop(process);
        commands.finish(&command, ending);
    }

    /// To the group in the terminal's foreground, or to all that the script started. Where that is
    /// the shell itself, what would end it ends the script.
    pub(super) fn signal(&self, signal: i32, tree: bool) -> Result<(), Fault> {
        let current = self.shell.current.borrow();
        let current = current.as_ref().filter(|current| current.turn == self.number.get());
        // One that has not begun yet ends when it would begin.
        let Some(current) = current else { return Ok(()) };
        if !current.signal(signal, tree) && ENDS.contains(&signal) {
            tokio::task::spawn_local(follow_up(self.shell.clone(), self.number.get(), signal));
        }
        Ok(())
    }
}

/// What ends whatever does not mind it.
const ENDS: [i32; 5] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGKILL];

/// A program that the shell was just about to start was not there yet to be signalled, and the shell
/// waits for it whatever it has heard itself.
async fn follow_up(shell: Rc<Shell>, turn: u64, signal: i32) {
    for pause in SIGNAL_FOLLOW_UPS {
        tokio::time::sleep(pause).await;
        let current = shell.current.borrow();
        let Some(current) = current.as_ref().filter(|current| current.turn == turn) else { return };
        let foreground = current.foreground();
        if foreground != current.pid {
            let _ = send(-foreground, signal);
            return;
        }
    }
}

impl Current {
    /// Says whether anybody but the shell was there to be signalled.
    fn signal(&self, signal: i32, tree: bool) -> bool {
        let foreground = self.foreground();
        let started = self.started();
        let has_others = if tree && !started.is_empty() {
            send_all(started, signal, foreground);
            true
        } else if foreground != self.pid {
            let _ = send(-foreground, signal);
            true
        } else {
            false
        };
        if ENDS.contains(&signal) {
            // A loop of the shell's own would go on without what it has just lost.
            let _ = send(self.pid, libc::SIGINT);
            // A script can stop its own shell, which then takes no signal but this.
            let _ = send(self.pid, libc::SIGCONT);
            let _ = process::say(&self.control, &words::ask_again(self.kind, self.turn));
        }
        has_others
    }

    /// The group that the terminal's keys go to.
    fn foreground(&self) -> i32 {
        rustix::termios::tcgetpgrp(self.controller.get_ref())
            .map(|group| group.as_raw_nonzero().get())
            .unwrap_or(self.pid)
    }

    /// What the script has started and that lives.
    fn started(&self) -> Vec<i32> {
        let mut started = self.tree.started();
        started.retain(|pid| !self.before.contains(pid));
        started
    }
}

fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

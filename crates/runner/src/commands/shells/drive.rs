//! One script in its shell, from its beginning to its ending.

use std::rc::Rc;

use sandbank_protocol::Ending;

use super::process::{Process, unread};
use super::report::Report;
use super::{Turn, words};
use crate::commands::ending::{Circumstances, decide, is_unexplained_kill};
use crate::commands::{Command, Commands, WaitStatus};
use crate::limits::{KILL_DEADLINE, MAX_SHELL_ATTEMPTS};
use crate::tree::send;

const MUTE: &str = "the script took from its shell what it answers with, so how it ended is not known; \
                    the next one gets a new shell";

pub(super) struct Script<'a> {
    pub(super) commands: &'a Rc<Commands>,
    pub(super) command: &'a Rc<Command>,
    pub(super) turn: &'a Rc<Turn>,
}

pub(super) enum Event {
    Reported(Report),
    Died(WaitStatus),
    /// It waits for its next word, and has not answered.
    Mute,
    Late,
}

impl Script<'_> {
    pub(super) async fn evaluate(&self, place: &mut Option<Process>) -> Ending {
        if let Some((signal, by)) = self.requested() {
            return Ending::Killed { by, signal };
        }
        for _ in 0..MAX_SHELL_ATTEMPTS {
            if let Some(ending) = self.attempt(place).await {
                return ending;
            }
        }
        Ending::Lost { reason: "the shell ends before it takes the script".to_owned() }
    }

    /// None when the shell died before it took the script.
    async fn attempt(&self, place: &mut Option<Process>) -> Option<Ending> {
        if let Some(mut dead) = place.take_if(|process| process.death.status().is_some()) {
            self.turn.shell.memory.borrow_mut().hear_rest(&mut dead);
            self.commands.launcher.return_lease(dead.lease.as_ref());
        }
        let process = match place {
            Some(process) => process,
            None => match self.start().await {
                Ok(process) => place.insert(process),
                Err(reason) => return Some(Ending::Lost { reason }),
            },
        };
        let oom_mark = self.commands.launcher.look_for_oom_kills();
        if self.begin(process).is_err() {
            self.discard(place).await;
            return None;
        }
        let event = self.watch(process).await;
        if matches!(event, Event::Died(_)) && self.was_not_taken(process) {
            self.commands.launcher.return_lease(process.lease.as_ref());
            *place = None;
            return None;
        }
        self.sweep(process).await;
        Some(match event {
            Event::Reported(report) => {
                if self.command.spec().pty.is_some() {
                    self.read_to_mark(process).await;
                }
                self.remember(&report);
                report_ending(&report, &self.command.circumstances().borrow())
            }
            Event::Died(status) => {
                self.remember_last_words(process);
                self.commands.launcher.return_lease(process.lease.as_ref());
                *place = None;
                let cwd = {
                    let mut memory = self.turn.shell.memory.borrow_mut();
                    memory.status = 0;
                    memory.cwd.clone()
                };
                if let Some(cwd) = cwd {
                    self.command.set_shell_cwd(&cwd);
                }
                self.commands.launcher.look_for_oom_kills();
                let mut circumstances = self.command.circumstances().borrow_mut();
                circumstances.oom_killed = is_unexplained_kill(status, &circumstances)
                    && self.commands.launcher.claim_oom_kill(oom_mark);
                decide(status, &circumstances)
            }
            Event::Mute => {
                self.discard(place).await;
                self.turn.shell.memory.borrow_mut().status = 0;
                match self.command.circumstances().borrow().timed_out {
                    true => Ending::TimedOut,
                    false => Ending::Lost { reason: MUTE.to_owned() },
                }
            }
            Event::Late => Ending::Lost { reason: "the shell cannot be killed".to_owned() },
        })
    }

    /// What has been said to it is still there. With a signal, or once it was asked again, there is
    /// more than the script's line.
    fn was_not_taken(&self, process: &Process) -> bool {
        let circumstances = self.command.circumstances().borrow();
        let is_undisturbed = !self.turn.asked.get()
            && !circumstances.timed_out
            && circumstances.requested.is_empty();
        is_undisturbed && unread(&process.control) > words::PROBE.len() as u64
    }

    /// Ends a shell that is of no use any more, and nothing else.
    async fn discard(&self, place: &mut Option<Process>) {
        let Some(process) = place.take() else { return };
        let _ = send(process.pid, libc::SIGKILL);
        let _ = tokio::time::timeout(KILL_DEADLINE, process.death.told()).await;
        self.commands.launcher.return_lease(process.lease.as_ref());
    }

    fn requested(&self) -> Option<(i32, String)> {
        let circumstances = self.command.circumstances().borrow();
        circumstances.requested.iter().next_back().map(|(signal, by)| (*signal, by.clone()))
    }

    /// What it said before it died, and what it left for its successor.
    fn remember_last_words(&self, process: &mut Process) {
        self.turn.shell.memory.borrow_mut().hear_rest(process);
        let Some((cwd, exports)) = process.last_words() else { return };
        let mut memory = self.turn.shell.memory.borrow_mut();
        self.command.set_shell_cwd(&cwd);
        memory.cwd = Some(cwd);
        memory.exports = exports;
    }

    fn remember(&self, report: &Report) {
        let mut memory = self.turn.shell.memory.borrow_mut();
        memory.status = report.status;
        memory.cwd = Some(report.cwd.clone());
        self.command.set_shell_cwd(&report.cwd);
    }
}

fn report_ending(report: &Report, circumstances: &Circumstances) -> Ending {
    if circumstances.timed_out {
        return Ending::TimedOut;
    }
    let code = i32::from(report.status);
    let last = circumstances.requested.iter().next_back();
    let by_status = circumstances.requested.get_key_value(&(code - 128));
    match by_status.or(last.filter(|_| report.interrupted)) {
        Some((signal, by)) => Ending::Killed { by: by.clone(), signal: *signal },
        None => Ending::Exited { code },
    }
}

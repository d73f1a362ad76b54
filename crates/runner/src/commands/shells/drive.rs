//! One script in its shell, from its beginning to its ending.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use sandbank_protocol::{Ending, ShellStatus, StdinMode, StreamKind};
use tokio::time::{Instant, sleep_until};

use super::probe::Probe;
use super::process::{Process, say, unread};
use super::report::{Report, Said};
use super::{Current, Turn, idle, words};
use crate::commands::buffers::Buffers;
use crate::commands::ending::{Circumstances, decide, is_unexplained_kill};
use crate::commands::source::{AsyncDescriptor, Pace, Read, Source};
use crate::commands::{Command, Commands, WaitStatus};
use crate::limits::{
    KILL_DEADLINE, KILL_POLL, MAX_SHELL_ATTEMPTS, PIPE_BYTES, PLAIN_KILLS, SHELL_MARK_DEADLINE,
    SHELL_START_DEADLINE, TERM_GRACE,
};
use crate::tree::{kill_all, send, send_all};

/// Of a pipe: all of an answer but for large environments.
const ANSWER_BYTES: usize = 4096;

const MUTE: &str = "the script took from its shell what it answers with, so how it ended is not known; \
                    the next one gets a new shell";

pub(super) struct Script<'a> {
    pub(super) commands: &'a Rc<Commands>,
    pub(super) command: &'a Rc<Command>,
    pub(super) turn: &'a Rc<Turn>,
}

enum Event {
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

    /// A process that has what the last script of the one before it left.
    async fn start(&self) -> Result<Process, String> {
        let shell = &self.turn.shell;
        let (cwd, exports, is_first) = {
            let memory = shell.memory.borrow();
            (memory.cwd.clone(), memory.exports.clone(), !memory.has_begun)
        };
        let begin_in = || self.command.spec().shell.as_ref()?.begin_in.clone();
        let cwd = cwd.or_else(begin_in);
        let started = Process::start(&self.commands.launcher, &shell.name, cwd.as_deref());
        let mut process = started.map_err(|fault| fault.message)?;
        self.commands.living.borrow_mut().insert(process.pid, process.death.clone());
        tokio::task::spawn_local(idle::read(self.commands.clone(), shell.clone(), process.pid));
        self.command.set_shell(ShellStatus {
            name: shell.name.clone(),
            kind: process.kind,
            cwd: None,
            restarted: !is_first,
        });
        if !exports.is_empty() {
            self.restore(&mut process, &exports).await?;
        }
        Ok(process)
    }

    async fn restore(&self, process: &mut Process, exports: &[u8]) -> Result<(), String> {
        let streams = words::Streams { terminal: false, merged: false, stdin: false };
        let said = process
            .set_script(exports)
            .and_then(|()| process.say(&words::run(process.kind, 0, 0, streams)));
        said.map_err(|error| format!("the shell cannot be spoken to: {error}"))?;
        let until = Instant::now() + SHELL_START_DEADLINE;
        loop {
            let reports = tokio::select! {
                answer = answer(&process.answers) => process.reports.push(&answer),
                _ = process.death.told() => return Err("a new shell died at once".to_owned()),
                () = sleep_until(until) => return Err("a new shell does not answer".to_owned()),
            };
            if reports.iter().any(|said| matches!(said, Said::Report(report) if report.turn == 0)) {
                return Ok(());
            }
        }
    }

    fn begin(&self, process: &Process) -> std::io::Result<()> {
        let (shell, spec) = (&self.turn.shell, self.command.spec());
        let turn = random::<8>().map(u64::from_ne_bytes)?.max(1);
        let status = {
            let mut memory = shell.memory.borrow_mut();
            memory.has_begun = true;
            memory.status
        };
        if self.command.shell().is_none() {
            self.command.set_shell(ShellStatus {
                name: shell.name.clone(),
                kind: process.kind,
                cwd: None,
                restarted: false,
            });
        }
        for (stream, data) in shell.idle.borrow_mut().take() {
            self.commands.record(self.command, stream, data);
        }
        let stdin = spec.stdin == StdinMode::Open;
        let merged = spec.shell.as_ref().is_some_and(|used| used.merged);
        let streams = words::Streams { terminal: spec.pty.is_some(), merged, stdin };
        process.set_terminal(spec.pty)?;
        process.set_script(spec.argv.first().map_or(b"".as_slice(), |script| script.as_bytes()))?;
        self.command.set_process(process.pid, process.controller.clone());
        self.turn.number.set(turn);
        let living = self.commands.living.borrow();
        let before = process.started(|pid| living.contains_key(pid)).into_iter().collect();
        *shell.current.borrow_mut() = Some(Current {
            turn,
            pid: process.pid,
            kind: process.kind,
            tree: process.tree.clone(),
            controller: process.controller.clone(),
            control: process.control.clone(),
            before,
        });
        process.say(&words::run(process.kind, turn, status, streams))
    }

    /// Until the script is over, by itself or by its timeout.
    async fn watch(&self, process: &mut Process) -> Event {
        let timeout = self.command.spec().timeout_ms.map(Duration::from_millis);
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        match self.until(process, deadline).await {
            Event::Late => {}
            event => return event,
        }
        self.command.circumstances().borrow_mut().timed_out = true;
        let event = self.force(process).await;
        self.kill_the_rest().await;
        event
    }

    /// Whatever the script has started and left behind, and waits for their deaths.
    async fn kill_the_rest(&self) {
        let until = Instant::now() + KILL_DEADLINE;
        for round in 0.. {
            let left = self.started();
            if left.is_empty() || Instant::now() > until {
                return;
            }
            // The shell says of a job of its own that it was stopped; so only what does not end.
            match round < PLAIN_KILLS {
                true => send_all(left, libc::SIGKILL, 0),
                false => drop(kill_all(|| self.started(), 0).await),
            }
            tokio::time::sleep(KILL_POLL).await;
        }
    }

    /// First what the terminal's ^C does, then harder; the shell itself goes last.
    async fn force(&self, process: &mut Process) -> Event {
        let stages = [
            (libc::SIGINT, false),
            (libc::SIGTERM, true),
            (libc::SIGCONT, true),
            (libc::SIGKILL, true),
        ];
        for (signal, tree) in stages {
            if let Some(current) = &*self.turn.shell.current.borrow() {
                current.signal(signal, tree);
            }
            let grace = if signal == libc::SIGCONT { Duration::ZERO } else { TERM_GRACE / 2 };
            match self.until(process, Some(Instant::now() + grace)).await {
                Event::Late => {}
                event => return event,
            }
        }
        let _ = send(process.pid, libc::SIGKILL);
        self.until(process, Some(Instant::now() + KILL_DEADLINE)).await
    }

    fn started(&self) -> Vec<i32> {
        self.turn.shell.current.borrow().as_ref().map(Current::started).unwrap_or_default()
    }

    async fn until(&self, process: &mut Process, deadline: Option<Instant>) -> Event {
        let turn = self.turn.number.get();
        let (control, kind) = (process.control.clone(), process.kind);
        let (mut probe, mut has_asked) = (Probe::new(), false);
        let Process { answers, reports, stdout, stderr, terminal, death, .. } = process;
        let late = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(late);
        let mut pace = Pace::default();
        loop {
            let answer = tokio::select! {
                biased;
                answer = answer(answers) => answer,
                status = death.told() => return Event::Died(status),
                () = &mut late => return Event::Late,
                () = sleep_until(probe.at) => {
                    if !probe.finds_it_waiting(&control) {
                        continue;
                    }
                    // Whatever it answered, it did before.
                    answer_now(answers)
                }
                (stream, data) = self.read_with_room(stdout, stderr, terminal) => {
                    let bytes = data.len();
                    self.commands.record(self.command, stream, data);
                    pace.took(bytes).await;
                    continue;
                }
            };
            match self.hear(reports.push(&answer)) {
                Some(report) => return Event::Reported(report),
                None if !probe.has_found() => {}
                None if has_asked => return Event::Mute,
                // Some errors and an interrupt take the rest of the script's line along.
                None => {
                    self.turn.asked.set(true);
                    let _ = say(&control, &words::ask_again(kind, turn));
                    (probe, has_asked) = (Probe::new(), true);
                }
            }
        }
    }

    /// The report of this script, if it is there.
    fn hear(&self, said: Vec<Said>) -> Option<Report> {
        let turn = self.turn.number.get();
        let mut memory = self.turn.shell.memory.borrow_mut();
        let mut found = None;
        for said in said {
            match said {
                Said::Report(report) if report.turn == turn => {
                    memory.reported = turn;
                    found = Some(report);
                }
                Said::Report(_) => {}
                Said::Exports { turn, exports } => memory.keep_exports(turn, exports),
            }
        }
        found
    }

    async fn read_with_room(
        &self,
        stdout: &mut Source,
        stderr: &mut Source,
        terminal: &mut Source,
    ) -> (StreamKind, Bytes) {
        self.command.output().room().await;
        read_any(&self.commands.buffers, stdout, stderr, terminal).await
    }

    /// What the script wrote is in the pipes by the time it is over. Readers who keep up miss nothing
    /// of it.
    async fn sweep(&self, process: &mut Process) {
        for source in [&mut process.stdout, &mut process.stderr, &mut process.terminal] {
            let mut left = PIPE_BYTES;
            while left > 0 {
                self.command.output().room().await;
                let Read::Data(data) = source.read_now(&self.commands.buffers) else { break };
                left = left.saturating_sub(data.len().max(1));
                self.commands.record(self.command, source.stream(), data);
            }
            let rest = source.take_carry();
            self.commands.record(self.command, source.stream(), rest);
        }
    }

    /// A terminal passes on what was written to it when it likes: what comes before a mark that
    /// nobody could know is the script's.
    async fn read_to_mark(&self, process: &mut Process) {
        let Ok(mark) = random::<16>() else { return };
        let mark: String = mark.iter().map(|byte| format!("{byte:02x}")).collect();
        if process.say(&words::mark(process.kind, &mark)).is_err() {
            return;
        }
        let until = Instant::now() + SHELL_MARK_DEADLINE;
        let (mut held, mut pace) = (Vec::new(), Pace::default());
        loop {
            tokio::select! {
                read = process.terminal.read(&self.commands.buffers) => match read {
                    Read::Data(data) => {
                        held.extend_from_slice(&data);
                        pace.took(data.len()).await;
                    }
                    Read::Nothing => {}
                    Read::End => break,
                },
                () = sleep_until(until) => break,
            }
            let found = held.windows(mark.len()).position(|window| window == mark.as_bytes());
            // Without it, all but what may be its beginning is the script's.
            let ready = found.unwrap_or((held.len() + 1).saturating_sub(mark.len()));
            let rest = held.split_off(ready);
            let before = std::mem::replace(&mut held, rest);
            self.commands.record(self.command, StreamKind::Pty, before.into());
            if found.is_some() {
                held.drain(..mark.len());
                break;
            }
        }
        self.commands.record(self.command, StreamKind::Pty, held.into());
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

/// From whichever stream has something first.
pub(super) async fn read_any(
    buffers: &Buffers,
    stdout: &mut Source,
    stderr: &mut Source,
    terminal: &mut Source,
) -> (StreamKind, Bytes) {
    tokio::select! {
        data = read_data(buffers, stdout) => (StreamKind::Stdout, data),
        data = read_data(buffers, stderr) => (StreamKind::Stderr, data),
        data = read_data(buffers, terminal) => (StreamKind::Pty, data),
    }
}

async fn read_data(buffers: &Buffers, source: &mut Source) -> Bytes {
    loop {
        match source.read(buffers).await {
            Read::Data(data) => return data,
            Read::Nothing => {}
            // Nobody will ever write to it again.
            Read::End => std::future::pending().await,
        }
    }
}

pub(super) async fn answer(answers: &AsyncDescriptor) -> Vec<u8> {
    loop {
        let Ok(mut ready) = answers.readable().await else { std::future::pending().await };
        let mut buffer = [0; ANSWER_BYTES];
        match rustix::io::read(answers.get_ref(), &mut buffer) {
            Ok(0) => std::future::pending().await,
            Ok(count) => return buffer[..count].to_vec(),
            Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => std::future::pending().await,
        }
    }
}

pub(super) fn answer_now(answers: &AsyncDescriptor) -> Vec<u8> {
    let (mut answer, mut buffer) = (Vec::new(), [0; ANSWER_BYTES]);
    while answer.len() <= PIPE_BYTES
        && let Ok(count @ 1..) = rustix::io::read(answers.get_ref(), &mut buffer)
    {
        answer.extend_from_slice(&buffer[..count]);
    }
    answer
}

fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

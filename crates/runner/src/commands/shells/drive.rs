//! One script in its shell, from its beginning to its ending.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use sandbank_protocol::{Ending, ShellStatus, StdinMode, StreamKind};
use tokio::time::{Instant, sleep_until};

use super::process::Process;
use super::report::Report;
use super::{Current, Turn, idle, words};
use crate::commands::buffers::Buffers;
use crate::commands::ending::{Circumstances, decide, is_unexplained_kill};
use crate::commands::source::{AsyncDescriptor, Read, Source};
use crate::commands::{Command, Commands, WaitStatus};
use crate::limits::{
    KILL_DEADLINE, PIPE_BYTES, SHELL_MARK_DEADLINE, SHELL_START_DEADLINE, TERM_GRACE,
};
use crate::tree::{send, send_all};

pub(super) struct Script<'a> {
    pub(super) commands: &'a Rc<Commands>,
    pub(super) command: &'a Rc<Command>,
    pub(super) turn: &'a Rc<Turn>,
}

enum Event {
    Reported(Report),
    Died(WaitStatus),
    Late,
}

impl Script<'_> {
    pub(super) async fn evaluate(&self, place: &mut Option<Process>) -> Ending {
        if let Some((signal, by)) = self.requested() {
            return Ending::Killed { by, signal };
        }
        if place.as_ref().is_some_and(|process| process.death.status().is_some()) {
            *place = None;
        }
        if place.is_none() {
            match self.start().await {
                Ok(process) => *place = Some(process),
                Err(reason) => return Ending::Lost { reason },
            }
        }
        let Some(process) = place else {
            return Ending::Lost { reason: "there is no shell".to_owned() };
        };
        let oom_mark = self.commands.launcher.look_for_oom_kills();
        if let Err(error) = self.begin(process) {
            return Ending::Lost { reason: format!("the shell cannot be spoken to: {error}") };
        }
        let event = self.watch(process).await;
        self.sweep(process).await;
        match event {
            Event::Reported(report) => {
                if self.command.spec().pty.is_some() {
                    self.read_to_mark(process).await;
                }
                self.remember(&report);
                report_ending(&report, &self.command.circumstances().borrow())
            }
            Event::Died(status) => {
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
            Event::Late => Ending::Lost { reason: "the shell cannot be killed".to_owned() },
        }
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
            (memory.cwd.clone(), memory.exports.clone(), memory.turn == 0)
        };
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
            if reports.iter().any(|report| report.turn == 0) {
                return Ok(());
            }
        }
    }

    fn begin(&self, process: &Process) -> std::io::Result<()> {
        let (shell, spec) = (&self.turn.shell, self.command.spec());
        let (turn, status) = {
            let mut memory = shell.memory.borrow_mut();
            memory.turn += 1;
            (memory.turn, memory.status)
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
        *shell.current.borrow_mut() = Some(Current {
            turn,
            pid: process.pid,
            kind: process.kind,
            lease: process.lease.clone(),
            controller: process.controller.clone(),
            control: process.control.clone(),
            before: process.children().into_iter().collect(),
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
        let left = self.started();
        send_all(left, libc::SIGKILL, 0);
        event
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
        let Process { answers, reports, stdout, stderr, terminal, death, .. } = process;
        let late = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(late);
        loop {
            tokio::select! {
                biased;
                answer = answer(answers) => {
                    let mut found = reports.push(&answer).into_iter();
                    if let Some(report) = found.find(|report| report.turn == turn) {
                        return Event::Reported(report);
                    }
                }
                status = death.told() => return Event::Died(status),
                () = &mut late => return Event::Late,
                (stream, data) = self.read_with_room(stdout, stderr, terminal) => {
                    self.commands.record(self.command, stream, data);
                }
            }
        }
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
        let Some(mark) = mark() else { return };
        if process.say(&words::mark(process.kind, &mark)).is_err() {
            return;
        }
        let until = Instant::now() + SHELL_MARK_DEADLINE;
        let mut held: Vec<u8> = Vec::new();
        loop {
            tokio::select! {
                read = process.terminal.read(&self.commands.buffers) => match read {
                    Read::Data(data) => held.extend_from_slice(&data),
                    Read::Nothing => {}
                    Read::End => break,
                },
                () = sleep_until(until) => break,
            }
            let found = held.windows(mark.len()).position(|window| window == mark.as_bytes());
            if let Some(place) = found {
                let after = Bytes::copy_from_slice(&held[place + mark.len()..]);
                held.truncate(place);
                self.commands.record(self.command, StreamKind::Pty, after);
                break;
            }
        }
        self.commands.record(self.command, StreamKind::Pty, held.into());
    }

    fn remember(&self, report: &Report) {
        let mut memory = self.turn.shell.memory.borrow_mut();
        memory.status = report.status;
        memory.cwd = Some(report.cwd.clone());
        if let Some(exports) = &report.exports {
            memory.exports = exports.clone();
        }
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

async fn answer(answers: &AsyncDescriptor) -> Vec<u8> {
    loop {
        let Ok(mut ready) = answers.readable().await else { std::future::pending().await };
        let mut buffer = [0; 4096];
        match rustix::io::read(answers.get_ref(), &mut buffer) {
            Ok(0) => std::future::pending().await,
            Ok(count) => return buffer[..count].to_vec(),
            Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => std::future::pending().await,
        }
    }
}

fn mark() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

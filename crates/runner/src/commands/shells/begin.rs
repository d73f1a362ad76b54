//! How a shell gets a script: its process, started where there is none, and the script's own turn.

use sandbank_protocol::{ShellStatus, StdinMode};
use tokio::time::{Instant, sleep_until};

use super::drive::Script;
use super::process::Process;
use super::report::Said;
use super::streams::answer;
use super::{Current, idle, random, words};
use crate::limits::SHELL_START_DEADLINE;

impl Script<'_> {
    /// A process that has what the last script of the one before it left.
    pub(super) async fn start(&self) -> Result<Process, String> {
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

    pub(super) fn begin(&self, process: &Process) -> std::io::Result<()> {
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
}

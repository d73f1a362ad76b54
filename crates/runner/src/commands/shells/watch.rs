//! Watching a script until it is over: by itself, by its shell's death, or by its timeout.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::drive::{Event, Script};
use super::probe::Probe;
use super::process::{Process, say};
use super::report::{Report, Said};
use super::streams::{answer, answer_now};
use super::{Current, words};
use crate::commands::source::Pace;
use crate::limits::{KILL_DEADLINE, KILL_POLL, PLAIN_KILLS, TERM_GRACE};
use crate::tree::{kill_all, send, send_all};

impl Script<'_> {
    /// Until the script is over, by itself or by its timeout.
    pub(super) async fn watch(&self, process: &mut Process) -> Event {
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
}

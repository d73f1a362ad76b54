//! The life of one command, from its start to its ending and what it leaves behind.
//!
//! ```text
//! running ──reaped──▶ draining ──▶ ended ──▶ discarding ──every writer gone──▶ (done)
//!    └──deadline──▶ terminating ──reaped, nothing left──▶ draining
//! ```
//! The driver is the only one that appends output and announces the ending.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use sandbank_protocol::{Ending, StreamKind};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::ending::{WaitStatus, decide, is_unexplained_kill};
use super::source::{Pace, Read, Source};
use super::{Command, Commands};
use crate::cgroups::OomMark;
use crate::limits::{DRAIN_LIMIT, DRAIN_SILENCE, KILL_DEADLINE, PIPE_BYTES, TERM_GRACE};

/// Steps of the search for what is left after a signal.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Driver {
    commands: Rc<Commands>,
    command: Rc<Command>,
    /// Out-of-memory kills in the sandbox when the command began.
    oom_mark: OomMark,
    /// When output last arrived.
    heard: Cell<Instant>,
    /// How much of it since the process died.
    drained: Cell<usize>,
    /// The command's side of its terminal as long as its process lives, which may close it and open
    /// it again: a terminal that nobody has open counts as ended.
    kept_open: Cell<Option<OwnedFd>>,
}

impl Driver {
    pub(super) fn new(
        commands: Rc<Commands>,
        command: Rc<Command>,
        oom_mark: OomMark,
        kept_open: Option<OwnedFd>,
    ) -> Self {
        let (heard, drained) = (Cell::new(Instant::now()), Cell::new(0));
        Self { commands, command, oom_mark, heard, drained, kept_open: Cell::new(kept_open) }
    }

    pub(super) async fn run(self, mut sources: Vec<Source>) {
        let ending = self.run_to_death(&mut sources).await;
        self.sweep(&mut sources);
        self.commands.finish(&self.command, ending);
        // Those who wait for the ending come first.
        tokio::task::yield_now().await;
        self.commands.launcher.give_back(&self.command);
        let late = |stream, data| self.commands.record(&self.command, stream, data);
        let buffers = &self.commands.buffers;
        let discarding = sources.into_iter().map(|source| source.discard(buffers, late));
        futures_util::future::join_all(discarding).await;
    }

    /// Records output until the process is gone and, within limits, its output is complete.
    async fn run_to_death(&self, sources: &mut [Source]) -> Ending {
        let pipes = sources.len() * PIPE_BYTES;
        let recording = self.record_all(sources);
        let living = self.live();
        tokio::pin!(recording, living);
        let mut complete = false;
        let ending = loop {
            tokio::select! {
                biased;
                () = &mut recording, if !complete => complete = true,
                ending = &mut living => break ending,
            }
        };
        if !complete {
            self.drain(recording, pipes).await;
        }
        ending
    }

    /// Until every writer of every stream is gone.
    async fn record_all(&self, sources: &mut [Source]) {
        futures_util::future::join_all(sources.iter_mut().map(|source| self.record(source))).await;
    }

    async fn record(&self, source: &mut Source) {
        let mut pace = Pace::default();
        loop {
            self.command.output().room().await;
            match source.read(&self.commands.buffers).await {
                Read::Data(data) => {
                    let bytes = data.len();
                    self.append(source.stream(), data);
                    pace.took(bytes).await;
                }
                Read::Nothing => {}
                Read::End => return,
            }
        }
    }

    fn append(&self, stream: StreamKind, data: bytes::Bytes) {
        self.heard.set(Instant::now());
        self.drained.set(self.drained.get() + data.len());
        self.commands.record(&self.command, stream, data);
    }

    /// The process is gone, but something it left behind still holds a stream. What the process
    /// wrote is in the pipes already; the rest gets a moment.
    async fn drain(&self, recording: impl Future<Output = ()>, pipes: usize) {
        tokio::pin!(recording);
        let mut limit = Instant::now() + DRAIN_LIMIT;
        self.heard.set(Instant::now());
        self.drained.set(0);
        loop {
            let silent = (self.heard.get() + DRAIN_SILENCE).min(limit);
            tokio::select! {
                biased;
                () = &mut recording => return,
                () = sleep_until(silent) => {}
            }
            let now = Instant::now();
            if self.drained.get() > pipes {
                // The process wrote none of what follows, whoever still wants to read it.
                return;
            }
            if self.command.output().held_up() {
                // A reader is catching up: that is no silence.
                self.heard.set(now);
                limit = now + DRAIN_LIMIT;
            } else if now >= limit || now >= self.heard.get() + DRAIN_SILENCE {
                return;
            }
        }
    }

    /// Whatever is in the pipes now is the last output: at most what a pipe holds.
    fn sweep(&self, sources: &mut [Source]) {
        for source in sources {
            // By bytes: a terminal gives a few kilobytes at a time.
            let mut left = PIPE_BYTES;
            while left > 0 {
                match source.read_now(&self.commands.buffers) {
                    Read::Data(data) => {
                        left = left.saturating_sub(data.len().max(1));
                        self.append(source.stream(), data);
                    }
                    Read::Nothing | Read::End => break,
                }
            }
            let rest = source.take_carry();
            self.append(source.stream(), rest);
        }
    }

    /// Until the process is reaped and, after a timeout, nothing of it is left.
    async fn live(&self) -> Ending {
        let deadline = self.command.spec().timeout_ms.map(Duration::from_millis);
        let status = match deadline.and_then(|timeout| Instant::now().checked_add(timeout)) {
            None => self.command.death().told().await,
            Some(deadline) => match timeout_at(deadline, self.command.death().told()).await {
                Ok(status) => status,
                Err(_) => {
                    self.command.circumstances().borrow_mut().timed_out = true;
                    self.terminate().await
                }
            },
        };
        self.kept_open.take();
        let launcher = &self.commands.launcher;
        launcher.look_for_oom_kills();
        let mut circumstances = self.command.circumstances().borrow_mut();
        circumstances.oom_killed =
            is_unexplained_kill(status, &circumstances) && launcher.claim_oom_kill(self.oom_mark);
        decide(status, &circumstances)
    }

    /// Asks everything the command started to end, then makes it.
    async fn terminate(&self) -> WaitStatus {
        self.signal_tree(libc::SIGTERM).await;
        // A stopped process acts on nothing but this.
        self.signal_tree(libc::SIGCONT).await;
        if timeout(TERM_GRACE, self.disappearance(None)).await.is_err() {
            let killed = timeout(KILL_DEADLINE, self.disappearance(Some(libc::SIGKILL))).await;
            if killed.is_err()
                && let Some(tree) = self.command.tree()
            {
                // It may have been given up while they were only stopped.
                let _ = tree.signal_found(libc::SIGKILL, self.command.leader_lives());
            }
        }
        // What cannot be killed, as in a hung file system, is not reported as gone either.
        self.command.death().told().await
    }

    /// Resolves when the process is reaped and nothing of the command is left; sends `signal`
    /// to all of it again and again meanwhile.
    async fn disappearance(&self, signal: Option<i32>) {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(signal) = signal {
                self.signal_tree(signal).await;
            }
            if !self.command.leader_lives()
                && self.command.tree().is_none_or(|tree| tree.is_empty(false))
            {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// A tree that cannot be signalled is noticed by those who wait for it to disappear.
    async fn signal_tree(&self, signal: i32) {
        if let Some(tree) = self.command.tree() {
            let _ = tree.signal(signal, || self.command.leader_lives()).await;
        }
    }
}

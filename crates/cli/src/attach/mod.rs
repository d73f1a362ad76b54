//! A local terminal or pipe joined to a command in a sandbox, until it ends or one detaches.
//!
//! Owns the order of things: output is written as it comes, input is fed beside it, Ctrl-C and
//! the window's size are passed on, and the command's ending becomes our exit code. It never
//! decides what happens to the sandbox afterwards.

mod detach;
mod input;
mod output;
mod raw_mode;
mod window;

use std::io::IsTerminal;

use sandbank_protocol::Ending;

use crate::client::{Client, CommandRequest, Follow, PtySize};
use crate::failure::{Exit, Failure};
use crate::interrupt::{Interrupts, Request};
use crate::limits::LEAVE_TIMEOUT;
use crate::ui::Ui;

pub(crate) use output::write as write_record;
pub(crate) use window::size as window_size;

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGPIPE: i32 = 13;

/// A command to be joined.
pub(crate) struct Attachment<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) client: &'a Client,
    pub(crate) sandbox: &'a str,
    pub(crate) command: &'a str,
    /// Output up to this record is not shown again.
    pub(crate) after: u64,
    pub(crate) stdin: Stdin,
    pub(crate) pty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdin {
    Closed,
    /// From this byte on; more than zero when joining a command that was fed before.
    Forwarded {
        offset: u64,
    },
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Ended(Ending),
    /// The person left; the command goes on.
    Detached,
    /// The person or the system asked us to stop, twice or for good; the command was killed.
    Interrupted {
        exit_code: u8,
    },
}

impl<'a> Attachment<'a> {
    /// To a command that was started a moment ago.
    pub(crate) fn started(
        ui: &'a Ui,
        client: &'a Client,
        sandbox: &'a str,
        request: &'a CommandRequest,
    ) -> Self {
        let stdin = match request.stdin {
            "open" => Stdin::Forwarded { offset: 0 },
            _ => Stdin::Closed,
        };
        let (command, pty) = (request.command_id.as_str(), request.pty.is_some());
        Self { ui, client, sandbox, command, after: 0, stdin, pty }
    }

    pub(crate) async fn join(self, interrupts: &mut Interrupts) -> Result<Outcome, Failure> {
        let terminal = self.pty && std::io::stdin().is_terminal();
        let raw = if terminal { Some(raw_mode::RawMode::enter()?) } else { None };
        let outcome = self.pump(terminal, interrupts).await;
        drop(raw);
        outcome
    }

    async fn pump(&self, terminal: bool, interrupts: &mut Interrupts) -> Result<Outcome, Failure> {
        let follow = Follow::new(self.client, self.sandbox, self.command, self.after, true);
        let mut output = tokio::spawn(output::write_all(self.ui.clone(), follow));
        let mut input = self.input(terminal);
        let mut window = window::Changes::listen(terminal)?;
        let outcome = loop {
            tokio::select! {
                ended = &mut output => break ended
                    .map_err(|error| Failure::new(Exit::Internal, error.to_string()))
                    .and_then(|written| written.map(Outcome::Ended)),
                () = input.detached() => break Ok(Outcome::Detached),
                size = window.next() => self.resize(size).await,
                request = interrupts.next() => {
                    if let Some(exit_code) = self.interrupted(request).await {
                        break Ok(Outcome::Interrupted { exit_code });
                    }
                }
            }
        };
        output.abort();
        if let Err(failure) = &outcome
            && failure.exit == Exit::BrokenPipe
        {
            // What a local program would have met when writing to a closed pipe.
            let _ = tokio::time::timeout(LEAVE_TIMEOUT, self.signal(SIGPIPE, true)).await;
        }
        outcome
    }

    fn input(&self, terminal: bool) -> input::Input {
        match self.stdin {
            Stdin::Closed => input::Input::none(),
            Stdin::Forwarded { offset } => {
                input::Input::start(self.client, self.sandbox, self.command, offset, terminal)
            }
        }
    }

    /// The exit code when it is time to leave.
    async fn interrupted(&self, request: Request) -> Option<u8> {
        match request {
            Request::Interrupt => {
                self.ui.note("interrupting the command; press Ctrl-C again to kill it");
                // Beside us, so that a server that hangs does not hide the second Ctrl-C.
                tokio::spawn(self.signal(SIGINT, false));
                None
            }
            Request::Leave { exit_code } => {
                let _ = tokio::time::timeout(LEAVE_TIMEOUT, self.signal(SIGKILL, true)).await;
                Some(exit_code)
            }
        }
    }

    /// A command that ended meanwhile is no reason to complain.
    fn signal(&self, signal: i32, tree: bool) -> impl Future<Output = ()> + use<> {
        let client = self.client.clone();
        let (sandbox, command) = (self.sandbox.to_owned(), self.command.to_owned());
        async move {
            if let Err(error) = client.signal(&sandbox, &command, signal, tree).await {
                tracing::debug!(%error, signal, "a signal was not delivered");
            }
        }
    }

    async fn resize(&self, size: PtySize) {
        if let Err(error) = self.client.resize(self.sandbox, self.command, size).await {
            tracing::debug!(%error, "the window's size was not passed on");
        }
    }
}

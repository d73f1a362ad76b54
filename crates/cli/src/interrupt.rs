//! Ctrl-C and the system's wish that we end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// What a signal to us means for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// The first Ctrl-C: the command may do with it what it likes.
    Interrupt,
    /// The second Ctrl-C, or a signal that is not a question.
    Leave { exit_code: u8 },
}

/// Listens from the moment it is made, so that nothing is killed half-way through a start; what
/// comes before anybody asks is kept.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    presses: u32,
}

impl Interrupts {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::io("listen for signals"));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
            presses: 0,
        })
    }

    pub(crate) async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => {
                self.presses += 1;
                match self.presses {
                    1 => Request::Interrupt,
                    _ => Request::Leave { exit_code: 130 },
                }
            }
            _ = self.terminate.recv() => Request::Leave { exit_code: 143 },
            _ = self.hang_up.recv() => Request::Leave { exit_code: 129 },
        }
    }
}

//! The only place that waits for processes. A second waiter would steal exit statuses.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::commands::{Commands, WaitStatus};
use crate::limits::REAPS_PER_TURN;
use crate::{descriptors, signals};

pub(crate) struct Reaper {
    deaths: AsyncFd<OwnedFd>,
}

impl Reaper {
    /// To be made before the first process is started.
    pub(crate) fn new() -> io::Result<Self> {
        let deaths = descriptors::watch(signals::child_deaths()?, Interest::READABLE)?;
        Ok(Self { deaths })
    }

    /// Reaps until it cannot: commands are told, orphans that nobody knows are forgotten.
    pub(crate) async fn run(self, commands: Rc<Commands>) -> io::Error {
        loop {
            let mut ready = match self.deaths.readable().await {
                Ok(ready) => ready,
                Err(error) => return error,
            };
            let mut infos = [0; 16 * size_of::<libc::signalfd_siginfo>()];
            match rustix::io::read(self.deaths.get_ref(), &mut infos) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return error.into(),
            }
            // One signal may stand for many deaths.
            while reap_some(&commands) {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Whether there may be more.
fn reap_some(commands: &Commands) -> bool {
    for _ in 0..REAPS_PER_TURN {
        let mut status = 0;
        // SAFETY: `status` is ours to write; the runner starts no other waiter.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        if pid <= 0 {
            return false;
        }
        commands.reaped(pid, WaitStatus(status));
    }
    true
}

//! Programs that the runner runs for itself: as the workload, in a cgroup or with a stamp of their
//! own, but in no list and without a journal. Their output is bounded and given back whole.
//!
//! However such a run ends, and also when nobody waits for it any more, nothing of it is left.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;

use rustix::fs::{MemfdFlags, SeekFrom};
use rustix::pipe::PipeFlags;
use sandbank_protocol::{Fault, FaultCode};
use tokio::io::Interest;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Commands;
use super::death::Death;
use super::environment::{DEFAULT_PATH, Environment, MARKER};
use super::launch::{refused, watch};
use super::source::{AsyncDescriptor, Pace};
use crate::limits::{DRAIN_LIMIT, KILL_DEADLINE, KILL_POLL, TERM_GRACE};
use crate::spawn::Program;
use crate::tree::Tree;

/// Read at once.
const PIECE_BYTES: usize = 16 << 10;

pub(crate) struct Aside {
    pub(crate) argv: Vec<Vec<u8>>,
    pub(crate) environment: Environment,
    pub(crate) cwd: Rc<OwnedFd>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) deadline: Instant,
    /// With more it is ended, unless it changes something.
    pub(crate) stdout_limit: usize,
    /// What follows is read and thrown away.
    pub(crate) stderr_limit: usize,
    /// It changes something that it must not leave half done: only its deadline ends it, not that
    /// nobody waits for it or that it says too much, and it is asked to end before it is killed.
    pub(crate) changes: bool,
    /// Held until nothing of it is left.
    pub(crate) place: Rc<OwnedSemaphorePermit>,
}

#[derive(Debug, Default)]
pub(crate) struct Captured {
    /// None when it was ended or died of a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// It had more to say.
    pub(crate) truncated: bool,
}

struct Running {
    death: Rc<Death>,
    tree: Tree,
    stdout: AsyncDescriptor,
    stderr: AsyncDescriptor,
}

impl Commands {
    /// What every program here begins with.
    pub(crate) fn base_environment(&self) -> Environment {
        self.launcher.base_environment()
    }

    pub(crate) fn real_workspace(&self) -> io::Result<PathBuf> {
        self.launcher.real_workspace()
    }

    pub(crate) async fn run_aside(self: &Rc<Self>, aside: Aside) -> Result<Captured, Fault> {
        let running = self.start_aside(&aside)?;
        let (mut told, outcome) = oneshot::channel();
        let commands = self.clone();
        // To its end, whether or not somebody waits for the answer.
        tokio::task::spawn_local(async move {
            let captured = tokio::select! {
                captured = running.capture(&aside) => Some(captured),
                () = sleep_until(aside.deadline) => None,
                () = told.closed(), if !aside.changes => None,
            };
            if aside.changes && captured.is_none() {
                running.ask_to_end().await;
            }
            running.clear_away().await;
            commands.launcher.return_lease(running.tree.lease());
            drop(aside.place);
            let _ = told.send(captured);
        });
        let captured = outcome.await.map_err(|_| internal("a program's run was lost"))?;
        captured.ok_or_else(|| {
            let message = "it did not end in time and was killed with all it had started";
            Fault::new(FaultCode::TimedOut, message)
        })
    }

    fn start_aside(&self, aside: &Aside) -> Result<Running, Fault> {
        let number = self.next_aside.replace(self.next_aside.get() + 1);
        let marker = format!("aside:{number}");
        let mut environment = aside.environment.clone();
        environment.insert(MARKER.to_owned(), marker.clone());
        let mut program = Program::new(&aside.argv, &environment, DEFAULT_PATH)
            .map_err(|error| Fault::new(FaultCode::Invalid, error.to_string()))?;
        let streams = Streams::open(&aside.stdin).map_err(|error| refused("streams", &error))?;
        let lease = self.launcher.lease()?;
        let stamp = self.launcher.stamp(lease.as_ref());
        let theirs = [streams.stdin.as_fd(), streams.stdout.1.as_fd(), streams.stderr.1.as_fd()];
        let spawned = self.launcher.spawn_aside(
            &mut program,
            theirs,
            aside.cwd.as_fd(),
            lease.as_ref(),
            stamp,
        );
        let pid = spawned.inspect_err(|_| self.launcher.return_lease(lease.as_ref()))?;
        let death = Rc::new(Death::default());
        self.living.borrow_mut().insert(pid, death.clone());
        let tree = Tree::new(&marker, pid, lease, stamp);
        Ok(Running { death, tree, stdout: streams.stdout.0, stderr: streams.stderr.0 })
    }
}

/// Their input, and of the outputs our end and theirs.
struct Streams {
    stdin: OwnedFd,
    stdout: (AsyncDescriptor, OwnedFd),
    stderr: (AsyncDescriptor, OwnedFd),
}

impl Streams {
    fn open(input: &[u8]) -> io::Result<Self> {
        let stdin = rustix::fs::memfd_create("input", MemfdFlags::CLOEXEC)?;
        let mut written = 0;
        while written < input.len() {
            written += rustix::io::write(&stdin, &input[written..])?;
        }
        rustix::fs::seek(&stdin, SeekFrom::Start(0))?;
        Ok(Self { stdin, stdout: output()?, stderr: output()? })
    }
}

fn output() -> io::Result<(AsyncDescriptor, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((watch(ours, Interest::READABLE)?, theirs))
}

/// It has said more than it may.
struct TooMuch;

impl Running {
    /// Until it is dead and what it said is read, or it has said too much.
    async fn capture(&self, aside: &Aside) -> Captured {
        let surplus = |_: &[u8]| if aside.changes { Ok(()) } else { Err(TooMuch) };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let (status, truncated) = {
            let speaking = take(&self.stdout, &mut stdout, aside.stdout_limit, surplus);
            let complaining = take(&self.stderr, &mut stderr, aside.stderr_limit, |_| Ok(()));
            let streams = async { tokio::try_join!(speaking, complaining).map(drop) };
            tokio::pin!(streams);
            tokio::select! {
                biased;
                said = &mut streams => match said {
                    Ok(()) => (Some(self.death.told().await), false),
                    Err(TooMuch) => (None, true),
                },
                status = self.death.told() => {
                    // What it left behind may hold the streams open for ever.
                    let said = timeout(DRAIN_LIMIT, &mut streams).await;
                    (Some(status), matches!(said, Ok(Err(TooMuch))))
                }
            }
        };
        let code = status.filter(|status| libc::WIFEXITED(status.0));
        let code = code.map(|status| libc::WEXITSTATUS(status.0));
        Captured { code, stdout, stderr, truncated }
    }

    /// So that it takes its own locks away, for as long as that may take.
    async fn ask_to_end(&self) {
        let lives = || self.death.status().is_none();
        let _ = self.tree.signal(libc::SIGTERM, lives).await;
        let _ = timeout(TERM_GRACE, self.death.told()).await;
    }

    /// Until nothing is left, or what is left cannot be killed, as in a hung file system.
    async fn clear_away(&self) {
        let lives = || self.death.status().is_none();
        let gone = async {
            while lives() || !self.tree.is_empty(lives()) {
                let _ = self.tree.signal(libc::SIGKILL, lives).await;
                sleep(KILL_POLL).await;
            }
        };
        if timeout(KILL_DEADLINE, gone).await.is_err() {
            let _ = self.tree.signal_found(libc::SIGKILL, lives());
        }
    }
}

/// Until every writer is gone. What is above the limit is handed to `surplus`.
async fn take(
    source: &AsyncDescriptor,
    taken: &mut Vec<u8>,
    limit: usize,
    surplus: impl Fn(&[u8]) -> Result<(), TooMuch>,
) -> Result<(), TooMuch> {
    let mut pace = Pace::default();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let Ok(mut ready) = source.readable().await else { return Ok(()) };
        match rustix::io::read(source.get_ref(), &mut piece[..]) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                let (kept, rest) = piece[..count].split_at(count.min(limit - taken.len()));
                taken.extend_from_slice(kept);
                if !rest.is_empty() {
                    surplus(rest)?;
                }
                pace.took(count).await;
            }
            Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Ok(()),
        }
    }
}

fn internal(message: &str) -> Fault {
    Fault::new(FaultCode::Internal, message)
}

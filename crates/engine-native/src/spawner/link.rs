//! One spawner process and the socket to it.

use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};

use super::socket;
use super::statuses::Statuses;
use super::wire::Reply;
use crate::kernel::watched::watched;
use crate::limits::MAX_WIRE_BYTES;
use crate::settings::SpawnerProgram;

pub(super) type Answer = (Reply, Vec<OwnedFd>);

/// The spawner was gone before the request reached it.
pub(super) struct LinkBroken;

pub(super) struct Link {
    number: u64,
    socket: AsyncFd<OwnedFd>,
    process: Mutex<Option<Child>>,
    /// Who waits for which answer.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    broken: AtomicBool,
    started: Instant,
    ended: watch::Sender<bool>,
}

impl Link {
    pub(super) fn start(program: &SpawnerProgram, number: u64) -> io::Result<Arc<Self>> {
        let (ours, theirs) = socket::pair()?;
        let process = Command::new(&program.path)
            .args(&program.arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Arc::new(Self {
            number,
            socket: watched(ours, Interest::READABLE | Interest::WRITABLE)?,
            process: Mutex::new(Some(process)),
            waiting: Mutex::new(HashMap::new()),
            broken: AtomicBool::new(false),
            started: Instant::now(),
            ended: watch::Sender::new(false),
        }))
    }

    /// How long ago it was started.
    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Sends a request; the receiver gets its answer, or an error when the spawner dies first.
    pub(super) async fn send(
        &self,
        serial: u64,
        message: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<oneshot::Receiver<Answer>, LinkBroken> {
        let (sender, receiver) = oneshot::channel();
        self.waiting().insert(serial, sender);
        let write = |socket: &OwnedFd| socket::send(socket, message, fds);
        let sent = match write(self.socket.get_ref()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.socket.async_io(Interest::WRITABLE, write).await
            }
            other => other,
        };
        if sent.is_err() {
            // Known here before the reader sees it.
            self.broken.store(true, Ordering::Release);
        }
        // The reader may have given up on everybody just before this request was entered.
        if self.is_broken() {
            self.waiting().remove(&serial);
            return Err(LinkBroken);
        }
        Ok(receiver)
    }

    /// Hands out answers until the spawner is gone, then reaps it.
    pub(super) async fn read_all(&self, statuses: &Statuses) {
        let mut buffer = vec![0; MAX_WIRE_BYTES];
        loop {
            let packet = self
                .socket
                .async_io(Interest::READABLE, |socket| socket::receive(socket, &mut buffer))
                .await;
            let Ok(Some((length, fds))) = packet else { break };
            match serde_json::from_slice(&buffer[..length]) {
                Ok(Reply::Died { pid, status }) => statuses.report(pid, status),
                Ok(reply) => {
                    if let Reply::Done { pid, .. } = reply {
                        // Of an earlier process with this pid that nobody asked about.
                        statuses.take(pid);
                    }
                    self.answer(reply, fds);
                }
                Err(error) => {
                    tracing::error!(%error, "the spawner talks nonsense");
                    break;
                }
            }
        }
        self.broken.store(true, Ordering::Release);
        self.waiting().clear();
        self.close();
        self.reap().await;
        self.ended.send_replace(true);
    }

    /// Makes the spawner see the end of its socket.
    pub(super) fn close(&self) {
        let _ = rustix::net::shutdown(self.socket.get_ref(), rustix::net::Shutdown::Both);
    }

    pub(super) async fn ended(&self) {
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    pub(super) fn pid(&self) -> Option<u32> {
        lock(&self.process).as_ref().map(Child::id)
    }

    fn answer(&self, reply: Reply, fds: Vec<OwnedFd>) {
        let (Reply::Done { serial, .. } | Reply::Failed { serial, .. }) = reply else { return };
        if let Some(waiting) = self.waiting().remove(&serial) {
            // Whoever asked may have stopped waiting; the descriptors close here then.
            let _ = waiting.send((reply, fds));
        }
    }

    async fn reap(&self) {
        let process = lock(&self.process).take();
        if let Some(mut process) = process {
            let reaped = tokio::task::spawn_blocking(move || process.wait()).await;
            if let Ok(Ok(status)) = reaped
                && !status.success()
            {
                tracing::warn!(%status, "a spawner ended");
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Answer>>> {
        lock(&self.waiting)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

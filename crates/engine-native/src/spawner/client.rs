//! The daemon's end: starts a spawner, asks it, and starts another when it is gone.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use sandbank_engine::EngineError;
use tokio::sync::Mutex;

use super::link::{Answer, Link, LinkBroken};
use super::statuses::Statuses;
use super::wire::{MachinePlan, Order, Reply, Request, Role};
use super::{Failure, Step};
use crate::kernel::process::ExitStatus;
use crate::limits::{SPAWN_DEADLINE, SPAWNER_ATTEMPTS, SPAWNER_MIN_LIFE, STATUS_DEADLINE};
use crate::settings::SpawnerProgram;

pub(crate) struct Spawner {
    program: SpawnerProgram,
    /// The living spawner, if any. Held while one is started, so that there is only ever one.
    link: Mutex<Option<Arc<Link>>>,
    statuses: Arc<Statuses>,
    /// Numbers requests and spawners.
    serial: AtomicU64,
    /// No further spawner is started.
    stopped: AtomicBool,
}

/// A machine's first process.
pub(crate) struct Spawned {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// Which spawner is its parent.
    pub(crate) parent: u64,
}

impl Spawner {
    pub(crate) async fn start(program: SpawnerProgram) -> Result<Arc<Self>, EngineError> {
        let spawner = Arc::new(Self {
            program,
            link: Mutex::new(None),
            statuses: Arc::new(Statuses::default()),
            serial: AtomicU64::new(1),
            stopped: AtomicBool::new(false),
        });
        spawner.link().await?;
        Ok(spawner)
    }

    /// A namespace that maps 0..65536 to `uid_base`...
    pub(crate) async fn user_namespace(
        self: &Arc<Self>,
        uid_base: u32,
    ) -> Result<OwnedFd, EngineError> {
        let (answer, _) = self.ask(Order::UserNamespace { uid_base }, &[]).await?;
        only_descriptor(answer).map(|(_, namespace)| namespace)
    }

    pub(crate) async fn machine(
        self: &Arc<Self>,
        plan: MachinePlan,
        parts: &[(Role, BorrowedFd<'_>)],
    ) -> Result<Spawned, EngineError> {
        let (answer, parent) = self.ask(Order::Machine(Box::new(plan)), parts).await?;
        only_descriptor(answer).map(|(pid, pidfd)| Spawned { pid, pidfd, parent })
    }

    /// How a child of spawner `parent` ended; none when that spawner died first.
    pub(crate) async fn exit_status(&self, pid: i32, parent: u64) -> Option<ExitStatus> {
        let alive = async {
            let link = self.link.lock().await;
            link.as_ref().is_some_and(|link| link.number() == parent && !link.is_broken())
        };
        if alive.await {
            let report = self.statuses.wait(pid);
            tokio::time::timeout(STATUS_DEADLINE, report).await.ok()
        } else {
            self.statuses.take(pid)
        }
    }

    async fn ask(
        self: &Arc<Self>,
        order: Order,
        parts: &[(Role, BorrowedFd<'_>)],
    ) -> Result<(Answer, u64), EngineError> {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let roles = parts.iter().map(|(role, _)| *role).collect();
        let request = Request { serial, order, roles };
        let message = serde_json::to_vec(&request).expect("requests are plain data");
        let fds: Vec<_> = parts.iter().map(|(_, fd)| *fd).collect();
        for _ in 0..SPAWNER_ATTEMPTS {
            let link = self.link().await?;
            let answer = match link.send(serial, &message, &fds).await {
                Ok(answer) => answer,
                // Nothing was asked yet, so asking the next one is safe.
                Err(LinkBroken) => continue,
            };
            return match tokio::time::timeout(SPAWN_DEADLINE, answer).await {
                Ok(Ok(answer)) => Ok((answer, link.number())),
                Ok(Err(_)) => Err(EngineError::Unavailable("the spawner died".into())),
                Err(_) => Err(EngineError::Unavailable("the spawner does not answer".into())),
            };
        }
        Err(EngineError::Unavailable("spawners die as soon as they are started".into()))
    }

    async fn link(self: &Arc<Self>) -> Result<Arc<Link>, EngineError> {
        let mut current = self.link.lock().await;
        if let Some(link) = current.as_ref().filter(|link| !link.is_broken()) {
            return Ok(Arc::clone(link));
        }
        if self.stopped.load(Ordering::Acquire) {
            return Err(EngineError::Unavailable("the engine is shutting down".into()));
        }
        let number = self.serial.fetch_add(1, Ordering::Relaxed);
        let link =
            Link::start(&self.program, number).map_err(EngineError::io("start the spawner"))?;
        let (reading, statuses) = (Arc::clone(&link), Arc::clone(&self.statuses));
        let spawner: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            reading.read_all(&statuses).await;
            if reading.age() < SPAWNER_MIN_LIFE {
                tokio::time::sleep(SPAWNER_MIN_LIFE).await;
            }
            // Start the next one now rather than when somebody waits for it.
            if let Some(spawner) = spawner.upgrade()
                && !spawner.stopped.load(Ordering::Acquire)
            {
                tracing::warn!("the spawner is gone; starting another");
                if let Err(error) = spawner.replace().await {
                    tracing::error!(%error, "the spawner does not start");
                }
            }
        });
        *current = Some(Arc::clone(&link));
        Ok(link)
    }

    /// [`Self::link`] for the task that it starts itself.
    fn replace(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Result<(), EngineError>> + Send>> {
        Box::pin(async move { self.link().await.map(drop) })
    }

    /// Ends the spawner and waits for it. Machines keep running.
    pub(crate) async fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let link = self.link.lock().await.take();
        if let Some(link) = link {
            link.close();
            link.ended().await;
        }
    }

    pub(crate) async fn pid(&self) -> Option<u32> {
        self.link.lock().await.as_ref().and_then(|link| link.pid())
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        if let Some(link) = self.link.get_mut() {
            link.close();
        }
    }
}

fn only_descriptor((reply, mut fds): Answer) -> Result<(i32, OwnedFd), EngineError> {
    match (reply, fds.pop()) {
        (Reply::Done { pid, .. }, Some(fd)) => Ok((pid, fd)),
        (Reply::Failed { step, errno, .. }, _) => {
            let mut bytes = [0; Failure::BYTES];
            bytes[..4].copy_from_slice(&step.to_le_bytes());
            bytes[4..].copy_from_slice(&errno.to_le_bytes());
            let unknown = Failure { step: Step::Message, errno };
            Err(Failure::from_bytes(&bytes).unwrap_or(unknown).into_error())
        }
        _ => Err(EngineError::Unavailable("the spawner's answer makes no sense".into())),
    }
}

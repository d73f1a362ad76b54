//! A runner on a directory of this machine, as this process's own user, confined by nothing.
//!
//! It is in a session of its own and outlives who started it, with all its commands. The next one
//! finds it by a record and takes it over. All of it is in one private directory: a lock, so that
//! there is one owner at a time, the record, the socket and the log.

mod process;
mod record;
mod start;
mod stop;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex as StdMutex;
use std::time::Instant;

use async_trait::async_trait;
use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_protocol::Hello;
use tokio::net::UnixStream;
use tokio::process::Child;

use crate::limits::LOCK_PATIENCE;
use crate::link::Link;
use crate::place::{Held, Mode, Place, PlaceHealth, Retries};
use crate::{Layout, PlaceError, Problem};
use process::Process;
use record::Record;

/// Variables of ours that commands get, too. The rest may hold secrets.
const PASSED_ON: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ"];

const SOCKET: &str = "runner.sock";
const LOCK: &str = "lock";
const LOG: &str = "runner.log";

#[derive(Debug, Clone)]
pub struct LocalSettings {
    pub root: PathBuf,
    /// Private to this place, and made when it is not there.
    pub directory: PathBuf,
    /// Of every command.
    pub env: BTreeMap<String, String>,
}

impl LocalSettings {
    /// With the usual variables of this process.
    pub fn new(root: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        let variable = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
        let env = PASSED_ON.into_iter().filter_map(variable).collect();
        Self { root: root.into(), directory: directory.into(), env }
    }

    /// All that is wrong, one line each. `apart` is what else must not lie in the workspace.
    pub fn problems(
        &self,
        root_name: &str,
        directory_name: &str,
        apart: Vec<(String, PathBuf)>,
    ) -> Vec<Problem> {
        let mut apart = apart;
        apart.push((directory_name.to_owned(), self.directory.clone()));
        if let Ok(program) = std::env::current_exe() {
            apart.push(("the program".to_owned(), program));
        }
        Layout { root: (root_name.to_owned(), self.root.clone()), apart }.problems()
    }
}

/// Why a runner that is remembered is not used.
enum NotAdopted {
    /// Nobody can use it any more: it is ended, and another one started.
    Useless(String),
    /// It lives and does not answer. Its commands may be worth more than an answer now.
    Mute(PlaceError),
}

pub struct LocalPlace {
    settings: LocalSettings,
    /// The private directory, opened; its path may be longer than a socket's address.
    directory: File,
    /// Held for as long as this lives.
    _lock: File,
    link: Link,
    /// Ours if we started it; it is waited for so that it leaves no zombie.
    child: StdMutex<Option<Child>>,
}

impl LocalPlace {
    /// Takes the directory; the runner is found or started when it is first needed.
    pub fn open(settings: LocalSettings) -> Result<Self, PlaceError> {
        let problems = settings.problems("the workspace root", "the runner's directory", vec![]);
        if !problems.is_empty() {
            return Err(PlaceError::Settings(problems));
        }
        let directory =
            private(&settings.directory).map_err(|error| unusable(&settings, &error))?;
        let options = File::options().read(true).write(true).create(true).truncate(false).clone();
        let lock = options.open(settings.directory.join(LOCK));
        let lock = lock.map_err(|error| unusable(&settings, &error))?;
        match lock_patiently(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(PlaceError::InUse(settings.directory.display().to_string()));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(&settings, &error)),
        }
        let (link, child) = (Link::default(), StdMutex::default());
        Ok(Self { settings, directory, _lock: lock, link, child })
    }

    /// The runner's process, if there is one.
    pub fn pid(&self) -> Option<u32> {
        let record = Record::read(&self.settings.directory)?;
        record.process.is_alive().then(|| record.process.pid.unsigned_abs())
    }

    /// Ends the runner and everything it started.
    pub async fn stop(&self) -> Result<(), PlaceError> {
        self.link.close().await;
        self.end_recorded().await
    }

    async fn end_recorded(&self) -> Result<(), PlaceError> {
        if let Some(record) = Record::read(&self.settings.directory) {
            let left = stop::end(&record.process, || self.reap()).await;
            left.map_err(|error| PlaceError::Start(format!("the old runner stays: {error}")))?;
        }
        Record::remove(&self.settings.directory);
        self.reap();
        Ok(())
    }

    fn reap(&self) {
        let mut child = self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(running) = &mut *child
            && !matches!(running.try_wait(), Ok(None))
        {
            *child = None;
        }
    }

    /// Finds the runner that is there, or starts one.
    async fn connect(&self) -> Result<(RunnerClient, Hello), PlaceError> {
        self.reap();
        let root = fs::metadata(&self.settings.root);
        let root = root.ok().filter(fs::Metadata::is_dir).ok_or_else(|| self.root_is_gone())?;
        let root = (root.dev(), root.ino());
        if let Some(record) = Record::read(&self.settings.directory) {
            match self.adopt(&record, root).await {
                Ok(reached) => return Ok(reached),
                Err(NotAdopted::Mute(error)) => return Err(error),
                Err(NotAdopted::Useless(why)) => {
                    tracing::info!(pid = record.process.pid, %why, "the workspace's runner is replaced");
                    self.end_recorded().await?;
                }
            }
        }
        self.start(root).await
    }

    async fn adopt(
        &self,
        record: &Record,
        root: (u64, u64),
    ) -> Result<(RunnerClient, Hello), NotAdopted> {
        let useless = |why: String| NotAdopted::Useless(why);
        match record.process.look() {
            Ok(true) => {}
            Ok(false) => return Err(useless("it has ended".to_owned())),
            Err(error) => return Err(NotAdopted::Mute(PlaceError::Unreachable(error.to_string()))),
        }
        if record.root != root {
            return Err(useless("it is on another directory".to_owned()));
        }
        let stream = self.dial().await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                useless(format!("its socket: {error}"))
            }
            // Ours is the trouble, such as too many open files: that is no reason to end it.
            _ => NotAdopted::Mute(PlaceError::Unreachable(error.to_string())),
        })?;
        let peer = rustix::net::sockopt::socket_peercred(&stream);
        if peer.is_ok_and(|peer| peer.pid.as_raw_nonzero().get() != record.process.pid) {
            return Err(useless("its socket is another process's".to_owned()));
        }
        match RunnerClient::connect(stream).await {
            Ok(reached) => Ok(reached),
            Err(error @ ChannelError::Incompatible { .. }) => Err(useless(error.to_string())),
            Err(_) if matches!(record.process.look(), Ok(false)) => {
                Err(useless("it has ended".to_owned()))
            }
            Err(error) => Err(NotAdopted::Mute(error.into())),
        }
    }

    async fn dial(&self) -> io::Result<UnixStream> {
        UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", self.directory.as_raw_fd())).await
    }

    fn root_is_gone(&self) -> PlaceError {
        let what = format!("{} is not there any more", self.settings.root.display());
        let fix = "make the directory again, or name another one";
        PlaceError::Settings(vec![Problem::new("the workspace root", what, fix)])
    }

    fn remember(&self, process: Process, root: (u64, u64)) -> io::Result<()> {
        Record::new(process, root).write(&self.settings.directory)
    }
}

#[async_trait]
impl Place for LocalPlace {
    async fn client_after(&self, broken: u64) -> Result<Held, PlaceError> {
        self.link.channel_after(broken, self.connect()).await
    }

    async fn health(&self) -> PlaceHealth {
        let reached = match self.client().await {
            // A channel may be there although nobody answers any more.
            Ok(held) => held.stats().await.map(drop).map_err(PlaceError::from),
            Err(error) => Err(error),
        };
        let version = self.link.hello().await.map(|hello| hello.runner_version);
        PlaceHealth::of(reached.map(|()| version), None)
    }

    async fn root(&self) -> Result<String, PlaceError> {
        Ok(self.settings.root.display().to_string())
    }

    fn mode(&self) -> Mode {
        Mode::Local
    }

    fn retries(&self) -> Retries {
        Retries::LOCAL
    }
}

/// A child of the last owner's has the lock, too, until it becomes a program of its own.
fn lock_patiently(lock: &File) -> Result<(), TryLockError> {
    let start = Instant::now();
    loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_PATIENCE / 40);
            }
            result => return result,
        }
    }
}

/// Makes the directory, closed to others, and opens it.
fn private(path: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let directory = File::open(path)?;
    if directory.metadata()?.mode() & 0o077 != 0 {
        directory.set_permissions(PermissionsExt::from_mode(0o700))?;
    }
    Ok(directory)
}

fn unusable(settings: &LocalSettings, error: &io::Error) -> PlaceError {
    let what = format!("{} cannot be used: {error}", settings.directory.display());
    let fix = "name a directory that this user may write to";
    PlaceError::Settings(vec![Problem::new("the runner's directory", what, fix)])
}

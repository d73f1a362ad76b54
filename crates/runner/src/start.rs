//! From the first instruction to the first connection.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;

use sandbank_protocol::{Hello, PROTOCOL_VERSION, RunnerConfig};
use tokio::task::LocalSet;

use crate::arguments::{ConfigSource, Serve};
use crate::cgroups::{self, CommandCgroups, OomKills};
use crate::clock::now_ms;
use crate::commands::{Commands, Launcher};
use crate::files::Workspace;
use crate::git::Git;
use crate::http::Counters;
use crate::limits::KEPT_FREE_BYTES;
use crate::log::Log;
use crate::offload::Offload;
use crate::prepare::{self, PrepareError};
use crate::privileges::{self, ConfineError, FileIdentity};
use crate::reaper::Reaper;
use crate::server::{self, Runner};
use crate::spawn::Spawner;
use crate::stdio::{self, Stdio};
use crate::watch::Watches;
use crate::{descriptors, signals};

/// Exit codes, after sysexits.h.
pub(crate) const USAGE: u8 = 64;
const SOFTWARE: u8 = 70;

/// Why the runner cannot serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("the configuration cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("the configuration is not understood: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the configuration names a descriptor that cannot be used: {0}")]
    Descriptor(io::Error),
    #[error("there is nothing to listen on: neither listen_fd nor --listen nor --stdio")]
    NoListener,
    #[error("cannot listen on {path:?}: {error}")]
    Listen { path: String, error: io::Error },
    #[error("cannot take over stdin and stdout: {0}")]
    Stdio(io::Error),
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Confine(#[from] ConfineError),
    #[error("cannot start: {0}")]
    Io(#[from] io::Error),
}

impl StartError {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Unreadable(_) | Self::Malformed(_) | Self::Descriptor(_) | Self::NoListener => {
                USAGE
            }
            _ => SOFTWARE,
        }
    }
}

/// Serves until the process is killed; returns only when it cannot begin or go on.
pub(crate) fn serve(arguments: Serve) -> StartError {
    match try_serve(arguments) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

enum Never {}

fn try_serve(arguments: Serve) -> Result<Never, StartError> {
    signals::reset();
    if arguments.session {
        rustix::process::setsid().map_err(io::Error::from)?;
    }
    keep_freed_memory();
    let config = read_config(arguments.config)?;
    descriptors::tidy(&config).map_err(StartError::Descriptor)?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    adopt_orphans()?;
    let open_files = raise_open_files();
    let stdio = arguments.stdio.then(Stdio::take).transpose().map_err(StartError::Stdio)?;
    let listeners = listen(&config, arguments.listen)?;
    if listeners.is_empty() && stdio.is_none() {
        return Err(StartError::NoListener);
    }

    prepare::prepare(&config)?;
    let (identity, filter) = privileges::confine(&config)?;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(LocalSet::new().run_until(async move {
        let spawner = Spawner::new(identity, filter, open_files)?;
        let reaper = Reaper::new()?;
        let runner = assemble(&config, identity, spawner)?;
        for listener in listeners {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::UnixListener::from_std(listener)?;
            tokio::task::spawn_local(server::serve(runner.clone(), listener));
        }
        if let Some(stdio) = stdio {
            let link = stdio.link().map_err(StartError::Stdio)?;
            tokio::task::spawn_local(stdio::serve(runner.clone(), link));
        }
        if arguments.ready {
            println!("{{\"ready\":true}}");
            io::stdout().flush()?;
        }
        Err(reaper.run(runner.commands.clone()).await.into())
    }))
}

fn assemble(
    config: &RunnerConfig,
    identity: FileIdentity,
    spawner: Spawner,
) -> Result<Rc<Runner>, StartError> {
    let cgroups = config
        .cgroup
        .as_ref()
        .map(|cgroup| CommandCgroups::new(descriptors::adopt(cgroup.fd), cgroup.version, identity));
    let oom_fd = config.cgroup.as_ref().and_then(|cgroup| cgroup.oom_fd);
    let watches_own = config.prepare.as_ref().is_some_and(|prepare| prepare.watch_memory);
    let oom_file = oom_fd.map(descriptors::adopt);
    let oom_file = oom_file.or_else(|| watches_own.then(cgroups::oom_file).flatten());
    let oom = oom_file.map(OomKills::new);
    let launcher = Launcher::new(config, identity, spawner, cgroups, oom)?;
    let log = Rc::new(Log::new(config.log));
    Ok(Rc::new(Runner {
        hello: Hello {
            protocol: PROTOCOL_VERSION,
            runner_version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: random_hex()?,
            started_at_ms: now_ms(),
            workspace: config.workspace.clone(),
        },
        commands: Rc::new(Commands::new(launcher, config.journal_total_bytes, log.clone())),
        workspace: Rc::new(Workspace::open(config)?),
        counters: Rc::new(Counters::default()),
        offload: Offload::default(),
        git: Git::default(),
        watches: Rc::new(Watches::default()),
        log,
    }))
}

fn read_config(source: ConfigSource) -> Result<RunnerConfig, StartError> {
    let text = match source {
        ConfigSource::Defaults => return Ok(RunnerConfig::default()),
        ConfigSource::Text(text) => text,
        ConfigSource::Descriptor(fd) => {
            let mut file = File::from(descriptors::adopt(fd));
            // A memfd stands where its writer left it; a pipe cannot be rewound and need not be.
            let _ = file.rewind();
            let mut text = String::new();
            file.read_to_string(&mut text).map_err(StartError::Unreadable)?;
            text
        }
    };
    Ok(serde_json::from_str(&text)?)
}

fn listen(config: &RunnerConfig, path: Option<String>) -> Result<Vec<UnixListener>, StartError> {
    let inherited = config.listen_fd.map(|fd| UnixListener::from(descriptors::adopt(fd)));
    let mut listeners: Vec<UnixListener> = inherited.into_iter().collect();
    if let Some(path) = path {
        let listener = bind(&path).map_err(|error| StartError::Listen { path, error })?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Replaces a socket that nobody answers on any more, and nothing else.
fn bind(path: &str) -> io::Result<UnixListener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    UnixListener::bind(path)
}

/// Buffers of a transfer come and go with every piece. Giving each back to the kernel costs a page
/// fault for every 4 KiB of the next one.
fn keep_freed_memory() {
    // SAFETY: mallopt takes plain integers; there is one thread.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_FREE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_FREE_BYTES);
    }
}

/// PID 1 gets every orphan anyway; any other process has to ask for them.
fn adopt_orphans() -> io::Result<()> {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes plain integers.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes as many descriptors as allowed, since each command needs several. Returns the limit
/// that commands get.
fn raise_open_files() -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills in the struct, then reads a changed copy of it.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        libc::setrlimit(libc::RLIMIT_NOFILE, &libc::rlimit { rlim_cur: limit.rlim_max, ..limit });
    }
    limit
}

fn random_hex() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

//! A runner on plain pipes, and attachments to it that break where a test wants them to.

#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec};
use sandbank_channel::{ChannelError, RunnerClient, pipe};
use sandbank_protocol::RunnerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};

/// The test holds both ends of both pipes, as an engine does between two attachments.
pub(crate) struct AttachableRunner {
    directory: tempfile::TempDir,
    child: Child,
    to_runner: Option<OwnedFd>,
    from_runner: OwnedFd,
    /// The runner's own end.
    stdout: OwnedFd,
}

impl AttachableRunner {
    pub(crate) fn start() -> Self {
        let (theirs, to_runner) = io::pipe().unwrap();
        Self::start_reading(theirs.into(), to_runner.into())
    }

    /// With a stdin that the test made.
    pub(crate) fn start_reading(stdin: OwnedFd, to_runner: OwnedFd) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("workspace")).unwrap();
        let config = RunnerConfig {
            workspace: directory.path().join("workspace").to_str().unwrap().to_owned(),
            ..RunnerConfig::default()
        };
        let (from_runner, theirs) = io::pipe().unwrap();
        let stdout = theirs.try_clone().unwrap().into();
        let child = Command::new(env!("CARGO_BIN_EXE_runner"))
            .args(["serve", "--stdio", "--config", &serde_json::to_string(&config).unwrap()])
            .arg("--listen")
            .arg(directory.path().join("runner.sock"))
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(theirs))
            .spawn()
            .unwrap();
        Self {
            directory,
            child,
            to_runner: Some(to_runner),
            from_runner: from_runner.into(),
            stdout,
        }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    /// Beside the link.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("runner.sock")
    }

    /// As `/proc` calls them.
    pub(crate) fn pipes(&self) -> Vec<String> {
        let ends = [&self.from_runner, self.to_runner.as_ref().expect("the test has not left")];
        let name = |end| format!("pipe:[{}]", rustix::fs::fstat(end).unwrap().st_ino);
        ends.into_iter().map(name).collect()
    }

    /// Whether nothing more fits into stdout.
    pub(crate) fn is_full(&self) -> bool {
        let mut writable = [PollFd::new(&self.stdout, PollFlags::OUT)];
        rustix::event::poll(&mut writable, Some(&Timespec::default())).unwrap() == 0
    }

    pub(crate) fn attach(&self) -> Attachment {
        self.attach_for(usize::MAX, usize::MAX)
    }

    /// Breaks after so many bytes from or to the runner.
    pub(crate) fn attach_for(&self, read: usize, written: usize) -> Attachment {
        let writer = self.to_runner.as_ref().expect("the test has not left").try_clone().unwrap();
        Attachment {
            reader: Receiver::from_owned_fd(self.from_runner.try_clone().unwrap()).unwrap(),
            writer: Sender::from_owned_fd(writer).unwrap(),
            life: Life::new(read, written),
        }
    }

    /// Closes the test's own end of stdin after some last words.
    pub(crate) fn leave(&mut self, words: &[u8]) {
        let mut stdin = std::fs::File::from(self.to_runner.take().expect("it leaves once"));
        stdin.write_all(words).unwrap();
    }

    pub(crate) fn come_back(&mut self, to_runner: OwnedFd) {
        self.to_runner = Some(to_runner);
    }

    pub(crate) async fn client(&self) -> RunnerClient {
        connect(self.attach()).await.unwrap()
    }
}

impl Drop for AttachableRunner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn connect(attachment: Attachment) -> Result<RunnerClient, ChannelError> {
    let broken = |error: io::Error| ChannelError::Broken(error.to_string());
    let link = pipe::open(attachment).await.map_err(broken)?;
    Ok(RunnerClient::connect(link).await?.0)
}

/// How many bytes may still pass before the attachment breaks, in each direction.
pub(crate) struct Life {
    read: AtomicUsize,
    written: AtomicUsize,
}

impl Life {
    fn new(read: usize, written: usize) -> Arc<Self> {
        Arc::new(Self { read: read.into(), written: written.into() })
    }

    pub(crate) fn end(&self) {
        self.read.store(0, SeqCst);
        self.written.store(0, SeqCst);
    }

    fn check(&self) -> io::Result<()> {
        match self.read.load(SeqCst).min(self.written.load(SeqCst)) {
            0 => Err(io::ErrorKind::ConnectionReset.into()),
            _ => Ok(()),
        }
    }
}

/// One task uses an attachment at a time.
fn spend(left: &AtomicUsize, bytes: usize) {
    left.store(left.load(SeqCst).saturating_sub(bytes), SeqCst);
}

pub(crate) struct Attachment {
    reader: Receiver,
    writer: Sender,
    life: Arc<Life>,
}

impl Attachment {
    pub(crate) fn life(&self) -> Arc<Life> {
        self.life.clone()
    }
}

impl AsyncRead for Attachment {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.life.check()?;
        let mut bytes = [0; 16 << 10];
        let length = bytes.len().min(self.life.read.load(SeqCst)).min(buffer.remaining());
        let mut part = ReadBuf::new(&mut bytes[..length]);
        ready!(Pin::new(&mut self.reader).poll_read(context, &mut part))?;
        buffer.put_slice(part.filled());
        spend(&self.life.read, part.filled().len());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Attachment {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.life.check()?;
        let length = bytes.len().min(self.life.written.load(SeqCst));
        let count = ready!(Pin::new(&mut self.writer).poll_write(context, &bytes[..length]))?;
        spend(&self.life.written, count);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

//! The channel over the runner's own stdin and stdout, for engines that can attach to PID 1 and
//! pass on no socket.
//!
//! One daemon at a time: whoever opens the link ends the connection before. Neither stream ever
//! ends for good: writers and readers of a pipe may come back.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rustix::fs::{Mode, OFlags};
use sandbank_channel::pipe::Link;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

use crate::descriptors;
use crate::limits::STDIN_PAUSE;
use crate::server::{self, Runner};

/// The two streams, out of the reach of anything else that reads or prints.
pub(crate) struct Stdio {
    stdin: OwnedFd,
    stdout: OwnedFd,
}

impl Stdio {
    /// Leaves `/dev/null` in their places. To be called before anything else owns a descriptor.
    pub(crate) fn take() -> io::Result<Self> {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let take = |stream: BorrowedFd<'_>| {
            let taken = rustix::io::fcntl_dupfd_cloexec(stream, FIRST_FREE)?;
            // SAFETY: both are open; the standard streams belong to nothing but this.
            if unsafe { libc::dup2(null.as_raw_fd(), stream.as_raw_fd()) } == -1 {
                return Err(io::Error::last_os_error());
            }
            rustix::io::ioctl_fionbio(&taken, true)?;
            Ok(taken)
        };
        Ok(Self { stdin: take(io::stdin().as_fd())?, stdout: take(io::stdout().as_fd())? })
    }

    /// Refused for files and the like, for which there is no waiting.
    pub(crate) fn link(self) -> io::Result<Link<Streams>> {
        let input = PipeEnd::new(self.stdin, Interest::READABLE)?;
        let output = PipeEnd::new(self.stdout, Interest::WRITABLE)?;
        Ok(Link::new(Streams { input, output }))
    }
}

/// The lowest number that is none of the standard streams.
const FIRST_FREE: RawFd = 3;

/// Serves whoever opens the link, for ever.
pub(crate) async fn serve(runner: Rc<Runner>, mut link: Link<Streams>) {
    loop {
        match link.accept().await {
            Ok(()) => server::connection(runner.clone(), &mut link).await,
            // Nobody is attached; nothing but a look tells when somebody is.
            Err(_) => tokio::time::sleep(STDIN_PAUSE).await,
        }
    }
}

pub(crate) struct Streams {
    input: PipeEnd,
    output: PipeEnd,
}

/// An end of a pipe whose other end may be closed and opened again.
struct PipeEnd {
    descriptor: Rc<OwnedFd>,
    interest: Interest,
    /// None only while it is exchanged.
    watched: Option<AsyncFd<Rc<OwnedFd>>>,
}

impl PipeEnd {
    fn new(descriptor: OwnedFd, interest: Interest) -> io::Result<Self> {
        let descriptor = Rc::new(descriptor);
        let watched = Some(descriptors::watch(descriptor.clone(), interest)?);
        Ok(Self { descriptor, interest, watched })
    }

    fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut transfer: impl FnMut(&OwnedFd) -> rustix::io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            let watched = match &self.watched {
                Some(watched) => watched,
                None => {
                    self.watched.insert(descriptors::watch(self.descriptor.clone(), self.interest)?)
                }
            };
            let mut ready = if self.interest.is_readable() {
                ready!(watched.poll_read_ready(context))?
            } else {
                ready!(watched.poll_write_ready(context))?
            };
            match transfer(&self.descriptor) {
                Err(rustix::io::Errno::AGAIN) => {
                    let closed = ready.ready().is_read_closed() || ready.ready().is_write_closed();
                    ready.clear_ready();
                    // That the other end was closed is announced for ever; here it is open again.
                    if closed {
                        self.watched = None;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                result => return Poll::Ready(result.map_err(io::Error::from)),
            }
        }
    }
}

impl AsyncRead for Streams {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = ready!(self.input.poll(context, |descriptor| {
            // SAFETY: the kernel only writes, so nothing is made uninitialized.
            let room = unsafe { buffer.unfilled_mut() };
            rustix::io::read(descriptor, room).map(|(read, _)| read.len())
        }))?;
        // SAFETY: the kernel has written so many bytes.
        unsafe { buffer.assume_init(length) };
        buffer.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Streams {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.output.poll(context, |descriptor| rustix::io::write(descriptor, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.output.poll(context, |descriptor| rustix::io::writev(descriptor, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// A connection ends, the streams stay.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

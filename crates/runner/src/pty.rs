//! Pseudo-terminals.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use sandbank_protocol::PtySize;

pub(crate) struct Pty {
    /// The runner's side, non-blocking.
    pub(crate) controller: OwnedFd,
    /// The command's side.
    pub(crate) terminal: OwnedFd,
}

/// A terminal of that size. The command's side is opened by descriptor, so no path is trusted.
pub(crate) fn open(size: PtySize) -> io::Result<Pty> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let controller = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&controller)?;
    let terminal = rustix::pty::ioctl_tiocgptpeer(&controller, flags)?;
    resize(&controller, size)?;
    rustix::io::ioctl_fionbio(&controller, true)?;
    Ok(Pty { controller, terminal })
}

pub(crate) fn resize(controller: impl AsFd, size: PtySize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(rustix::termios::tcsetwinsize(controller, size)?)
}

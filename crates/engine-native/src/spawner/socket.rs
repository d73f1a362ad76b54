//! Packets with descriptors over a Unix socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use crate::limits::{MAX_WIRE_BYTES, MAX_WIRE_FDS};

/// Both ends, close-on-exec; the first one does not block.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (daemon, spawner) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::io::ioctl_fionbio(&daemon, true)?;
    Ok((daemon, spawner))
}

pub(super) fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if bytes.len() > MAX_WIRE_BYTES || fds.len() > MAX_WIRE_FDS {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_WIRE_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next packet; none when the other end is closed.
pub(super) fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_WIRE_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(buffer)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    let mut fds = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            fds.extend(received);
        }
    }
    // A packet of ours is never empty, so nothing read is the end.
    Ok((message.bytes > 0).then_some((message.bytes, fds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_borders_and_their_descriptors() {
        let (ours, theirs) = pair().unwrap();
        send(&ours, b"one", &[ours.as_fd(), theirs.as_fd()]).unwrap();
        send(&ours, b"two", &[]).unwrap();
        let mut buffer = [0; 64];
        let (length, fds) = receive(&theirs, &mut buffer).unwrap().unwrap();
        assert_eq!((&buffer[..length], fds.len()), (&b"one"[..], 2));
        drop(fds);
        let (length, fds) = receive(&theirs, &mut buffer).unwrap().unwrap();
        assert_eq!((&buffer[..length], fds.len()), (&b"two"[..], 0));
        drop(ours);
        assert!(receive(&theirs, &mut buffer).unwrap().is_none());
    }
}

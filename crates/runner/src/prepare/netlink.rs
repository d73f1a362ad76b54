//! Netlink messages: attributes in, answers out. Asks one thing at a time and waits for the answer.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::limits::{NETLINK_PATIENCE, NETLINK_READ_BYTES};

/// `struct nlmsghdr`: length, type, flags, sequence, port.
const HEADER_BYTES: usize = 16;
/// `struct nlattr`: length, type.
const ATTRIBUTE_BYTES: usize = 4;
const NESTED: u16 = 0x8000;
const TYPE_MASK: u16 = 0x3fff;

pub(super) const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
pub(super) const ACK: u16 = libc::NLM_F_ACK as u16;
pub(super) const DUMP: u16 = libc::NLM_F_DUMP as u16;
pub(super) const CREATE: u16 = libc::NLM_F_CREATE as u16;
pub(super) const EXCLUSIVE: u16 = libc::NLM_F_EXCL as u16;
pub(super) const REPLACE: u16 = libc::NLM_F_REPLACE as u16;
pub(super) const APPEND: u16 = libc::NLM_F_APPEND as u16;
const INTERRUPTED: u16 = 0x10;

/// A message under construction.
pub(super) struct Message(Vec<u8>);

impl Message {
    /// `fixed` is the structure that follows the header.
    pub(super) fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | REQUEST).to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Self(bytes)
    }

    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        self.put(kind, value);
        self
    }

    pub(super) fn nested(mut self, kind: u16, inner: &Attributes) -> Self {
        self.put(kind | NESTED, &inner.0);
        self
    }

    fn put(&mut self, kind: u16, value: &[u8]) {
        put(&mut self.0, kind, value);
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("messages are small");
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// The inside of a nested attribute.
#[derive(Default)]
pub(super) struct Attributes(Vec<u8>);

impl Attributes {
    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        put(&mut self.0, kind, value);
        self
    }

    pub(super) fn with_nested(mut self, kind: u16, inner: &Self) -> Self {
        put(&mut self.0, kind | NESTED, &inner.0);
        self
    }

    /// The number in network order, as netfilter has it.
    pub(super) fn with_number(self, kind: u16, value: u32) -> Self {
        self.with(kind, &value.to_be_bytes())
    }

    /// Ended by a NUL.
    pub(super) fn with_text(self, kind: u16, text: &str) -> Self {
        self.with(kind, &text_value(text))
    }
}

pub(super) fn text_value(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

fn put(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(ATTRIBUTE_BYTES + value.len()).expect("attributes are small");
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// All attributes of an answer, in order.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?) & TYPE_MASK;
        let value = bytes.get(ATTRIBUTE_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

pub(super) struct Socket {
    descriptor: OwnedFd,
    sequence: u32,
}

/// What the kernel answered: the type, and what follows the header.
pub(super) type Answer = (u16, Vec<u8>);

impl Socket {
    pub(super) fn open(protocol: libc::c_int) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: plain integers in, a new descriptor out.
        let descriptor = match unsafe { libc::socket(libc::AF_NETLINK, kind, protocol) } {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: it is new and ours.
            fd => unsafe { OwnedFd::from_raw_fd(fd) },
        };
        rustix::net::sockopt::set_socket_timeout(
            &descriptor,
            rustix::net::sockopt::Timeout::Recv,
            Some(NETLINK_PATIENCE),
        )?;
        Ok(Self { descriptor, sequence: 0 })
    }

    /// One change, which the kernel made or refused.
    pub(super) fn change(&mut self, message: Message) -> io::Result<()> {
        self.send(vec![message])?;
        self.acknowledged(1)
    }

    /// Several that are made together or not at all. The first and the last are not answered.
    pub(super) fn change_together(&mut self, messages: Vec<Message>) -> io::Result<()> {
        let answers = messages.len() - 2;
        self.send(messages)?;
        self.acknowledged(answers)
    }

    /// Everything there is of what is asked for.
    pub(super) fn dump(&mut self, message: Message) -> io::Result<Vec<Answer>> {
        self.send(vec![message])?;
        let mut all = Vec::new();
        loop {
            for (kind, flags, body) in self.receive()? {
                if flags & INTERRUPTED != 0 {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                match i32::from(kind) {
                    libc::NLMSG_DONE => return Ok(all),
                    libc::NLMSG_ERROR => return outcome(&body).map(|()| all),
                    _ => all.push((kind, body)),
                }
            }
        }
    }

    fn send(&mut self, messages: Vec<Message>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for message in messages {
            self.sequence += 1;
            bytes.extend(message.finish(self.sequence));
        }
        // SAFETY: the buffer outlives the call. Without an address it goes to the kernel.
        let sent = unsafe {
            libc::send(self.descriptor.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0)
        };
        match usize::try_from(sent) {
            Ok(length) if length == bytes.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    fn acknowledged(&self, mut answers: usize) -> io::Result<()> {
        while answers > 0 {
            for (kind, _, body) in self.receive()? {
                if i32::from(kind) == libc::NLMSG_ERROR {
                    outcome(&body)?;
                    answers = answers.saturating_sub(1);
                }
            }
        }
        Ok(())
    }

    /// The messages of one datagram: type, flags, body.
    fn receive(&self) -> io::Result<Vec<(u16, u16, Vec<u8>)>> {
        let mut buffer = vec![0; NETLINK_READ_BYTES];
        // SAFETY: the kernel writes at most the length of the buffer. MSG_TRUNC tells of more.
        let length = unsafe {
            let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len());
            libc::recv(self.descriptor.as_raw_fd(), start, room, libc::MSG_TRUNC)
        };
        let Ok(length) = usize::try_from(length) else { return Err(io::Error::last_os_error()) };
        let mut rest = buffer.get(..length).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut messages = Vec::new();
        while rest.len() >= HEADER_BYTES {
            let number = |at: usize| u16::from_ne_bytes([rest[at], rest[at + 1]]);
            let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
            let body = rest.get(HEADER_BYTES..length).ok_or(io::ErrorKind::InvalidData)?;
            messages.push((number(4), number(6), body.to_vec()));
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(messages)
    }
}

/// `struct nlmsgerr` begins with a negative error number, or zero.
fn outcome(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let inner = Attributes::default().with_text(1, "lo").with_number(2, 7);
        let message = Message::new(26, ACK, &[9; 12]).attribute(5, &[1, 2, 3]).nested(6, &inner);
        let bytes = message.finish(77);
        assert_eq!(u32::from_ne_bytes(*bytes.first_chunk().unwrap()) as usize, bytes.len());
        let found: Vec<_> = attributes(&bytes[HEADER_BYTES + 12..]).collect();
        assert_eq!(found[0], (5, &[1, 2, 3][..]));
        let nested: Vec<_> = attributes(found[1].1).collect();
        assert_eq!((found[1].0, nested), (6, vec![(1, &b"lo\0"[..]), (2, &[0, 0, 0, 7][..])]));
    }

    #[test]
    fn damaged_attributes_end_the_list() {
        for bytes in [&[][..], &[4], &[3, 0, 1, 0], &[0; 4], &[200, 0, 1, 0, 1, 2, 3, 4]] {
            assert_eq!(attributes(bytes).count(), 0, "{bytes:?}");
        }
    }
}

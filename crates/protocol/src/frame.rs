//! Frames of a command's output stream.
//!
//! A frame is 21 bytes of header (kind u8, seq u64, time u64, length u32, all big-endian) and
//! its payload. Frames are immutable once numbered, so `after=seq` resumes exactly. The runner
//! never cuts a UTF-8 character between two frames of one stream.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

pub const HEADER_BYTES: usize = 21;

/// The largest payload either side sends; a longer one is a protocol violation.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    Stdout,
    Stderr,
    Pty,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Output bytes, numbered from 1 without gaps.
    Output { seq: u64, time_ms: u64, stream: StreamKind, data: Bytes },
    /// Frames up to and including `seq` are no longer kept: this many, with this many bytes.
    Dropped { seq: u64, frames: u64, bytes: u64 },
    /// The last frame: the JSON of an [`crate::Ending`].
    Ended { seq: u64, time_ms: u64, ending: Bytes },
    /// Nothing new; keeps intermediaries from closing a silent stream.
    Heartbeat { seq: u64, time_ms: u64 },
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FrameError {
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
    #[error("a frame payload of {0} bytes is above the limit")]
    TooLong(usize),
    #[error("a frame of kind {kind} has {length} payload bytes")]
    BadPayload { kind: u8, length: usize },
}

const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const PTY: u8 = 3;
const DROPPED: u8 = 4;
const ENDED: u8 = 5;
const HEARTBEAT: u8 = 6;

impl Frame {
    pub fn seq(&self) -> u64 {
        match self {
            Self::Output { seq, .. }
            | Self::Dropped { seq, .. }
            | Self::Ended { seq, .. }
            | Self::Heartbeat { seq, .. } => *seq,
        }
    }

    /// Header and payload apart, so that large payloads are sent without a copy.
    pub fn encode(&self) -> (Bytes, Option<Bytes>) {
        match self {
            Self::Output { seq, time_ms, stream, data } => {
                let kind = match stream {
                    StreamKind::Stdout => STDOUT,
                    StreamKind::Stderr => STDERR,
                    StreamKind::Pty => PTY,
                };
                (header(kind, *seq, *time_ms, data.len(), 0).freeze(), Some(data.clone()))
            }
            Self::Dropped { seq, frames, bytes } => {
                let mut out = header(DROPPED, *seq, 0, 16, 16);
                out.put_u64(*frames);
                out.put_u64(*bytes);
                (out.freeze(), None)
            }
            Self::Ended { seq, time_ms, ending } => {
                (header(ENDED, *seq, *time_ms, ending.len(), 0).freeze(), Some(ending.clone()))
            }
            Self::Heartbeat { seq, time_ms } => {
                (header(HEARTBEAT, *seq, *time_ms, 0, 0).freeze(), None)
            }
        }
    }
}

fn header(kind: u8, seq: u64, time_ms: u64, length: usize, extra: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEADER_BYTES + extra);
    out.put_u8(kind);
    out.put_u64(seq);
    out.put_u64(time_ms);
    out.put_u32(u32::try_from(length).expect("payloads are bounded far below 4 GiB"));
    out
}

/// Turns chunks of any size back into frames. Input is untrusted.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    /// The beginning of a frame.
    buffer: BytesMut,
    /// What follows it: the newest chunk, from which a payload is taken without a copy.
    chunk: Bytes,
}

impl FrameDecoder {
    pub fn push(&mut self, chunk: Bytes) {
        let before = std::mem::replace(&mut self.chunk, chunk);
        self.buffer.extend_from_slice(&before);
    }

    /// The next whole frame, or none until more bytes arrive.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if !self.fill(HEADER_BYTES) {
            return Ok(None);
        }
        let mut head = &self.buffer[..HEADER_BYTES];
        let (kind, seq, time_ms) = (head.get_u8(), head.get_u64(), head.get_u64());
        let length = head.get_u32() as usize;
        check_length(kind, length)?;
        let data = if self.buffer.len() == HEADER_BYTES && self.chunk.len() >= length {
            self.buffer.clear();
            self.chunk.split_to(length)
        } else if self.fill(HEADER_BYTES + length) {
            self.buffer.advance(HEADER_BYTES);
            self.buffer.split_to(length).freeze()
        } else {
            return Ok(None);
        };
        Ok(Some(assemble(kind, seq, time_ms, data)))
    }

    /// Whether the buffer now has at least `size` bytes; no more than needed are moved there.
    fn fill(&mut self, size: usize) -> bool {
        let missing = size.saturating_sub(self.buffer.len()).min(self.chunk.len());
        self.buffer.extend_from_slice(&self.chunk.split_to(missing));
        self.buffer.len() >= size
    }

    /// Whether the stream stopped in the middle of a frame.
    pub fn has_partial_frame(&self) -> bool {
        !self.buffer.is_empty() || !self.chunk.is_empty()
    }
}

fn check_length(kind: u8, length: usize) -> Result<(), FrameError> {
    match kind {
        STDOUT | STDERR | PTY | ENDED if length <= MAX_PAYLOAD_BYTES => Ok(()),
        STDOUT | STDERR | PTY | ENDED => Err(FrameError::TooLong(length)),
        DROPPED if length == 16 => Ok(()),
        HEARTBEAT if length == 0 => Ok(()),
        DROPPED | HEARTBEAT => Err(FrameError::BadPayload { kind, length }),
        other => Err(FrameError::UnknownKind(other)),
    }
}

fn assemble(kind: u8, seq: u64, time_ms: u64, mut data: Bytes) -> Frame {
    let output = |stream, data| Frame::Output { seq, time_ms, stream, data };
    match kind {
        STDOUT => output(StreamKind::Stdout, data),
        STDERR => output(StreamKind::Stderr, data),
        PTY => output(StreamKind::Pty, data),
        DROPPED => Frame::Dropped { seq, frames: data.get_u64(), bytes: data.get_u64() },
        ENDED => Frame::Ended { seq, time_ms, ending: data },
        _ => Frame::Heartbeat { seq, time_ms },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_frame() -> impl Strategy<Value = Frame> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from);
        let stream =
            prop_oneof![Just(StreamKind::Stdout), Just(StreamKind::Stderr), Just(StreamKind::Pty)];
        prop_oneof![
            (any::<u64>(), any::<u64>(), stream, bytes()).prop_map(
                |(seq, time_ms, stream, data)| { Frame::Output { seq, time_ms, stream, data } }
            ),
            (any::<u64>(), any::<u64>(), any::<u64>())
                .prop_map(|(seq, frames, bytes)| Frame::Dropped { seq, frames, bytes }),
            (any::<u64>(), any::<u64>(), bytes()).prop_map(|(seq, time_ms, ending)| Frame::Ended {
                seq,
                time_ms,
                ending
            }),
            (any::<u64>(), any::<u64>())
                .prop_map(|(seq, time_ms)| Frame::Heartbeat { seq, time_ms }),
        ]
    }

    proptest! {
        #[test]
        fn frames_survive_any_chunking(
            frames in prop::collection::vec(any_frame(), 0..20),
            cut in 1usize..64,
        ) {
            let mut wire = Vec::new();
            for frame in &frames {
                let (head, payload) = frame.encode();
                wire.extend_from_slice(&head);
                wire.extend_from_slice(&payload.unwrap_or_default());
            }
            let mut decoder = FrameDecoder::default();
            let mut seen = Vec::new();
            for chunk in wire.chunks(cut) {
                decoder.push(Bytes::copy_from_slice(chunk));
                while let Some(frame) = decoder.next_frame().unwrap() {
                    seen.push(frame);
                }
            }
            prop_assert_eq!(seen, frames);
            prop_assert!(!decoder.has_partial_frame());
        }

        #[test]
        fn hostile_bytes_never_panic(noise in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = FrameDecoder::default();
            decoder.push(noise.into());
            while let Ok(Some(_)) = decoder.next_frame() {}
        }
    }

    #[test]
    fn a_huge_length_is_refused_before_it_is_buffered() {
        let mut decoder = FrameDecoder::default();
        decoder.push(header(STDOUT, 1, 0, u32::MAX as usize, 0).freeze());
        assert_eq!(decoder.next_frame(), Err(FrameError::TooLong(u32::MAX as usize)));
    }
}

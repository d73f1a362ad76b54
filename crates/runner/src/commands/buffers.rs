//! Memory that output is read into.
//!
//! A large read becomes a frame without a copy, and its memory comes back when the journal
//! drops the frame. A small read is copied, so that it does not pin a large buffer.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};

use crate::limits::{MAX_SPARE_BUFFERS, READ_BYTES};

/// Room in front of a read for the held-back beginning of a character.
pub(super) const CARRY_BYTES: usize = 3;

const BUFFER_BYTES: usize = READ_BYTES + CARRY_BYTES;

#[derive(Default)]
pub(crate) struct Buffers {
    spare: RefCell<Vec<BytesMut>>,
}

impl Buffers {
    /// An empty buffer of full size.
    pub(super) fn take(&self) -> BytesMut {
        self.spare.borrow_mut().pop().unwrap_or_else(|| BytesMut::with_capacity(BUFFER_BYTES))
    }

    pub(super) fn give_back(&self, mut buffer: BytesMut) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < MAX_SPARE_BUFFERS && buffer.capacity() >= BUFFER_BYTES {
            buffer.clear();
            spare.push(buffer);
        }
    }

    /// Turns what was read into a frame's data.
    pub(super) fn freeze(&self, buffer: BytesMut) -> Bytes {
        if buffer.len() >= READ_BYTES / 2 {
            return buffer.freeze();
        }
        let data = Bytes::copy_from_slice(&buffer);
        self.give_back(buffer);
        data
    }

    /// Takes back the memory of a dropped frame unless a reader still has it.
    pub(super) fn recycle(&self, data: Bytes) {
        if data.len() >= READ_BYTES / 2
            && let Ok(buffer) = data.try_into_mut()
        {
            self.give_back(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_dropped_frame_is_used_again() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take();
        let address = buffer.as_ptr();
        buffer.resize(READ_BYTES, b'x');
        let data = buffers.freeze(buffer);
        buffers.recycle(data);
        assert_eq!(buffers.take().as_ptr(), address);
    }

    #[test]
    fn a_small_read_does_not_keep_a_large_buffer() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take();
        let address = buffer.as_ptr();
        buffer.extend_from_slice(b"hello");
        assert_eq!(buffers.freeze(buffer), "hello");
        assert_eq!(buffers.take().as_ptr(), address);
    }
}

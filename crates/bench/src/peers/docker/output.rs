//! Counts the payload of Docker's multiplexed output: frames with a head of eight bytes, the last
//! four of which are the length.

const HEAD_BYTES: usize = 8;

#[derive(Debug, Default)]
pub(super) struct OutputFrames {
    head: [u8; HEAD_BYTES],
    /// How much of the head is here.
    have: usize,
    /// What is still to come of the frame.
    left: usize,
    pub(super) payload: u64,
}

impl OutputFrames {
    pub(super) fn push(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            if self.left > 0 {
                let length = self.left.min(chunk.len());
                self.left -= length;
                self.payload += length as u64;
                chunk = &chunk[length..];
                continue;
            }
            self.head[self.have] = chunk[0];
            self.have += 1;
            chunk = &chunk[1..];
            if self.have == HEAD_BYTES {
                let [.., a, b, c, d] = self.head;
                self.left = u32::from_be_bytes([a, b, c, d]) as usize;
                self.have = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_chunking_gives_the_same_count() {
        let mut wire = Vec::new();
        for length in [5_u32, 0, 300] {
            wire.extend_from_slice(&[1, 0, 0, 0]);
            wire.extend_from_slice(&length.to_be_bytes());
            wire.extend(vec![b'x'; length as usize]);
        }
        for size in [1, 3, 9, wire.len()] {
            let mut frames = OutputFrames::default();
            wire.chunks(size).for_each(|chunk| frames.push(chunk));
            assert_eq!(frames.payload, 305, "in chunks of {size}");
        }
    }
}

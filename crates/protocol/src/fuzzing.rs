//! Fuzz targets: output frames from a hostile runner.

use bytes::Bytes;

use crate::frame::{Frame, FrameDecoder, FrameError};

/// The first byte says how the rest is cut into chunks, which must not matter. What is understood
/// is understood completely: encoding it again gives the same bytes.
pub fn frames(data: &[u8]) {
    let Some((cut, wire)) = data.split_first() else { return };
    let whole = decode(wire, wire.len().max(1));
    let chunked = decode(wire, usize::from(*cut).max(1));
    assert_eq!(whole, chunked);
    let mut again = Vec::new();
    for frame in &whole.0 {
        let (head, payload) = frame.encode();
        again.extend_from_slice(&head);
        again.extend_from_slice(&payload.unwrap_or_else(Bytes::new));
    }
    assert_eq!(without_times(&again), without_times(&wire[..again.len()]));
}

fn decode(wire: &[u8], cut: usize) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = FrameDecoder::default();
    let mut frames = Vec::new();
    for chunk in wire.chunks(cut) {
        decoder.push(Bytes::copy_from_slice(chunk));
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

/// The times of frames that have none are free to be anything.
fn without_times(wire: &[u8]) -> Vec<u8> {
    let mut out = wire.to_vec();
    let mut at = 0;
    while let Some(head) = out.get_mut(at..at + crate::frame::HEADER_BYTES) {
        if head[0] == 4 {
            head[9..17].fill(0);
        }
        let length = u32::from_be_bytes([head[17], head[18], head[19], head[20]]);
        at += crate::frame::HEADER_BYTES + length as usize;
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_frames_are_handled() {
        sandbank_test_support::replay_corpus("frames", super::frames);
    }
}

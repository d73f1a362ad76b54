//! Work of a fixed size for `make instructions`, which counts what `counted_journal` executes.

use bytes::Bytes;
use sandbank_protocol::StreamKind;

use super::Journal;

const FRAMES: u64 = 2_000;
const FRAME_BYTES: usize = 512;

/// Less than all frames together, so that old ones are dropped on the way.
const BUDGET: u64 = 600_000;

/// Appends, and reads each frame when it is there.
#[inline(never)]
fn counted_journal(journal: &mut Journal, data: &Bytes) -> (u64, u64) {
    let mut position = journal.position(0);
    let (mut frames, mut last) = (0, 0);
    for time_ms in 0..FRAMES {
        journal.append(time_ms, StreamKind::Stdout, data.clone(), drop);
        while let Some(frame) = journal.next(&mut position) {
            frames += 1;
            last = frame.seq();
        }
    }
    (frames, last)
}

#[test]
fn a_reader_who_keeps_up_sees_every_frame_of_the_counted_work() {
    let mut journal = Journal::new(BUDGET);
    let data = Bytes::from(vec![b'x'; FRAME_BYTES]);
    assert_eq!(counted_journal(&mut journal, &data), (FRAMES, FRAMES));
    assert!(journal.dropped_bytes() > 0, "the budget is part of the work");
}

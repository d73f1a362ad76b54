//! Any interleaving of writers and readers loses nothing silently.

use bytes::Bytes;
use proptest::prelude::*;
use sandbank_protocol::{Frame, StreamKind};

use super::{Journal, MAX_DROPPED_SIZES, Position};

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    DropOldest,
    Clear,
    NewReader { after: u64 },
    Read { reader: usize, frames: usize },
    End,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0usize..400).prop_map(Step::Append),
        1 => Just(Step::DropOldest),
        1 => Just(Step::Clear),
        2 => (0u64..200).prop_map(|after| Step::NewReader { after }),
        5 => (any::<usize>(), 1usize..8).prop_map(|(reader, frames)| Step::Read { reader, frames }),
        1 => Just(Step::End),
    ]
}

/// What a reader must have seen so far, by the rules, tracked beside what it did see.
struct Reader {
    position: Position,
    after: u64,
    /// The journal forgot the sizes below this reader's start: byte counts may be too high.
    inexact: bool,
    ended: bool,
}

/// All frames ever appended: `sizes[i]` belongs to frame `i + 1`.
#[derive(Default)]
struct Model {
    sizes: Vec<usize>,
    ended: bool,
}

impl Model {
    fn bytes_between(&self, after: u64, up_to: u64) -> u64 {
        let range = after.min(self.sizes.len() as u64)..up_to.min(self.sizes.len() as u64);
        range.map(|index| self.sizes[index as usize] as u64).sum()
    }
}

fn payload(seq: u64, size: usize) -> Bytes {
    Bytes::from(vec![seq as u8; size])
}

fn stream_of(seq: u64) -> StreamKind {
    if seq.is_multiple_of(3) { StreamKind::Stderr } else { StreamKind::Stdout }
}

fn check_read(journal: &Journal, model: &Model, reader: &mut Reader) {
    match journal.next(&mut reader.position) {
        Some(Frame::Output { seq, time_ms, stream, data }) => {
            assert_eq!(seq, reader.after + 1, "frames come once each and in order");
            assert_eq!((time_ms, stream), (seq, stream_of(seq)), "a frame never changes");
            assert_eq!(data, payload(seq, model.sizes[seq as usize - 1]));
            reader.after = seq;
        }
        Some(Frame::Dropped { seq, frames, bytes }) => {
            assert!(seq > reader.after);
            assert_eq!(frames, seq - reader.after);
            let exact = model.bytes_between(reader.after, seq);
            if reader.inexact {
                assert!(bytes >= exact);
            } else {
                assert_eq!(bytes, exact);
            }
            reader.inexact = false;
            reader.after = seq;
        }
        Some(Frame::Ended { seq, .. }) => {
            assert!(model.ended && !reader.ended, "one ending, and only after the end");
            assert_eq!(seq, model.sizes.len() as u64);
            assert_eq!(reader.after, seq, "the ending comes after all output");
            reader.ended = true;
        }
        Some(Frame::Heartbeat { .. }) => panic!("a journal has no heartbeats"),
        None => {
            let read_all = reader.after >= model.sizes.len() as u64;
            assert!(read_all && (reader.ended || !model.ended), "nothing is withheld");
        }
    }
}

proptest! {
    #[test]
    fn every_reader_sees_every_kept_frame_once_and_exact_counts_of_the_rest(
        steps in prop::collection::vec(any_step(), 0..200),
        budget in 0u64..4_000,
    ) {
        let mut journal = Journal::new(budget);
        let mut model = Model::default();
        let mut readers: Vec<Reader> = Vec::new();
        let mut cleared_at = 0;
        let mut late = 0;
        for step in steps {
            match step {
                Step::Append(size) if model.ended => {
                    late += size as u64;
                    journal.append(0, StreamKind::Stdout, payload(0, size), drop);
                }
                Step::Append(size) => {
                    let safe: Vec<usize> = (0..readers.len())
                        .filter(|index| {
                            !journal.would_overrun(&readers[*index].position, size as u64)
                        })
                        .collect();
                    let oldest_unread: Vec<u64> =
                        safe.iter().map(|index| readers[*index].after + 1).collect();
                    let first_before = journal.first_seq;
                    let caught_up = model.sizes.len() as u64 + 1;
                    model.sizes.push(size);
                    let seq = model.sizes.len() as u64;
                    let data = payload(seq, size);
                    journal.append(seq, stream_of(seq), data, drop);
                    prop_assert_eq!(journal.last_seq(), model.sizes.len() as u64);
                    for unread in oldest_unread {
                        let lost_already = unread < first_before;
                        let kept = journal.first_seq <= unread || unread == caught_up;
                        prop_assert!(lost_already || kept, "a promised frame was dropped");
                    }
                }
                Step::DropOldest => drop(journal.drop_oldest()),
                Step::Clear => {
                    journal.clear();
                    cleared_at = model.sizes.len() as u64;
                    prop_assert_eq!(journal.cost(), 0);
                }
                Step::NewReader { after } => {
                    let position = journal.position(after);
                    let after = position.after();
                    let inexact = after > 0 && after < cleared_at;
                    readers.push(Reader { position, after, inexact, ended: false });
                }
                Step::Read { reader, frames } => {
                    let count = readers.len().max(1);
                    if let Some(reader) = readers.get_mut(reader % count) {
                        (0..frames).for_each(|_| check_read(&journal, &model, reader));
                    }
                }
                Step::End => {
                    prop_assert_eq!(journal.end(0, Bytes::new()), !model.ended);
                    model.ended = true;
                }
            }
            let kept = model.bytes_between(journal.first_seq - 1, journal.last_seq());
            let all = model.bytes_between(0, u64::MAX);
            prop_assert_eq!(journal.dropped_bytes(), all - kept + late);
            prop_assert!(journal.cost() <= budget.max(400 + super::FRAME_OVERHEAD_BYTES));
        }
        for reader in &mut readers {
            (0..300).for_each(|_| check_read(&journal, &model, reader));
        }
    }

    /// More frames were dropped than sizes are remembered.
    #[test]
    fn far_behind_the_frames_are_exact_and_the_bytes_an_upper_bound(
        sizes in prop::collection::vec(0usize..40, 1..50),
        frames in MAX_DROPPED_SIZES - 20..MAX_DROPPED_SIZES * 2,
        kept in 1usize..20,
        afters in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
    ) {
        let mut journal = Journal::new(u64::MAX);
        let mut model = Model::default();
        for (seq, size) in (1..=frames as u64).zip(sizes.iter().cycle()) {
            model.sizes.push(*size);
            journal.append(seq, stream_of(seq), payload(seq, *size), drop);
        }
        (kept..frames).for_each(|_| drop(journal.drop_oldest()));
        journal.end(0, Bytes::new());
        model.ended = true;
        let last_dropped = (frames - kept) as u64;
        for after in afters {
            let after = after.index(frames + 1) as u64;
            let position = journal.position(after);
            let forgotten = last_dropped.saturating_sub(MAX_DROPPED_SIZES as u64);
            let inexact = after > 0 && after < forgotten;
            let mut reader = Reader { position, after, inexact, ended: false };
            (0..kept + 2).for_each(|_| check_read(&journal, &model, &mut reader));
            prop_assert!(reader.ended);
        }
    }
}

#[test]
fn the_newest_frame_is_kept_whatever_the_budget() {
    let mut journal = Journal::new(0);
    journal.append(0, StreamKind::Stdout, payload(1, 10), drop);
    journal.append(0, StreamKind::Stdout, payload(2, 10), drop);
    let mut position = journal.position(0);
    let dropped = Frame::Dropped { seq: 1, frames: 1, bytes: 10 };
    assert_eq!(journal.next(&mut position), Some(dropped));
    assert_eq!(journal.next(&mut position).map(|frame| frame.seq()), Some(2));
    assert_eq!(journal.next(&mut position), None);
}

#[test]
fn a_reader_that_resumes_after_the_ending_is_told_it_again() {
    let mut journal = Journal::new(1 << 20);
    journal.append(0, StreamKind::Stderr, payload(1, 5), drop);
    journal.end(7, Bytes::from_static(b"{}"));
    for after in [1, 2, 1_000] {
        let mut position = journal.position(after);
        let ended = journal.next(&mut position);
        assert!(matches!(ended, Some(Frame::Ended { seq: 1, time_ms: 7, .. })));
        assert_eq!(journal.next(&mut position), None);
    }
}

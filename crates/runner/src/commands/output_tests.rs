//! Readers of any speed beside a writer: nobody waits forever, nobody is told a wrong count, and
//! who keeps moving misses nothing.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join, join_all};
use proptest::prelude::*;
use sandbank_protocol::{Frame, StreamKind};
use tokio::time::{sleep, timeout};

use super::{Output, OutputReader};
use crate::limits::{READ_BYTES, READER_PATIENCE};

/// Longer than everything together may take, on a clock that jumps.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Clone)]
struct Write {
    size: usize,
    pause_ms: u64,
}

#[derive(Debug, Clone)]
struct Visit {
    comes_after_ms: u64,
    /// Resumes behind this frame, or the newest if there are fewer.
    after: u64,
    pause_ms: u64,
    /// Leaves after so many frames; stays if there are fewer.
    leaves: usize,
}

fn any_write() -> impl Strategy<Value = Write> {
    let size = prop_oneof![3 => 1usize..200, 1 => 1usize..=READ_BYTES];
    let pause = prop_oneof![3 => Just(0u64), 1 => 0u64..100];
    (size, pause).prop_map(|(size, pause_ms)| Write { size, pause_ms })
}

fn any_visit() -> impl Strategy<Value = Visit> {
    let comes = prop_oneof![2 => Just(0u64), 1 => 0u64..4_000];
    let after = prop_oneof![2 => Just(0u64), 1 => 0u64..200];
    let pause = prop_oneof![2 => Just(0u64), 2 => 0u64..900, 1 => 1_100u64..5_000];
    let leaves = prop_oneof![3 => Just(usize::MAX), 1 => 0usize..40];
    (comes, after, pause, leaves).prop_map(|(comes_after_ms, after, pause_ms, leaves)| Visit {
        comes_after_ms,
        after,
        pause_ms,
        leaves,
    })
}

fn payload(seq: u64, size: usize) -> Bytes {
    Bytes::from(vec![seq as u8; size])
}

async fn write_all(output: &Output, writes: &[Write]) {
    // Those who come at once are there before the first byte.
    tokio::task::yield_now().await;
    for (seq, write) in (1..).zip(writes) {
        output.room().await;
        sleep(Duration::from_millis(write.pause_ms)).await;
        output.append(seq, StreamKind::Stdout, payload(seq, write.size), drop);
    }
    output.end(0, Bytes::from_static(b"{}"));
}

/// Reads as it is told to, checking every frame; returns how many bytes it missed.
async fn visit(output: &Output, visit: &Visit, writes: &[Write]) -> u64 {
    sleep(Duration::from_millis(visit.comes_after_ms)).await;
    let bytes = |from: u64, to: u64| -> u64 {
        writes[from as usize..to as usize].iter().map(|write| write.size as u64).sum()
    };
    let mut reader = OutputReader::new(output, visit.after);
    let (mut at, mut missed, mut frames) = (reader.after(), 0, 0);
    while !reader.ended() {
        let growth = reader.growth();
        while let Some(frame) = reader.next() {
            match frame {
                Frame::Output { seq, time_ms, data, .. } => {
                    assert_eq!((seq, time_ms), (at + 1, at + 1), "each frame once, in order");
                    assert_eq!(data, payload(seq, writes[at as usize].size));
                    at = seq;
                }
                Frame::Dropped { seq, frames, bytes: dropped } => {
                    assert_eq!((frames, dropped), (seq - at, bytes(at, seq)), "exact counts");
                    (at, missed) = (seq, missed + dropped);
                }
                Frame::Ended { seq, .. } => {
                    assert_eq!((seq, at), (writes.len() as u64, seq), "after the last output");
                }
                Frame::Heartbeat { .. } => panic!("a reader's task sends these"),
            }
            frames += 1;
            if frames >= visit.leaves {
                return missed;
            }
            sleep(Duration::from_millis(visit.pause_ms)).await;
        }
        if !reader.ended() {
            growth.await;
        }
    }
    missed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_readers_beside_a_writer(
        budget in prop_oneof![Just(0u64), 1_000u64..400_000, 400_000u64..2_000_000],
        writes in prop::collection::vec(any_write(), 0..120),
        visits in prop::collection::vec(any_visit(), 0..6),
    ) {
        let mut clock = tokio::runtime::Builder::new_current_thread();
        let clock = clock.enable_time().start_paused(true).build().unwrap();
        clock.block_on(async {
            let output = Output::new(budget);
            let readers = join_all(visits.iter().map(|each| visit(&output, each, &writes)));
            let all = timeout(FOREVER, join(readers, write_all(&output, &writes)));
            let (missed, ()) = all.await.expect("nobody waits forever");
            for (visit, missed) in visits.iter().zip(missed) {
                let moving = Duration::from_millis(visit.pause_ms) < READER_PATIENCE;
                if moving && visit.comes_after_ms == 0 {
                    assert_eq!(missed, 0, "who keeps moving from the start misses nothing");
                }
            }
            let all: u64 = writes.iter().map(|write| write.size as u64).sum();
            assert_eq!(output.stdout_bytes(), all);
            assert!(!output.held_up());
        });
    }
}

#[tokio::test(start_paused = true)]
async fn an_onlooker_does_not_take_the_place_of_the_reader_that_was_expected() {
    let budget = 4 * READ_BYTES as u64;
    let flood = async |output: &Output| {
        for _ in 0..8 {
            output.room().await;
            output.append(0, StreamKind::Stdout, Bytes::from(vec![0; READ_BYTES]), drop);
        }
    };
    let output = Output::new(budget);
    drop(OutputReader::onlooker(&output, 0));
    assert!(timeout(Duration::from_millis(1), flood(&output)).await.is_err(), "nobody is missed");
    let mut expected = OutputReader::new(&output, 0);
    assert!(matches!(expected.next(), Some(Frame::Output { seq: 1, .. })));
}

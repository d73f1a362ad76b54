//! A command's output: immutable numbered frames in a bounded ring.
//!
//! Pure data: no IO, no clock, no wakers. Counts what it drops exactly; whoever reads says
//! where they stand and gets the next frame from there.

use std::collections::VecDeque;

use bytes::Bytes;
use sandbank_protocol::{Frame, StreamKind};

use crate::limits::{FRAME_OVERHEAD_BYTES, MAX_DROPPED_SIZES};

pub(crate) struct Journal {
    frames: VecDeque<Kept>,
    /// Number of `frames[0]`; every frame below it was dropped.
    first_seq: u64,
    /// Cost of the kept frames above which the oldest are dropped.
    budget: u64,
    cost: u64,
    /// Bytes of all dropped frames.
    dropped_bytes: u64,
    /// Sizes of the frames dropped last, for readers that resume among them.
    dropped_sizes: VecDeque<u32>,
    /// Output after the ending, which no frame may carry any more.
    late_bytes: u64,
    ending: Option<(u64, Bytes)>,
}

struct Kept {
    time_ms: u64,
    stream: StreamKind,
    data: Bytes,
}

impl Kept {
    fn cost(&self) -> u64 {
        self.data.len() as u64 + FRAME_OVERHEAD_BYTES
    }
}

/// Where a reader stands: behind frame `after`.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    after: u64,
    /// Bytes of all frames up to `after`.
    passed_bytes: u64,
    ended: bool,
}

impl Position {
    pub(crate) fn after(&self) -> u64 {
        self.after
    }

    /// Whether the ending was read: nothing follows it.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }
}

impl Journal {
    pub(crate) fn new(budget: u64) -> Self {
        Self {
            frames: VecDeque::new(),
            first_seq: 1,
            budget,
            cost: 0,
            dropped_bytes: 0,
            dropped_sizes: VecDeque::new(),
            late_bytes: 0,
            ending: None,
        }
    }

    /// Appends a frame and drops the oldest ones above the budget, but never the new one.
    /// Dropped data goes to `dropped`, which may reuse its memory. After the ending the bytes
    /// are only counted.
    #[inline]
    pub(crate) fn append(
        &mut self,
        time_ms: u64,
        stream: StreamKind,
        data: Bytes,
        mut dropped: impl FnMut(Bytes),
    ) {
        if self.ending.is_some() {
            self.late_bytes += data.len() as u64;
            return dropped(data);
        }
        let frame = Kept { time_ms, stream, data };
        self.cost += frame.cost();
        self.frames.push_back(frame);
        while self.cost > self.budget && self.frames.len() > 1 {
            self.drop_oldest().into_iter().for_each(&mut dropped);
        }
    }

    /// Forgets the oldest frame.
    pub(crate) fn drop_oldest(&mut self) -> Option<Bytes> {
        let frame = self.frames.pop_front()?;
        self.first_seq += 1;
        self.cost -= frame.cost();
        self.dropped_bytes += frame.data.len() as u64;
        if self.dropped_sizes.len() == MAX_DROPPED_SIZES {
            self.dropped_sizes.pop_front();
        }
        self.dropped_sizes.push_back(frame.data.len() as u32);
        Some(frame.data)
    }

    /// Forgets every frame and the sizes of the dropped ones; the counts stay exact.
    pub(crate) fn clear(&mut self) {
        while self.drop_oldest().is_some() {}
        self.frames.shrink_to_fit();
        self.dropped_sizes = VecDeque::new();
    }

    /// The first ending counts; a second one is refused.
    pub(crate) fn end(&mut self, time_ms: u64, ending: Bytes) -> bool {
        let first = self.ending.is_none();
        if first {
            self.ending = Some((time_ms, ending));
        }
        first
    }

    /// A reader's start behind frame `after`, at most behind the newest.
    pub(crate) fn position(&self, after: u64) -> Position {
        let after = after.min(self.last_seq());
        let passed_bytes = if after + 1 >= self.first_seq {
            let kept = self.frames.iter().take((after + 1 - self.first_seq) as usize);
            self.dropped_bytes + kept.map(|frame| frame.data.len() as u64).sum::<u64>()
        } else {
            let missed = (self.first_seq - 1 - after) as usize;
            let sizes = self.dropped_sizes.iter().rev();
            let known: u64 = sizes.take(missed).map(|size| u64::from(*size)).sum();
            if missed <= self.dropped_sizes.len() { self.dropped_bytes - known } else { 0 }
        };
        Position { after, passed_bytes, ended: false }
    }

    /// The next frame for a reader: what it missed, then what is kept, then the ending.
    #[inline]
    pub(crate) fn next(&self, position: &mut Position) -> Option<Frame> {
        if position.ended {
            return None;
        }
        if position.after + 1 < self.first_seq {
            let missed = Frame::Dropped {
                seq: self.first_seq - 1,
                frames: self.first_seq - 1 - position.after,
                bytes: self.dropped_bytes - position.passed_bytes,
            };
            position.after = self.first_seq - 1;
            position.passed_bytes = self.dropped_bytes;
            return Some(missed);
        }
        let index = (position.after + 1 - self.first_seq) as usize;
        if let Some(frame) = self.frames.get(index) {
            let Kept { time_ms, stream, data } = frame;
            position.after += 1;
            position.passed_bytes += data.len() as u64;
            let (time_ms, stream, data) = (*time_ms, *stream, data.clone());
            return Some(Frame::Output { seq: position.after, time_ms, stream, data });
        }
        let (time_ms, ending) = self.ending.as_ref()?;
        position.ended = true;
        Some(Frame::Ended { seq: self.last_seq(), time_ms: *time_ms, ending: ending.clone() })
    }

    /// Whether appending that many bytes would drop a frame that this reader has not read.
    pub(crate) fn would_overrun(&self, position: &Position, bytes: u64) -> bool {
        let kept_bytes = self.cost - self.frames.len() as u64 * FRAME_OVERHEAD_BYTES;
        let unread_frames = self.last_seq() - position.after;
        let unread_bytes = self.dropped_bytes + kept_bytes - position.passed_bytes;
        let unread_cost = unread_bytes + unread_frames * FRAME_OVERHEAD_BYTES;
        unread_frames > 0 && unread_cost + bytes + FRAME_OVERHEAD_BYTES > self.budget
    }

    /// Number of the newest frame; 0 before the first.
    pub(crate) fn last_seq(&self) -> u64 {
        self.first_seq + self.frames.len() as u64 - 1
    }

    /// Memory the kept frames stand for.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Bytes that no reader can have any more.
    pub(crate) fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes + self.late_bytes
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "journal_instructions.rs"]
mod instructions;

//! The last changes of one tree as lines, numbered without a gap. Pure.

use std::collections::VecDeque;

use bytes::Bytes;
use sandbank_protocol::WatchEvent;

use crate::limits::{MAX_WATCH_EVENT_BYTES, MAX_WATCH_EVENTS};

#[derive(Debug)]
pub(super) struct Ring {
    lines: VecDeque<Bytes>,
    bytes: usize,
    /// The number of the last line.
    last: u64,
}

/// What came after the number is not known, or not any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown;

impl Ring {
    /// Numbers begin with the time, so that those of a watch that is over mean nothing to another.
    pub(super) fn new(now_ms: u64) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, last: now_ms * 1_000 }
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn push(&mut self, mut event: WatchEvent) {
        self.last += 1;
        event.seq = self.last;
        let line = line(&event);
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > MAX_WATCH_EVENTS || self.bytes > MAX_WATCH_EVENT_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// The next line, if there is one yet.
    pub(super) fn next(&self, after: u64) -> Result<Option<Bytes>, Unknown> {
        let before_first = self.last - self.lines.len() as u64;
        let index =
            after.checked_sub(before_first).filter(|_| after <= self.last).ok_or(Unknown)?;
        Ok(self.lines.get(index as usize).cloned())
    }
}

pub(super) fn line(event: &WatchEvent) -> Bytes {
    let mut line = serde_json::to_vec(event).expect("protocol types are plain data");
    line.push(b'\n');
    line.into()
}

#[cfg(test)]
mod tests {
    use sandbank_protocol::WatchKind;

    use super::*;

    #[test]
    fn lines_are_kept_by_number_and_what_is_unknown_is_said_to_be() {
        let mut ring = Ring::new(5);
        assert_eq!(ring.next(5_000), Ok(None));
        assert_eq!((ring.next(4_999), ring.next(5_001)), (Err(Unknown), Err(Unknown)));
        for _ in 0..MAX_WATCH_EVENTS + 10 {
            ring.push(WatchEvent::new(0, WatchKind::Created));
        }
        assert_eq!(ring.next(5_009), Err(Unknown));
        let first: WatchEvent =
            serde_json::from_slice(&ring.next(5_010).unwrap().unwrap()).unwrap();
        assert_eq!(first.seq, 5_011);
        assert_eq!(ring.next(ring.last()), Ok(None));
        assert_eq!(ring.next(ring.last() + 1), Err(Unknown));
    }
}

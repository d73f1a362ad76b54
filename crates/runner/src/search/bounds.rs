//! What one search may use, counted by all of its threads, and why it stops before its end.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sandbank_protocol::SearchCut;

use crate::limits::{
    MAX_SEARCH_BYTES, MAX_SEARCH_MATCHES, MAX_SEARCH_NODES, MAX_SEARCH_TIME, SEARCH_MATCHES,
    SEARCH_TIME,
};

#[derive(Debug)]
pub(super) struct Bounds {
    began: Instant,
    deadline: Instant,
    limit: u64,
    found: AtomicU64,
    nodes: AtomicU64,
    bytes: AtomicU64,
    stopped: AtomicU8,
}

const GOING_ON: u8 = 0;
/// Nobody reads the answer: there is nothing to be said any more.
const UNREAD: u8 = 1;

/// Complete by the compiler's word.
const fn number(cut: SearchCut) -> u8 {
    match cut {
        SearchCut::Limit => 2,
        SearchCut::Time => 3,
        SearchCut::Bytes => 4,
        SearchCut::Nodes => 5,
    }
}

impl Bounds {
    pub(super) fn new(limit: Option<u64>, time_ms: Option<u64>) -> Self {
        let began = Instant::now();
        let time = time_ms.map_or(SEARCH_TIME, Duration::from_millis).min(MAX_SEARCH_TIME);
        Self {
            began,
            deadline: began + time,
            limit: limit.unwrap_or(SEARCH_MATCHES).min(MAX_SEARCH_MATCHES),
            found: AtomicU64::new(0),
            nodes: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            stopped: AtomicU8::new(GOING_ON),
        }
    }

    /// The first reason stays.
    pub(super) fn cut(&self, reason: SearchCut) {
        self.stop(number(reason));
    }

    pub(super) fn unread(&self) {
        self.stop(UNREAD);
    }

    fn stop(&self, number: u8) {
        let _ =
            self.stopped.compare_exchange(GOING_ON, number, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) != GOING_ON
    }

    /// The same, after a look at the clock.
    pub(super) fn is_over(&self) -> bool {
        if !self.is_stopped() && Instant::now() >= self.deadline {
            self.cut(SearchCut::Time);
        }
        self.is_stopped()
    }

    /// Whether one more match may be told.
    pub(super) fn find(&self) -> bool {
        if self.found.fetch_add(1, Ordering::Relaxed) < self.limit {
            return true;
        }
        self.cut(SearchCut::Limit);
        false
    }

    /// How many entries may still be looked at.
    pub(super) fn nodes_left(&self) -> u64 {
        MAX_SEARCH_NODES.saturating_sub(self.nodes())
    }

    pub(super) fn count_nodes(&self, nodes: u64) {
        self.nodes.fetch_add(nodes, Ordering::Relaxed);
    }

    pub(super) fn count_bytes(&self, bytes: u64) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_SEARCH_BYTES {
            self.cut(SearchCut::Bytes);
        }
    }

    pub(super) fn matches(&self) -> u64 {
        self.found.load(Ordering::Relaxed).min(self.limit)
    }

    pub(super) fn nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn reason(&self) -> Option<SearchCut> {
        let stopped = self.stopped.load(Ordering::Relaxed);
        let all = [SearchCut::Limit, SearchCut::Time, SearchCut::Bytes, SearchCut::Nodes];
        all.into_iter().find(|cut| number(*cut) == stopped)
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_cuts_only_when_there_is_more_and_the_first_reason_stays() {
        let bounds = Bounds::new(Some(2), None);
        assert!(bounds.find() && bounds.find() && !bounds.is_over());
        assert!(!bounds.find());
        bounds.cut(SearchCut::Nodes);
        assert_eq!((bounds.reason(), bounds.matches()), (Some(SearchCut::Limit), 2));
    }

    #[test]
    fn time_bytes_and_nodes_cut_and_an_answer_that_nobody_reads_has_no_reason() {
        let late = Bounds::new(None, Some(0));
        assert!(late.is_over());
        assert_eq!(late.reason(), Some(SearchCut::Time));
        let large = Bounds::new(None, None);
        large.count_bytes(MAX_SEARCH_BYTES);
        assert!(!large.is_over());
        large.count_bytes(1);
        assert_eq!(large.reason(), Some(SearchCut::Bytes));
        let wide = Bounds::new(None, None);
        wide.count_nodes(MAX_SEARCH_NODES + 1);
        assert_eq!(wide.nodes_left(), 0);
        let unread = Bounds::new(None, None);
        unread.unread();
        assert!(unread.is_over() && unread.reason().is_none());
    }
}

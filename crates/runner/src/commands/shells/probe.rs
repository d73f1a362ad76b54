//! Whether a shell that does not answer still evaluates its script, or has come back for its next
//! word without one: a function or option of the user's can take from it what it answers with.
//!
//! A shell reads on only when it is done with all that was said before. So one blank is said to it,
//! and once nothing is left to read, it is done.

use std::os::fd::OwnedFd;

use tokio::time::{Duration, Instant};

use super::process::{say, unread};
use super::words;
use crate::limits::{SHELL_PROBE_FIRST, SHELL_PROBE_LONGEST};

pub(super) struct Probe {
    /// When to look again.
    pub(super) at: Instant,
    pause: Duration,
    is_said: bool,
    has_found: bool,
}

impl Probe {
    pub(super) fn new() -> Self {
        let pause = SHELL_PROBE_FIRST;
        Self { at: Instant::now() + pause, pause, is_said: false, has_found: false }
    }

    pub(super) fn finds_it_waiting(&mut self, control: &OwnedFd) -> bool {
        self.pause = (self.pause * 2).min(SHELL_PROBE_LONGEST);
        self.at = Instant::now() + self.pause;
        if unread(control) > 0 {
            return false;
        }
        if !self.is_said {
            // Where nobody can read it any more, the shell has become something else or dies.
            self.is_said = say(control, words::PROBE).is_ok();
            return false;
        }
        self.has_found = true;
        true
    }

    /// That it waits; it stays so.
    pub(super) fn has_found(&self) -> bool {
        self.has_found
    }
}

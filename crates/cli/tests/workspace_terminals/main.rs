//! Terminals of the workspace, over `/ws/pty` of a real daemon: cut off again and again while the
//! daemon is killed, and many at once beside clients that take nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crowd;
mod cuts;
mod mute;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

//! Terminals of the workspace, over `/ws/pty` of a real daemon: cut off again and again while the
//! daemon is killed, and many at once beside clients that take nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crowd;
mod cuts;
mod mute;

/// Each keeps both cores of a small machine busy, and asserts what others would disturb.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

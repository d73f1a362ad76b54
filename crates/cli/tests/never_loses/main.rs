//! Never loses: whatever is killed, full, locked, removed or older than it should be, nothing that
//! was acknowledged is lost, and nothing is left behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fault_points;
mod foreign;
mod objects;
mod older_runner;
mod removed;
mod small_disk;
mod store;
mod storm;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

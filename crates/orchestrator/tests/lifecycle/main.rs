//! Sandboxes' lives, with real runners: each machine is a runner started as a plain process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clocks;
mod creating;
mod deaths;
mod engines;
mod events;
mod keys;
mod leases;
mod limits;
mod pausing;
mod pool;
mod ports;
mod process_engine;
mod queue;
mod restarts;
mod stopping;
mod storage;
mod ttl_races;
mod workspaces;
mod world;

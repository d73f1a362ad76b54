//! Hostile clients against the real binary on a real socket: every request gets one clear answer
//! or a closed connection, nothing gets out of a sandbox by a name, and nobody else suffers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod archives;
mod crowds;
mod files;
mod json_bodies;
mod log_lines;
mod names;
mod origins;
mod ports;
mod routes;
mod secrets;
mod smuggling;
mod wire;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

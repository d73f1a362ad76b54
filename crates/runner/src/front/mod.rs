//! The JSON-lines front: `runner --client '<json>'` sends one request to a running runner and
//! prints one answer, for callers that reach a sandbox by running a program in it.
//!
//! It is an ordinary user of the channel and can do nothing that the channel cannot.

pub(crate) mod client;
mod exec;
mod read;
mod request;
mod write;

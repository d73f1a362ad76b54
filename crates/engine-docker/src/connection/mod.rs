//! The way to the engine's API: found as the Docker CLI finds it, over a Unix socket, TCP, TLS or
//! ssh, each request on a connection of its own.

mod address;
mod client;
mod dial;
mod error;
mod find;
mod ssh;
mod tls;

pub(crate) use address::{Address, SshTarget};
pub(crate) use client::Client;
pub(crate) use dial::Wire;
pub(crate) use error::{Refusal, SEE_LOG, status_of};
#[cfg(test)]
pub(crate) use find::Found;
pub(crate) use find::{Surroundings, find};

//! The channel over one duplex pipe that may be cut at any byte, and that others may write to.
//!
//! Docker and Kubernetes attach to the streams of PID 1. An attachment may break in the middle of
//! anything, what it left half written stays in the pipe, and a second daemon may attach beside
//! the first. So both sides begin with an *open* that can be told from data at any point:
//!
//! ```text
//! payload      as it is, but C1 (in no UTF-8 text) is written C1 00
//! open         C1 01, and 32 lower-case hex digits that nobody has used before
//! ```
//! The daemon sends an open and drops everything before the runner's answer, which is the same
//! open. The runner ends what it served, however far that got, and begins anew. Whoever had the
//! link before reads somebody else's open, and knows.

mod client;
mod codec;
mod link;
mod outgoing;

pub use client::open;
pub use codec::{Decoder, ESC, Mark, Nonce, OPEN_BYTES, Step, stuff};
pub use link::Link;

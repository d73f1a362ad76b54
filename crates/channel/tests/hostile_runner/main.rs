//! A runner that is no runner: whatever it says or withholds, a caller gets an error in bounded
//! time and memory, and never a lie that its type allows to be seen through.
//!
//! Time is tokio's own and paused, so that the real limits pass at once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answers;
mod fake;
mod handshakes;
mod wire;

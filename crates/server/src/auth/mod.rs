//! Who may call: Host and Origin on every request, then a token with the scope the route needs.
//!
//! The routes' needs are in the route table (`routes.rs`), nowhere else. Nothing a client sends
//! but its token decides what it may do.

mod framing;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod gate;
mod host;
mod origin;
mod revocation;
mod scope;
pub(crate) mod token;
mod token_file;

pub(crate) use gate::{Caller, Gate, pass};
pub(crate) use scope::{Access, Scope};
pub use token_file::{TokenFile, TokenFileError};

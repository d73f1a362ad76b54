//! HTTP: auth, limits, dialects, configuration.
//!
//! A dialect translates one wire protocol to the orchestrator's and the runner's operations and
//! back; it holds no state and no policy. Everything that is the same for all dialects (who may
//! call, how much, how errors look) is outside of them.

mod app;
mod auth;
#[cfg(test)]
mod committed;
pub mod config;
mod connection;
mod data_dir_health;
mod dialects;
mod error;
mod extract;
mod fields;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod images;
mod limits;
mod lingering;
mod ndjson;
mod openapi;
mod rate;
mod readiness;
mod records;
mod reply;
mod request;
mod routes;
mod serve;
mod shutdown;
mod streams;
mod terminal;
mod unix_time;
mod verb_path;

pub use app::App;
pub use auth::{TokenFile, TokenFileError};
pub use serve::serve;
pub use shutdown::Shutdown;

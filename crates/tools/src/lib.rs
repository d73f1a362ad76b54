//! The tools that a model is given: a shell, files and URLs of one sandbox.
//!
//! A [`Provider`] makes [`Sandbox`]es, a [`Toolbox`] is what one conversation may use of one, and
//! whoever serves it (HTTP, MCP, a chat) sees only [`Tool`]s, calls and [`Update`]s. [`Tools`] is all
//! of it together, with the gates that say whether a caller has any.

pub mod approval;
pub mod config;
mod counted;
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod gates;
mod health;
mod limits;
mod output;
mod prelude;
mod provider;
pub mod providers;
mod random;
mod sandbox;
pub mod seed;
mod service;
mod sessions;
mod toolbox;
mod tools;

pub use config::{Access, Config, Network, ProviderKind};
pub use counted::Counted;
pub use error::ToolError;
pub use gates::{Caller, Closed};
pub use limits::MIN_ADMIN_TOKEN_CHARS;
pub use output::{ABORTED, RUNNING, TIMED_OUT};
pub use provider::{Opened, Provider};
pub use random::random_id;
pub use sandbox::{Command, Ending, Found, FoundLine, Listed, Listing, Piece, Sandbox, Search};
pub use service::Tools;
pub use toolbox::{Tool, Toolbox, Update, Updates};
pub use tools::Surface;

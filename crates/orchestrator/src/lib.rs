//! Every sandbox's life: identity, state, leases, ports.
//!
//! One task per sandbox owns its state (`driver`) and asks a pure function what to do
//! (`lifecycle`); what follows from a decision is done beside it (`effects`). This crate knows no
//! HTTP and no particular engine, and never looks into what a sandbox's commands do.

mod acquire;
mod attached;
mod by_key;
mod cause;
mod clock;
mod collect;
pub mod containment;
mod context;
mod create;
mod driver;
mod effects;
mod error;
mod events;
mod followed;
mod images;
mod info;
mod key;
mod lifecycle;
mod limits;
mod link;
mod orchestrator;
mod pool;
mod ports;
mod post_mortem;
mod provider;
mod reconcile;
mod registry;
mod request;
mod retry;
mod room;
mod sandbox;
mod scripts;
mod settings;
mod shutdown;
mod spans;
mod status;
mod stop;
mod sweep;
mod turns;
mod workspaces;

pub use attached::Attached;
pub use cause::Cause;
pub use clock::{Clock, SystemClock};
pub use error::OrchestratorError;
pub use followed::{FollowError, FollowedCommand, Said};
pub use images::Images;
pub use info::{Published, SandboxInfo, SandboxState, SandboxStats};
pub use key::{InvalidKey, SandboxKey};
pub use limits::MAX_POOL;
pub use orchestrator::Orchestrator;
pub use pool::{PoolEntry, PoolStatus, Recipe};
pub use post_mortem::PostMortem;
pub use provider::Engines;
pub use request::{AcquireSource, CreateRequest, Created};
pub use retry::Retry;
pub use sandbank_store::Event;
pub use settings::Settings;
pub use status::Status;
pub use workspaces::KeptWorkspaces;

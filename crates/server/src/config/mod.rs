//! Configuration: one table (`table.rs`) drives the TOML file, the environment, the flags,
//! `--help` and `docs/configuration.md`.
//!
//! Nothing else in the daemon reads the environment, but for Docker's own names, which the Docker
//! engine follows as the Docker CLI does, and OpenTelemetry's finer ones, which its library does. Values are checked here, once; what comes
//! out is typed.

mod app;
mod chat;
mod checks;
mod docs;
mod engines;
mod error;
mod explain;
mod file;
mod flags;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod nearest;
mod pool;
mod resolve;
mod sandkasten;
mod secret;
mod setting;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod tools;
mod workspace;

pub use app::{ExplainedApp, explain_app};
pub use docs::markdown;
pub use engines::EngineKind;
pub use error::{ConfigError, Origin};
pub use explain::{Explained, example, explain, file_path};
pub use flags::ConfigFlags;
pub use pool::ReadyMachines;
pub use resolve::Sources;
pub use secret::Secret;
pub use setting::{Check, Kind, Preset, Setting, Value};
pub use settings::{
    AuthSettings, DiskQuota, DockerSettings, ImageSettings, LogFormat, LogSettings,
    NetworkSettings, PortSettings, SandboxSettings, ServerSettings, SessionSettings, Settings,
    StorageKind, StorageSettings, TraceEndpoint, TraceSettings, load,
};
pub use table::{WITHOUT_EFFECT, rows};
pub use workspace::{WorkspaceMode, WorkspaceSettings};

//! What a new workspace is filled with before its tools are used.

mod configured;
mod error;
pub mod git;
mod limits;
pub mod upload;

use async_trait::async_trait;

pub use configured::configured;
pub use error::SeedError;

use crate::{Sandbox, ToolError};

#[async_trait]
pub trait Seed: Send + Sync {
    /// Called once, of a sandbox that is new: nothing else has run in it. A failure means that there
    /// are no tools; its words are the reason.
    async fn fill(&self, sandbox: &dyn Sandbox, progress: Progress<'_>) -> Result<(), ToolError>;
}

/// Told while a workspace is filled; one line for people.
pub type Progress<'p> = &'p (dyn Fn(&str) + Send + Sync);

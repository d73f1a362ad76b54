//! Who makes the sandboxes of the tools.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Sandbox, ToolError};

#[async_trait]
pub trait Provider: Send + Sync {
    /// The configuration's word for it.
    fn name(&self) -> &'static str;

    /// Whether sandboxes can be had just now, or why not.
    async fn health(&self) -> Result<(), String>;

    /// The sandbox of a session, made if there is none.
    async fn open(&self, session: &str) -> Result<Opened, ToolError>;

    /// Sessions that have one already, as after a restart of the daemon.
    async fn sessions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ends the sandbox of a session that nobody has opened here. None is no error.
    async fn close(&self, _session: &str) -> Result<(), ToolError> {
        Ok(())
    }
}

pub struct Opened {
    pub sandbox: Arc<dyn Sandbox>,
    /// Nobody had it before: its workspace is to be filled.
    pub created: bool,
}

//! Kept workspaces: list, remove.

use serde::Deserialize;
use serde_json::Value;

use super::{Client, ClientError, segment};
use crate::limits::LIFECYCLE_TIMEOUT;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Workspace {
    pub(crate) id: String,
    pub(crate) bytes: u64,
    pub(crate) quota_bytes: Option<u64>,
    pub(crate) in_use_by: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct Workspaces {
    pub(crate) workspaces: Vec<Value>,
    /// Engines that do not answer, and may have more.
    #[serde(default)]
    pub(crate) unavailable: Vec<String>,
}

impl Client {
    pub(crate) async fn workspaces(&self) -> Result<Workspaces, ClientError> {
        self.json(self.get("/v1/workspaces")).await
    }

    /// With all that is in it.
    pub(crate) async fn remove_workspace(&self, id: &str) -> Result<(), ClientError> {
        let request = self.delete(&format!("/v1/workspaces/{}", segment(id)));
        self.send(request.timeout(LIFECYCLE_TIMEOUT)).await.map(drop)
    }
}

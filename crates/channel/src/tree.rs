//! Requests about whole trees, and changes that expect a version.

use http::Method;
use sandbank_protocol::{ChmodRequest, CopyRequest, FileStat, TreeRecord};

use crate::client::{RunnerClient, encode, json};
use crate::{ChannelBody, ChannelError, RecordStream, empty_body, full_body};

/// What a walk tells, and how far it goes; the runner has limits of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeOptions {
    pub depth: u64,
    pub nodes: u64,
    pub time_ms: u64,
    /// Sizes, modes, times and targets.
    pub stat: bool,
    /// Names that begin with a dot.
    pub hidden: bool,
    pub sort: bool,
}

/// What must be there for a change: versions as the runner told them with commas between them,
/// `any` or `none`.
pub type Condition<'a> = Option<&'a str>;

impl RunnerClient {
    pub async fn tree(
        &self,
        path: &str,
        options: TreeOptions,
    ) -> Result<RecordStream<TreeRecord>, ChannelError> {
        let TreeOptions { depth, nodes, time_ms, stat, hidden, sort } = options;
        let path = encode(path);
        let target = format!(
            "/files/tree?path={path}&depth={depth}&nodes={nodes}&time_ms={time_ms}&stat={stat}\
             &hidden={hidden}&sort={sort}"
        );
        self.records(Method::GET, &target, empty_body()).await
    }

    /// However long it takes.
    pub async fn copy(&self, request: &CopyRequest) -> Result<FileStat, ChannelError> {
        let body = serde_json::to_vec(request).expect("protocol types are plain data");
        json(self.call(Method::POST, "/files/copy", full_body(body)).await?).await
    }

    /// However long it takes.
    pub async fn chmod(&self, request: &ChmodRequest) -> Result<FileStat, ChannelError> {
        let body = serde_json::to_vec(request).expect("protocol types are plain data");
        json(self.call(Method::POST, "/files/chmod", full_body(body)).await?).await
    }

    /// [`Self::write_file`] in the place of what is expected there.
    pub async fn write_file_if(
        &self,
        path: &str,
        mode: Option<u32>,
        condition: Condition<'_>,
        body: ChannelBody,
    ) -> Result<FileStat, ChannelError> {
        let mode = mode.map(|mode| format!("&mode={mode}")).unwrap_or_default();
        let target = format!("/files?path={}{mode}{}", encode(path), parameter(condition));
        json(self.call(Method::PUT, &target, body).await?).await
    }

    /// [`Self::write_file_at`] into the version that is expected.
    pub async fn write_file_at_if(
        &self,
        path: &str,
        offset: u64,
        condition: Condition<'_>,
        body: ChannelBody,
    ) -> Result<FileStat, ChannelError> {
        let condition = parameter(condition);
        let target = format!("/files?path={}&offset={offset}{condition}", encode(path));
        json(self.call(Method::PUT, &target, body).await?).await
    }

    /// [`Self::remove`] of what is expected there.
    pub async fn remove_if(
        &self,
        path: &str,
        recursive: bool,
        condition: Condition<'_>,
    ) -> Result<(), ChannelError> {
        let condition = parameter(condition);
        let target = format!("/files?path={}&recursive={recursive}{condition}", encode(path));
        self.call(Method::DELETE, &target, empty_body()).await.map(drop)
    }
}

fn parameter(condition: Condition<'_>) -> String {
    condition.map(|condition| format!("&if_tag={}", encode(condition))).unwrap_or_default()
}

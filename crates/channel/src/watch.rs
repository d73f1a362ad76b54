//! Following what happens to files.

use std::fmt::Write;

use http::Method;
use sandbank_protocol::{WatchEvent, percent_encoded};

use crate::client::encode;
use crate::{ChannelError, RecordStream, RunnerClient, empty_body};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchQuery {
    pub path: String,
    pub recursive: bool,
    /// From the change after this one on; from now on where it is absent.
    pub after: Option<u64>,
    /// Names of directories with commas between them; the runner's choice where it is absent.
    pub exclude: Option<String>,
}

impl RunnerClient {
    /// Comes when everything is watched.
    pub async fn watch(
        &self,
        query: &WatchQuery,
    ) -> Result<RecordStream<WatchEvent>, ChannelError> {
        let WatchQuery { path, recursive, after, exclude } = query;
        let mut target = format!("/files/watch?path={}&recursive={recursive}", encode(path));
        if let Some(after) = after {
            let _ = write!(target, "&after={after}");
        }
        if let Some(exclude) = exclude {
            let _ = write!(target, "&exclude={}", percent_encoded(exclude, b"/,"));
        }
        self.records(Method::GET, &target, empty_body()).await
    }
}

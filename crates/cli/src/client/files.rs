//! Files of a sandbox: raw bytes both ways, descriptions, listings, directories.

use bytes::Bytes;
use futures_util::Stream;
use reqwest::{Method, Response};
use serde::Deserialize;
use serde_json::json;

use super::{Client, ClientError, segment};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stat {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
}

/// One entry of a directory. The name comes from the sandbox: judge it before using it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) name_hex: Option<String>,
    #[serde(flatten)]
    pub(crate) stat: Stat,
    #[serde(default)]
    pub(crate) target: Option<String>,
}

#[derive(Deserialize)]
struct Listing {
    entries: Vec<Entry>,
    #[serde(default)]
    truncated: bool,
}

impl Client {
    /// None when nothing is there.
    pub(crate) async fn stat_file(
        &self,
        sandbox: &str,
        path: &str,
    ) -> Result<Option<Stat>, ClientError> {
        let request = self.get(&route(sandbox, ":stat")).query(&[("path", path)]);
        match self.json(request).await {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn list_files(
        &self,
        sandbox: &str,
        path: &str,
    ) -> Result<Vec<Entry>, ClientError> {
        let request = self.get(&route(sandbox, ":list")).query(&[("path", path)]);
        let listing: Listing = self.json(request).await?;
        if listing.truncated {
            return Err(self.nonsense(format!("{path} has more entries than can be listed")));
        }
        Ok(listing.entries)
    }

    pub(crate) async fn make_dir(&self, sandbox: &str, path: &str) -> Result<(), ClientError> {
        let body = json!({ "path": path, "parents": true });
        self.send(self.post(&route(sandbox, ":mkdir")).json(&body)).await.map(drop)
    }

    /// Replaces the whole file.
    pub(crate) async fn write_file<S>(
        &self,
        sandbox: &str,
        path: &str,
        mode: u32,
        content: S,
    ) -> Result<(), ClientError>
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        let mode = format!("{:04o}", mode & 0o777);
        let request = self
            .request(Method::PUT, &route(sandbox, ""))
            .query(&[("path", path), ("mode", &mode)])
            .body(reqwest::Body::wrap_stream(content));
        self.send(request).await.map(drop)
    }

    /// The file's bytes, still to be read.
    pub(crate) async fn read_file(
        &self,
        sandbox: &str,
        path: &str,
    ) -> Result<Response, ClientError> {
        let request = self.request(Method::GET, &route(sandbox, "")).query(&[("path", path)]);
        self.send(request).await
    }

    /// The next chunk of a response's body; none at its end.
    pub(crate) async fn chunk(
        &self,
        response: &mut Response,
    ) -> Result<Option<Bytes>, ClientError> {
        response.chunk().await.map_err(|error| self.trouble(&error))
    }
}

fn route(sandbox: &str, verb: &str) -> String {
    format!("/v1/sandboxes/{}/files{verb}", segment(sandbox))
}

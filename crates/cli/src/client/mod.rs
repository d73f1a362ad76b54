//! A small typed client of the server's HTTP API: the only way this program reaches sandboxes.
//!
//! One module per resource. Answers are bounded by type or streamed; nothing is retried here
//! except by [`follow`] and the stdin pump, which resume by offset.

mod commands;
mod error;
mod files;
mod follow;
mod images;
mod mcp;
mod ndjson;
mod sandboxes;
mod search;
mod workspaces;

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use sandbank_protocol::percent_encoded;
use serde::de::DeserializeOwned;

pub(crate) use commands::{CommandRequest, CommandStatus, PtySize, ShellScript};
pub(crate) use error::{ClientError, Refusal, TOKEN_IS_MISSING};
pub(crate) use files::{Kind, Stat};
pub(crate) use follow::{Follow, OutputStream, Record};
pub(crate) use images::{Cleared, Image, ImportStep, Listing};
pub(crate) use mcp::Told;
pub(crate) use sandbank_server::config::Secret;
pub(crate) use sandboxes::{Network, Resources, Sandbox, SandboxRequest, description};
pub(crate) use workspaces::{Workspace, Workspaces};

use crate::limits::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, POOL_IDLE_TIMEOUT};
use error::chain;

#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// Without a slash at the end.
    base: String,
    token: Option<Secret>,
}

impl Client {
    pub(crate) fn new(url: &str, token: Option<Secret>) -> Result<Self, ClientError> {
        let parsed: reqwest::Url =
            url.parse().map_err(|_| ClientError::BadUrl(format!("{url:?}")))?;
        if parsed.scheme() != "http" {
            return Err(ClientError::BadUrl(format!("{url:?}, which is not plain http,")));
        }
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .tcp_nodelay(true);
        if is_loopback(&parsed) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| ClientError::BadUrl(chain(&error)))?;
        Ok(Self { http, base: url.trim_end_matches('/').to_owned(), token })
    }

    pub(crate) fn url(&self) -> &str {
        &self.base
    }

    pub(crate) async fn health(&self, limit: Duration) -> Result<serde_json::Value, ClientError> {
        let request = self.http.get(format!("{}/v1/health", self.base)).timeout(limit);
        self.json(request).await
    }

    /// Whether there is a server, be it well or not.
    pub(crate) async fn is_there(&self, limit: Duration) -> bool {
        matches!(self.health(limit).await, Ok(_) | Err(ClientError::Refused(_)))
    }

    /// Path segments in `path` are already encoded.
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token.expose()),
            None => request,
        }
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path).timeout(ANSWER_TIMEOUT)
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path).timeout(ANSWER_TIMEOUT)
    }

    fn delete(&self, path: &str) -> RequestBuilder {
        self.request(Method::DELETE, path).timeout(ANSWER_TIMEOUT)
    }

    /// A successful response whose body is still to be read.
    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request.send().await.map_err(|error| self.trouble(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let token_sent = self.token.is_some();
        Err(ClientError::Refused(Box::new(Refusal { token_sent, ..refusal(response).await })))
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let response = self.send(request).await?;
        let body = response.bytes().await.map_err(|error| self.trouble(&error))?;
        serde_json::from_slice(&body).map_err(|error| self.nonsense(error.to_string()))
    }

    fn trouble(&self, error: &reqwest::Error) -> ClientError {
        let (url, reason) = (self.base.clone(), chain(error));
        if error.is_connect() {
            ClientError::Unreachable { url, reason }
        } else if error.is_timeout() {
            ClientError::Broken { url, reason: "no answer in time".to_owned() }
        } else {
            ClientError::Broken { url, reason }
        }
    }

    fn nonsense(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Nonsense { url: self.base.clone(), reason: reason.into() }
    }
}

async fn refusal(response: Response) -> Refusal {
    let status = response.status();
    let retry_after = response.headers().get("retry-after");
    let retry_after =
        retry_after.and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
    let body = response.bytes().await.unwrap_or_default();
    let mut refusal = Refusal::read(&body);
    refusal.status = status.as_u16();
    refusal.retry_after = retry_after;
    if refusal.error.is_empty() {
        refusal.error = format!("the server answered {status}");
    }
    refusal
}

pub(crate) fn is_loopback(url: &reqwest::Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

/// One segment of a path.
fn segment(text: &str) -> String {
    percent_encoded(text, b"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_addresses_are_servers() {
        assert!(Client::new("http://127.0.0.1:8080/", None).is_ok());
        for bad in ["", "localhost:8080", "https://example.com", "ftp://x"] {
            assert!(Client::new(bad, None).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn loopback_is_told_by_the_address() {
        let loopback = |url: &str| is_loopback(&url.parse().unwrap());
        assert!(loopback("http://127.0.0.1:1") && loopback("http://[::1]:1"));
        assert!(loopback("http://localhost") && !loopback("http://localhost.evil.example"));
    }

    #[test]
    fn path_segments_cannot_escape_their_place() {
        assert_eq!(segment("a/../b?c"), "a%2F..%2Fb%3Fc");
    }
}

//! Searches of a sandbox's workspace, as lines while they are found.

use reqwest::{Method, Response};
use sandbank_protocol::{NameRecord, TextRecord, TextSearch};
use serde::de::DeserializeOwned;

use super::ndjson::Lines;
use super::{Client, ClientError, segment};

/// An answer whose last record is its end.
pub(crate) struct Found(Lines);

impl Found {
    /// The next record; none after the end.
    async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ClientError> {
        self.0.next().await
    }

    pub(crate) async fn line(&mut self) -> Result<Option<TextRecord<'static>>, ClientError> {
        self.next().await
    }

    pub(crate) async fn name(&mut self) -> Result<Option<NameRecord<'static>>, ClientError> {
        self.next().await
    }
}

impl Client {
    pub(crate) async fn search_text(
        &self,
        sandbox: &str,
        search: &TextSearch,
    ) -> Result<Found, ClientError> {
        let path = format!("/v1/sandboxes/{}/search:text", segment(sandbox));
        let response = self.send(self.request(Method::POST, &path).json(search)).await?;
        Ok(self.found(response))
    }

    pub(crate) async fn search_names(
        &self,
        sandbox: &str,
        query: &[(&str, &str)],
    ) -> Result<Found, ClientError> {
        let path = format!("/v1/sandboxes/{}/search:names", segment(sandbox));
        let response = self.send(self.request(Method::GET, &path).query(query)).await?;
        Ok(self.found(response))
    }

    fn found(&self, response: Response) -> Found {
        Found(Lines::new(self.clone(), response))
    }
}

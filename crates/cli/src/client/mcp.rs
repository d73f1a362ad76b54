//! MCP's endpoint: messages as they are, and the session that they belong to.

use bytes::Bytes;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::ndjson::Lines;
use super::{Client, ClientError, segment};
use crate::limits::ANSWER_TIMEOUT;

/// What was answered to one message.
pub(crate) enum Told {
    Nothing,
    One(Value),
    /// Several, the last of which is the answer.
    Many(Events),
}

/// A session that the server has forgotten is a reason to begin again.
const FORGOTTEN: &str = "session_not_found";

impl ClientError {
    pub(crate) fn is_forgotten_session(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code.as_deref() == Some(FORGOTTEN))
    }
}

impl Client {
    /// `session` is none for the first message only; the answer to that has the id of one.
    pub(crate) async fn mcp_send(
        &self,
        message: Bytes,
        session: Option<&str>,
        sandbox: &str,
        keep: bool,
    ) -> Result<(Told, Option<String>), ClientError> {
        let path = format!("/mcp?session={}&keep={keep}", segment(sandbox));
        let mut request = self
            .request(Method::POST, &path)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(message);
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let response = request.send().await.map_err(|error| self.trouble(&error))?;
        let header = |name: &str| {
            let value = response.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let (kind, session) = (header("content-type"), header("mcp-session-id"));
        let session = (!session.is_empty()).then_some(session);
        let told = match response.status() {
            StatusCode::ACCEPTED => Told::Nothing,
            StatusCode::OK if kind.starts_with("text/event-stream") => {
                Told::Many(Events(Lines::new(self.clone(), response)))
            }
            status => {
                let token_sent = self.token.is_some();
                let body = response.bytes().await.map_err(|error| self.trouble(&error))?;
                match serde_json::from_slice::<Value>(&body) {
                    // Refusals of a message are messages, too, whatever their status.
                    Ok(message) if message.get("jsonrpc").is_some() || message.is_array() => {
                        Told::One(message)
                    }
                    _ if status.is_success() => return Err(self.nonsense("no message")),
                    _ => {
                        let mut refusal = super::Refusal::read(&body);
                        refusal.status = status.as_u16();
                        refusal.token_sent = token_sent;
                        if refusal.error.is_empty() {
                            refusal.error = format!("the server answered {status}");
                        }
                        return Err(ClientError::Refused(Box::new(refusal)));
                    }
                }
            }
        };
        Ok((told, session))
    }

    pub(crate) async fn mcp_end(&self, session: &str) -> Result<(), ClientError> {
        let request = self.delete("/mcp").header("mcp-session-id", session);
        self.send(request.timeout(ANSWER_TIMEOUT)).await.map(drop)
    }
}

/// Messages of one answer as they come.
pub(crate) struct Events(Lines);

impl Events {
    /// None at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        while let Some(line) = self.0.line().await? {
            if let Some(data) = line.strip_prefix(b"data:") {
                return self.0.read(data).map(Some);
            }
        }
        Ok(None)
    }
}

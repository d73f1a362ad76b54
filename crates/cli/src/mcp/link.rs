//! The session with the server, which outlives a restart of it.

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::client::{Client, ClientError, Told};
use crate::limits::{MCP_PATIENCE, RECONNECT_FIRST_PAUSE, RECONNECT_LAST_PAUSE};

pub(crate) struct Link {
    client: Client,
    /// Of the sandbox.
    name: String,
    /// Whether the sandbox outlives us.
    keep: bool,
    session: Mutex<Session>,
}

#[derive(Default)]
struct Session {
    id: Option<String>,
    /// What the host began with, for another beginning.
    beginning: Option<Value>,
}

impl Link {
    pub(crate) fn new(client: Client, name: String, keep: bool) -> Self {
        Self { client, name, keep, session: Mutex::default() }
    }

    pub(crate) async fn send(&self, message: &Value, line: Bytes) -> Result<Told, ClientError> {
        let mut session = self.session.lock().await;
        if message["method"] == "initialize" {
            session.beginning = Some(message.clone());
            session.id = None;
        }
        match self.patiently(&line, session.id.as_deref()).await {
            Ok((told, id)) => {
                session.id = id.or(session.id.take());
                Ok(told)
            }
            Err(error) if error.is_forgotten_session() && session.beginning.is_some() => {
                self.begin_again(&mut session).await?;
                Ok(self.patiently(&line, session.id.as_deref()).await?.0)
            }
            Err(error) => Err(error),
        }
    }

    async fn begin_again(&self, session: &mut Session) -> Result<(), ClientError> {
        let mut beginning = session.beginning.clone().unwrap_or_default();
        beginning["id"] = json!("again");
        let (_, id) = self.patiently(&Bytes::from(beginning.to_string()), None).await?;
        session.id = id;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.patiently(&Bytes::from(ready.to_string()), session.id.as_deref()).await?;
        eprintln!("sandbank mcp: the server had forgotten the session; it was begun again");
        Ok(())
    }

    /// A server that cannot be reached has not heard the message, so it is sent again.
    async fn patiently(
        &self,
        line: &Bytes,
        session: Option<&str>,
    ) -> Result<(Told, Option<String>), ClientError> {
        let deadline = Instant::now() + MCP_PATIENCE;
        let mut pause = RECONNECT_FIRST_PAUSE;
        loop {
            match self.client.mcp_send(line.clone(), session, &self.name, self.keep).await {
                Err(ClientError::Unreachable { .. }) if Instant::now() + pause < deadline => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RECONNECT_LAST_PAUSE);
                }
                result => return result,
            }
        }
    }

    /// Nobody waits for the answer.
    pub(crate) async fn end(&self) {
        let id = self.session.lock().await.id.take();
        if let Some(id) = id
            && let Err(error) = self.client.mcp_end(&id).await
            && !error.is_forgotten_session()
        {
            eprintln!("sandbank mcp: the session was not ended: {error}");
        }
    }
}

//! A command's output as records, resumed by number when the connection or the server goes away.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use sandbank_protocol::Ending;
use serde::Deserialize;
use tokio::time::Instant;

use super::commands::command_path;
use super::ndjson::Lines;
use super::{Client, ClientError};
use crate::limits::{RECONNECT_FIRST_PAUSE, RECONNECT_LAST_PAUSE, RECONNECT_LIMIT};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    Output {
        seq: u64,
        time_ms: u64,
        stream: OutputStream,
        data: Bytes,
    },
    /// Output that was no longer kept when we came for it.
    Dropped {
        bytes: u64,
    },
    Ended {
        ending: Ending,
    },
    /// The connection broke; the next record comes from a new one.
    Lost {
        reason: String,
    },
    Resumed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
    Pty,
}

impl OutputStream {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Pty => "pty",
        }
    }
}

/// One line of the log stream, whatever its type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stream: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    time_ms: u64,
    #[serde(default)]
    data: String,
    #[serde(default)]
    bytes: u64,
    ending: Option<Ending>,
}

pub(crate) struct Follow {
    client: Client,
    sandbox: String,
    command: String,
    /// The number of the last record that was handed out.
    after: u64,
    follow: bool,
    lines: Option<Lines>,
    /// Set while the connection is lost.
    lost: Option<Lost>,
    over: bool,
}

struct Lost {
    since: Instant,
    pause: Duration,
}

impl Follow {
    pub(crate) fn new(
        client: &Client,
        sandbox: &str,
        command: &str,
        after: u64,
        follow: bool,
    ) -> Self {
        Self {
            client: client.clone(),
            sandbox: sandbox.to_owned(),
            command: command.to_owned(),
            after,
            follow,
            lines: None,
            lost: None,
            over: false,
        }
    }

    /// The next record; none when the command's output is complete.
    pub(crate) async fn next(&mut self) -> Result<Option<Record>, ClientError> {
        while !self.over {
            let step = match self.lines.as_mut() {
                None => self.open().await,
                Some(lines) => match lines.next().await {
                    Ok(Some(line)) => match self.accept(line)? {
                        Some(record) => return Ok(Some(record)),
                        None => continue,
                    },
                    Ok(None) if !self.follow => return Ok(None),
                    Ok(None) => Err(self.broken("the server ended the stream early")),
                    Err(error) => Err(error),
                },
            };
            match step {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {}
                Err(error) => {
                    if let Some(record) = self.lose(error).await? {
                        return Ok(Some(record));
                    }
                }
            }
        }
        Ok(None)
    }

    async fn open(&mut self) -> Result<Option<Record>, ClientError> {
        let query = format!("/logs?after={}&follow={}&encoding=base64", self.after, self.follow);
        let path = command_path(&self.sandbox, &self.command, &query);
        let response = self.client.send(self.client.request(reqwest::Method::GET, &path)).await?;
        self.lines = Some(Lines::new(self.client.clone(), response));
        Ok(self.lost.take().map(|_| Record::Resumed))
    }

    /// Remembers how far we are; control records without news give none.
    fn accept(&mut self, line: Line) -> Result<Option<Record>, ClientError> {
        let stream = match line.stream.as_str() {
            "stdout" => OutputStream::Stdout,
            "stderr" => OutputStream::Stderr,
            "pty" => OutputStream::Pty,
            "control" => return Ok(self.accept_control(line)),
            _ => return Ok(None),
        };
        self.after = self.after.max(line.seq);
        let data = BASE64
            .decode(&line.data)
            .map_err(|error| self.client.nonsense(format!("output that is not base64: {error}")))?;
        Ok(Some(Record::Output { seq: line.seq, time_ms: line.time_ms, stream, data: data.into() }))
    }

    fn accept_control(&mut self, line: Line) -> Option<Record> {
        match (line.kind.as_str(), line.ending) {
            ("dropped", _) => {
                self.after = self.after.max(line.seq);
                Some(Record::Dropped { bytes: line.bytes })
            }
            ("ending", Some(ending)) => {
                self.over = true;
                Some(Record::Ended { ending })
            }
            _ => None,
        }
    }

    /// Waits before the next try, or gives up with the error.
    async fn lose(&mut self, error: ClientError) -> Result<Option<Record>, ClientError> {
        self.lines = None;
        if !error.may_pass() || !self.follow {
            return Err(error);
        }
        match &mut self.lost {
            None => {
                self.lost = Some(Lost { since: Instant::now(), pause: RECONNECT_FIRST_PAUSE });
                Ok(Some(Record::Lost { reason: error.to_string() }))
            }
            Some(lost) if lost.since.elapsed() < RECONNECT_LIMIT => {
                tokio::time::sleep(lost.pause).await;
                lost.pause = (lost.pause * 2).min(RECONNECT_LAST_PAUSE);
                Ok(None)
            }
            Some(_) => Err(error),
        }
    }

    fn broken(&self, reason: &str) -> ClientError {
        ClientError::Broken { url: self.client.url().to_owned(), reason: reason.to_owned() }
    }
}

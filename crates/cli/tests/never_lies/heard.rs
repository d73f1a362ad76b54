//! What one reader of a log stream was told, checked while it listens.

use std::time::Duration;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sandbank_test_support::LogRecord;
use serde_json::Value;

/// No record is ever larger: a reader needs to hold one in memory.
const LONGEST_RECORD: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) pty: Vec<u8>,
    pub(crate) dropped_bytes: u64,
    pub(crate) last_seq: u64,
    pub(crate) ending: Option<Value>,
    pub(crate) exit_code: Option<i64>,
    /// Counted instead of kept when there is too much of it.
    pub(crate) output_bytes: u64,
    forgetful: bool,
}

impl Heard {
    /// Counts output without keeping it.
    pub(crate) fn counting() -> Self {
        Self { forgetful: true, ..Self::default() }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    pub(crate) fn kind(&self) -> &str {
        self.ending.as_ref().and_then(|ending| ending["kind"].as_str()).unwrap_or("none")
    }

    /// Reads to the end of the stream.
    pub(crate) async fn all(self, stream: reqwest::Response) -> anyhow::Result<Self> {
        self.paced(stream, Duration::ZERO).await
    }

    /// The same with a pause after every chunk.
    pub(crate) async fn paced(
        mut self,
        stream: reqwest::Response,
        pause: Duration,
    ) -> anyhow::Result<Self> {
        self.listen(stream, pause).await?;
        Ok(self)
    }

    /// Keeps what was heard also when the stream breaks off.
    pub(crate) async fn listen(
        &mut self,
        mut stream: reqwest::Response,
        pause: Duration,
    ) -> anyhow::Result<()> {
        let mut partial = Vec::new();
        while let Some(chunk) = stream.chunk().await? {
            partial.extend_from_slice(&chunk);
            let consumed = self.take_lines(&partial)?;
            partial.drain(..consumed);
            anyhow::ensure!(partial.len() <= LONGEST_RECORD, "a record without an end");
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        anyhow::ensure!(partial.is_empty(), "the stream ends inside a record");
        Ok(())
    }

    fn take_lines(&mut self, bytes: &[u8]) -> anyhow::Result<usize> {
        let mut rest = bytes;
        let mut line = Vec::new();
        loop {
            line.clear();
            // The standard library's search is quick even in a debug build.
            std::io::BufRead::read_until(&mut rest, b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                return Ok(bytes.len() - line.len());
            }
            let record = serde_json::from_slice(&line);
            let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
            self.take(record.with_context(|| format!("not a record: {shown}"))?)?;
        }
    }

    fn take(&mut self, record: LogRecord) -> anyhow::Result<()> {
        anyhow::ensure!(self.ending.is_none(), "something after the ending: {record:?}");
        let field = |name: &str| record.rest.get(name).cloned().unwrap_or_default();
        match (record.stream.as_str(), field("type").as_str()) {
            ("control", Some("heartbeat")) => return Ok(()),
            ("control", Some("ending")) => {
                self.ending = Some(field("ending"));
                self.exit_code = field("exitCode").as_i64();
                return Ok(());
            }
            ("control", Some("dropped")) => {
                let frames = field("frames").as_u64().context("frames")?;
                anyhow::ensure!(record.seq == self.last_seq + frames, "a wrong count: {record:?}");
                self.dropped_bytes += field("bytes").as_u64().context("bytes")?;
            }
            (stream, None) => {
                anyhow::ensure!(record.seq == self.last_seq + 1, "out of order: {record:?}");
                let data = match field("encoding").as_str() {
                    Some(_) => BASE64.decode(&record.data)?,
                    None => record.data.into_bytes(),
                };
                self.output_bytes += data.len() as u64;
                if !self.forgetful {
                    self.stream(stream)?.extend_from_slice(&data);
                }
            }
            other => anyhow::bail!("an unknown record {other:?}"),
        }
        self.last_seq = record.seq;
        Ok(())
    }

    fn stream(&mut self, name: &str) -> anyhow::Result<&mut Vec<u8>> {
        match name {
            "stdout" => Ok(&mut self.stdout),
            "stderr" => Ok(&mut self.stderr),
            "pty" => Ok(&mut self.pty),
            other => anyhow::bail!("an unknown stream {other}"),
        }
    }
}

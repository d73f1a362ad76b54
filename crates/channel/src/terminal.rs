//! A command's terminal: what it shows, what follows, and what several people type.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use sandbank_protocol::{CommandId, PtySize, Screen, StdinStatus};

use crate::client::{json, timed};
use crate::limits::ANSWER_TIMEOUT;
use crate::{ChannelError, OutputStream, RunnerClient, empty_body, full_body};

/// A screen that was checked to be one.
#[derive(Debug, Clone)]
pub struct TerminalScreen {
    pub screen: Screen,
    pub repaint: Bytes,
}

impl RunnerClient {
    /// Frames numbered above `after` until the ending, for somebody whom the command never waits
    /// for: what is not taken in time is told as dropped.
    pub async fn look_on(&self, id: &CommandId, after: u64) -> Result<OutputStream, ChannelError> {
        let path = format!("/commands/{id}/output?after={after}&follow=true&hold=false");
        let response = timed(ANSWER_TIMEOUT, self.call(Method::GET, &path, empty_body())).await??;
        Ok(OutputStream::new(response.into_body()))
    }

    /// Input of one of several writers, from `offset` of what that one writes. Bytes of it that
    /// were accepted before are skipped by the runner.
    pub async fn input(
        &self,
        id: &CommandId,
        writer: &CommandId,
        offset: u64,
        bytes: Bytes,
    ) -> Result<StdinStatus, ChannelError> {
        let path = format!("/commands/{id}/input?writer={writer}&offset={offset}");
        json(self.call(Method::POST, &path, full_body(bytes)).await?).await
    }

    /// The screen of a command that was started with one.
    pub async fn screen(&self, id: &CommandId) -> Result<TerminalScreen, ChannelError> {
        let screen: Screen = self.answer(self.get(&format!("/commands/{id}/screen"))).await?;
        let size = PtySize { rows: screen.rows, cols: screen.cols };
        if size.clamped() != size {
            return Err(ChannelError::violation("a screen is larger than any may be"));
        }
        let repaint = STANDARD.decode(&screen.repaint).map_err(|error| {
            ChannelError::violation(&format!("a screen is not base64: {error}"))
        })?;
        Ok(TerminalScreen { screen, repaint: repaint.into() })
    }
}

//! What a command's terminal shows.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sandbank_protocol::{CommandId, PtySize, Screen};

use crate::{ChannelError, RunnerClient};

/// A screen that was checked to be one.
#[derive(Debug, Clone)]
pub struct TerminalScreen {
    pub screen: Screen,
    pub repaint: Bytes,
}

impl RunnerClient {
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

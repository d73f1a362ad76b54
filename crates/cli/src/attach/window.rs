//! The local window's size, and news of it.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::client::PtySize;
use crate::failure::Failure;

/// Where there is no window, what old terminals had.
const FALLBACK: PtySize = PtySize { rows: 24, cols: 80 };

pub(crate) fn size() -> PtySize {
    match crossterm::terminal::size() {
        Ok((cols, rows)) if cols > 0 && rows > 0 => PtySize { rows, cols },
        _ => FALLBACK,
    }
}

pub(super) struct Changes {
    /// None without a terminal: nothing ever changes.
    signal: Option<Signal>,
}

impl Changes {
    pub(super) fn listen(terminal: bool) -> Result<Self, Failure> {
        if !terminal {
            return Ok(Self { signal: None });
        }
        let signal = signal(SignalKind::window_change());
        Ok(Self { signal: Some(signal.map_err(Failure::io("listen for signals"))?) })
    }

    pub(super) async fn next(&mut self) -> PtySize {
        match &mut self.signal {
            Some(signal) => {
                signal.recv().await;
                size()
            }
            None => std::future::pending().await,
        }
    }
}

//! The local terminal in raw mode: every key goes to the sandbox, none acts here.

use crate::failure::Failure;

/// Raw until dropped, also when that happens by a panic.
pub(super) struct RawMode;

impl RawMode {
    pub(super) fn enter() -> Result<Self, Failure> {
        crossterm::terminal::enable_raw_mode()
            .map_err(Failure::io("switch the terminal to raw mode"))?;
        Ok(Self)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

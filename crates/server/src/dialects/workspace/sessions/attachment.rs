//! One client's presence in a session, and what happens when the last one has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::process::Signal;
use sandbank_protocol::SignalRequest;

use super::super::place::Place;
use super::{Kind, Live};
use crate::app::App;

/// While this lives, somebody is there.
pub(in super::super) struct Attachment {
    app: App,
    pub(in super::super) live: Arc<Live>,
    seen: AtomicU64,
}

impl Attachment {
    pub(in super::super) fn new(app: App, live: Arc<Live>) -> Self {
        let mut presence = live.presence();
        presence.clients += 1;
        presence.left = None;
        drop(presence);
        Self { app, live, seen: AtomicU64::new(0) }
    }

    /// The client was sent everything up to this frame.
    pub(in super::super) fn saw(&self, seq: u64) {
        self.seen.store(seq, Ordering::Relaxed);
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut presence = self.live.presence();
        presence.clients -= 1;
        if presence.clients == 0 {
            presence.left = Some(Instant::now());
            presence.seen = self.seen.load(Ordering::Relaxed);
            drop(presence);
            wait_for_return(self.app.clone(), self.live.clone());
        }
    }
}

/// Ends the session unless somebody comes back in time.
pub(super) fn wait_for_return(app: App, live: Arc<Live>) {
    let Some(left) = live.left() else { return };
    let settings = &app.settings().workspace;
    let window = match live.name.kind {
        Kind::Pty => settings.pty_window,
        Kind::Chat => settings.chat_window,
    };
    tokio::spawn(async move {
        tokio::time::sleep_until((left + window).into()).await;
        if live.left() == Some(left) {
            app.workspace_sessions().forget(&live);
            end(&app, &live, "nobody came back").await;
        }
    });
}

/// Ends its program with everything it left behind.
pub(in super::super) async fn end(app: &App, live: &Live, by: &str) {
    let Ok(place) = Place::of(app).await else { return };
    let command = live.command.borrow().clone();
    let signal = Signal::KILL.as_raw();
    let request = &SignalRequest { signal, by: by.to_owned(), tree: true };
    let command = &command;
    // It may have ended by itself.
    let _ = place.run(|client| async move { client.signal(command, request).await }).await;
}

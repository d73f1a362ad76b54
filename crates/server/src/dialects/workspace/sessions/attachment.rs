//! One client's presence in a session, and what happens when the last one has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::process::Signal;
use sandbank_protocol::SignalRequest;

use super::super::place::Place;
use super::name::word;
use super::{Kind, Live, Presence};
use crate::app::App;

impl Presence {
    fn enter(&mut self) {
        self.clients += 1;
        self.left = None;
    }
}

/// While this lives, somebody is there.
pub(in super::super) struct Attachment {
    app: App,
    pub(in super::super) live: Arc<Live>,
    seen: AtomicU64,
}

impl Attachment {
    pub(in super::super) fn new(app: App, live: Arc<Live>) -> Self {
        live.presence().enter();
        Self { app, live, seen: AtomicU64::new(0) }
    }

    /// None where the session is being ended, since nobody came in time.
    pub(in super::super) fn in_time(app: App, live: Arc<Live>) -> Option<Self> {
        let mut presence = live.presence();
        if presence.is_given_up {
            return None;
        }
        presence.enter();
        drop(presence);
        Some(Self { app, live, seen: AtomicU64::new(0) })
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
        if live.give_up(left) {
            app.workspace_sessions().forget(&live);
            if !live.is_over.swap(true, Ordering::Relaxed) {
                let kind = word(live.name.kind);
                tracing::info!(session = %live.name.id, kind, "a session was ended: nobody came back");
            }
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

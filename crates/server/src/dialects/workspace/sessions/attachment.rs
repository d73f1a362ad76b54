//! One client's presence in a session, and what happens when the last one has gone.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustix::process::Signal;
use sandbank_protocol::{CommandId, FaultCode, SignalRequest};

use super::super::place::{Place, Refusal};
use super::name::word;
use super::{Kind, Live, Position, Presence};
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
    seen: Mutex<Option<(CommandId, Position)>>,
}

impl Attachment {
    pub(in super::super) fn new(app: App, live: Arc<Live>) -> Self {
        let mut presence = live.presence();
        presence.enter();
        let seen = Mutex::new(presence.seen.clone());
        drop(presence);
        Self { app, live, seen }
    }

    /// None where the session is being ended, since nobody came in time.
    pub(in super::super) fn in_time(app: App, live: Arc<Live>) -> Option<Self> {
        let mut presence = live.presence();
        if presence.is_given_up {
            return None;
        }
        presence.enter();
        let seen = Mutex::new(presence.seen.clone());
        drop(presence);
        Some(Self { app, live, seen })
    }

    /// The client has this much of that program's output.
    pub(in super::super) fn saw(&self, command: &CommandId, position: Position) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((command.clone(), position));
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut presence = self.live.presence();
        presence.clients -= 1;
        if presence.clients == 0 {
            presence.left = Some(Instant::now());
            presence.seen = self
                .seen
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
                .or(presence.seen.take());
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
        tokio::select! {
            () = tokio::time::sleep_until((left + window).into()) => {}
            // The next daemon finds it, and waits for it anew.
            () = app.shutdown().draining() => return,
        }
        if !app.shutdown().is_draining() && live.give_up(left) {
            app.workspace_sessions().forget(&live);
            if !live.is_over.swap(true, Ordering::Relaxed) {
                let kind = word(live.name.kind);
                tracing::info!(session = %live.name.id, kind, "a session was ended: nobody came back");
            }
            if end(&app, &live, "nobody came back").await.is_err() {
                // It is found once the workspace answers, and waited for anew.
                app.workspace_sessions().lost.notify_one();
            }
        }
    });
}

/// Ends its program with everything it left behind; one that has ended by itself is ended.
pub(in super::super) async fn end(app: &App, live: &Live, by: &str) -> Result<(), Refusal> {
    // Where there is no place, there is no program.
    let place = Place::existing(app).await.map_err(Refusal::Other)?;
    let Some(place) = place else { return Ok(()) };
    let command = live.command.borrow().clone();
    let signal = Signal::KILL.as_raw();
    let request = &SignalRequest { signal, by: by.to_owned(), tree: true };
    let command = &command;
    match place.run(|client| async move { client.signal(command, request).await }).await {
        Ok(_) | Err(Refusal::Fault(FaultCode::NotFound | FaultCode::Closed, _)) => Ok(()),
        Err(other) => Err(other),
    }
}

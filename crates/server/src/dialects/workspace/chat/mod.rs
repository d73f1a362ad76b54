//! `/ws/claude-stream`: a CLI agent in the workspace that speaks JSON lines, and everybody who
//! listens to it.
//!
//! The program is the server's own template with checked parameters. Its lines are passed on as
//! they are, so what it asks its user for reaches the user. Whoever comes back hears what was said
//! meanwhile: the runner keeps it.

mod begin;
mod canned;
mod chosen;
mod cutter;
mod end;
mod input;
mod lines;
mod options;
mod writer;

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use rustix::process::Signal;
use sandbank_protocol::{Ending, SignalRequest};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use self::begin::Begun;
pub(super) use self::chosen::ChosenByName;
use self::cutter::Line;
use self::end::{End, send};
use self::input::Action;
use self::lines::{Lines, Said};
use self::options::Options;
use self::writer::{Writer, writer};
use super::error::{Detail, sentence};
use super::place::Place;
use super::query::Parameters;
use super::sessions::{Attachment, Position};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::limits::{MAX_CHAT_MESSAGE_BYTES, SOCKET_HEARTBEAT, SOCKET_PATIENCE};
use crate::request::Carried;

/// Talk to an agent.
///
/// Text frames of JSON, both ways as the agent's own, with `system` frames of the server between
/// them. Closed with 1000 when the agent has ended, 1011 when it could not be started, 1012 when the
/// server goes or the workspace does not answer, 4007 when the client takes nothing or does not
/// answer, 4008 when its token is revoked. Whoever comes back hears what was said meanwhile.
#[utoipa::path(get, path = "/ws/claude-stream", tag = "workspace_chat",
    responses((status = 101), (status = "default", body = Detail)))]
pub(super) async fn stream(
    State(app): State<App>,
    caller: Caller,
    query: Parameters,
    upgrade: WebSocketUpgrade,
) -> ApiResult<Response> {
    Place::check(&app)?;
    let permit = app.streams().open()?;
    let upgrade = upgrade.max_message_size(MAX_CHAT_MESSAGE_BYTES);
    let upgrade = upgrade.max_frame_size(MAX_CHAT_MESSAGE_BYTES);
    let carried = Carried::now();
    Ok(upgrade.on_upgrade(move |socket| async move {
        let _permit = permit;
        carried.over(Box::pin(Conversation::hold(app, socket, &caller, &query))).await;
    }))
}

/// One client of one session.
struct Conversation {
    app: App,
    socket: WebSocket,
    session: Attachment,
    program: Lines,
    writer: Writer,
    options: Options,
    /// As the client knows the session.
    session_id: String,
    canned: bool,
    /// The program has said something that was no complaint.
    spoke: bool,
    complaint: Option<String>,
}

/// A client that says nothing for so long, not even to a ping, is gone.
const SILENCE: Duration = SOCKET_HEARTBEAT.saturating_add(SOCKET_PATIENCE);

/// As shells say that a program cannot be run, or is not there.
const CANNOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

impl Conversation {
    async fn hold(app: App, mut socket: WebSocket, caller: &Caller, query: &Parameters) {
        let begun = match begin::begin(&app, caller, query).await {
            Ok(begun) => begun,
            Err(error) => {
                app.workspace_measured().attach_failed("chat");
                let why = json!({
                    "type": "system", "subtype": "error", "message": sentence(&error),
                });
                let told = send(&mut socket, Message::text(why.to_string())).await;
                return told.err().unwrap_or(End::Failed).tell(&mut socket).await;
            }
        };
        let Begun { session, program, options, whole, session_id, resumed, was_unknown } = begun;
        let connected = json!({ "resumed": resumed, "settings": whole.settings() });
        let (writer, writing, complaints) = writer(app.clone(), session.live.clone());
        let canned = query.is_set("test_events");
        let mut this = Self {
            app,
            socket,
            session,
            program,
            writer,
            options,
            session_id,
            canned,
            spoke: false,
            complaint: None,
        };
        let Err(end) = tokio::select! {
            end = this.talk(caller, connected, was_unknown, complaints) => end,
            never = writing.run() => match never {},
        };
        if end.is_sudden() {
            this.app.workspace_measured().disconnected("chat");
        }
        end.tell(&mut this.socket).await;
    }

    async fn talk(
        &mut self,
        caller: &Caller,
        connected: Value,
        was_unknown: bool,
        mut complaints: mpsc::Receiver<ApiError>,
    ) -> Result<Infallible, End> {
        if was_unknown {
            let message = "Session not found. Starting a new conversation.";
            self.system("session_not_found", json!({ "message": message })).await?;
        }
        let resumed = connected["resumed"] == true;
        self.system("connected", connected).await?;
        if resumed && self.program.is_behind_the_beginning() {
            let greeting = self.session.live.greeting();
            if let Some(greeting) = greeting {
                self.pass(&greeting).await?;
            }
        }
        let mut notices = self.session.live.notices.subscribe();
        let mut heard = Instant::now();
        let mut beat = tokio::time::interval_at(heard + SOCKET_HEARTBEAT, SOCKET_HEARTBEAT);
        loop {
            tokio::select! {
                said = self.program.next() => self.pass_on(said).await?,
                notice = notices.recv() => match notice {
                    Ok(notice) => self.pass(&notice).await?,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Err(End::Closed("the session ended")),
                },
                Some(error) = complaints.recv() => {
                    self.system("error", json!({ "message": sentence(&error) })).await?;
                }
                message = timeout_at(heard + SILENCE, self.socket.recv()) => {
                    match message {
                        Ok(Some(Ok(Message::Text(text)))) => self.hear(&text).await?,
                        Ok(Some(Ok(Message::Close(_)))) => return Err(End::Left),
                        Ok(Some(Err(_)) | None) => return Err(End::Gone),
                        Ok(Some(Ok(_))) => {}
                        Err(_) => return Err(End::Unresponsive),
                    }
                    // Behind it: while something was done for it, it was asked for nothing.
                    heard = Instant::now();
                }
                _ = beat.tick() => {
                    send(&mut self.socket, Message::Ping(Default::default())).await?;
                }
                () = caller.revoked() => return Err(End::Revoked),
                () = self.app.shutdown().draining() => return Err(End::ShuttingDown),
            }
        }
    }

    async fn pass_on(&mut self, said: Said) -> Result<(), End> {
        let Line { text, is_error, position } = match said {
            Said::Line(line) => line,
            Said::Ended(ending) => return self.ended(&ending).await,
            Said::Unreachable => return Err(End::Unreachable),
        };
        if is_error {
            self.system("stderr", json!({ "message": text })).await?;
            self.complaint = Some(text);
        } else {
            self.spoke = true;
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            if is_json && text.starts_with('{') {
                self.session.live.note_greeting(&text);
                self.pass(&text).await?;
            } else {
                self.tell(json!({ "type": "raw", "data": text })).await?;
            }
        }
        self.session.saw(self.program.command(), position);
        Ok(())
    }

    /// The program ended; it may have been started again for another client.
    async fn ended(&mut self, ending: &Ending) -> Result<(), End> {
        let live = self.session.live.clone();
        // Whoever starts it again has this.
        let turn = live.life.lock().await;
        let command = live.command.borrow().clone();
        drop(turn);
        if command != *self.program.command() {
            let found = Place::existing(&self.app).await.ok().flatten();
            let place = found.ok_or(End::Unreachable)?;
            let opened = Lines::open(self.app.clone(), place, command, Position::default()).await;
            self.program = opened.map_err(|_| End::Closed("the session ended"))?;
            return Ok(());
        }
        self.app.workspace_sessions().forget(&live);
        let code = ending.exit_code();
        if let (Some(CANNOT_RUN | NOT_FOUND), false, Some(why)) =
            (code, self.spoke, &self.complaint)
        {
            let message = format!("the agent could not be started: {why}");
            self.system("error", json!({ "message": message })).await?;
            return Err(End::Failed);
        }
        self.tell(json!({ "type": "result", "subtype": "exit", "exit_code": code })).await?;
        Err(End::Closed("the agent ended"))
    }

    async fn hear(&mut self, text: &str) -> Result<(), End> {
        if self.canned
            && let Some(frames) = canned::frames(&input::user_text(text))
        {
            for frame in frames {
                self.tell(frame).await?;
            }
            return Ok(());
        }
        match input::read(text) {
            Action::Line(line) => {
                // Kept before the program has it: who hears its answer can rely on it.
                if line["type"] == "control" {
                    self.choose(&line).await?;
                }
                self.write(&line).await
            }
            Action::LineAndNotice(line, notices) => {
                self.write(&line).await?;
                for notice in notices {
                    self.choose(&notice).await?;
                    let _ = self.session.live.notices.send(notice.to_string().into());
                }
                Ok(())
            }
            Action::Reply(reply) => self.tell(reply).await,
            Action::Interrupt => {
                self.signal(Signal::INT).await;
                self.system("interrupted", json!({})).await
            }
            Action::Restart => match self.restart().await {
                Ok(()) => self.system("restarted", json!({})).await,
                Err(error) => self.system("error", json!({ "message": sentence(&error) })).await,
            },
            Action::Nothing => Ok(()),
        }
    }

    /// Kept for the next program of this conversation.
    async fn choose(&mut self, message: &Value) -> Result<(), End> {
        let chosen = &self.app.workspace_sessions().chosen;
        match chosen.said(&self.session.live.name, &self.options, message).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let why = sentence(&ApiError::from(error));
                let message = format!("this is not kept for the next program: {why}");
                self.system("error", json!({ "message": message })).await
            }
        }
    }

    async fn restart(&mut self) -> ApiResult<()> {
        let live = &self.session.live;
        let options = self.app.workspace_sessions().chosen.over(&live.name, &self.options).await?;
        begin::restart(&self.app, live, &options).await
    }

    async fn write(&mut self, line: &Value) -> Result<(), End> {
        if self.writer.put(line) {
            return Ok(());
        }
        let message = "the agent reads nothing; interrupt or restart it";
        self.system("error", json!({ "message": message })).await
    }

    async fn signal(&mut self, signal: Signal) {
        let command = &self.session.live.command.borrow().clone();
        let by = "the chat's user".to_owned();
        let request = &SignalRequest { signal: signal.as_raw(), by, tree: false };
        if let Ok(Some(place)) = Place::existing(&self.app).await {
            let _ = place.run(|client| async move { client.signal(command, request).await }).await;
        }
    }

    async fn system(&mut self, subtype: &str, mut fields: Value) -> Result<(), End> {
        fields["type"] = json!("system");
        fields["subtype"] = json!(subtype);
        if matches!(subtype, "connected" | "interrupted" | "restarted") {
            fields["session_id"] = json!(self.session_id);
        }
        self.tell(fields).await
    }

    async fn tell(&mut self, frame: Value) -> Result<(), End> {
        self.pass(&frame.to_string()).await
    }

    async fn pass(&mut self, text: &str) -> Result<(), End> {
        send(&mut self.socket, Message::Text(Utf8Bytes::from(text))).await
    }
}

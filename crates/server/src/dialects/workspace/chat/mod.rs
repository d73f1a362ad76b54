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
mod input;
mod lines;
mod options;
mod writer;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use rustix::process::Signal;
use sandbank_protocol::{Ending, SignalRequest};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use self::begin::Begun;
pub(super) use self::chosen::ChosenByName;
use self::cutter::Line;
use self::input::Action;
use self::lines::{Lines, Said};
use self::options::Options;
use self::writer::{Writer, writer};
use super::error::{Detail, sentence};
use super::place::Place;
use super::pty::NOT_KNOWN;
use super::query::Parameters;
use super::sessions::{Attachment, Position};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::limits::{
    MAX_CHAT_MESSAGE_BYTES, SOCKET_HEARTBEAT, SOCKET_PATIENCE, SOCKET_SEND_PATIENCE,
};
use crate::request::Carried;
use crate::terminal::closing::REVOKED;

/// Talk to an agent.
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

const AWAY: &str = "the workspace does not answer; come back";
const NOT_STARTED: &str = "the agent could not be started";

/// As shells say that a program cannot be run, or is not there.
const CANNOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Why a conversation ends.
enum End {
    /// The client is gone, or does not read.
    Gone,
    /// The client said so, or was told.
    Left,
    /// There is no program to talk to.
    Failed,
    /// It may come back: the way to the program is broken.
    Unreachable,
    /// Its token is no more.
    Revoked,
    /// All is said.
    Closed(&'static str),
}

impl Conversation {
    async fn hold(app: App, mut socket: WebSocket, caller: &Caller, query: &Parameters) {
        let begun = match begin::begin(&app, caller, query).await {
            Ok(begun) => begun,
            Err(error) => {
                app.workspace_measured().attach_failed("chat");
                let text = json!({
                    "type": "system", "subtype": "error", "message": sentence(&error),
                });
                if send(&mut socket, &text.to_string()).await.is_ok() {
                    close(&mut socket, close_code::ERROR, NOT_STARTED).await;
                }
                return;
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
        let end = tokio::select! {
            end = this.talk(caller, connected, was_unknown, complaints) => end,
            () = writing.run() => Ok(()),
        };
        match end {
            Err(End::Closed(reason)) => close(&mut this.socket, close_code::NORMAL, reason).await,
            Err(End::Failed) => close(&mut this.socket, close_code::ERROR, NOT_STARTED).await,
            Err(End::Unreachable) => close(&mut this.socket, close_code::RESTART, AWAY).await,
            Err(End::Revoked) => close(&mut this.socket, NOT_KNOWN, REVOKED).await,
            Err(End::Left) => {}
            Ok(()) | Err(End::Gone) => this.app.workspace_measured().disconnected("chat"),
        }
    }

    async fn talk(
        &mut self,
        caller: &Caller,
        connected: Value,
        was_unknown: bool,
        mut complaints: mpsc::Receiver<ApiError>,
    ) -> Result<(), End> {
        if was_unknown {
            let message = "Session not found. Starting a new conversation.";
            self.system("session_not_found", json!({ "message": message })).await?;
        }
        let resumed = connected["resumed"] == true;
        self.system("connected", connected).await?;
        if resumed && self.program.is_behind_the_beginning() {
            let greeting = self.session.live.greeting();
            if let Some(greeting) = greeting {
                send(&mut self.socket, &greeting).await?;
            }
        }
        let mut notices = self.session.live.notices.subscribe();
        let mut heard = Instant::now();
        let mut beat = tokio::time::interval_at(heard + SOCKET_HEARTBEAT, SOCKET_HEARTBEAT);
        loop {
            tokio::select! {
                said = self.program.next() => self.pass_on(said).await?,
                notice = notices.recv() => match notice {
                    Ok(notice) => send(&mut self.socket, &notice).await?,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Err(End::Closed("the session ended")),
                },
                Some(error) = complaints.recv() => {
                    self.system("error", json!({ "message": sentence(&error) })).await?;
                }
                message = self.socket.recv() => {
                    heard = Instant::now();
                    match message {
                        Some(Ok(Message::Text(text))) => self.hear(&text).await?,
                        Some(Ok(Message::Close(_))) => return Err(End::Left),
                        Some(Err(_)) | None => return Err(End::Gone),
                        Some(Ok(_)) => {}
                    }
                }
                _ = beat.tick() => {
                    if heard.elapsed() > SOCKET_HEARTBEAT + SOCKET_PATIENCE {
                        return Err(End::Gone);
                    }
                    let ping = Message::Ping(Default::default());
                    within(self.socket.send(ping)).await?;
                }
                () = caller.revoked() => return Err(End::Revoked),
                () = self.app.shutdown().draining() => {
                    close(&mut self.socket, close_code::RESTART, "the server is restarting").await;
                    return Err(End::Left);
                }
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
                send(&mut self.socket, &text).await?;
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
        send(&mut self.socket, &frame.to_string()).await
    }
}

async fn send(socket: &mut WebSocket, text: &str) -> Result<(), End> {
    within(socket.send(Message::Text(Utf8Bytes::from(text)))).await
}

/// A client that takes nothing for so long is gone.
async fn within(sent: impl Future<Output = Result<(), axum::Error>>) -> Result<(), End> {
    match timeout(SOCKET_SEND_PATIENCE, sent).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(End::Gone),
    }
}

async fn close(socket: &mut WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
    let _ = within(socket.send(Message::Close(Some(frame)))).await;
}

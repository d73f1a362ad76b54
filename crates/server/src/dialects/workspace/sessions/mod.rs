//! Terminals and chats that can be left and come back to.
//!
//! A session is a command of the workspace's runner, so neither a cut connection nor the daemon's
//! end touches it. What is here is only who is attached right now, and how long a session without
//! anybody is waited for; a daemon that has been started again finds the sessions in the runner.

mod attachment;
mod name;
pub(super) mod route;
mod token;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbank_protocol::{CommandId, CommandState, CommandStatus};
use sandbank_store::Store;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, broadcast, watch};
use utoipa::ToSchema;
use uuid::Uuid;

pub(super) use attachment::{Attachment, end};
pub(super) use name::Name;
pub(super) use token::{Kind, Purpose};

use self::token::Keys;
use super::chat::ChosenByName;
use super::place::{Place, Refusal};
use crate::app::App;
use crate::config::{Secret, WorkspaceSettings};
use crate::limits::{CONNECTS_BURST_SECONDS, SESSION_NOTICES};
use crate::rate::RateLimit;
use crate::unix_time::now_ms;

/// Every session that this daemon knows.
pub(crate) struct Sessions {
    keys: Keys,
    live: Mutex<HashMap<Name, Arc<Live>>>,
    /// One whose program may still run was forgotten: wakes the one who finds sessions.
    pub(super) lost: Notify,
    /// Held by whoever looks for a terminal and starts it where there is none.
    pub(super) starting: tokio::sync::Mutex<()>,
    /// What was set in chats, for their next programs.
    pub(super) chosen: ChosenByName,
    /// How often one caller may connect.
    pub(super) connects: RateLimit,
}

/// One session.
pub(super) struct Live {
    pub(super) name: Name,
    /// The program of now; another one when it was started again.
    pub(super) command: watch::Sender<CommandId>,
    /// What the server tells everybody who is attached.
    pub(super) notices: broadcast::Sender<Arc<str>>,
    /// Held by whoever writes to the program, so that lines of two clients do not mix.
    pub(super) input: tokio::sync::Mutex<()>,
    /// Held by whoever ends its program and starts it again.
    pub(super) life: tokio::sync::Mutex<()>,
    /// What the program said first: whoever comes later wants it, too.
    greeting: Mutex<Option<Arc<str>>>,
    presence: Mutex<Presence>,
    /// When something was last written, or read.
    active: Mutex<Instant>,
    /// Its ending was told to the log.
    pub(super) is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct Presence {
    clients: usize,
    /// Since when nobody is attached.
    left: Option<Instant>,
    /// Where the one who left last was, and in which program's output.
    seen: Option<(CommandId, Position)>,
    /// It was waited for long enough, and is being ended.
    is_given_up: bool,
}

/// How much of a program's output somebody has: everything up to a frame, and so many lines more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) after: u64,
    pub(super) lines: u64,
}

/// What a client calls a session.
pub(super) enum Asked {
    /// Nothing: it wants a new one.
    New,
    /// A name of its own choosing.
    Id(Uuid),
    /// The session of a token that is good, that token renewed, and the template that it is for.
    Token { id: Uuid, renewed: String, exec: String },
    /// What is neither, or a token that is not good.
    Unknown,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionView {
    id: String,
    /// `pty` or `stream`.
    r#type: &'static str,
    alive: bool,
    clients: usize,
    /// Of a terminal the bytes that are kept; of a chat 0.
    history_count: u64,
}

impl Sessions {
    pub(crate) fn new<'a>(
        secrets: impl IntoIterator<Item = &'a Secret>,
        settings: &WorkspaceSettings,
        store: Store,
    ) -> Self {
        let rate = settings.connects_per_second;
        Self {
            keys: Keys::new(secrets),
            live: Mutex::default(),
            lost: Notify::new(),
            starting: tokio::sync::Mutex::default(),
            chosen: ChosenByName::new(store),
            connects: RateLimit::per_second(rate, rate.saturating_mul(CONNECTS_BURST_SECONDS)),
        }
    }

    pub(super) fn asked(&self, session_id: Option<&str>, purpose: Purpose<'_>) -> Asked {
        let Some(text) = session_id.filter(|text| !text.is_empty()) else { return Asked::New };
        if let Ok(id) = Uuid::try_parse(text) {
            return Asked::Id(id);
        }
        let now = now_ms() / 1000;
        let claims = self.keys.verify(text, purpose, now);
        let session = claims.and_then(|claims| {
            let id = Uuid::try_parse(&claims.sid).ok()?;
            let renewed = self.keys.renew(&claims, now);
            let renewed = renewed.unwrap_or_else(|| text.to_owned());
            Some(Asked::Token { id, renewed, exec: claims.exec })
        });
        session.unwrap_or(Asked::Unknown)
    }

    /// For a client that chose no name itself.
    pub(super) fn token(&self, id: Uuid, exec: &str, purpose: Purpose<'_>) -> String {
        self.keys.issue(&id.to_string(), exec, purpose, now_ms() / 1000)
    }

    /// The session of that name, if its program runs, and the newest generation there ever was.
    pub(super) async fn find(
        &self,
        app: &App,
        place: &Place,
        name: &Name,
    ) -> Result<(Option<Arc<Live>>, Option<u32>), Refusal> {
        let commands = self.look(app, place).await?;
        let generations = commands.iter().filter_map(|status| Name::of(&status.id));
        let newest = generations.filter(|(known, _)| known == name).map(|(_, n)| n).max();
        Ok((self.get(name), newest))
    }

    pub(super) fn get(&self, name: &Name) -> Option<Arc<Live>> {
        self.live().get(name).cloned()
    }

    /// Takes over what runs in the runner and is not known, and forgets what has ended.
    pub(super) async fn look(
        &self,
        app: &App,
        place: &Place,
    ) -> Result<Vec<CommandStatus>, Refusal> {
        let commands = place.run(|client| async move { client.commands().await }).await?;
        let mut newest: HashMap<Name, (u32, &CommandStatus)> = HashMap::new();
        for status in &commands {
            let Some((name, generation)) = Name::of(&status.id) else { continue };
            let known = newest.entry(name).or_insert((generation, status));
            if generation >= known.0 {
                *known = (generation, status);
            }
        }
        for (name, (_, status)) in newest {
            let known = self.live().get(&name).cloned();
            match (known, &status.state) {
                (None, CommandState::Running) => {
                    let live = self.insert(name, status.id.clone());
                    // Nobody may ever come back for it.
                    attachment::wait_for_return(app.clone(), live);
                }
                (Some(live), CommandState::Ended { .. }) if live.has_ended(&status.id) => {
                    self.forget(&live);
                }
                _ => {}
            }
        }
        Ok(commands)
    }

    /// The one that is known, if it is of this program: somebody else may have found it first.
    pub(super) fn insert(&self, name: Name, command: CommandId) -> Arc<Live> {
        let mut all = self.live();
        if let Some(known) = all.get(&name)
            && *known.command.borrow() == command
        {
            return known.clone();
        }
        let live = Arc::new(Live::new(name.clone(), command));
        all.insert(name, live.clone());
        live
    }

    /// Only this very one: another may have its name by now.
    pub(super) fn forget(&self, live: &Live) {
        let mut all = self.live();
        if all.get(&live.name).is_some_and(|known| std::ptr::eq(&**known, live)) {
            all.remove(&live.name);
        }
    }

    /// Of this kind, the longest abandoned first; those with clients last.
    pub(super) fn of_kind(&self, kind: Kind) -> Vec<Arc<Live>> {
        let mut live: Vec<Arc<Live>> =
            self.live().values().filter(|live| live.name.kind == kind).cloned().collect();
        live.sort_by_key(|live| live.left().map_or((true, None), |left| (false, Some(left))));
        live
    }

    pub(super) async fn list(
        &self,
        app: &App,
        place: &Place,
        user: &str,
    ) -> Result<Vec<SessionView>, Refusal> {
        let commands = self.look(app, place).await?;
        let mut live: Vec<Arc<Live>> = self.live().values().cloned().collect();
        live.retain(|live| live.name.is_of(user));
        let view = |live: &Arc<Live>| {
            let command = live.command.borrow().clone();
            let status = commands.iter().find(|status| status.id == command);
            let kept = |status: &CommandStatus| {
                (status.stdout_bytes + status.stderr_bytes).saturating_sub(status.dropped_bytes)
            };
            let is_pty = live.name.kind == Kind::Pty;
            SessionView {
                id: live.name.id.to_string(),
                r#type: if is_pty { "pty" } else { "stream" },
                alive: status.is_some_and(|status| status.ending().is_none()),
                clients: live.clients(),
                history_count: status.filter(|_| is_pty).map_or(0, kept),
            }
        };
        Ok(live.iter().map(view).collect())
    }

    fn live(&self) -> std::sync::MutexGuard<'_, HashMap<Name, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    fn new(name: Name, command: CommandId) -> Self {
        Self {
            name,
            command: watch::Sender::new(command),
            notices: broadcast::Sender::new(SESSION_NOTICES),
            input: tokio::sync::Mutex::new(()),
            life: tokio::sync::Mutex::new(()),
            greeting: Mutex::default(),
            presence: Mutex::new(Presence { left: Some(Instant::now()), ..Presence::default() }),
            active: Mutex::new(Instant::now()),
            is_over: AtomicBool::new(false),
        }
    }

    /// Its program has ended, and nobody is about to start it again. Who attends a chat notices that
    /// by themselves; who attends a terminal may stay for as long as they like.
    fn has_ended(&self, ended: &CommandId) -> bool {
        let is_noticed = self.name.kind == Kind::Pty || self.clients() == 0;
        is_noticed && self.life.try_lock().is_ok() && *self.command.borrow() == *ended
    }

    pub(super) fn clients(&self) -> usize {
        self.presence().clients
    }

    pub(super) fn left(&self) -> Option<Instant> {
        self.presence().left
    }

    pub(super) fn greeting(&self) -> Option<Arc<str>> {
        self.greeting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the newest: a program that was started again greets anew.
    pub(super) fn note_greeting(&self, line: &str) {
        let is_greeting = || {
            let line: Value = serde_json::from_str(line).ok()?;
            (line["type"] == "system" && line["subtype"] == "init").then_some(())
        };
        if line.contains("\"init\"") && is_greeting().is_some() {
            let mut greeting = self.greeting.lock().unwrap_or_else(PoisonError::into_inner);
            *greeting = Some(line.into());
        }
    }

    /// Where the one who left last was; the beginning, if that was another program.
    pub(super) fn seen(&self) -> Position {
        let command = self.command.borrow().clone();
        let seen = self.presence().seen.clone();
        seen.filter(|(of, _)| *of == command).map(|(_, position)| position).unwrap_or_default()
    }

    /// Nobody can attach any more. False if somebody was there since.
    fn give_up(&self, left: Instant) -> bool {
        let mut presence = self.presence();
        presence.is_given_up |= presence.left == Some(left);
        presence.is_given_up
    }

    /// Something was written or read.
    pub(super) fn touch(&self) {
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long nothing was.
    pub(super) fn quiet(&self) -> Duration {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    fn presence(&self) -> std::sync::MutexGuard<'_, Presence> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

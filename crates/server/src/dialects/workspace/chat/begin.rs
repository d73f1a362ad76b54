//! Finding the session that a client wants, or making it.

use sandbank_protocol::{CommandSpec, CommandStatus, StdinMode};
use uuid::Uuid;

use super::super::place::{self, Place};
use super::super::query::Parameters;
use super::super::sessions::{Asked, Attachment, Kind, Live, Name, Purpose, end};
use super::lines::Lines;
use super::options::{Conversation, Options};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};

/// The template, as tokens name it.
const EXEC: &str = "claude";

pub(super) struct Begun {
    pub(super) session: Attachment,
    pub(super) program: Lines,
    pub(super) options: Options,
    pub(super) session_id: String,
    /// The program ran already.
    pub(super) resumed: bool,
    /// A session was asked for that is not there.
    pub(super) was_unknown: bool,
}

pub(super) async fn begin(app: &App, caller: &Caller, query: &Parameters) -> ApiResult<Begun> {
    let options = Options::read(query.pairs());
    let sessions = app.workspace_sessions();
    let purpose = Purpose { kind: Kind::Chat, user: &caller.name, workspace: place::name(app) };
    let asked = match query.is_set("force_new") {
        true => Asked::New,
        false => sessions.asked(query.get("session_id"), purpose),
    };
    let (id, session_id, wanted) = match asked {
        Asked::New => (Uuid::new_v4(), None, false),
        Asked::Id(id) => (id, Some(id.to_string()), query.is_set("resume")),
        Asked::Token { id, renewed, .. } => (id, Some(renewed), true),
        Asked::Unknown => (Uuid::new_v4(), None, true),
    };
    let name = Name::new(Kind::Chat, id, &caller.name);
    let place = Place::of(app).await?;
    let found = sessions.find(app, &place, &name).await?;
    let was_unknown = wanted && found.is_none();
    let (live, resumed, after) = match found {
        Some(live) => {
            let status = status(&place, &live).await?;
            if options.are_of(&program(app), id, &status) {
                let after = if query.is_set("resume") { 0 } else { live.seen() };
                (live, true, after)
            } else {
                restart(app, &live, &options).await?;
                (live, false, 0)
            }
        }
        None => {
            make_room(app).await;
            let command = start(app, &place, &name, 0, &options, Conversation::New).await?;
            (sessions.insert(name, command.id), false, 0)
        }
    };
    let session = Attachment::new(app.clone(), live);
    let command = session.live.command.borrow().clone();
    let program = Lines::open(app.clone(), place, command, after).await?;
    let session_id = session_id.unwrap_or_else(|| sessions.token(id, EXEC, purpose));
    Ok(Begun { session, program, options, session_id, resumed, was_unknown })
}

/// Ends the program and starts it again with the same conversation.
pub(super) async fn restart(app: &App, live: &Live, options: &Options) -> ApiResult<()> {
    let _turn = live.input.lock().await;
    let place = Place::of(app).await?;
    let before = live.command.borrow().clone();
    let generation = Name::of(&before).map_or(0, |(_, generation)| generation);
    let next = generation.saturating_add(1);
    end(app, live, "a restart").await;
    let id = &before;
    // What it left behind must not write into the conversation that goes on.
    place.run(|client| async move { client.wait(id).await }).await?;
    let started = start(app, &place, &live.name, next, options, Conversation::Resumed).await?;
    live.command.send_replace(started.id);
    Ok(())
}

async fn start(
    app: &App,
    place: &Place,
    name: &Name,
    generation: u32,
    options: &Options,
    conversation: Conversation,
) -> ApiResult<CommandStatus> {
    let spec = &CommandSpec {
        id: name.command(generation),
        argv: options.argv(&program(app), name.id, conversation),
        env: Default::default(),
        cwd: None,
        stdin: StdinMode::Open,
        pty: None,
        screen: false,
        timeout_ms: None,
        journal_bytes: None,
        shell: None,
    };
    place.start(spec).await.map_err(ApiError::from)
}

async fn status(place: &Place, live: &Live) -> ApiResult<CommandStatus> {
    let command = &live.command.borrow().clone();
    Ok(place.run(|client| async move { client.command(command).await }).await?)
}

/// Chats that nobody attends give way to new ones; others do not.
async fn make_room(app: &App) {
    let sessions = app.workspace_sessions();
    let chats = sessions.of_kind(Kind::Chat);
    let surplus = (chats.len() + 1).saturating_sub(app.settings().workspace.chat_max_sessions);
    for live in chats.into_iter().filter(|live| live.left().is_some()).take(surplus) {
        sessions.forget(&live);
        end(app, &live, "a newer chat").await;
    }
}

fn program(app: &App) -> Vec<String> {
    app.settings().workspace.chat_command.clone()
}

//! Finding the session that a client wants, or making it.

use http::StatusCode;
use sandbank_protocol::{CommandSpec, CommandStatus, FaultCode, StdinMode};
use tokio::time::timeout;
use uuid::Uuid;

use super::super::place::{self, Place, Refusal};
use super::super::query::Parameters;
use super::super::sessions::{Asked, Attachment, Kind, Live, Name, Position, Purpose, end};
use super::lines::Lines;
use super::options::{Conversation, Options};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::limits::{CHAT_END_PATIENCE, RETRY_SOON};

/// The template, as tokens name it.
const EXEC: &str = "claude";

pub(super) struct Begun {
    pub(super) session: Attachment,
    pub(super) program: Lines,
    pub(super) options: Options,
    /// With what was set before.
    pub(super) whole: Options,
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
    // What was set while the program ran counts for the next one, too.
    let whole = sessions.chosen.came(&name, &options).await?;
    let place = Place::of(app).await?;
    let (found, newest) = sessions.find(app, &place, &name).await?;
    let found = found.and_then(|live| Attachment::in_time(app.clone(), live));
    let was_unknown = wanted && newest.is_none();
    let (session, resumed, from) = match found {
        Some(session) => {
            let status = status(&place, &session.live).await?;
            let same = [&options, &whole];
            let is_same = same.iter().any(|one| one.are_of(&program(app), id, &status));
            if status.ending().is_none() && is_same {
                let from = match query.is_set("resume") {
                    true => Position::default(),
                    false => session.live.seen(),
                };
                (session, true, from)
            } else {
                restart(app, &session.live, &whole).await?;
                (session, false, Position::default())
            }
        }
        None => {
            make_room(app).await;
            let (generation, conversation) = match newest {
                Some(newest) => (newest.saturating_add(1), Conversation::Resumed),
                None => (0, Conversation::New),
            };
            let command = start(app, &place, &name, generation, &whole, conversation).await?;
            let live = sessions.insert(name, command.id);
            (Attachment::new(app.clone(), live), false, Position::default())
        }
    };
    let command = session.live.command.borrow().clone();
    session.saw(&command, from);
    let program = Lines::open(app.clone(), place, command, from).await?;
    let session_id = session_id.unwrap_or_else(|| sessions.token(id, EXEC, purpose));
    Ok(Begun { session, program, options, whole, session_id, resumed, was_unknown })
}

/// Ends the program and starts it again with the same conversation.
pub(super) async fn restart(app: &App, live: &Live, options: &Options) -> ApiResult<()> {
    let _turn = live.life.lock().await;
    let place = Place::of(app).await?;
    let before = live.command.borrow().clone();
    let generation = Name::of(&before).map_or(0, |(_, generation)| generation);
    let next = generation.saturating_add(1);
    end(app, live, "a restart").await?;
    let id = &before;
    // What it left behind must not write into the conversation that goes on.
    let gone = place.run(|client| async move { client.wait(id).await });
    match timeout(CHAT_END_PATIENCE, gone).await {
        Ok(Ok(_) | Err(Refusal::Fault(FaultCode::NotFound, _))) => {}
        Ok(Err(other)) => return Err(other.into()),
        Err(_) => {
            let message = "the agent that was killed is still there";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Err(ApiError::overloaded(status, "not_ended", message, RETRY_SOON));
        }
    }
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
        stdin: StdinMode::Open,
        ..CommandSpec::new(
            name.command(generation),
            options.argv(&program(app), name.id, conversation),
        )
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
        let _ = end(app, &live, "a newer chat").await;
    }
}

fn program(app: &App) -> Vec<String> {
    app.settings().workspace.chat_command.clone()
}

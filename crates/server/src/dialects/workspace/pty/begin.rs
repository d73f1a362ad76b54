//! Finding the terminal that a client wants, or starting it.

use std::sync::Arc;

use sandbank_protocol::{CommandSpec, CommandStatus, FaultCode, PtySize};
use uuid::Uuid;

use super::super::place::{self, Place, Refusal};
use super::super::query::Parameters;
use super::super::sessions::{Asked, Attachment, Kind, Live, Name, Purpose, end};
use super::frames::Frames;
use super::history;
use super::refused::Refused;
use super::template::{self, Template};
use crate::app::App;
use crate::auth::Caller;
use crate::limits::{LOOK_BACK_FRAMES, MAX_SESSION_TOKEN_BYTES, PTY_JOURNAL_BYTES};
use crate::rate::RateKey;
use crate::request::RequestId;
use crate::terminal::{Beginning, Terminal};

/// Before a client has said how large its window is.
const SIZE: PtySize = PtySize { rows: 24, cols: 80 };

pub(super) struct Begun {
    pub(super) session: Attachment,
    pub(super) terminal: Terminal,
    pub(super) frames: Frames,
}

/// Which session, and on what terms.
struct Wanted {
    id: Uuid,
    /// As the client knows it; none: it is given a token.
    session_id: Option<String>,
    /// Nothing is started where it is not there.
    must_exist: bool,
    /// What is there is ended.
    is_fresh: bool,
    /// The client has seen up to this frame, and wants every byte that follows.
    after: Option<u64>,
}

pub(super) async fn begin(
    app: &App,
    caller: &Caller,
    query: &Parameters,
    request_id: &RequestId,
) -> Result<Begun, Refused> {
    let sessions = app.workspace_sessions();
    let key = RateKey::Token(caller.name.to_string());
    sessions.connects.check(&key).map_err(|_| Refused::TooManyConnections)?;
    let provider = query.get("provider").filter(|name| !name.is_empty());
    let provider = provider.unwrap_or(template::DEFAULT);
    let template = Template::named(app, provider)
        .ok_or_else(|| Refused::UnknownProvider(provider.to_owned()))?;
    let purpose = Purpose { kind: Kind::Pty, user: &caller.name, workspace: place::name(app) };
    let wanted = wanted(app, query, &template, purpose)?;
    let asked = query.get("session_id").unwrap_or_default();
    let name = Name::new(Kind::Pty, wanted.id, &caller.name);
    let place = Place::of(app).await?;
    let (session, is_new) = match running(app, &place, &name, &wanted).await? {
        Some(session) => (session, false),
        None => {
            let _turn = sessions.starting.lock().await;
            // Whoever had the turn before may have found it.
            match running(app, &place, &name, &wanted).await? {
                Some(session) => (session, false),
                None => {
                    let user = &caller.name;
                    find_or_start(app, &place, name, &template, &wanted, asked, user).await?
                }
            }
        }
    };
    let command = session.live.command.borrow().clone();
    let beginning = match (is_new, wanted.after) {
        (true, _) => Beginning::After(0),
        (false, Some(seen)) => {
            Beginning::Again { after: seen.saturating_sub(LOOK_BACK_FRAMES), seen }
        }
        (false, None) => Beginning::Repaint,
    };
    let terminal = Terminal::open(app.clone(), place.ground(), command.clone(), beginning).await?;
    let limit = app.settings().workspace.pty_history_bytes;
    let written = match beginning {
        Beginning::Repaint if terminal.seq() > 0 => {
            Some(history::read(&place, &command, terminal.seq(), limit).await?)
        }
        _ => None,
    };
    let session_id =
        wanted.session_id.unwrap_or_else(|| sessions.token(wanted.id, template.name, purpose));
    let seen = wanted.after.map(|seen| if is_new { 0 } else { seen });
    let live = session.live.clone();
    let frames = Frames::new(session_id, request_id.clone(), live, seen, written, limit);
    Ok(Begun { session, terminal, frames })
}

fn wanted(
    app: &App,
    query: &Parameters,
    template: &Template,
    purpose: Purpose<'_>,
) -> Result<Wanted, Refused> {
    let after = match query.get("after").filter(|text| !text.is_empty()) {
        Some(text) => Some(text.parse().map_err(|_| Refused::BadNumber)?),
        None => None,
    };
    let text = query.get("session_id").unwrap_or_default();
    let is_fresh = query.is_set("force_new");
    let new = |after| Wanted {
        id: Uuid::new_v4(),
        session_id: None,
        must_exist: false,
        is_fresh: false,
        after,
    };
    match app.workspace_sessions().asked(Some(text), purpose) {
        Asked::New => Ok(new(after)),
        Asked::Id(id) => Ok(Wanted {
            id,
            session_id: Some(id.to_string()),
            must_exist: query.is_set("resume") && !is_fresh,
            is_fresh,
            after,
        }),
        Asked::Unknown if !is_like_a_token(text) => Err(Refused::BadSession),
        Asked::Token { .. } | Asked::Unknown if is_fresh => Ok(new(after)),
        Asked::Token { id, renewed, exec } if exec == template.name => {
            Ok(Wanted { id, session_id: Some(renewed), must_exist: true, is_fresh: false, after })
        }
        Asked::Token { .. } | Asked::Unknown => Err(Refused::SessionNotFound(text.to_owned())),
    }
}

/// Three parts with dots between them.
fn is_like_a_token(text: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    text.len() <= MAX_SESSION_TOKEN_BYTES
        && text.split('.').count() == 3
        && text.split('.').all(plain)
}

/// A session that is known and runs: who comes back to it waits for nobody who looks for another.
async fn running(
    app: &App,
    place: &Place,
    name: &Name,
    wanted: &Wanted,
) -> Result<Option<Attachment>, Refused> {
    let known = app.workspace_sessions().get(name).filter(|_| !wanted.is_fresh);
    let Some(live) = known else { return Ok(None) };
    let command = &live.command.borrow().clone();
    match place.run(|client| async move { client.command(command).await }).await {
        Ok(status) if status.ending().is_none() => Ok(Attachment::in_time(app.clone(), live)),
        Ok(_) | Err(Refusal::Fault(FaultCode::NotFound, _)) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Whether it was started just now, beside it.
async fn find_or_start(
    app: &App,
    place: &Place,
    name: Name,
    template: &Template,
    wanted: &Wanted,
    asked: &str,
    user: &str,
) -> Result<(Attachment, bool), Refused> {
    let sessions = app.workspace_sessions();
    let commands = sessions.look(app, place).await?;
    if let Some(live) = sessions.get(&name) {
        if !wanted.is_fresh {
            return Attachment::in_time(app.clone(), live)
                .map(|session| (session, false))
                .ok_or_else(|| Refused::SessionNotFound(asked.to_owned()));
        }
        replace(app, place, &live).await?;
    }
    if wanted.must_exist {
        return Err(Refused::SessionNotFound(asked.to_owned()));
    }
    let settings = &app.settings().workspace;
    if sessions.of_kind(Kind::Pty).len() >= settings.pty_max_sessions {
        return Err(Refused::TooManySessions);
    }
    let spec = CommandSpec {
        env: [("TERM".to_owned(), "xterm-256color".to_owned())].into(),
        pty: Some(SIZE),
        screen: true,
        timeout_ms: u64::try_from(settings.pty_life.as_millis()).ok(),
        journal_bytes: Some(PTY_JOURNAL_BYTES),
        ..CommandSpec::new(name.command(generation(&name, &commands)), template.argv.clone())
    };
    let started = place.start(&spec).await?;
    tracing::info!(user, session = %name.id, template = template.name, "a terminal was started");
    let live = sessions.insert(name, started.id);
    Ok((Attachment::new(app.clone(), live), true))
}

/// A program that was started again under the same name is a new command.
fn generation(name: &Name, commands: &[CommandStatus]) -> u32 {
    let known = commands.iter().filter_map(|status| Name::of(&status.id));
    let newest = known.filter(|(known, _)| known == name).map(|(_, generation)| generation).max();
    newest.map_or(0, |newest| newest.saturating_add(1))
}

/// Ends what has the name.
async fn replace(app: &App, place: &Place, live: &Arc<Live>) -> Result<(), Refused> {
    let _ = end(app, live, "a new terminal of the same name").await;
    let command = &live.command.borrow().clone();
    place.run(|client| async move { client.wait(command).await }).await?;
    app.workspace_sessions().forget(live);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_tokens_form_is_like_one() {
        for token in ["a.b.c", "eyJ2.eyJ_-.0f"] {
            assert!(is_like_a_token(token), "{token}");
        }
        for other in
            ["", "x", "a.b", "a.b.c.d", "a..c", "a.b.c!", "../../etc", &"a.b.c".repeat(999)]
        {
            assert!(!is_like_a_token(other), "{other}");
        }
    }
}

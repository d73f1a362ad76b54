//! One feed of the engine's events for all machines: who died, and of what. When it breaks, it is
//! opened again, and all machines are looked at: what happened meanwhile is not told twice.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use bytes::BytesMut;
use http_body_util::BodyExt;
use sandbank_engine::{EngineError, SandboxId};
use sandbank_protocol::percent_encoded;
use serde::Deserialize;
use tokio::time::timeout;

use super::table::Entry;
use super::{Parts, death, list};
use crate::limits::{EVENT_BYTES, EVENTS_QUIET, FIRST_RETRY, LAST_RETRY};
use crate::naming;

/// As Docker names it.
const SIGKILL: &str = "9";

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(rename = "Action", default)]
    action: String,
    #[serde(rename = "Actor", default)]
    actor: Actor,
}

#[derive(Debug, Default, Deserialize)]
struct Actor {
    #[serde(rename = "ID", default)]
    id: String,
    #[serde(rename = "Attributes", default)]
    attributes: HashMap<String, String>,
}

pub(super) fn follow(parts: &Arc<Parts>) {
    let leaving = parts.leaving.clone();
    let parts = Arc::downgrade(parts);
    tokio::spawn(async move {
        leaving.run_until_cancelled(follow_for_ever(parts)).await;
    });
}

async fn follow_for_ever(parts: Weak<Parts>) {
    let mut wait = FIRST_RETRY;
    loop {
        let heard = hear(&parts).await;
        let Some(strong) = parts.upgrade() else { return };
        let why = match heard {
            Ok(()) => "Docker has ended its events".to_owned(),
            Err(error) => error.to_string(),
        };
        let was_heard = strong.set_silent(Some(why));
        wait = if was_heard { FIRST_RETRY } else { (2 * wait).min(LAST_RETRY) };
        strong.table.all().iter().for_each(|(_, entry)| entry.drop_ready());
        drop(strong);
        tokio::time::sleep(wait).await;
    }
}

/// Until the feed ends or the engine is dropped, which is not held while waiting; an error when the
/// feed could not be opened, or Docker stopped answering while it was open.
async fn hear(parts: &Weak<Parts>) -> Result<(), EngineError> {
    let Some(strong) = parts.upgrade() else { return Ok(()) };
    let label = format!("{}={}", naming::INSTANCE, strong.settings.instance);
    let filters = serde_json::json!({
        "type": ["container"], "label": [label], "event": ["kill", "die", "oom", "destroy"],
    });
    let path = format!("/events?filters={}", percent_encoded(&filters.to_string(), b""));
    let response = strong.client.stream(&path, "tell its events").await?;
    // From here on nothing is missed; what was before, is looked at.
    look_at_all(&strong).await?;
    strong.set_silent(None);
    drop(strong);
    let mut body = response.into_body();
    let mut buffer = BytesMut::new();
    loop {
        let frame = match timeout(EVENTS_QUIET, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None | Some(Err(_))) => break,
            Err(_) => {
                let Some(parts) = parts.upgrade() else { break };
                answers(&parts).await?;
                continue;
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        let Some(parts) = parts.upgrade() else { break };
        buffer.extend_from_slice(&data);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line = buffer.split_to(end + 1);
            if let Ok(event) = serde_json::from_slice::<Event>(&line) {
                take(&parts, event).await;
            }
        }
        if buffer.len() > EVENT_BYTES {
            tracing::warn!("Docker sent an event that is too long");
            break;
        }
    }
    Ok(())
}

/// A Docker that hangs keeps its feed open.
async fn answers(parts: &Parts) -> Result<(), EngineError> {
    match timeout(EVENTS_QUIET, parts.client.api().ping()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(parts.client.failed("answer")(error)),
        Err(_) => Err(EngineError::Unavailable("Docker does not answer".to_owned())),
    }
}

async fn take(parts: &Arc<Parts>, event: Event) {
    let attribute = |name: &str| event.actor.attributes.get(name);
    let Some(id) = attribute(naming::SANDBOX).and_then(|id| id.parse::<SandboxId>().ok()) else {
        return;
    };
    let Some(entry) = parts.table.get(&id) else { return };
    if !entry.is_container(&event.actor.id) {
        return;
    }
    match event.action.as_str() {
        "oom" => entry.saw_oom_kill(),
        "kill" if attribute("signal").is_some_and(|signal| signal == SIGKILL) => {
            entry.saw_kill();
        }
        "die" => {
            let code = attribute("exitCode").and_then(|code| code.parse().ok());
            let cause = death::cause(parts, &id, &entry, code).await;
            tracing::debug!(%id, ?cause, "a machine died");
            entry.set_dead(cause);
        }
        "destroy" => entry.set_dead(entry.removed()),
        _ => {}
    }
}

/// Machines that died while nobody listened.
async fn look_at_all(parts: &Arc<Parts>) -> Result<(), EngineError> {
    // One that is being made or removed comes and goes as it should.
    let settled = |entry: &Entry| entry.has_container() && entry.busy.try_lock().is_ok();
    let mut before = parts.table.all();
    before.retain(|(_, entry)| settled(entry));
    let found = list::containers(parts).await?;
    let there: HashSet<&SandboxId> = found.iter().map(|container| &container.id).collect();
    for container in &found {
        let entry = parts.table.get_or_insert(&container.id, container.spec.clone());
        // One that is being made says itself which is its.
        if entry.busy.try_lock().is_ok() {
            entry.set_container(container.name.clone());
        }
        if entry.is_container(&container.name) && container.has_ended() && !entry.is_dead() {
            let cause = death::cause(parts, &container.id, &entry, None).await;
            entry.set_dead(cause);
        }
    }
    for (id, entry) in before {
        if !there.contains(&id) && entry.busy.try_lock().is_ok() {
            entry.set_dead(entry.removed());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_docker_writes_it() {
        let line = r#"{"status":"die","id":"ab","Type":"container","Action":"die",
            "Actor":{"ID":"ab","Attributes":{"exitCode":"137","sandbank.sandbox":"sbx"}},"time":1}"#;
        let event: Event = serde_json::from_str(line).unwrap();
        assert_eq!(event.action, "die");
        assert_eq!(event.actor.attributes["exitCode"], "137");
    }
}

//! The daemon goes, the sandboxes stay; machines that nobody has yet go, too.

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::context::Context;
use crate::lifecycle::{Event, Phase};
use crate::pool;
use crate::sandbox::Message;

pub(crate) async fn shutdown(context: &Context) {
    context.registry.close();
    context.leaving.cancel();
    let until = Instant::now() + context.settings.stop_deadline;
    let _ = tokio::join!(timeout_at(until, drain(context)), leave(context, until));
    context.events.emit("daemon.stopped", None, json!({}));
    let _ = timeout_at(until, context.events.flush()).await;
    context.store.release();
}

async fn drain(context: &Context) {
    join_all(context.providers.all().map(|provider| pool::drain(context, provider))).await;
}

async fn leave(context: &Context, until: Instant) {
    let everything = context.registry.all();
    for sandbox in &everything {
        // A half-made machine is of no use to anybody.
        if matches!(sandbox.view.borrow().state.phase, Phase::Creating { .. }) {
            sandbox.send(Event::Stop { by: "the daemon's shutdown".to_owned() });
        }
    }
    for sandbox in &everything {
        let phase = sandbox.view.borrow().state.phase.clone();
        if matches!(phase, Phase::Creating { .. } | Phase::Ending(_)) {
            let _ = timeout_at(until, sandbox.ended()).await;
        }
    }
    for sandbox in context.registry.all() {
        let _ = timeout_at(until, sandbox.ask(Message::Leave)).await;
    }
}

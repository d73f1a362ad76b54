//! Starting what a decision asks for.

use serde_json::json;

use super::Driver;
use crate::clock::lease_row;
use crate::lifecycle::Action;
use crate::{Cause, SandboxState, effects};

impl Driver {
    pub(super) fn perform(&mut self, action: Action) {
        let (context, sandbox) = (self.context.clone(), self.sandbox.clone());
        match action {
            Action::Watch => {
                context.events.emit("sandbox.running", Some(sandbox.id()), json!({}));
                self.watch_death();
            }
            Action::Observe { serial, history } => {
                let asked = effects::observe(context, sandbox, serial, history);
                if let Some(old) = self.question.replace(tokio::spawn(asked)) {
                    old.abort();
                }
            }
            Action::SaveLease => {
                let lease = lease_row(&*context.clock, &self.state.lease);
                tokio::spawn(effects::save_lease(context, sandbox, lease));
            }
            Action::Pause => self.work(effects::pause(context, sandbox)),
            Action::Resume => self.work(effects::resume(context, sandbox)),
            Action::Release => self.release(),
            Action::Collect => {
                let Some(cause) = self.state.cause().cloned() else { return };
                let answers = !self.frozen && cause.end_state() == SandboxState::Gone;
                let known = self.commands.iter().cloned().collect();
                self.work(effects::collect(context, sandbox, cause, known, answers));
            }
            Action::Destroy { attempt } => {
                let never_was = matches!(self.state.cause(), Some(Cause::CreateFailed { .. }));
                self.work(effects::destroy(context, sandbox, attempt, never_was));
            }
            Action::Record { attempt } => {
                let Some(cause) = self.state.cause().cloned() else { return };
                let collected = self.collected.clone();
                self.work(effects::record(context, sandbox, cause, collected, attempt));
            }
        }
    }

    /// Stops what is being done to the machine and starts the next thing once that has let go.
    pub(super) fn work(&mut self, next: impl Future<Output = ()> + Send + 'static) {
        if let Some(last) = self.work.take() {
            last.abort();
        }
        let machine = self.machine.clone();
        self.work = Some(tokio::spawn(async move {
            let _mine = machine.lock().await;
            next.await;
        }));
    }

    pub(super) fn watch_death(&mut self) {
        let watching = effects::watch_death(self.sandbox.clone());
        self.watcher = Some(tokio::spawn(watching));
    }

    pub(super) fn release(&mut self) {
        let Some(cause) = self.state.cause() else { return };
        let facts = &self.sandbox.facts;
        self.context.registry.release_key(&facts.key, &facts.id);
        self.sandbox.ports.close();
        let kind = match cause.end_state() {
            SandboxState::Failed => "sandbox.failed",
            _ => "sandbox.stopping",
        };
        let detail = json!({ "cause": cause, "reason": cause.to_string() });
        self.context.events.emit(kind, Some(&facts.id), detail);
    }

    pub(super) fn end(&mut self) {
        self.stop_tasks();
        let id = self.sandbox.id();
        if let Some(cause) = self.state.cause() {
            let detail = json!({ "cause": cause, "reason": cause.to_string() });
            self.context.events.emit("sandbox.stopped", Some(id), detail);
        }
        self.context.registry.remove(id);
    }

    pub(super) fn stop_tasks(&mut self) {
        let tasks = [self.work.take(), self.question.take(), self.watcher.take()];
        tasks.into_iter().flatten().for_each(|task| task.abort());
    }
}

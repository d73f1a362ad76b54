//! A sandbox made for one command line, and removed after it unless it is to be kept.

use crate::client::{Client, SandboxRequest};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::ui::Progress;

pub(crate) struct OwnSandbox<'a> {
    pub(crate) id: String,
    context: &'a Context,
    pub(crate) client: &'a Client,
    keep: bool,
}

impl<'a> OwnSandbox<'a> {
    /// Ctrl-C while it is being made gives up and leaves nothing behind.
    pub(crate) async fn create(
        context: &'a Context,
        client: &'a Client,
        request: &SandboxRequest,
        keep: bool,
        interrupts: &mut Interrupts,
    ) -> Result<Self, Failure> {
        let progress = Progress::spinner(&context.ui, "making a sandbox");
        let created = tokio::select! {
            created = client.create(request) => created.map_err(Failure::from),
            _ = interrupts.next() => Err(interrupted()),
        };
        progress.done();
        let created = match created {
            Ok(created) => created,
            Err(failure) => {
                forget(client, &request.session_key).await;
                return Err(failure);
            }
        };
        Ok(Self { id: created.sandbox_id, context, client, keep })
    }

    /// From now on it stays when we go.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }

    pub(crate) async fn leave(self) -> Result<(), Failure> {
        if self.keep {
            let id = &self.id;
            self.context
                .ui
                .note(&format!("the sandbox {id} stays; remove it with `sandbank rm {id}`"));
            return Ok(());
        }
        Ok(self.client.remove_sandbox(&self.id).await?)
    }
}

/// A create whose answer never came may still have made something under our key.
async fn forget(client: &Client, key: &str) {
    if let Ok(id) = client.resolve(key).await {
        let _ = client.remove_sandbox(&id).await;
    }
}

fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted before the sandbox was ready")
}

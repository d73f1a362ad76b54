//! One reader of a watched tree. When the channel breaks it goes on after the last change it has
//! seen; what the runner does not know any more, it says itself.

use std::collections::VecDeque;

use sandbank_channel::{ChannelError, RecordStream, WatchQuery};
use sandbank_engine::SandboxId;
use sandbank_orchestrator::{Attached, OrchestratorError};
use sandbank_protocol::{FaultCode, WatchEvent, WatchKind};

use super::reconnect::{Retry, is_broken, refused_as};
use crate::app::App;
use crate::error::ApiResult;
use crate::streams::StreamPermit;

pub(super) struct WatchFeed {
    app: App,
    sandbox: SandboxId,
    query: WatchQuery,
    /// Keeps the sandbox busy, and tells when it ends.
    attached: Attached,
    records: RecordStream<WatchEvent>,
    /// Heard, but not handed out yet.
    ahead: VecDeque<WatchEvent>,
    retry: Retry,
    ended: bool,
    _permit: StreamPermit,
}

/// Why nothing more comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// After the event that says so.
    Ended,
    /// The daemon is on its way out; another one goes on.
    Draining,
    /// It may be asked again.
    Unreachable,
}

impl WatchFeed {
    pub(super) async fn open(app: App, sandbox: SandboxId, query: WatchQuery) -> ApiResult<Self> {
        let permit = app.streams().open()?;
        let attached = app.orchestrator().attach(&sandbox).await?;
        let wanted = &query;
        let records = attached.run(|client| async move { client.watch(wanted).await }).await?;
        let (ahead, retry) = (VecDeque::new(), Retry::default());
        let ended = false;
        Ok(Self { app, sandbox, query, attached, records, ahead, retry, ended, _permit: permit })
    }

    /// Nothing is lost when this is given up before it is done.
    pub(super) async fn next(&mut self) -> Result<WatchEvent, Stopped> {
        loop {
            if let Some(event) = self.ahead.pop_front() {
                return Ok(event);
            }
            if self.ended {
                return Err(Stopped::Ended);
            }
            let next = tokio::select! {
                biased;
                next = self.records.next() => next,
                cause = self.attached.ended() => {
                    self.end(&cause.to_string());
                    continue;
                }
                () = self.app.shutdown().draining() => return Err(Stopped::Draining),
            };
            match next {
                Ok(Some(records)) => records.records.into_iter().for_each(|event| self.take(event)),
                Ok(None) => self.reconnect().await?,
                Err(error) if error.is_broken() => self.reconnect().await?,
                Err(error) => {
                    tracing::warn!(%error, "a watch broke off");
                    return Err(Stopped::Unreachable);
                }
            }
        }
    }

    fn take(&mut self, event: WatchEvent) {
        let resumed = self.query.after.replace(event.seq).is_some();
        match event.kind {
            // Of every connection to the runner; a client has one.
            WatchKind::Ready if resumed && self.retry.is_used() => {}
            WatchKind::Heartbeat => {}
            kind => {
                self.ended = kind == WatchKind::End;
                self.ahead.push_back(event);
            }
        }
        self.retry = Retry::default();
    }

    fn end(&mut self, reason: &str) {
        let seq = self.query.after.unwrap_or(0);
        self.ahead.push_back(WatchEvent::new(seq, WatchKind::End).because(reason));
        self.ended = true;
    }

    async fn reconnect(&mut self) -> Result<(), Stopped> {
        while self.retry.again().await {
            match self.reopen().await {
                Ok(records) => {
                    self.records = records;
                    return Ok(());
                }
                Err(OrchestratorError::Gone { cause, .. }) => {
                    self.end(&cause.to_string());
                    return Ok(());
                }
                Err(OrchestratorError::NotFound(_)) => {
                    self.end("the sandbox is gone");
                    return Ok(());
                }
                Err(OrchestratorError::Channel(error)) if is_refused(&error) => {
                    self.end(&error.to_string());
                    return Ok(());
                }
                Err(error) if is_broken(&error) => {}
                Err(_) => return Err(Stopped::Unreachable),
            }
        }
        Err(Stopped::Unreachable)
    }

    async fn reopen(&mut self) -> Result<RecordStream<WatchEvent>, OrchestratorError> {
        self.attached = self.app.orchestrator().attach(&self.sandbox).await?;
        Ok(self.attached.watch(&self.query).await?)
    }
}

/// For reasons that do not pass, as that the directory is gone.
fn is_refused(error: &ChannelError) -> bool {
    let lasting = [FaultCode::NotFound, FaultCode::WrongKind, FaultCode::PermissionDenied];
    lasting.into_iter().any(|code| refused_as(error, code))
}

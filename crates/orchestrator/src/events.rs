//! The event log: one task numbers, stores and tells events, so that their order is the same for
//! everybody. An event that cannot be stored is still told.

use std::sync::Arc;

use sandbank_engine::SandboxId;
use sandbank_store::{Event, Store, StoreError};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::clock::Clock;
use crate::limits::{EVENTS_PAUSE, EVENTS_PER_WRITE, LIVE_EVENTS};

/// Stored events, then live ones, without a gap or a repetition.
type Subscription = (Vec<Event>, broadcast::Receiver<Event>);

/// Cheap to clone. Emitting never waits.
#[derive(Clone)]
pub(crate) struct EventLog {
    entries: mpsc::UnboundedSender<Entry>,
    clock: Arc<dyn Clock>,
}

enum Entry {
    Event(Event),
    Subscribe { after: u64, reply: oneshot::Sender<Result<Subscription, StoreError>> },
    Flush(oneshot::Sender<()>),
}

impl EventLog {
    pub(crate) async fn start(store: Store, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let last_seq = store.events().last_seq().await?;
        let (entries, queue) = mpsc::unbounded_channel();
        let (live, _) = broadcast::channel(LIVE_EVENTS);
        tokio::spawn(Writer { store, queue, live, last_seq, failing: false }.run());
        Ok(Self { entries, clock })
    }

    pub(crate) fn emit(&self, kind: &str, sandbox: Option<&SandboxId>, detail: Value) {
        let event = Event {
            seq: 0,
            time_ms: self.clock.wall_ms(),
            sandbox: sandbox.cloned(),
            kind: kind.to_owned(),
            detail,
        };
        let _ = self.entries.send(Entry::Event(event));
    }

    pub(crate) async fn subscribe(&self, after: u64) -> Option<Result<Subscription, StoreError>> {
        let (reply, answer) = oneshot::channel();
        self.entries.send(Entry::Subscribe { after, reply }).ok()?;
        answer.await.ok()
    }

    /// Resolves when everything emitted before is stored.
    pub(crate) async fn flush(&self) {
        let (reply, done) = oneshot::channel();
        if self.entries.send(Entry::Flush(reply)).is_ok() {
            let _ = done.await;
        }
    }
}

struct Writer {
    store: Store,
    queue: mpsc::UnboundedReceiver<Entry>,
    live: broadcast::Sender<Event>,
    last_seq: u64,
    /// Whether the last write failed: an episode is logged once.
    failing: bool,
}

impl Writer {
    async fn run(mut self) {
        let mut entries = Vec::new();
        while self.queue.recv_many(&mut entries, EVENTS_PER_WRITE).await > 0 {
            self.gather(&mut entries).await;
            let mut batch = Vec::new();
            for entry in entries.drain(..) {
                match entry {
                    Entry::Event(mut event) => {
                        self.last_seq += 1;
                        event.seq = self.last_seq;
                        batch.push(event);
                    }
                    Entry::Subscribe { after, reply } => {
                        self.write(std::mem::take(&mut batch)).await;
                        let _ = reply.send(self.subscription(after).await);
                    }
                    Entry::Flush(reply) => {
                        self.write(std::mem::take(&mut batch)).await;
                        let _ = reply.send(());
                    }
                }
            }
            self.write(batch).await;
        }
    }

    /// Events come in groups, and each write is a turn at the database that a create or a stop
    /// may be waiting for: those of a moment go together, unless somebody waits for them.
    async fn gather(&mut self, entries: &mut Vec<Entry>) {
        let deadline = Instant::now() + EVENTS_PAUSE;
        let mut patient = entries.iter().all(|entry| matches!(entry, Entry::Event(_)));
        while patient && entries.len() < EVENTS_PER_WRITE {
            let Ok(Some(entry)) = timeout_at(deadline, self.queue.recv()).await else { return };
            patient = matches!(entry, Entry::Event(_));
            entries.push(entry);
        }
    }

    async fn write(&mut self, batch: Vec<Event>) {
        if batch.is_empty() {
            return;
        }
        let written = self.store.events().append(&batch).await;
        if let Err(error) = &written
            && !self.failing
        {
            tracing::error!(%error, "events are not being stored");
        }
        self.failing = written.is_err();
        for event in batch {
            let _ = self.live.send(event);
        }
    }

    async fn subscription(&self, after: u64) -> Result<Subscription, StoreError> {
        let live = self.live.subscribe();
        let mut stored: Vec<Event> = Vec::new();
        loop {
            let from = stored.last().map_or(after, |event| event.seq);
            let page = self.store.events().after(from).await?;
            if page.is_empty() {
                return Ok((stored, live));
            }
            stored.extend(page);
        }
    }
}

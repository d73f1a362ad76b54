//! Machines as this process knows them. The engine has the truth about which there are.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sandbank_engine::{Death, DeathCause, DeathWatch, EngineError, MachineSpec, SandboxId};

use crate::limits::{OOM_KILL_SETTLED, READY_STREAM_FRESH_FOR, USAGE_FRESH_FOR};
use crate::streams::{LinkCut, Opened};

pub(crate) struct Entry {
    /// Held by `create`, `destroy`, `pause` and `resume`: one of them at a time.
    pub(super) busy: tokio::sync::Mutex<()>,
    /// Held while a link is opened: the runner has one.
    pub(super) linking: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
    death: Death,
}

#[derive(Default)]
struct Known {
    spec: Option<MachineSpec>,
    /// The engine's own id: what it tells of another container of the same name is old.
    container: Option<String>,
    /// The stream that `create` opened, for the first `connect`.
    ready: Option<(Instant, Opened)>,
    /// Ends the link that was attached last, whether or not it was ever opened.
    cut: Option<LinkCut>,
    oom_kills: u64,
    last_oom_kill: Option<Instant>,
    /// Its container is being removed, by us.
    ending: bool,
    /// Docker has sent it the signal that nothing outlives, and not for us.
    killed: bool,
    usage: Option<(Instant, u64)>,
}

impl Entry {
    pub(super) fn new(spec: Option<MachineSpec>) -> Arc<Self> {
        Arc::new(Self {
            busy: tokio::sync::Mutex::new(()),
            linking: tokio::sync::Mutex::new(()),
            known: Mutex::new(Known { spec, ..Known::default() }),
            death: Death::default(),
        })
    }

    pub(super) fn spec(&self) -> Option<MachineSpec> {
        self.known().spec.clone()
    }

    pub(super) fn set_container(&self, container: String) {
        self.known().container = Some(container);
    }

    pub(super) fn is_container(&self, container: &str) -> bool {
        self.known().container.as_deref() == Some(container)
    }

    pub(super) fn has_container(&self) -> bool {
        self.known().container.is_some()
    }

    /// Its container was removed, and another is about to be made.
    pub(super) fn begin_again(&self) {
        let mut known = self.known();
        (known.container, known.ending, known.killed) = (None, false, false);
        drop(known);
        self.death.forget();
    }

    /// Whatever happens to its container from here on is our doing.
    pub(super) fn set_ending(&self, ending: bool) {
        self.known().ending = ending;
    }

    pub(super) fn saw_kill(&self) {
        let mut known = self.known();
        known.killed |= !known.ending;
    }

    /// By somebody else, through Docker.
    pub(super) fn was_killed(&self) -> bool {
        self.known().killed
    }

    /// Of what it died, now that its container is not there.
    pub(super) fn removed(&self) -> DeathCause {
        match self.known().ending {
            true => DeathCause::Unknown,
            false => DeathCause::ContainerRemoved,
        }
    }

    pub(super) fn set_ready(&self, stream: Opened) {
        self.known().ready = Some((Instant::now(), stream));
    }

    pub(super) fn take_ready(&self) -> Option<Opened> {
        let ready = self.known().ready.take();
        ready.filter(|(opened, _)| opened.elapsed() < READY_STREAM_FRESH_FOR).map(|(_, it)| it)
    }

    /// Ends the link there was. Nothing of it is under way when the next is opened: whoever leaves
    /// while this waits leaves the cut to the next, who waits, too.
    pub(super) async fn end_link(&self) {
        let cut = self.known().cut.clone();
        if let Some(cut) = cut {
            cut.end().await;
        }
    }

    pub(super) fn set_cut(&self, cut: LinkCut) {
        self.known().cut = Some(cut);
    }

    pub(super) fn saw_oom_kill(&self) {
        let mut known = self.known();
        known.oom_kills += 1;
        known.last_oom_kill = Some(Instant::now());
    }

    pub(super) fn oom_kills(&self) -> u64 {
        self.known().oom_kills
    }

    /// Whether the last out-of-memory kill was so long ago that the machine outlived it. Of kills
    /// before this process nobody knows when they were.
    pub(super) fn outlived_oom_kill(&self) -> bool {
        self.known().last_oom_kill.is_some_and(|last| last.elapsed() >= OOM_KILL_SETTLED)
    }

    pub(super) fn usage(&self) -> Option<u64> {
        let usage = self.known().usage;
        usage.filter(|(measured, _)| measured.elapsed() < USAGE_FRESH_FOR).map(|(_, bytes)| bytes)
    }

    pub(super) fn set_usage(&self, bytes: u64) {
        self.known().usage = Some((Instant::now(), bytes));
    }

    pub(super) fn set_dead(&self, cause: DeathCause) {
        self.known().ready = None;
        self.death.tell(cause);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.death.is_told()
    }

    pub(super) fn death(&self) -> DeathWatch {
        self.death.listen()
    }

    /// The engine was away: a stream through it is not one any more.
    pub(super) fn drop_ready(&self) {
        self.known().ready = None;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(crate) struct Table {
    entries: Mutex<HashMap<SandboxId, Arc<Entry>>>,
    /// Machines of the engine's own, that `list` does not show.
    hidden: Mutex<HashSet<SandboxId>>,
}

/// While it lives, `list` does not show the machine, so nobody takes it for one without an owner.
/// Afterwards it does: what is left of it then is for whoever looks.
pub(crate) struct Hidden<'a> {
    table: &'a Table,
    id: SandboxId,
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        self.table.hidden().remove(&self.id);
    }
}

impl Table {
    pub(super) fn get(&self, id: &SandboxId) -> Option<Arc<Entry>> {
        self.entries().get(id).cloned()
    }

    /// For a new machine; the id must not be taken.
    pub(super) fn reserve(&self, spec: &MachineSpec) -> Result<Arc<Entry>, EngineError> {
        let mut entries = self.entries();
        if entries.contains_key(&spec.id) {
            return Err(EngineError::Internal(format!("machine {} exists already", spec.id)));
        }
        let entry = Entry::new(Some(spec.clone()));
        entries.insert(spec.id.clone(), Arc::clone(&entry));
        Ok(entry)
    }

    pub(super) fn get_or_insert(&self, id: &SandboxId, spec: Option<MachineSpec>) -> Arc<Entry> {
        let entry = || Entry::new(spec);
        Arc::clone(self.entries().entry(id.clone()).or_insert_with(entry))
    }

    pub(super) fn remove(&self, id: &SandboxId) {
        self.entries().remove(id);
    }

    pub(super) fn all(&self) -> Vec<(SandboxId, Arc<Entry>)> {
        self.entries().iter().map(|(id, entry)| (id.clone(), Arc::clone(entry))).collect()
    }

    pub(crate) fn hide(&self, id: &SandboxId) -> Hidden<'_> {
        self.hidden().insert(id.clone());
        Hidden { table: self, id: id.clone() }
    }

    pub(super) fn is_hidden(&self, id: &SandboxId) -> bool {
        self.hidden().contains(id)
    }

    fn hidden(&self) -> MutexGuard<'_, HashSet<SandboxId>> {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<SandboxId, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt;
    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;

    use super::*;
    use crate::connection::Wire;
    use crate::streams::{Complaints, Cuttable, Frames};

    #[tokio::test]
    async fn whoever_leaves_while_the_old_link_ends_leaves_the_wait_to_the_next() {
        let entry = Entry::new(None);
        let (near, mut far) = UnixStream::pair().unwrap();
        let complaints = Complaints::of(&SandboxId::random());
        let (link, cut) = Cuttable::new(Frames::new(Wire::Unix(near), Bytes::new(), complaints));
        entry.set_cut(cut);
        drop(link);
        // The other side keeps its way open: something may still be under way.
        for caller in ["first", "second"] {
            assert!(entry.end_link().now_or_never().is_none(), "the {caller} did not wait");
        }
        far.read_to_end(&mut Vec::new()).await.unwrap();
        drop(far);
        entry.end_link().await;
    }
}

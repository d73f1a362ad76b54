//! All watched trees of the sandbox, with one instance of the kernel's for all of them: of these a
//! user has few, and in a container every sandbox may be the same user.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::inotify::ReadFlags;
use sandbank_protocol::{Fault, FaultCode};
use sandbank_rooted_fs::Root;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::inotify::{Inotify, Word};
use super::shared::{Phase, Reader, Shared};
use super::watched::{Kernel, Wanted, Watched};
use crate::limits::{
    HEARTBEAT_INTERVAL, MAX_WATCH_PENDING, MAX_WATCHES, WATCH_ENTRIES_PER_TURN, WATCH_GRACE,
    WATCH_SCANS_PER_TURN, WATCH_SETTLE, WATCH_SETTLE_LONGEST,
};

/// Nothing of it exists before the first watch, and after the last.
#[derive(Default)]
pub(crate) struct Watches {
    state: RefCell<Option<State>>,
    /// There is a new one.
    added: Notify,
}

struct State {
    inotify: Rc<Inotify>,
    watched: HashMap<u64, Watched>,
    /// Who has a directory, by the kernel's number.
    owners: HashMap<i32, Vec<u64>>,
    next: u64,
    /// Who begins moves on with every turn.
    turns: usize,
}

impl Watches {
    /// A reader of the tree, once everything in it is watched.
    pub(super) async fn read(
        self: &Rc<Self>,
        wanted: Wanted,
        root: Arc<Root>,
    ) -> Result<Reader, Fault> {
        let reader = match self.find(&wanted) {
            Some(reader) => reader,
            None => self.add(wanted, root)?,
        };
        reader.begun().await.map_err(|reason| Fault::new(FaultCode::LimitReached, reason))?;
        Ok(reader)
    }

    /// One that is there already, and still of what the path names.
    fn find(&self, wanted: &Wanted) -> Option<Reader> {
        let mut state = self.state.borrow_mut();
        let state = state.as_mut()?;
        let is_it = |one: &Watched| one.wanted == *wanted && !one.shared.is_over();
        let id = state.watched.iter().find(|(_, one)| is_it(one)).map(|(id, _)| *id)?;
        state.with(id, Watched::check_top);
        let found = state.watched.get(&id).filter(|one| !one.shared.is_over())?;
        Some(Reader::new(found.shared.clone()))
    }

    fn add(self: &Rc<Self>, wanted: Wanted, root: Arc<Root>) -> Result<Reader, Fault> {
        let mut state = self.state.borrow_mut();
        if state.is_none() {
            let inotify = Inotify::new().map_err(|error| {
                let message = format!("the kernel has nothing to watch with: {error}");
                Fault::new(FaultCode::LimitReached, message)
            })?;
            *state = Some(State::new(inotify));
            tokio::task::spawn_local(run(self.clone()));
        }
        let state = state.as_mut().expect("it was made just now");
        if state.watched.len() >= MAX_WATCHES {
            state.forget_longest_unread()?;
        }
        let shared = Rc::new(Shared::new());
        let reader = Reader::new(shared.clone());
        let id = state.next;
        state.next += 1;
        state.watched.insert(id, Watched::new(wanted, root, shared));
        state.with(id, |watched, kernel| watched.begin(kernel, None));
        self.added.notify_one();
        Ok(reader)
    }
}

/// Until there is nothing to watch.
async fn run(watches: Rc<Watches>) {
    loop {
        let (inotify, busy, wake) = {
            let mut state = watches.state.borrow_mut();
            let Some(state) = state.as_mut() else { return };
            let busy = state.turn();
            (state.inotify.clone(), busy, state.wake())
        };
        if busy {
            tokio::task::yield_now().await;
            continue;
        }
        let Some(wake) = wake else {
            watches.state.borrow_mut().take();
            return;
        };
        tokio::select! {
            () = inotify.readable() => {}
            () = watches.added.notified() => {}
            () = sleep_until(wake) => {}
        }
    }
}

impl State {
    fn new(inotify: Inotify) -> Self {
        let inotify = Rc::new(inotify);
        Self { inotify, watched: HashMap::new(), owners: HashMap::new(), next: 0, turns: 0 }
    }

    /// Some of what there is to do; whether there is more.
    fn turn(&mut self) -> bool {
        let (words, mut busy) = self.inotify.words();
        for word in words {
            self.hear(&word);
        }
        let ids = self.in_turn();
        let (mut scans, mut entries) = (WATCH_SCANS_PER_TURN, WATCH_ENTRIES_PER_TURN);
        for id in &ids {
            self.with(*id, |watched, kernel| {
                while scans > 0 && entries > 0 {
                    let Some(read) = watched.list_some(kernel) else { break };
                    scans -= 1;
                    entries = entries.saturating_sub(read);
                }
                watched.settle();
            });
            busy |= self.watched.get(id).is_some_and(Watched::is_listing);
        }
        for id in ids {
            if self.is_due(id) {
                self.with(id, |watched, kernel| {
                    watched.check_top(kernel);
                    watched.tell(kernel);
                });
            } else if self.watched.get(&id).is_some_and(|one| check_at(one) <= Instant::now()) {
                self.with(id, Watched::check_top);
            }
        }
        self.forget_unread();
        busy
    }

    /// All of them; each turn begins with another.
    fn in_turn(&mut self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.watched.keys().copied().collect();
        ids.sort_unstable();
        self.turns = self.turns.wrapping_add(1);
        let first = self.turns % ids.len().max(1);
        ids.rotate_left(first);
        ids
    }

    fn hear(&mut self, word: &Word) {
        if word.what.contains(ReadFlags::QUEUE_OVERFLOW) {
            let reason = "so much happened at once that the kernel did not keep all of it";
            let living = self.watched.iter().filter(|(_, one)| !one.shared.is_over());
            let ids: Vec<u64> = living.map(|(id, _)| *id).collect();
            for id in ids {
                self.with(id, |watched, kernel| watched.begin(kernel, Some(reason)));
            }
            return;
        }
        let owners = self.owners.get(&word.wd).cloned().unwrap_or_default();
        for id in owners {
            self.with(id, |watched, kernel| watched.apply(kernel, word));
        }
        if word.what.contains(ReadFlags::IGNORED) {
            self.owners.remove(&word.wd);
        }
    }

    /// Does something with one of them, and tells the kernel what comes of it.
    fn with(&mut self, id: u64, act: impl FnOnce(&mut Watched, &mut Kernel<'_>)) {
        let inotify = self.inotify.clone();
        let Some(watched) = self.watched.get_mut(&id) else { return };
        let mut kernel = Kernel {
            inotify: &inotify,
            owners: &self.owners,
            fresh: HashSet::new(),
            taken: Vec::new(),
            freed: Vec::new(),
        };
        act(watched, &mut kernel);
        let Kernel { taken, mut freed, .. } = kernel;
        // What was taken and is not in the tree is nobody's.
        freed.extend_from_slice(&taken);
        for wd in taken {
            let owners = self.owners.entry(wd).or_default();
            if !owners.contains(&id) {
                owners.push(id);
            }
        }
        let freed: Vec<i32> = freed
            .into_iter()
            .filter(|wd| !self.watched.get(&id).is_some_and(|one| one.has(*wd)))
            .collect();
        self.free(id, &freed);
    }

    fn free(&mut self, id: u64, freed: &[i32]) {
        for wd in freed {
            let Some(owners) = self.owners.get_mut(wd) else { continue };
            owners.retain(|owner| *owner != id);
            if owners.is_empty() {
                self.owners.remove(wd);
                self.inotify.remove(*wd);
            }
        }
    }

    /// Whether it is time to tell what has gathered.
    fn is_due(&self, id: u64) -> bool {
        let Some(watched) = self.watched.get(&id) else { return false };
        let Some(since) = watched.changes.since() else { return false };
        let patience = if watched.is_listing() { WATCH_SETTLE_LONGEST } else { WATCH_SETTLE };
        since.elapsed() >= patience || watched.changes.len() >= MAX_WATCH_PENDING
    }

    /// When there is something to do, whatever the kernel says; none when nothing is watched.
    fn wake(&self) -> Option<Instant> {
        let due = |watched: &Watched| {
            let tell = watched.changes.since().map(|since| since + WATCH_SETTLE);
            let unread = watched.shared.unread_since().map(|since| since + WATCH_GRACE);
            // Those who leave do not say so, nor does who moves what is above the top.
            let look = if watched.shared.is_over() {
                Instant::now() + WATCH_GRACE
            } else {
                check_at(watched)
            };
            [tell, unread].into_iter().flatten().fold(look, Instant::min)
        };
        self.watched.values().map(due).min()
    }

    fn forget_unread(&mut self) {
        let is_unread = |watched: &Watched| {
            let unread = watched.shared.unread_since();
            unread.is_some_and(|since| watched.shared.is_over() || since.elapsed() >= WATCH_GRACE)
        };
        let unread: Vec<u64> =
            self.watched.iter().filter(|(_, one)| is_unread(one)).map(|(id, _)| *id).collect();
        unread.into_iter().for_each(|id| self.forget(id));
    }

    /// Makes room for a new one.
    fn forget_longest_unread(&mut self) -> Result<(), Fault> {
        let unread =
            self.watched.iter().filter_map(|(id, one)| Some((one.shared.unread_since()?, *id)));
        let Some((_, id)) = unread.min() else {
            let message = format!("{MAX_WATCHES} trees are watched already");
            return Err(Fault::new(FaultCode::LimitReached, message));
        };
        self.forget(id);
        Ok(())
    }

    fn forget(&mut self, id: u64) {
        let Some(mut watched) = self.watched.remove(&id) else { return };
        watched.shared.enter(Phase::Over("nobody read it for long".to_owned()));
        let freed = watched.give_up();
        self.free(id, &freed);
    }
}

/// When to look again whether the top is where it should be.
fn check_at(watched: &Watched) -> Instant {
    watched.checked + HEARTBEAT_INTERVAL
}

//! The sandbox of each session: opened when it is first needed, shared by its calls, ended when
//! nobody has used it for long or when another session needs its place.
//!
//! A sandbox that is busy is never taken from its session. What is known here is only a cache: a
//! provider finds the sandbox of a session again after a restart.

mod slot;
mod table;
mod telling;

use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::{Notify, OnceCell};
use tokio::time::Instant;

use crate::config::Config;
use crate::counted::Tally;
use crate::limits::{ENDING_PATIENCE, FILLING_MARGIN, MAX_MARKER_BYTES, ROOM_PATIENCE};
use crate::seed::{Progress, Seed};
use crate::{Opened, Provider, Sandbox, ToolError};
use slot::Slot;
use table::{Lack, Place, Room, Table, Taken};
use telling::tell_meanwhile;

/// Says that the workspace was filled to the end. The workload may remove it: after the next restart
/// the session then has a new sandbox.
const MARKER: &str = ".remcochat/seeded";

pub(crate) struct Sessions {
    provider: Arc<dyn Provider>,
    seed: Option<Arc<dyn Seed>>,
    max: usize,
    idle_ttl: Duration,
    /// How long filling a workspace may take.
    filling_time: Duration,
    table: Lock<Table>,
    /// A sandbox is no longer busy, or has ended.
    freed: Notify,
    /// Those of an earlier daemon are taken up.
    found: OnceCell<()>,
    /// Workspaces that were to be filled.
    pub(crate) seeds: Tally<&'static str>,
}

/// A session's sandbox, kept from ending for as long as this lives.
pub(crate) struct InUse {
    pub(crate) sandbox: Arc<dyn Sandbox>,
    hold: Hold,
}

impl InUse {
    /// Whether the session had another one before, which ended without its asking, and was not told.
    pub(crate) fn is_news(&self) -> bool {
        self.hold.slot.is_news()
    }

    pub(crate) fn set_told(&self) {
        self.hold.slot.set_news(false);
    }
}

struct Hold {
    sessions: Arc<Sessions>,
    slot: Arc<Slot>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.slot.end_use();
        self.sessions.freed.notify_waiters();
    }
}

impl Sessions {
    pub(crate) fn new(
        config: &Config,
        provider: Arc<dyn Provider>,
        seed: Option<Arc<dyn Seed>>,
    ) -> Self {
        Self {
            provider,
            seed,
            max: config.max_concurrent_sandboxes,
            idle_ttl: config.idle_ttl,
            filling_time: config.sandbox.timeout,
            table: Lock::default(),
            freed: Notify::new(),
            found: OnceCell::new(),
            seeds: Tally::default(),
        }
    }

    /// The session's sandbox, filled, opened if it is not; `told` hears of its filling, whoever began
    /// that.
    pub(crate) async fn get_telling(
        self: &Arc<Self>,
        session: &str,
        told: Progress<'_>,
    ) -> Result<InUse, ToolError> {
        self.get_where(session, Room::OfOthers, told).await
    }

    async fn get_where(
        self: &Arc<Self>,
        session: &str,
        room: Room,
        told: Progress<'_>,
    ) -> Result<InUse, ToolError> {
        self.found.get_or_init(|| self.find()).await;
        loop {
            let hold = self.hold(session, room).await?;
            let lines = hold.slot.filling.subscribe();
            let opened = tell_meanwhile(self.opened(session, hold), lines, told).await?;
            if let Some(held) = opened {
                return Ok(held);
            }
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.table().slots.len()
    }

    /// None where the session was reset meanwhile: what is opened into its old slot is nobody's.
    async fn opened(
        self: &Arc<Self>,
        session: &str,
        hold: Hold,
    ) -> Result<Option<InUse>, ToolError> {
        let mut place = hold.slot.sandbox.clone().lock_owned().await;
        if !self.table().has(session, &hold.slot) {
            return Ok(None);
        }
        if let Some(sandbox) = &*place {
            if sandbox.is_alive().await {
                return Ok(Some(InUse { sandbox: sandbox.clone(), hold }));
            }
            *place = None;
            self.table().note_lost(session);
        }
        // A task of its own: a caller who leaves does not leave a workspace that is half filled.
        let (this, session) = (self.clone(), session.to_owned());
        let opening = tokio::spawn(async move {
            let opened = this.open(&session, &hold.slot).await;
            if let Ok(Opened { sandbox, created }) = &opened {
                *place = Some(sandbox.clone());
                if *created && this.table().forget_lost(&session) {
                    hold.slot.set_news(true);
                }
            }
            drop(place);
            if opened.is_err() {
                this.give_up(&session, &hold.slot);
            }
            Ok(Some(InUse { sandbox: opened?.sandbox, hold }))
        });
        opening.await.unwrap_or_else(|_| Err(ToolError::Failed("it was not opened".to_owned())))
    }

    /// Opens it ahead of its first use, where there is room: nobody's makes way for what may not be
    /// used.
    pub(crate) fn prewarm(self: &Arc<Self>, session: &str) {
        let (this, session) = (self.clone(), session.to_owned());
        tokio::spawn(async move {
            if let Err(error) = this.get_where(&session, Room::IfFree, &|_| {}).await {
                tracing::info!(%error, "a sandbox of the tools was not opened ahead of its use");
            }
        });
    }

    /// Ends the session's sandbox; the next call has a new one. Calls that run in it end with it.
    pub(crate) async fn reset(self: &Arc<Self>, session: &str) -> Result<(), ToolError> {
        self.found.get_or_init(|| self.find()).await;
        let taken = self.table().take_for_reset(session);
        self.end(taken).await
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of an earlier daemon take part in the count.
    async fn find(self: &Arc<Self>) {
        let found = self.provider.sessions().await;
        {
            let mut table = self.table();
            for session in found {
                table.slots.entry(session).or_insert_with(|| Arc::new(Slot::new()));
            }
        }
        tokio::spawn(end_idle_ones(Arc::downgrade(self)));
    }

    /// A place for the session, if need be that of another one.
    async fn hold(self: &Arc<Self>, session: &str, room: Room) -> Result<Hold, ToolError> {
        let begin = Instant::now();
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // From here on no notice is missed.
            freed.as_mut().enable();
            let place = self.table().place(session, self.max, room);
            let lack = match place {
                Place::Has(slot) => return Ok(Hold { sessions: self.clone(), slot }),
                Place::After(evicted) => {
                    tracing::info!(
                        count = evicted.len(),
                        "the sandbox of the session that was used least makes room"
                    );
                    join_all(evicted.into_iter().map(|taken| self.end_quietly(taken))).await;
                    continue;
                }
                Place::None(lack) => lack,
            };
            let patience = match (room, lack) {
                (Room::IfFree, _) => Duration::ZERO,
                (Room::OfOthers, Lack::Busy) => ROOM_PATIENCE,
                (Room::OfOthers, Lack::OwnEnds | Lack::OthersEnd) => ENDING_PATIENCE,
            };
            if tokio::time::timeout_at(begin + patience, freed).await.is_err() {
                return Err(self.no_room(lack));
            }
        }
    }

    fn no_room(&self, lack: Lack) -> ToolError {
        ToolError::Unavailable(match lack {
            Lack::Busy => format!(
                "all {} sandboxes of the tools are busy; try again when a command of another \
                 session has ended, or raise app.bash_tools.max_concurrent_sandboxes",
                self.max
            ),
            Lack::OwnEnds => "the sandbox that this session had is still being ended; call again \
                              to get a new one"
                .to_owned(),
            Lack::OthersEnd => "the sandbox that makes room for this session is still being \
                                ended; call again"
                .to_owned(),
        })
    }

    /// In a task of its own: what was begun is finished, whoever waits for it.
    async fn end(self: &Arc<Self>, taken: Taken) -> Result<(), ToolError> {
        let this = self.clone();
        let ending = tokio::spawn(async move {
            let sandbox = match &taken.slot {
                Some(slot) => {
                    // Its filling would be waited for.
                    slot.unwanted.cancel();
                    slot.sandbox.lock().await.take()
                }
                None => None,
            };
            let ended = match sandbox {
                Some(sandbox) => sandbox.stop().await,
                None => this.provider.close(&taken.session).await,
            };
            this.table().end_closing(&taken.session);
            this.freed.notify_waiters();
            ended
        });
        ending.await.unwrap_or_else(|_| Err(ToolError::Failed("it was not ended".to_owned())))
    }

    async fn end_quietly(self: &Arc<Self>, taken: Taken) {
        if let Err(error) = self.end(taken).await {
            tracing::warn!(%error, "a sandbox of the tools was not ended");
        }
    }

    async fn open(&self, session: &str, slot: &Slot) -> Result<Opened, ToolError> {
        let mut opened = self.provider.open(session).await?;
        let Some(seed) = &self.seed else { return Ok(opened) };
        if !opened.created {
            match opened.sandbox.read_file(MARKER, MAX_MARKER_BYTES).await {
                Ok(_) => return Ok(opened),
                Err(ToolError::NotFound(_) | ToolError::InvalidInput(_)) => {
                    opened = self.anew(session, &*opened.sandbox).await?;
                }
                // Nobody can tell just now, and nothing of it may be lost for that.
                Err(error) => return Err(error),
            }
        }
        match self.fill(&**seed, &*opened.sandbox, slot).await {
            Ok(()) => {
                self.seeds.add("done", 1);
                Ok(opened)
            }
            Err(error) => {
                self.seeds.add("failed", 1);
                // The next one begins with an empty workspace.
                if let Err(error) = opened.sandbox.stop().await {
                    tracing::warn!(%error, "a sandbox that was not filled was not ended either");
                }
                Err(error)
            }
        }
    }

    /// Not beyond its time, and only as long as the sandbox is wanted.
    async fn fill(
        &self,
        seed: &dyn Seed,
        sandbox: &dyn Sandbox,
        slot: &Slot,
    ) -> Result<(), ToolError> {
        let unavailable = |why: String| Err(ToolError::Unavailable(why));
        let told = |line: &str| drop(slot.filling.send_replace(line.to_owned()));
        let most = self.filling_time + FILLING_MARGIN;
        let filled = tokio::select! {
            biased;
            () = slot.unwanted.cancelled() => unavailable(
                "the session was reset while its workspace was being filled; call again".to_owned(),
            ),
            filled = tokio::time::timeout(most, seed.fill(sandbox, &told)) => {
                filled.unwrap_or_else(|_| unavailable(format!(
                    "filling the workspace took longer than {} s \
                     (app.bash_tools.sandbox.timeout_ms)",
                    self.filling_time.as_secs()
                )))
            }
        };
        filled?;
        sandbox.write_file(MARKER, Bytes::from_static(b"filled\n")).await
    }

    /// In the place of one that is not known to be filled. It is never filled now: what fills a
    /// workspace may have a secret, and programs that wait for it may be there already.
    async fn anew(&self, session: &str, old: &dyn Sandbox) -> Result<Opened, ToolError> {
        tracing::info!(sandbox = old.id(), "a sandbox that was not filled to the end makes way");
        old.stop().await?;
        let opened = self.provider.open(session).await?;
        if opened.created {
            return Ok(opened);
        }
        Err(ToolError::Unavailable("the sandbox is not a new one; call again".to_owned()))
    }

    /// A session whose sandbox could not be had takes no place, unless others wait for it.
    fn give_up(&self, session: &str, slot: &Arc<Slot>) {
        let mut table = self.table();
        if table.has(session, slot) && slot.users() == 1 {
            table.slots.remove(session);
        }
    }

    /// Takes those out whose time is over, and says when to look again.
    fn expired(&self) -> (Vec<Taken>, Instant) {
        let now = Instant::now();
        let mut table = self.table();
        let over = now.checked_sub(self.idle_ttl).map(|then| table.take_unused_since(then));
        let idle = table.slots.values().filter_map(|slot| slot.idle_since());
        let next = idle.min().unwrap_or(now) + self.idle_ttl;
        (over.unwrap_or_default(), next)
    }
}

/// Nothing that becomes idle meanwhile ends before the next look.
async fn end_idle_ones(sessions: Weak<Sessions>) {
    loop {
        let Some(this) = sessions.upgrade() else { return };
        let (over, next) = this.expired();
        for taken in over {
            this.end_quietly(taken).await;
        }
        drop(this);
        tokio::time::sleep_until(next).await;
    }
}

#[cfg(test)]
mod tests;

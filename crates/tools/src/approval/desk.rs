//! Questions that wait for a person.
//!
//! The row in the store is the truth: whoever ends it first, a decision, the deadline or the caller
//! who goes away, has the last word. A call goes on only when the row says that it was allowed, in
//! the daemon that asked; rows that waited in an earlier one are closed before this one asks anything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use sandbank_store::{ApprovalOutcome, Store, StoreError, ToolApprovalRow, ToolApprovals};
use serde_json::Value;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, oneshot};

use super::digest;
use super::limits::{MAX_KEPT, MAX_QUESTION_BYTES, MAX_WAITING, MAX_WAITING_OF_SESSION};
use crate::counted::Tally;
use crate::random::random_id;

pub struct Desk {
    store: Store,
    patience: Duration,
    waiting: Mutex<HashMap<String, Waiting>>,
    places: Arc<Semaphore>,
    begun: OnceCell<()>,
    /// Questions by how they ended, and what rules denied.
    pub(crate) ended: Tally<&'static str>,
}

struct Waiting {
    session: String,
    /// Who is told of the end of the question.
    tell: oneshot::Sender<ApprovalOutcome>,
}

/// A call that is asked about, or was stopped.
#[derive(Debug, Clone, Copy)]
pub struct Question<'c> {
    pub session: &'c str,
    pub tool: &'c str,
    pub input: &'c Value,
    /// Why.
    pub rule: &'c str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Allow,
    Deny,
}

#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    #[error("{MAX_WAITING} questions wait for a person already")]
    TooMany,
    #[error("{MAX_WAITING_OF_SESSION} questions of this session wait for a person already")]
    TooManyOfSession,
    #[error("its input has more than {MAX_QUESTION_BYTES} bytes, too many to ask a person about")]
    TooLarge,
    #[error("there is no question with this id")]
    NotFound,
    #[error("the digest is not that of this call: look at it again before you decide")]
    OtherDigest,
    #[error("{}", ended(*.0))]
    Ended(ApprovalOutcome),
    #[error("what is asked cannot be kept: {0}")]
    Store(#[from] StoreError),
}

fn ended(outcome: ApprovalOutcome) -> &'static str {
    match outcome {
        ApprovalOutcome::Waiting => "it still waits",
        ApprovalOutcome::Allowed => "it was allowed before",
        ApprovalOutcome::Denied => "it was denied before",
        ApprovalOutcome::Expired => "nobody decided in time, so the call was denied",
        ApprovalOutcome::Withdrawn => "whoever called went away, so the call was not made",
        ApprovalOutcome::Abandoned => {
            "the server was restarted while it waited, so the call was not made and never will be"
        }
    }
}

impl Desk {
    pub fn new(store: Store, patience: Duration) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(MAX_WAITING));
        let waiting = Mutex::default();
        let (begun, ended) = (OnceCell::new(), Tally::default());
        Arc::new(Self { store, patience, waiting, places, begun, ended })
    }

    /// The rows, once those that an earlier daemon left open are closed.
    async fn rows(&self) -> Result<ToolApprovals<'_>, StoreError> {
        let begin = || async {
            let left = self.store.tool_approvals().abandon_all(now_ms()).await?;
            if left > 0 {
                self.ended.add(ApprovalOutcome::Abandoned.as_str(), left);
                tracing::info!(left, "questions of an earlier server are closed: nobody waits");
            }
            Ok::<_, StoreError>(())
        };
        self.begun.get_or_try_init(begin).await?;
        Ok(self.store.tool_approvals())
    }

    /// Waits for the end; `told` is called once the question can be seen. Dropping it withdraws the
    /// question.
    pub async fn ask(
        self: &Arc<Self>,
        question: Question<'_>,
        told: &(dyn Fn(&ToolApprovalRow) + Send + Sync),
    ) -> Result<ApprovalOutcome, DeskError> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| DeskError::TooMany)?;
        let row = self.row(question, ApprovalOutcome::Waiting, None)?;
        let (tell, end) = oneshot::channel();
        self.enter(&row, tell)?;
        let mut asked =
            Asked { desk: self.clone(), id: row.id.clone(), ended: false, _place: place };
        self.rows().await?.insert(&row, MAX_KEPT).await?;
        tracing::info!(id = row.id, tool = row.tool, rule = row.rule, "a person is asked");
        told(&row);
        let outcome = match tokio::time::timeout(self.patience, end).await {
            Ok(Ok(outcome)) => outcome,
            // The deadline, or a desk that is gone.
            _ => self.expire(&row.id).await?,
        };
        asked.ended = true;
        self.ended.add(outcome.as_str(), 1);
        Ok(outcome)
    }

    fn enter(
        &self,
        row: &ToolApprovalRow,
        tell: oneshot::Sender<ApprovalOutcome>,
    ) -> Result<(), DeskError> {
        let mut waiting = self.waiting();
        let of_session = waiting.values().filter(|other| other.session == row.session).count();
        if of_session >= MAX_WAITING_OF_SESSION {
            return Err(DeskError::TooManyOfSession);
        }
        waiting.insert(row.id.clone(), Waiting { session: row.session.clone(), tell });
        Ok(())
    }

    async fn expire(&self, id: &str) -> Result<ApprovalOutcome, DeskError> {
        let rows = self.rows().await?;
        if rows.end(id, ApprovalOutcome::Expired, "deadline", now_ms()).await? {
            return Ok(ApprovalOutcome::Expired);
        }
        // A decision was quicker.
        rows.find(id).await?.map(|row| row.outcome).ok_or(DeskError::NotFound)
    }

    pub(crate) fn count_waiting(&self) -> usize {
        self.waiting().len()
    }

    /// Keeps that a rule denied a call.
    pub async fn note_denied(&self, question: Question<'_>) -> Result<(), DeskError> {
        self.ended.add("denied_by_rule", 1);
        let row = self.row(question, ApprovalOutcome::Denied, Some("rule".to_owned()));
        let row = match row {
            // What was denied is kept in any case; its digest says what it was.
            Err(DeskError::TooLarge) => {
                let mut row = self.row(
                    Question { input: &Value::Null, ..question },
                    ApprovalOutcome::Denied,
                    Some("rule".to_owned()),
                )?;
                row.digest = digest(question.session, question.tool, question.input);
                row
            }
            row => row?,
        };
        Ok(self.rows().await?.insert(&row, MAX_KEPT).await?)
    }

    /// `digest` is of the call that was looked at.
    pub async fn decide(
        &self,
        id: &str,
        answer: Answer,
        digest: &str,
        by: &str,
    ) -> Result<ToolApprovalRow, DeskError> {
        let rows = self.rows().await?;
        let row = rows.find(id).await?.ok_or(DeskError::NotFound)?;
        if row.digest != digest {
            return Err(DeskError::OtherDigest);
        }
        if row.outcome != ApprovalOutcome::Waiting {
            return Err(DeskError::Ended(row.outcome));
        }
        let outcome = match answer {
            Answer::Allow => ApprovalOutcome::Allowed,
            Answer::Deny => ApprovalOutcome::Denied,
        };
        if !rows.end(id, outcome, by, now_ms()).await? {
            let row = rows.find(id).await?.ok_or(DeskError::NotFound)?;
            return Err(DeskError::Ended(row.outcome));
        }
        tracing::info!(id, by, outcome = outcome.as_str(), "a person decided");
        if let Some(waiting) = self.waiting().remove(id) {
            // Whoever went away at this moment makes no call.
            let _ = waiting.tell.send(outcome);
        }
        rows.find(id).await?.ok_or(DeskError::NotFound)
    }

    pub async fn find(&self, id: &str) -> Result<Option<ToolApprovalRow>, DeskError> {
        Ok(self.rows().await?.find(id).await?)
    }

    /// Those that wait first, then the newest.
    pub async fn list(&self, limit: usize) -> Result<Vec<ToolApprovalRow>, DeskError> {
        Ok(self.rows().await?.list(limit).await?)
    }

    fn row(
        &self,
        question: Question<'_>,
        outcome: ApprovalOutcome,
        decided_by: Option<String>,
    ) -> Result<ToolApprovalRow, DeskError> {
        let Question { session, tool, input, rule } = question;
        if input.to_string().len() > MAX_QUESTION_BYTES {
            return Err(DeskError::TooLarge);
        }
        let asked_at_ms = now_ms();
        let patience = u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX);
        Ok(ToolApprovalRow {
            id: random_id("ta"),
            session: session.to_owned(),
            tool: tool.to_owned(),
            input: input.clone(),
            digest: digest(session, tool, input),
            rule: rule.to_owned(),
            outcome,
            decided_at_ms: decided_by.as_ref().map(|_| asked_at_ms),
            decided_by,
            asked_at_ms,
            deadline_ms: asked_at_ms.saturating_add(patience),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question while somebody waits for its answer.
struct Asked {
    desk: Arc<Desk>,
    id: String,
    ended: bool,
    _place: OwnedSemaphorePermit,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.desk.waiting().remove(&self.id);
        if self.ended {
            return;
        }
        self.desk.ended.add(ApprovalOutcome::Withdrawn.as_str(), 1);
        let (store, id) = (self.desk.store.clone(), std::mem::take(&mut self.id));
        let withdraw = async move {
            let outcome = ApprovalOutcome::Withdrawn;
            let ended = store.tool_approvals().end(&id, outcome, "caller", now_ms()).await;
            if let Err(error) = ended {
                tracing::warn!(%error, id, "a question that nobody waits for stays open");
            }
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(withdraw);
        }
    }
}

fn now_ms() -> u64 {
    UNIX_EPOCH.elapsed().map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

//! Table `post_mortems`: what is known of dead sandboxes, newest kept. Written when a row is
//! closed; see [`crate::Sandboxes::close`].

use sandbank_engine::SandboxId;
use serde_json::Value;

use crate::StoreError;
use crate::column::{from_json, from_u64, to_u64};
use crate::open::Inner;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostMortemRow {
    pub ended_at_ms: u64,
    pub body: Value,
}

pub struct PostMortems<'a> {
    pub(crate) db: &'a Inner,
}

impl PostMortems<'_> {
    pub async fn find(&self, id: &SandboxId) -> Result<Option<PostMortemRow>, StoreError> {
        let row: Option<(i64, String)> =
            sqlx::query_as("SELECT ended_at_ms, body FROM post_mortems WHERE sandbox_id = ?")
                .bind(id.as_str())
                .fetch_optional(&self.db.reader)
                .await
                .map_err(|error| self.db.failed(error))?;
        row.map(|(ended_at_ms, body)| {
            let body = from_json(&body, id.as_str(), "body")?;
            Ok(PostMortemRow { ended_at_ms: to_u64(ended_at_ms), body })
        })
        .transpose()
    }

    /// Keeps the newest `keep` with their sandboxes' rows; says how many were removed.
    pub async fn prune(&self, keep: usize) -> Result<u64, StoreError> {
        sqlx::query(
            "DELETE FROM sandboxes WHERE closed_at_ms IS NOT NULL AND id NOT IN (
                 SELECT sandbox_id FROM post_mortems
                 ORDER BY ended_at_ms DESC, sandbox_id LIMIT ?)",
        )
        .bind(from_u64(keep as u64))
        .execute(&self.db.writer)
        .await
        .map(|done| done.rows_affected())
        .map_err(|error| self.db.failed(error))
    }
}

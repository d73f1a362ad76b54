//! Table `tokens`: who may call. Only hashes are kept; a revoked token stays as a record.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::column::{bad, from_u64, parsed, to_u64};
use crate::open::Inner;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    Admin,
    Sandbox,
    ReadOnly,
}

impl TokenScope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Sandbox => "sandbox",
            Self::ReadOnly => "read_only",
        }
    }
}

impl FromStr for TokenScope {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "admin" => Self::Admin,
            "sandbox" => Self::Sandbox,
            "read_only" => Self::ReadOnly,
            _ => return Err("a scope is admin, sandbox or read_only"),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    pub name: String,
    pub scope: TokenScope,
    pub sha256: [u8; 32],
    pub created_at_ms: u64,
    pub revoked_at_ms: Option<u64>,
}

pub struct Tokens<'a> {
    pub(crate) db: &'a Inner,
}

type Raw = (String, String, Vec<u8>, i64, Option<i64>);

impl Tokens<'_> {
    /// Fails with `Exists` when a live token has this name, or any token this hash.
    pub async fn insert(
        &self,
        name: &str,
        scope: TokenScope,
        sha256: [u8; 32],
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let result = sqlx::query(
            "INSERT INTO tokens (name, scope, sha256, created_at_ms) VALUES (?, ?, ?, ?)",
        )
        .bind(name)
        .bind(scope.as_str())
        .bind(sha256.to_vec())
        .bind(from_u64(now_ms))
        .execute(&self.db.writer)
        .await;
        match result {
            Ok(_) => Ok(()),
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                Err(StoreError::Exists { what: format!("a token named {name:?}") })
            }
            Err(error) => Err(self.db.failed(error)),
        }
    }

    /// The live token with this hash.
    pub async fn find(&self, sha256: &[u8; 32]) -> Result<Option<TokenRow>, StoreError> {
        let row: Option<Raw> = sqlx::query_as(
            "SELECT name, scope, sha256, created_at_ms, revoked_at_ms FROM tokens
             WHERE sha256 = ? AND revoked_at_ms IS NULL",
        )
        .bind(sha256.to_vec())
        .fetch_optional(&self.db.reader)
        .await
        .map_err(|error| self.db.failed(error))?;
        row.map(read).transpose()
    }

    /// Says whether a live token had this name.
    pub async fn revoke(&self, name: &str, now_ms: u64) -> Result<bool, StoreError> {
        sqlx::query("UPDATE tokens SET revoked_at_ms = ? WHERE name = ? AND revoked_at_ms IS NULL")
            .bind(from_u64(now_ms))
            .bind(name)
            .execute(&self.db.writer)
            .await
            .map(|done| done.rows_affected() > 0)
            .map_err(|error| self.db.failed(error))
    }

    /// Every token there ever was, oldest first.
    pub async fn list(&self) -> Result<Vec<TokenRow>, StoreError> {
        let rows: Vec<Raw> = sqlx::query_as(
            "SELECT name, scope, sha256, created_at_ms, revoked_at_ms FROM tokens
             ORDER BY token_id",
        )
        .fetch_all(&self.db.reader)
        .await
        .map_err(|error| self.db.failed(error))?;
        rows.into_iter().map(read).collect()
    }
}

fn read((name, scope, sha256, created_at_ms, revoked_at_ms): Raw) -> Result<TokenRow, StoreError> {
    let row = format!("token {name:?}");
    let scope = parsed(&scope, &row, "scope")?;
    let sha256 = sha256.try_into().map_err(|_| bad(&row, "sha256", "not 32 bytes"))?;
    let revoked_at_ms = revoked_at_ms.map(to_u64);
    Ok(TokenRow { name, scope, sha256, created_at_ms: to_u64(created_at_ms), revoked_at_ms })
}

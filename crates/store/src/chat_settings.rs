//! Table `chat_settings`: what was set in a chat, for the programs that go on with it.

use serde_json::Value;

use crate::StoreError;
use crate::column::{from_json, from_u64, to_json};
use crate::open::Inner;

#[derive(Debug, Clone, PartialEq)]
pub struct ChatSettingsRow {
    /// Which conversation, and whose.
    pub chat: String,
    /// What its newest client came with.
    pub asked: Value,
    /// What was said since, and only that.
    pub chosen: Value,
}

pub struct ChatSettings<'a> {
    pub(crate) db: &'a Inner,
}

impl ChatSettings<'_> {
    /// In the place of what was there; of all chats the `keep` that were set last are kept.
    pub async fn set(&self, row: &ChatSettingsRow, keep: usize) -> Result<(), StoreError> {
        let set = async {
            let mut transaction = self.db.writer.begin_with("BEGIN IMMEDIATE").await?;
            sqlx::query("REPLACE INTO chat_settings (chat, asked, chosen) VALUES (?, ?, ?)")
                .bind(&row.chat)
                .bind(to_json(&row.asked))
                .bind(to_json(&row.chosen))
                .execute(&mut *transaction)
                .await?;
            sqlx::query(
                "DELETE FROM chat_settings WHERE seq <= (
                     SELECT seq FROM chat_settings ORDER BY seq DESC LIMIT 1 OFFSET ?)",
            )
            .bind(from_u64(keep as u64))
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        };
        set.await.map_err(|error| self.db.failed(error))
    }

    pub async fn find(&self, chat: &str) -> Result<Option<ChatSettingsRow>, StoreError> {
        // Of the writer, for it is asked right after a change.
        let row: Option<(String, String)> =
            sqlx::query_as("SELECT asked, chosen FROM chat_settings WHERE chat = ?")
                .bind(chat)
                .fetch_optional(&self.db.writer)
                .await
                .map_err(|error| self.db.failed(error))?;
        let read = |(asked, chosen): (String, String)| {
            Ok(ChatSettingsRow {
                asked: from_json(&asked, chat, "asked")?,
                chosen: from_json(&chosen, chat, "chosen")?,
                chat: chat.to_owned(),
            })
        };
        row.map(read).transpose()
    }

    pub async fn forget(&self, chat: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM chat_settings WHERE chat = ?")
            .bind(chat)
            .execute(&self.db.writer)
            .await
            .map(drop)
            .map_err(|error| self.db.failed(error))
    }
}

//! What is left of a sandbox after its end.

use sandbank_orchestrator::{Cause, PostMortem};
use serde::Serialize;
use utoipa::ToSchema;

use super::command_view::CommandView;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PostMortemView {
    id: String,
    key: String,
    /// `{"kind": …}`
    #[schema(value_type = Object)]
    cause: Cause,
    /// The cause as a sentence.
    reason: String,
    created_at_ms: u64,
    ended_at_ms: u64,
    memory_peak_bytes: u64,
    cpu_usage_us: u64,
    oom_kills: u64,
    last_commands: Vec<CommandView>,
    last_output: String,
}

impl From<PostMortem> for PostMortemView {
    fn from(record: PostMortem) -> Self {
        Self {
            id: record.id.into(),
            key: record.key.into(),
            reason: record.cause.to_string(),
            cause: record.cause,
            created_at_ms: record.created_at_ms,
            ended_at_ms: record.ended_at_ms,
            memory_peak_bytes: record.peaks.memory_peak_bytes,
            cpu_usage_us: record.peaks.cpu_usage_us,
            oom_kills: record.peaks.oom_kills,
            last_commands: record.last_commands.into_iter().map(Into::into).collect(),
            last_output: record.last_output,
        }
    }
}

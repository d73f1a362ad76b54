//! Rules first, and a person where they say so.

use std::sync::Arc;

use async_trait::async_trait;
use sandbank_store::ApprovalOutcome;
use serde_json::json;

use super::{Approver, Call, Desk, DeskError, Question, Rules, Verdict};
use crate::ToolError;

pub struct ByRules {
    rules: Rules,
    desk: Arc<Desk>,
}

impl ByRules {
    pub fn new(rules: Rules, desk: Arc<Desk>) -> Self {
        Self { rules, desk }
    }
}

#[async_trait]
impl Approver for ByRules {
    async fn allow(&self, call: &Call<'_>) -> Result<(), ToolError> {
        let judged = self.rules.judge(call.tool, call.input);
        let question = Question {
            session: call.session,
            tool: call.tool,
            input: call.input,
            rule: &judged.because,
        };
        match judged.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Deny => {
                if let Err(error) = self.desk.note_denied(question).await {
                    tracing::warn!(%error, "a call that was denied is not kept");
                }
                Err(ToolError::Denied(format!("This call is not allowed ({}).", judged.because)))
            }
            Verdict::Ask => self.ask(question, call).await,
        }
    }
}

impl ByRules {
    async fn ask(&self, question: Question<'_>, call: &Call<'_>) -> Result<(), ToolError> {
        let told = |row: &sandbank_store::ToolApprovalRow| {
            (call.waiting)(json!({
                "status": "waiting_for_approval",
                "approval_id": row.id,
                "digest": row.digest,
                "rule": row.rule,
                "deadline_ms": row.deadline_ms,
            }));
        };
        let denied = |why: &str| Err(ToolError::Denied(format!("{why} ({}).", question.rule)));
        match self.desk.ask(question, &told).await {
            Ok(ApprovalOutcome::Allowed) => Ok(()),
            Ok(ApprovalOutcome::Denied) => denied("A person said no to this call"),
            Ok(ApprovalOutcome::Expired) => denied("Nobody allowed this call in time"),
            Ok(_) => Err(ToolError::Cancelled),
            Err(DeskError::Store(error)) => {
                Err(ToolError::Unavailable(format!("Nobody can be asked about this call: {error}")))
            }
            Err(error) => {
                Err(ToolError::Denied(format!("Nobody can be asked about this call: {error}")))
            }
        }
    }
}

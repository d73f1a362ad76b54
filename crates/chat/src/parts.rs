//! What the AI SDK's clients read: the parts of its UI message stream, version 1.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Part {
    Start,
    StartStep,
    TextStart {
        id: String,
    },
    TextDelta {
        id: String,
        delta: String,
    },
    TextEnd {
        id: String,
    },
    ReasoningStart {
        id: String,
    },
    ReasoningDelta {
        id: String,
        delta: String,
    },
    ReasoningEnd {
        id: String,
    },
    ToolInputStart {
        tool_call_id: String,
        tool_name: String,
        /// A tool that there is not.
        #[serde(skip_serializing_if = "is_false")]
        dynamic: bool,
    },
    ToolInputDelta {
        tool_call_id: String,
        input_text_delta: String,
    },
    ToolInputAvailable {
        tool_call_id: String,
        tool_name: String,
        input: Value,
    },
    ToolInputError {
        tool_call_id: String,
        tool_name: String,
        input: Value,
        #[serde(skip_serializing_if = "is_false")]
        dynamic: bool,
        error_text: String,
    },
    ToolOutputAvailable {
        tool_call_id: String,
        output: Value,
        /// More follows, and replaces it.
        #[serde(skip_serializing_if = "is_false")]
        preliminary: bool,
    },
    ToolOutputError {
        tool_call_id: String,
        error_text: String,
    },
    /// A person is asked about a call, elsewhere. One with the same id takes its place.
    #[serde(rename = "data-approval")]
    Approval {
        id: String,
        data: Approval,
    },
    /// Told while it lasts, and no part of the message.
    #[serde(rename = "data-preparing")]
    Preparing {
        data: Preparing,
        transient: bool,
    },
    FinishStep,
    Finish {
        finish_reason: FinishReason,
    },
    Error {
        error_text: String,
    },
    /// The server ends; nothing is wrong with the chat.
    Abort,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub tool_call_id: String,
    pub status: ApprovalStatus,
    /// What the tools said of it: id, digest, rule and deadline.
    #[serde(flatten)]
    pub question: Question,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalStatus {
    Waiting,
    Allowed,
    /// By a person, or because nobody answered in time: the call's own error says which.
    Denied,
}

/// As the tools tell it, spelled for pages.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default, rename_all(serialize = "camelCase"))]
pub struct Question {
    pub approval_id: String,
    pub digest: String,
    pub rule: String,
    pub deadline_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preparing {
    pub tool_call_id: String,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
    Other,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_spelled_as_the_ai_sdk_spells_them() {
        let id = || "1".to_owned();
        let said = |part: Part| serde_json::to_value(part).unwrap();
        assert_eq!(said(Part::StartStep), json!({ "type": "start-step" }));
        assert_eq!(
            said(Part::ToolInputStart {
                tool_call_id: id(),
                tool_name: "bash".into(),
                dynamic: false
            }),
            json!({ "type": "tool-input-start", "toolCallId": "1", "toolName": "bash" })
        );
        assert_eq!(
            said(Part::ToolInputDelta { tool_call_id: id(), input_text_delta: "{".into() }),
            json!({ "type": "tool-input-delta", "toolCallId": "1", "inputTextDelta": "{" })
        );
        let output = |preliminary| {
            said(Part::ToolOutputAvailable { tool_call_id: id(), output: json!(1), preliminary })
        };
        let whole = json!({ "type": "tool-output-available", "toolCallId": "1", "output": 1 });
        assert_eq!(output(false), whole);
        assert_eq!(output(true)["preliminary"], json!(true));
        assert_eq!(
            said(Part::Finish { finish_reason: FinishReason::ContentFilter }),
            json!({ "type": "finish", "finishReason": "content-filter" })
        );
        let (tool_call_id, status) = (id(), ApprovalStatus::Waiting);
        let question: Question = serde_json::from_value(json!({
            "status": "waiting_for_approval", "approval_id": "ta1", "digest": "d", "rule": "r",
            "deadline_ms": 7,
        }))
        .unwrap();
        assert_eq!(
            said(Part::Approval { id: id(), data: Approval { tool_call_id, status, question } }),
            json!({ "type": "data-approval", "id": "1", "data": { "toolCallId": "1",
                "status": "waiting", "approvalId": "ta1", "digest": "d", "rule": "r",
                "deadlineMs": 7 } })
        );
        let data = Preparing { tool_call_id: id(), message: "50 %".into() };
        assert_eq!(
            said(Part::Preparing { data, transient: true }),
            json!({ "type": "data-preparing", "transient": true,
                "data": { "toolCallId": "1", "message": "50 %" } })
        );
        assert_eq!(
            said(Part::Error { error_text: "x".into() }),
            json!({ "type": "error", "errorText": "x" })
        );
    }
}

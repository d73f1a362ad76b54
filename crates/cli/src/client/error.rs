//! Why a request to the server failed, and what the program says about it.

use std::time::Duration;

use sandbank_protocol::WORKSPACE;
use serde::Deserialize;

use crate::failure::{Exit, Failure};
use crate::ui::text;

/// What to do where no token is known.
pub(crate) const TOKEN_IS_MISSING: &str =
    "set SANDBANK_TOKEN, or SANDBANK_DATA_DIR to the server's data directory";

/// What to do where another server's token was sent.
const TOKEN_IS_ANOTHERS: &str = "the token that was sent is not this server's: set SANDBANK_TOKEN \
    to its own, or unset it and set SANDBANK_DATA_DIR to the server's data directory";

#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("no server answers at {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("the connection to {url} broke: {reason}")]
    Broken { url: String, reason: String },
    #[error("{}", .0.sentence())]
    Refused(Box<Refusal>),
    #[error("the server at {url} gave an answer that makes no sense: {reason}")]
    Nonsense { url: String, reason: String },
    #[error("{0} is not a server address")]
    BadUrl(String),
}

/// The server's one error shape.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Refusal {
    #[serde(skip)]
    pub(crate) status: u16,
    pub(crate) error: String,
    pub(crate) code: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) retryable: bool,
    pub(crate) request_id: Option<String>,
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
    /// Whether the refused request carried a token.
    #[serde(skip)]
    pub(crate) token_sent: bool,
}

impl ClientError {
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            _ => None,
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// Whether the server may be restarting, so that the same request may work in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => true,
            Self::Refused(refusal) => {
                matches!(refusal.status, 502..=504) && refusal.exit() != Exit::Unsupported
            }
            Self::Nonsense { .. } | Self::BadUrl(_) => false,
        }
    }

    /// The failure of a request about this sandbox; its hint can be typed as it is.
    pub(crate) fn about(self, sandbox: &str) -> Failure {
        let hint = match &self {
            Self::Refused(refusal) => match refusal.code.as_deref() {
                Some("command_not_found") => {
                    Some(format!("`sandbank inspect {sandbox}` lists its commands"))
                }
                Some("gone") => Some(format!("`sandbank inspect {sandbox}` says why")),
                _ => None,
            },
            _ => None,
        };
        let failure = Failure::from(self);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// The shape that the routes of sessions and workspaces have.
#[derive(Debug, Deserialize)]
struct SessionRefusal {
    error_code: String,
    message: String,
    #[serde(default)]
    details: SessionDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SessionDetails {
    code: Option<String>,
    hint: Option<String>,
}

impl Refusal {
    pub(super) fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<SessionRefusal>(body) {
            Ok(SessionRefusal { error_code, message, details }) => Self {
                error: message,
                code: details.code.or(Some(error_code)),
                hint: details.hint,
                ..Self::default()
            },
            Err(_) => serde_json::from_slice(body).unwrap_or_default(),
        }
    }

    /// sandboxd's clients expect two bare words; the code says more.
    fn sentence(&self) -> String {
        match (self.error.as_str(), self.code.as_deref()) {
            ("Not found", Some("gone" | "sandbox_gone")) => "the sandbox has ended".to_owned(),
            ("Not found", Some(code)) => code.replace('_', " "),
            (error, _) => error.to_owned(),
        }
    }

    fn exit(&self) -> Exit {
        if self.code.as_deref() == Some("control_unavailable") {
            return Exit::Unsupported;
        }
        match self.status {
            400 | 413 | 414 | 416 | 422 => Exit::Usage,
            401 | 403 | 421 => Exit::NotPermitted,
            429 | 502..=504 => Exit::Temporary,
            507 => Exit::CannotWrite,
            500.. => Exit::Internal,
            _ => Exit::Refused,
        }
    }

    /// Our own words where this program can help, else the server's.
    fn advice(&self) -> Option<String> {
        if self.code.as_deref() == Some("outside_workspace") {
            let relative = "relative paths start there";
            return Some(format!("only files below {WORKSPACE} can be reached; {relative}"));
        }
        let ours = match (self.status, self.code.as_deref().unwrap_or_default()) {
            (401, _) if self.token_sent => Some(TOKEN_IS_ANOTHERS),
            (401, _) => Some(TOKEN_IS_MISSING),
            (404, "sandbox_not_found") => Some("`sandbank ps` lists ids and keys"),
            (404, "command_not_found") => Some("`sandbank inspect SANDBOX` lists its commands"),
            (_, "image_not_found") => {
                Some("`sandbank image ls` lists the images, `sandbank image import` adds one")
            }
            (_, "image_in_use") => {
                Some("`sandbank ps` shows who uses it; remove those with `sandbank rm` first")
            }
            (404, "gone") => Some("`sandbank inspect SANDBOX` says why"),
            (_, "workspace_in_use") => {
                Some("`sandbank ps` shows who has it; remove those with `sandbank rm` first")
            }
            _ => None,
        };
        let theirs = || self.hint.as_deref().filter(|hint| !hint.is_empty()).map(text::printable);
        ours.map(str::to_owned).or_else(theirs).or_else(|| match (self.status, self.retry_after) {
            (429 | 503, Some(pause)) => Some(format!("try again in {}", text::duration(pause))),
            (500, _) => self.request_id.as_ref().map(|id| {
                format!("the server's log has the details under request id {}", text::printable(id))
            }),
            _ => None,
        })
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let said = text::printable(&error.to_string());
        match &error {
            ClientError::Unreachable { .. } => Self::new(Exit::Unreachable, said).hint(
                "start one with `sandbank serve`, or name another with SANDBANK_URL or --url; \
                     without them the one that has SANDBANK_DATA_DIR is found",
            ),
            ClientError::Broken { .. } => Self::new(Exit::Unreachable, said)
                .hint("look whether the server still runs: `sandbank ps`"),
            ClientError::Nonsense { .. } => Self::new(Exit::Internal, said)
                .hint("is that a Sandbank server, and of the same version as this program?"),
            ClientError::BadUrl(_) => {
                Self::usage(said).hint("an address looks like http://127.0.0.1:8080")
            }
            ClientError::Refused(refusal) => {
                let failure = Self::new(refusal.exit(), said);
                match refusal.advice() {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
        }
    }
}

/// reqwest's own text rarely names the cause; its sources do.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, body: &str) -> Failure {
        let mut refusal = Refusal::read(body.as_bytes());
        refusal.status = status;
        ClientError::Refused(Box::new(refusal)).into()
    }

    #[test]
    fn refusals_become_documented_exit_codes() {
        let cases = [
            (400, "bad_field", Exit::Usage),
            (401, "unauthorized", Exit::NotPermitted),
            (404, "sandbox_not_found", Exit::Refused),
            (409, "conflict", Exit::Refused),
            (429, "at_limit", Exit::Temporary),
            (500, "internal", Exit::Internal),
            (503, "shutting_down", Exit::Temporary),
            (503, "control_unavailable", Exit::Unsupported),
            (507, "storage_full", Exit::CannotWrite),
        ];
        for (status, code, exit) in cases {
            let body = format!("{{\"error\":\"no\",\"code\":\"{code}\"}}");
            assert_eq!(failure(status, &body).exit, exit, "{status} {code}");
        }
    }

    #[test]
    fn the_servers_own_words_and_hint_are_passed_on_without_control_characters() {
        let failure = failure(409, r#"{"error":"a\u001bb","code":"conflict","hint":"do x"}"#);
        assert_eq!(
            (failure.message.as_str(), failure.hint.as_deref()),
            ("a\\u{1b}b", Some("do x"))
        );
    }

    #[test]
    fn a_token_that_is_missing_and_one_of_another_server_are_told_apart() {
        let hint = |token_sent| {
            let code = Some("unauthorized".to_owned());
            let refusal = Refusal { status: 401, code, token_sent, ..Refusal::default() };
            Failure::from(ClientError::Refused(Box::new(refusal))).hint.unwrap()
        };
        assert_eq!(hint(false), TOKEN_IS_MISSING);
        assert!(hint(true).contains("not this server's"), "{}", hint(true));
    }

    #[test]
    fn a_refusal_of_the_sessions_routes_is_understood() {
        let body = r#"{"error_code":"CONFLICT","message":"the workspace p is in use",
            "details":{"code":"workspace_in_use","hint":"x"}}"#;
        let failure = failure(409, body);
        assert_eq!(
            (failure.exit, failure.message.as_str()),
            (Exit::Refused, "the workspace p is in use")
        );
        assert!(failure.hint.unwrap().contains("`sandbank rm`"));
    }

    #[test]
    fn a_path_outside_of_the_workspace_is_answered_with_where_that_is() {
        let failure = failure(400, r#"{"error":"no","code":"outside_workspace"}"#);
        assert!(failure.hint.unwrap().contains(WORKSPACE));
    }

    #[test]
    fn a_bare_not_found_says_what_was_not_found() {
        let body = r#"{"error":"Not found","code":"command_not_found"}"#;
        assert_eq!(failure(404, body).message, "command not found");
    }

    #[test]
    fn hints_name_the_sandbox_and_the_next_command() {
        let refused = |code: &str| {
            let code = Some(code.to_owned());
            ClientError::Refused(Box::new(Refusal { status: 404, code, ..Refusal::default() }))
        };
        let hint = refused("command_not_found").about("sbx7").hint.unwrap();
        assert!(hint.contains("`sandbank inspect sbx7`"), "{hint}");
        for code in ["sandbox_not_found", "image_not_found", "image_in_use"] {
            let hint = Failure::from(refused(code)).hint.unwrap();
            assert!(hint.contains("`sandbank "), "{code}: {hint}");
        }
    }
}

//! Keys of sandboxes that no caller chooses: whoever could would be given somebody's session, the
//! caretaker of a workspace, the sandbox of `/api`, or one of the tools.

use sandbank_orchestrator::SandboxKey;

/// Followed by a session's id.
pub(crate) const SESSION: &str = "session:";

/// Followed by the name of the workspace that the caretaker has.
pub(crate) const WORKSPACE: &str = "workspace:";

/// Followed by the name of the workspace that `/api` shows.
pub(crate) const WORKSPACE_UI: &str = "workspace-ui:";

/// Followed by the tools' name of a session.
pub(crate) const TOOLS: &str = sandbank_tools::providers::KEY_PREFIX;

pub(crate) fn is_reserved(key: &SandboxKey) -> bool {
    [SESSION, WORKSPACE, WORKSPACE_UI, TOOLS].iter().any(|prefix| key.as_str().starts_with(prefix))
}

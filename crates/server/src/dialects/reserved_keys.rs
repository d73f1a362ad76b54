//! Keys of sandboxes that no caller chooses: whoever could would be given somebody's session, or
//! the caretaker of a workspace.

use sandbank_orchestrator::SandboxKey;

/// Followed by a session's id.
pub(crate) const SESSION: &str = "session:";

/// Followed by the name of the workspace that the caretaker has.
pub(crate) const WORKSPACE: &str = "workspace:";

pub(crate) fn is_reserved(key: &SandboxKey) -> bool {
    [SESSION, WORKSPACE].iter().any(|prefix| key.as_str().starts_with(prefix))
}

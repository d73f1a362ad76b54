//! Where a session's shell is, as its runner tells it. Nothing is remembered: scripts come on other
//! ways than this dialect's, too.

use futures_util::{FutureExt, StreamExt, stream};
use sandbank_orchestrator::{SandboxInfo, SandboxState};
use tokio::time::{Instant, timeout_at};

use super::path;
use super::script::shell_name;
use crate::app::App;
use crate::limits::{CWD_PATIENCE, CWDS_AT_ONCE, CWDS_PATIENCE, MAX_PATH_BYTES};

/// Nobody can say: the session has ended, or its runner does not answer.
const UNKNOWN: &str = "";

/// In the clients' words.
pub(super) async fn of(app: &App, info: &SandboxInfo) -> String {
    until(app, info, Instant::now() + CWD_PATIENCE).await
}

/// Of each, in this order. However many do not answer, the others' are told.
pub(super) async fn of_each(app: &App, infos: &[SandboxInfo]) -> Vec<String> {
    let end = Instant::now() + CWDS_PATIENCE;
    let asks = infos
        .iter()
        .map(|info| async move { until(app, info, end.min(Instant::now() + CWD_PATIENCE)).await });
    // Boxed, because the compiler does not see that a borrowing closure's future can be sent.
    let asks: Vec<_> = asks.map(FutureExt::boxed).collect();
    stream::iter(asks).buffered(CWDS_AT_ONCE).collect().await
}

async fn until(app: &App, info: &SandboxInfo, end: Instant) -> String {
    if info.state != SandboxState::Running {
        return UNKNOWN.to_owned();
    }
    let name = shell_name();
    match timeout_at(end, app.orchestrator().shell_directory(&info.id, &name)).await {
        Ok(Ok(Some(cwd))) => shown(Some(&cwd)),
        // It begins there, and no script has ended yet.
        Ok(Ok(None)) => path::ROOT.to_owned(),
        Ok(Err(_)) | Err(_) => UNKNOWN.to_owned(),
    }
}

/// What a runner says; a longer one than any path is not passed on.
pub(super) fn shown(cwd: Option<&str>) -> String {
    let cwd = cwd.filter(|cwd| cwd.len() <= MAX_PATH_BYTES);
    cwd.map_or_else(|| UNKNOWN.to_owned(), path::of_shell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_and_no_longer_than_a_path_is_told() {
        let longest = format!("/{}", "x".repeat(MAX_PATH_BYTES - 1));
        assert_eq!(shown(Some("/vercel/sandbox/workspace/d")), "/workspace/d");
        assert_eq!(shown(Some(&longest)), longest);
        assert_eq!(shown(Some(&format!("{longest}x"))), "");
        assert_eq!(shown(None), "");
    }
}

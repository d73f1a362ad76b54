//! Sandboxes by the key their callers gave them, also those that have ended.

use std::collections::HashSet;

use sandbank_channel::ChannelError;
use sandbank_engine::SandboxId;
use sandbank_protocol::{CommandState, CommandStatus, FaultCode, ShellName};
use sandbank_store::SandboxRow;

use crate::context::Context;
use crate::sandbox::{Facts, SharedSandbox};
use crate::{Cause, OrchestratorError, SandboxInfo, SandboxKey, SandboxState};

/// The living one; else the one on its way out; else the newest that has ended.
pub(crate) async fn find(
    context: &Context,
    key: &SandboxKey,
) -> Result<Option<SandboxInfo>, OrchestratorError> {
    let info = |sandbox: SharedSandbox| sandbox.info(&*context.clock);
    if let Some(sandbox) = context.registry.find_key(key) {
        return Ok(Some(info(sandbox)));
    }
    let mut ending = context.registry.all();
    ending.retain(|sandbox| sandbox.facts.key == *key);
    if let Some(sandbox) = ending.into_iter().max_by_key(|sandbox| sandbox.facts.created_at_ms) {
        return Ok(Some(info(sandbox)));
    }
    let row = context.store.sandboxes().newest_with_key(key.as_str()).await?;
    row.map(|row| closed(&row)).transpose()
}

/// Of a living or an ended one; none once its row is pruned.
pub(crate) async fn of(
    context: &Context,
    id: &SandboxId,
) -> Result<Option<SandboxKey>, OrchestratorError> {
    if let Some(living) = context.registry.find(id) {
        return Ok(Some(living.facts.key.clone()));
    }
    let row = context.store.sandboxes().find(id).await?;
    row.map(|row| Ok(Facts::from_row(&row)?.key)).transpose()
}

/// Newest first.
pub(crate) async fn with_prefix(
    context: &Context,
    prefix: &str,
    limit: usize,
) -> Result<Vec<SandboxInfo>, OrchestratorError> {
    // Rows first: what ends meanwhile is then in one of the two, never in none.
    let rows = context.store.sandboxes().with_key_prefix(prefix, limit).await?;
    let mut living = context.registry.all();
    living.retain(|sandbox| sandbox.facts.key.as_str().starts_with(prefix));
    let mut infos: Vec<_> = living.iter().map(|sandbox| sandbox.info(&*context.clock)).collect();
    let known: HashSet<_> = infos.iter().map(|info| info.id.clone()).collect();
    for row in rows.iter().filter(|row| row.closed_at_ms.is_some() && !known.contains(&row.id)) {
        infos.push(closed(row)?);
    }
    infos.sort_by(|a, b| (b.created_at_ms, &b.id).cmp(&(a.created_at_ms, &a.id)));
    infos.truncate(limit);
    Ok(infos)
}

pub(crate) fn closed(row: &SandboxRow) -> Result<SandboxInfo, OrchestratorError> {
    let cause = row.cause.clone().and_then(|cause| serde_json::from_value(cause).ok());
    let unknown = || Cause::Lost { reason: "its row does not say why".to_owned() };
    Ok(Facts::from_row(row)?.closed_info(row, &cause.unwrap_or_else(unknown)))
}

/// Where a shell was after its last script; none when no script of it has ended yet. Not a use of
/// the sandbox.
pub(crate) async fn shell_directory(
    sandbox: &SharedSandbox,
    shell: &ShellName,
) -> Result<Option<String>, OrchestratorError> {
    if sandbox.view.borrow().state.visible() != SandboxState::Running {
        return Ok(None);
    }
    let channel = sandbox.channel_after(0).await?;
    // One or two questions, as a rule: of the newest script, and of the one before it if it runs.
    for script in sandbox.scripts.of(shell) {
        let status = match channel.client.command(&script).await {
            Ok(status) => status,
            Err(ChannelError::Refused(fault)) if fault.code == FaultCode::NotFound => break,
            Err(error) => return Err(error.into()),
        };
        if let Some(cwd) = status.shell.and_then(|used| used.cwd) {
            sandbox.scripts.forget_before(shell, &script);
            return Ok(Some(cwd));
        }
    }
    // The daemon was not there when they were started, or the runner has forgotten them.
    let statuses = channel.client.commands().await?;
    let cwd = |status: &CommandStatus| status.shell.clone().filter(|used| used.name == *shell)?.cwd;
    let Some(newest) = statuses.iter().rposition(|status| cwd(status).is_some()) else {
        return Ok(None);
    };
    // A script that waits does not say for which shell: as long as there may be one, they are listed.
    let waits =
        |status: &CommandStatus| status.state == CommandState::Running && status.shell.is_none();
    if !statuses[newest..].iter().any(waits) {
        let is_of_it =
            |status: &&CommandStatus| status.shell.as_ref().is_some_and(|used| used.name == *shell);
        for status in statuses[newest..].iter().filter(is_of_it) {
            sandbox.scripts.note(shell, &status.id);
        }
    }
    Ok(cwd(&statuses[newest]))
}

//! Create or reconnect, atomic per key. Which controls must be in force is for the engine to
//! decide: it knows what is missing and what its configuration accepts to be without.

use std::sync::Arc;

use sandbank_engine::{MachineSpec, SandboxId};
use serde_json::json;

use crate::context::Context;
use crate::driver::{self, Beginning};
use crate::lifecycle::{Event, Lease, Millis, Standing, State, millis};
use crate::provider::Provider;
use crate::registry::Claim;
use crate::sandbox::{Facts, Message, SharedSandbox};
use crate::{AcquireSource, CreateRequest, Created, OrchestratorError, ports, room, workspaces};

/// Whether a caller may be given a sandbox that has a kept workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Allowed,
    Refused,
}

pub(crate) async fn create(
    context: &Arc<Context>,
    request: CreateRequest,
    kept: Kept,
) -> Result<Created, OrchestratorError> {
    let waiting = room::Patience::new(context.settings.create_deadline);
    let provider = context.providers.named(request.engine.as_deref())?;
    loop {
        let max = context.settings.max_sandboxes;
        let newborn = || newborn(context, provider, &request);
        match context.registry.claim(&request.key, max, newborn)? {
            Claim::New(sandbox, (driver, beginning)) => {
                driver.spawn(beginning);
                sandbox.ready().await?;
                return Ok(answer(&sandbox, true));
            }
            Claim::Existing(sandbox)
                if kept == Kept::Refused && sandbox.facts.workspace.is_some() =>
            {
                return Err(OrchestratorError::KeptWorkspace);
            }
            Claim::Existing(sandbox) => match reconnect(context, &sandbox, &request).await {
                // It ended under our hands and has given up its key: make a new one.
                Err(OrchestratorError::Gone { .. }) => tokio::task::yield_now().await,
                Err(error) => return Err(error),
                Ok(()) => return Ok(answer(&sandbox, false)),
            },
            Claim::Full => {
                // Nobody makes room for what is refused.
                provider.check(&request.image)?;
                room::make(context, &waiting).await?;
            }
        }
    }
}

fn answer(sandbox: &SharedSandbox, created: bool) -> Created {
    let source = sandbox.source.get().copied().unwrap_or(AcquireSource::Cold);
    Created { id: sandbox.facts.id.clone(), created, source }
}

fn newborn(
    context: &Arc<Context>,
    provider: &Arc<Provider>,
    request: &CreateRequest,
) -> Result<(SharedSandbox, (driver::Driver, Beginning)), OrchestratorError> {
    provider.check(&request.image)?;
    workspaces::check(provider, request)?;
    let member = provider.pool.claim(request);
    let id = member.as_ref().map_or_else(SandboxId::random, |member| member.id.clone());
    let now = context.clock.boot_ms();
    let spec = MachineSpec {
        id: id.clone(),
        image: request.image.clone(),
        limits: request.limits.clone(),
        network: request.network,
        env: request.env.clone(),
        workspace: request.workspace.clone(),
    };
    let facts = Facts {
        id,
        key: request.key.clone(),
        engine: provider.name().to_owned(),
        image: request.image.clone(),
        runtime: request.runtime.clone(),
        network: request.network,
        limits: request.limits.clone(),
        ports: request.ports.clone(),
        workspace: request.workspace.clone(),
        created_at_ms: context.clock.wall_ms(),
    };
    let settings = &context.settings;
    let deadline = now + millis(settings.turn_patience + settings.create_deadline);
    let state = State::creating(deadline, lease(context, request, now));
    let reached = member.as_ref().map(|member| member.reached.clone());
    let (sandbox, driver) = driver::sandbox(context, provider, facts, state, reached);
    Ok((sandbox, (driver, Beginning::Create(Box::new(spec), member))))
}

fn lease(context: &Context, request: &CreateRequest, now: Millis) -> Lease {
    let settings = &context.settings;
    let idle_ttl = request.idle_ttl.unwrap_or(settings.default_idle_ttl);
    let lifetimes = [request.max_lifetime, settings.max_lifetime];
    let lifetime = lifetimes.into_iter().flatten().min();
    Lease::new(millis(idle_ttl), lifetime.map(|life| now + millis(life)), now)
}

/// Asks for the same key are answered with the sandbox that has it: used again, with the ports
/// and the idle time that this caller wants. Nothing else of it changes; who names another
/// workspace or another engine than it has is refused.
async fn reconnect(
    context: &Arc<Context>,
    sandbox: &SharedSandbox,
    request: &CreateRequest,
) -> Result<(), OrchestratorError> {
    workspaces::same(sandbox, request)?;
    same_engine(sandbox, request)?;
    let hold = match sandbox.hold().await {
        // Whoever asks for it by its key means to use it.
        Err(OrchestratorError::Paused(_)) => {
            sandbox.ask(|reply| Message::Change(Standing::Running, reply)).await??;
            sandbox.hold().await?
        }
        hold => hold?,
    };
    let idle_ttl = request.idle_ttl.map(millis);
    sandbox.send(Event::Renewed { idle_ttl });
    for &port in &request.ports {
        if !sandbox.facts.ports.contains(&port) {
            return Err(OrchestratorError::PortNotAllowed { id: sandbox.facts.id.clone(), port });
        }
        ports::publish(context, sandbox, port).await?;
    }
    context.events.emit("sandbox.reused", Some(sandbox.id()), json!({}));
    drop(hold);
    Ok(())
}

/// Whoever names an engine relies on what it is.
fn same_engine(sandbox: &SharedSandbox, request: &CreateRequest) -> Result<(), OrchestratorError> {
    let Facts { id, engine, .. } = &sandbox.facts;
    match &request.engine {
        Some(named) if named != engine => Err(OrchestratorError::Conflict(format!(
            "the sandbox {id} has this key, and its engine is {engine}"
        ))),
        _ => Ok(()),
    }
}

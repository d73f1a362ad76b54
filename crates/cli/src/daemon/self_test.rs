//! No sandbox is made before a canary has withstood every attack on this machine.

use std::path::{Path, PathBuf};
use std::time::Instant;

use sandbank_engine::Engine;
use sandbank_orchestrator::containment::{Containment, SelfTest, Tested};
use sandbank_orchestrator::{Orchestrator, OrchestratorError};
use sandbank_server::Shutdown;
use tokio_util::sync::CancellationToken;

use crate::failure::{Exit, Failure};

/// Why a daemon without a test makes no sandboxes.
pub(super) const NOT_MEANT: &str = "this daemon was started for something else";

/// Fails with the name of a control that is claimed and does not hold. A reason means that this
/// could not be told, or was not, and that no sandbox may be made until it is.
pub(super) async fn pass(
    test: Option<SelfTest>,
    engine: &dyn Engine,
    data_dir: &Path,
    leaving: &CancellationToken,
) -> Result<Option<OrchestratorError>, Failure> {
    let Some(test) = test else {
        return Ok(Some(OrchestratorError::Untested(NOT_MEANT.to_owned())));
    };
    let started = Instant::now();
    match test.run(engine, data_dir, leaving).await {
        Ok(tested) => judge(tested, started).map(|()| None),
        Err(error) if leaving.is_cancelled() => Ok(Some(error.while_untested())),
        // Nothing is broken, and whoever has just begun may be about to get one.
        Err(why @ OrchestratorError::NoImageToTest { .. }) => {
            tracing::warn!(hint = why.hint(), "{why}");
            Ok(Some(why))
        }
        Err(error) => {
            let engine = engine.name();
            tracing::error!(%error, engine, "containment is not tested; no sandbox is made until it is");
            Ok(Some(error.while_untested()))
        }
    }
}

/// Tests beside the sandboxes there are. One that is not contained ends the daemon, as it would
/// have kept it from starting.
pub(super) async fn catch_up(
    test: SelfTest,
    orchestrator: Orchestrator,
    data_dir: PathBuf,
    shutdown: Shutdown,
) -> Result<(), Failure> {
    let engine = orchestrator.engine().name();
    let tested = catch_up_with(test, &orchestrator, engine, &data_dir).await;
    tested.inspect_err(|failure| {
        tracing::error!(%failure, "stopping");
        shutdown.drain();
    })
}

/// The same of an engine that others go on without.
pub(super) async fn catch_up_with(
    test: SelfTest,
    orchestrator: &Orchestrator,
    engine: &str,
    data_dir: &Path,
) -> Result<(), Failure> {
    let started = Instant::now();
    match orchestrator.catch_up(engine, test, data_dir).await {
        Some(tested) => judge(tested, started),
        None => Ok(()),
    }
}

fn judge(tested: Tested, started: Instant) -> Result<(), Failure> {
    let took_ms = started.elapsed().as_millis();
    match tested {
        Tested::Held { attacked: 0, .. } => {
            tracing::debug!("containment was tested before, and nothing it depends on has changed");
        }
        Tested::Held { attacked, left_out } => {
            tracing::info!(images = attacked, took_ms, "containment tested: every attack failed");
            if left_out > 0 {
                tracing::warn!(
                    images = left_out,
                    "containment of more images is not tested; the next start goes on with them"
                );
            }
        }
        Tested::Failed { image, report } => return Err(escaped(image.as_str(), &report)),
        Tested::Unavailable { control, reason } => {
            let control = control.name();
            tracing::warn!(
                control,
                reason,
                "containment is not tested where no sandbox can be made"
            );
        }
        Tested::NotApplicable => {}
    }
    Ok(())
}

pub(crate) fn escaped(image: &str, report: &Containment) -> Failure {
    let names: Vec<_> = report.failed_controls().iter().map(|control| control.name()).collect();
    let evidence: Vec<_> = report
        .failures()
        .take(2)
        .map(|failure| format!("{}: {}", failure.probe, failure.evidence))
        .collect();
    let message = format!(
        "a test sandbox of the image {image} was not contained: {} {} not hold ({})",
        names.join(", "),
        if names.len() == 1 { "does" } else { "do" },
        evidence.join("; "),
    );
    Failure::new(Exit::Unsupported, message).hint(format!(
        "`sandbank doctor --attack` shows every probe; to go without, knowing what that means, \
         set SANDBANK_ALLOW_WEAKER={}",
        names.join(",")
    ))
}

//! `sandbank doctor --attack`: a canary is attacked, and every probe is shown.

use clap::builder::styling::AnsiColor;
use sandbank_engine::{Engine, ImageName};
use sandbank_orchestrator::OrchestratorError;
use sandbank_orchestrator::containment::{self, Containment, ProbeStanding};
use sandbank_protocol::containment::Probe;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::daemon::{cannot_test, escaped};
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::ui::Table;

/// What it came to as a document, and what got out if something did. None when a signal came first.
pub(super) async fn run(
    context: &Context,
    engine: &dyn Engine,
) -> Result<Option<(Value, Option<Failure>)>, Failure> {
    let images = engine.images_to_test().await.map_err(|error| cannot_test(&error.into()))?;
    let none = || cannot_test(&OrchestratorError::NoImageToTest { engine: engine.name() });
    let image = images.into_iter().next().ok_or_else(none)?.name;
    let Some(report) = attack(engine, &image).await? else { return Ok(None) };
    if !context.ui.json {
        print(context, &report)?;
    }
    let trouble = (!report.holds()).then(|| escaped(image.as_str(), &report));
    Ok(Some((document(engine.name(), &report), trouble)))
}

/// None when a signal comes first; the canary is destroyed all the same.
async fn attack(engine: &dyn Engine, image: &ImageName) -> Result<Option<Containment>, Failure> {
    let mut interrupts = Interrupts::listen()?;
    let leaving = CancellationToken::new();
    let attacking = containment::attack_all(engine, image, &leaving);
    tokio::pin!(attacking);
    let report = tokio::select! {
        report = &mut attacking => report,
        _ = interrupts.next() => {
            leaving.cancel();
            let _ = attacking.await;
            return Ok(None);
        }
    };
    report.map(Some).map_err(|error| cannot_test(&error))
}

fn document(engine: &str, report: &Containment) -> serde_json::Value {
    let rows: Vec<_> = report
        .probes
        .iter()
        .map(|result| {
            let probe = Probe::named(&result.probe);
            json!({
                "name": result.probe,
                "control": result.control.name(),
                "attack": probe.map(|probe| probe.attack),
                "refusal": probe.map(|probe| probe.refusal),
                "counterpart": probe.map(|probe| probe.counterpart),
                "standing": result.standing,
                "evidence": result.evidence,
            })
        })
        .collect();
    json!({
        "contained": report.holds(),
        "engine": engine,
        "durationMs": report.duration_ms,
        "probes": rows,
    })
}

fn print(context: &Context, report: &Containment) -> Result<(), Failure> {
    let mut table = Table::new(&["RESULT", "PROBE", "CONTROL", "EVIDENCE"]);
    for result in &report.probes {
        let (word, colour) = match result.standing {
            ProbeStanding::Held => ("held", AnsiColor::Green),
            ProbeStanding::Failed => ("FAILED", AnsiColor::Red),
            ProbeStanding::NotClaimed => ("not claimed", AnsiColor::Yellow),
            ProbeStanding::NotTried => ("not tried", AnsiColor::BrightBlack),
        };
        table.row([
            (word.to_owned(), Some(colour)),
            (result.probe.clone(), None),
            (result.control.name().to_owned(), None),
            (result.evidence.clone(), None),
        ]);
    }
    table.print(&context.ui)?;
    let held = report.probes.iter().filter(|probe| probe.standing == ProbeStanding::Held).count();
    let all = report.probes.len();
    context.ui.note(&format!("{held} of {all} probes held, in {} ms", report.duration_ms));
    Ok(())
}

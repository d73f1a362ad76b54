//! From what was seen to what it means.

use std::time::Duration;

use sandbank_engine::{Confinement, Control, Engine};
use sandbank_protocol::containment::{Finding, Outcome, PROBES, Probe, Side};

use super::{Containment, ProbeResult, ProbeStanding};

/// One result per probe of the table; a probe that did not answer has failed.
pub(crate) fn judge(
    engine: &dyn Engine,
    confinement: &Confinement,
    inside: &[Finding],
    took: Duration,
) -> Containment {
    let results = PROBES.iter().filter_map(|probe| {
        let control = Control::named(probe.control)?;
        let (outcome, evidence) = seen(probe, confinement, inside);
        let (standing, evidence) = stands(engine, confinement, control, outcome, evidence);
        Some(ProbeResult { probe: probe.name.to_owned(), control, standing, evidence })
    });
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Containment { probes: results.collect(), duration_ms }
}

fn seen(probe: &Probe, confinement: &Confinement, inside: &[Finding]) -> (Outcome, String) {
    let silent = || (Outcome::Failed, "the probe gave no answer".to_owned());
    match probe.side {
        Side::Inside => inside
            .iter()
            .find(|finding| finding.probe == probe.name)
            .map_or_else(silent, |finding| (finding.outcome, finding.evidence.clone())),
        Side::Host => {
            let finding = confinement.seen.iter().find(|finding| finding.probe == probe.name);
            finding.map_or_else(silent, |finding| {
                let outcome = if finding.held { Outcome::Held } else { Outcome::Failed };
                (outcome, finding.evidence.clone())
            })
        }
    }
}

fn stands(
    engine: &dyn Engine,
    confinement: &Confinement,
    control: Control,
    outcome: Outcome,
    evidence: String,
) -> (ProbeStanding, String) {
    let known = confinement.without.iter().find(|(missing, _)| *missing == control);
    match (outcome, known) {
        (Outcome::Held, _) => (ProbeStanding::Held, evidence),
        (Outcome::NotTried, _) => (ProbeStanding::NotTried, evidence),
        (Outcome::Failed, Some((_, reason))) => {
            (ProbeStanding::NotClaimed, format!("{reason}; {evidence}"))
        }
        (Outcome::Failed, None) if engine.accepts_without(control) => {
            (ProbeStanding::NotClaimed, format!("accepted by allow_weaker; {evidence}"))
        }
        (Outcome::Failed, None) => (ProbeStanding::Failed, evidence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_proves_a_control_that_there_is() {
        for probe in PROBES {
            assert!(Control::named(probe.control).is_some(), "{} of {}", probe.control, probe.name);
        }
    }
}

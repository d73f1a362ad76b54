//! From what was seen to what it means.

use std::time::Duration;

use sandbank_engine::{Confinement, Control, Engine};
use sandbank_protocol::containment::{Finding, Outcome, PROBES, Probe};

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
        let finding = confinement.finding(probe, inside).unwrap_or_else(|| silent(probe));
        let (standing, evidence) = stands(engine, confinement, control, finding);
        Some(ProbeResult { probe: probe.name.to_owned(), control, standing, evidence })
    });
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Containment { probes: results.collect(), duration_ms }
}

fn silent(probe: &Probe) -> Finding {
    Finding::new(probe.name, Outcome::Failed, "the probe gave no answer")
}

fn stands(
    engine: &dyn Engine,
    confinement: &Confinement,
    control: Control,
    Finding { outcome, evidence, .. }: Finding,
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

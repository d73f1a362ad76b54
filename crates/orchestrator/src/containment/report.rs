//! The result of a battery.

use sandbank_engine::Control;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Containment {
    /// One for each probe of the table, in its order.
    pub probes: Vec<ProbeResult>,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    pub probe: String,
    pub control: Control,
    pub standing: ProbeStanding,
    pub evidence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeStanding {
    Held,
    /// A control that is claimed does not hold.
    Failed,
    /// The control is known to be missing or weaker, and that is accepted.
    NotClaimed,
    /// There was nothing to try; the evidence says why.
    NotTried,
}

impl Containment {
    pub fn holds(&self) -> bool {
        self.failures().next().is_none()
    }

    pub fn failures(&self) -> impl Iterator<Item = &ProbeResult> {
        self.probes.iter().filter(|probe| probe.standing == ProbeStanding::Failed)
    }

    /// Each once, in the order of the table.
    pub fn failed_controls(&self) -> Vec<Control> {
        let mut controls = Vec::new();
        for failure in self.failures() {
            if !controls.contains(&failure.control) {
                controls.push(failure.control);
            }
        }
        controls
    }

    /// Two batteries of the same kind of machine as one: for each probe what says more.
    #[must_use]
    pub(super) fn with(mut self, other: Self) -> Self {
        self.duration_ms = self.duration_ms.max(other.duration_ms);
        for (own, other) in self.probes.iter_mut().zip(other.probes) {
            let weight = |standing| match standing {
                ProbeStanding::NotTried => 0,
                ProbeStanding::NotClaimed => 1,
                ProbeStanding::Held => 2,
                ProbeStanding::Failed => 3,
            };
            if own.probe == other.probe && weight(other.standing) > weight(own.standing) {
                *own = other;
            }
        }
        self
    }
}

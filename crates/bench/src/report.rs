//! What a run found, as data. Rendering and JSON both start from here.

use serde::Serialize;

use crate::machine::Machine;
use crate::summary::{Better, Summary};

/// The name of what is measured against the peers.
pub(crate) const SUBJECT: &str = "sandbank";

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub version: String,
    /// Of an unoptimised build, whose figures mean nothing.
    pub debug_build: bool,
    pub quick: bool,
    /// `Sun, 15 Nov 2026`.
    pub measured_on: String,
    pub command: String,
    pub machine: Machine,
    /// Peers and variants that took part, with what exactly was run.
    pub contenders: Vec<Contender>,
    pub skipped: Vec<Skipped>,
    pub sections: Vec<Section>,
    pub took_s: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Contender {
    pub name: String,
    pub what: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Skipped {
    pub name: String,
    pub reason: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Section {
    pub title: String,
    /// How it was measured, in a sentence or two.
    pub method: String,
    pub series: Vec<Series>,
    pub comparisons: Vec<Comparison>,
    pub facts: Vec<Fact>,
    pub skipped: Vec<Skipped>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    #[serde(rename = "per s")]
    PerSecond,
    #[serde(rename = "MB")]
    Megabytes,
    #[serde(rename = "×")]
    Times,
    #[serde(rename = "%")]
    Percent,
    #[serde(rename = "")]
    Count,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::MegabytesPerSecond => "MB/s",
            Self::PerSecond => "per s",
            Self::Megabytes => "MB",
            Self::Times => "×",
            Self::Percent => "%",
            Self::Count => "",
        }
    }

    pub fn better(self) -> Better {
        match self {
            Self::MegabytesPerSecond | Self::PerSecond => Better::Higher,
            _ => Better::Lower,
        }
    }
}

/// One measure of one contender.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    pub measure: String,
    pub who: String,
    pub unit: Unit,
    pub summary: Summary,
}

/// A median against a peer's median of the same run, or against a fixed goal.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    pub what: String,
    pub value: f64,
    pub unit: Unit,
    pub better: Better,
    pub goal: Option<Goal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    pub fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}

/// A single figure without a distribution.
#[derive(Debug, Clone, Serialize)]
pub struct Fact {
    pub name: String,
    pub value: f64,
    pub unit: Unit,
}

impl Section {
    pub fn new(title: &str, method: impl Into<String>) -> Self {
        Self { title: title.to_owned(), method: method.into(), ..Self::default() }
    }

    pub fn fact(&mut self, name: impl Into<String>, value: f64, unit: Unit) {
        self.facts.push(Fact { name: name.into(), value, unit });
    }

    pub fn median(&self, measure: &str, who: &str) -> Option<f64> {
        let series = self.series.iter().find(|s| s.measure == measure && s.who == who)?;
        Some(series.summary.p50)
    }

    /// Adds the ratio of two medians; nothing when one of them was not measured.
    pub fn compare(&mut self, measure: &str, subject: &str, peer: &str, goal: Option<Goal>) {
        let Some(series) = self.series.iter().find(|s| s.measure == measure) else { return };
        let better = series.unit.better();
        let (Some(ours), Some(theirs)) =
            (self.median(measure, subject), self.median(measure, peer))
        else {
            return;
        };
        let what = format!("{measure}: {subject} ÷ {peer}");
        let value = ours / theirs;
        self.comparisons.push(Comparison { what, value, unit: Unit::Times, better, goal });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Samples;

    fn section() -> Section {
        let mut samples = Samples::default();
        for value in [1.0, 2.0, 3.0] {
            samples.add("ready", SUBJECT, Unit::Milliseconds, value);
            samples.add("destroy", SUBJECT, Unit::Milliseconds, value / 2.0);
            samples.add("ready", "bwrap", Unit::Milliseconds, value * 2.0);
        }
        Section { series: samples.into_series(), ..Section::new("Create", "how") }
    }

    #[test]
    fn a_comparison_is_the_ratio_of_medians() {
        let mut section = section();
        section.compare("ready", SUBJECT, "bwrap", Some(Goal::AtMost(1.0)));
        assert_eq!(section.comparisons[0].value, 0.5);
        assert_eq!(section.comparisons[0].better, Better::Lower);
    }

    #[test]
    fn a_peer_that_was_skipped_is_not_compared_with() {
        let mut section = section();
        section.compare("ready", SUBJECT, "docker", None);
        section.compare("no such measure", SUBJECT, "bwrap", None);
        assert!(section.comparisons.is_empty());
    }

    #[test]
    fn goals_include_their_limit() {
        assert!(Goal::AtMost(1.0).is_met_by(1.0) && !Goal::AtMost(1.0).is_met_by(1.01));
        assert!(Goal::AtLeast(0.6).is_met_by(0.6) && !Goal::AtLeast(0.6).is_met_by(0.59));
    }
}

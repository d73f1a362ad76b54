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
    /// Goals that this run could say nothing about.
    pub unmeasured: Vec<Skipped>,
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
    /// Of medians.
    pub value: f64,
    /// The same of the slow ends; none where that is not a thing of its own.
    pub p95: Option<f64>,
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

    pub fn summary(&self, measure: &str, who: &str) -> Option<&Summary> {
        let series = self.series.iter().find(|s| s.measure == measure && s.who == who)?;
        Some(&series.summary)
    }

    pub fn median(&self, measure: &str, who: &str) -> Option<f64> {
        self.summary(measure, who).map(|summary| summary.p50)
    }

    /// Adds the ratio of two medians; nothing when one of them was not measured.
    pub fn compare(&mut self, measure: &str, subject: &str, peer: &str, goal: Option<Goal>) {
        let Some((ours, theirs, better)) = self.pair(measure, subject, peer) else { return };
        self.comparisons.push(Comparison {
            what: format!("{measure}: {subject} ÷ {peer}"),
            value: ours.p50 / theirs.p50,
            p95: Some(ours.p95 / theirs.p95),
            unit: Unit::Times,
            better,
            goal,
        });
    }

    /// Adds how many times faster the subject's times are; nothing when one was not measured.
    pub fn times_faster(&mut self, measure: &str, subject: &str, peer: &str, goal: Option<Goal>) {
        let Some((ours, theirs, _)) = self.pair(measure, subject, peer) else { return };
        self.comparisons.push(Comparison {
            what: format!("{measure}: {subject} faster than {peer}"),
            value: theirs.p50 / ours.p50,
            p95: Some(theirs.p95 / ours.p95),
            unit: Unit::Times,
            better: Better::Higher,
            goal,
        });
    }

    /// Adds how much longer the subject takes; nothing when one of them was not measured.
    pub fn difference(&mut self, measure: &str, subject: &str, peer: &str, goal: Option<Goal>) {
        let Some((ours, theirs, better)) = self.pair(measure, subject, peer) else { return };
        self.comparisons.push(Comparison {
            what: format!("{measure}: {subject} − {peer}"),
            value: ours.p50 - theirs.p50,
            p95: Some(ours.p95 - theirs.p95),
            unit: Unit::Milliseconds,
            better,
            goal,
        });
    }

    /// Adds a figure of its own with a goal.
    pub fn figure(&mut self, what: impl Into<String>, value: f64, unit: Unit, goal: Goal) {
        let (what, better, goal) = (what.into(), unit.better(), Some(goal));
        self.comparisons.push(Comparison { what, value, p95: None, unit, better, goal });
    }

    fn pair(&self, measure: &str, subject: &str, peer: &str) -> Option<(Summary, Summary, Better)> {
        let series = self.series.iter().find(|s| s.measure == measure)?;
        let (ours, theirs) = (self.summary(measure, subject)?, self.summary(measure, peer)?);
        Some((*ours, *theirs, series.unit.better()))
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
    fn faster_is_the_other_way_round() {
        let mut section = section();
        section.times_faster("ready", SUBJECT, "bwrap", Some(Goal::AtLeast(3.0)));
        let comparison = &section.comparisons[0];
        assert_eq!((comparison.value, comparison.better), (2.0, Better::Higher));
        assert!(!comparison.goal.unwrap().is_met_by(comparison.value));
    }

    #[test]
    fn a_difference_is_what_the_subject_takes_longer() {
        let mut section = section();
        section.difference("ready", "bwrap", SUBJECT, Some(Goal::AtMost(2.0)));
        section.difference("ready", SUBJECT, "bwrap", None);
        let [longer, shorter] = &section.comparisons[..] else { panic!("two comparisons") };
        assert_eq!((longer.value, shorter.value), (2.0, -2.0));
        assert!(longer.goal.unwrap().is_met_by(longer.value));
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

//! `[app.bash_tools.approvals]`: what may be done without a person, and what not at all.

use std::time::Duration;

use serde::Deserialize;

use super::Verdict;
use super::limits::{DEFAULT_PATIENCE, LONGEST_PATIENCE, SHORTEST_PATIENCE};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalConfig {
    /// Of what no rule speaks about.
    pub default: Verdict,
    /// How long a question waits; then the answer is no.
    pub timeout_ms: u64,
    pub rules: Vec<RuleConfig>,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        let timeout_ms = u64::try_from(DEFAULT_PATIENCE.as_millis()).unwrap_or(u64::MAX);
        Self { default: Verdict::Allow, timeout_ms, rules: Vec::new() }
    }
}

impl ApprovalConfig {
    /// None when it is out of range.
    pub fn patience(&self) -> Option<Duration> {
        let patience = Duration::from_millis(self.timeout_ms);
        (SHORTEST_PATIENCE..=LONGEST_PATIENCE).contains(&patience).then_some(patience)
    }
}

/// Without `command` and `path`, all calls of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    pub action: Verdict,
    /// A glob over names of tools; all tools without it.
    #[serde(default)]
    pub tool: Option<String>,
    /// Words that a command begins with, each of them a glob.
    #[serde(default)]
    pub command: Option<String>,
    /// A glob over files that are read or written.
    #[serde(default)]
    pub path: Option<String>,
    /// For the model and for whoever decides.
    #[serde(default)]
    pub reason: Option<String>,
}

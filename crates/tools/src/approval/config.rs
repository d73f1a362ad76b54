//! `[app.bash_tools.approvals]`, checked.

use super::{ApprovalConfig, Rules};
use crate::config::Problems;

const SECTION: &str = "app.bash_tools.approvals";

/// What the operator says about approvals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approvals {
    pub config: ApprovalConfig,
}

impl Approvals {
    pub(crate) fn read(value: Option<&toml::Value>, problems: &Problems) -> Self {
        let Some(value) = value else { return Self::default() };
        if !value.is_table() {
            problems.add(format!("{SECTION} is not a section; write [{SECTION}] above its keys"));
            return Self::default();
        }
        let config: ApprovalConfig = match value.clone().try_into() {
            Ok(config) => config,
            Err(error) => {
                let reason = error.to_string().replace('\n', " ");
                problems.add(format!("{SECTION} cannot be understood: {}", reason.trim()));
                return Self::default();
            }
        };
        if config.patience().is_none() {
            problems.wrong(
                &format!("{SECTION}.timeout_ms"),
                &config.timeout_ms.to_string(),
                "a whole number from 1000 to 86400000",
                "leave it out for the default (300000)",
            );
        }
        if let Err(wrong) = Rules::new(&config) {
            problems.add(format!("{SECTION}.rules are wrong: {wrong}"));
        }
        Self { config }
    }
}

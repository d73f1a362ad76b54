//! Fuzz targets: scripts that a model wrote, as the approval rules read them.

use serde_json::json;

use crate::approval::{ApprovalConfig, RuleConfig, Rules, Verdict};

/// What comes first is always seen, whatever follows it; and nothing takes long or panics.
pub fn scripts(data: &[u8]) {
    let Ok(script) = std::str::from_utf8(data) else { return };
    let rule = |action, command: &str| RuleConfig {
        action,
        tool: None,
        command: Some(command.to_owned()),
        path: None,
        reason: None,
    };
    let path =
        RuleConfig { command: None, path: Some("secrets/**".to_owned()), ..rule(Verdict::Ask, "") };
    let rules = vec![rule(Verdict::Deny, "danger"), rule(Verdict::Allow, "echo"), path];
    let rules = Rules::new(&ApprovalConfig { rules, ..ApprovalConfig::default() });
    let rules = rules.expect("these rules are right");
    let judge = |command: String| rules.judge("bash", &json!({ "command": command }));
    let alone = judge(script.to_owned());
    assert_eq!(judge(script.to_owned()), alone, "the same script is judged the same");
    for first in ["danger -r x\n", "env A=1 danger -fr x;\n", "(danger -r x)\n"] {
        let judged = judge(format!("{first}{script}"));
        assert_ne!(judged.verdict, Verdict::Allow, "{first:?} is not seen: {judged:?}");
        assert!(!judged.because.is_empty());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_scripts_are_handled() {
        sandbank_test_support::replay_corpus("scripts", super::scripts);
    }
}

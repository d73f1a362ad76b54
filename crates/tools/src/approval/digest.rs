//! What a decision is about, in 64 characters: of exactly this tool, input and session.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Each part behind its length, so that none can look like a piece of another.
pub fn digest(session: &str, tool: &str, input: &Value) -> String {
    let mut hash = Sha256::new();
    hash.update(b"sandbank tool approval 1\n");
    for part in [session, tool, &input.to_string()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_fields_does_not_matter_and_everything_else_does() {
        let ordered: Value = serde_json::from_str(r#"{"a":1,"b":2}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"b":2,"a":1}"#).unwrap();
        assert_eq!(digest("s", "t", &ordered), digest("s", "t", &other));
        let all = [
            digest("s", "bash", &json!({ "command": "ls" })),
            digest("s", "bash", &json!({ "command": "ls " })),
            digest("s2", "bash", &json!({ "command": "ls" })),
            digest("s", "bas", &json!({ "command": "ls" })),
            digest("sbash", "", &json!({ "command": "ls" })),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert!(all.iter().all(|digest| digest.len() == 64));
    }
}

//! Fields that a body has and no route knows: what to say of them, and which was probably meant.

use serde_json::{Map, Value};

use crate::limits::{MAX_FIELD_WARNINGS, MAX_SHOWN_FIELD_CHARS};

/// The known fields of a body, those of objects in it as `object.field`.
pub(crate) struct Known(pub(crate) &'static [&'static str]);

impl Known {
    /// A sentence for each field that is not known; a body of nothing else makes no more than some.
    pub(crate) fn warnings(&self, body: &Map<String, Value>) -> Vec<String> {
        let mut unknown: Vec<String> = Vec::new();
        for (name, value) in body {
            if !self.has(name) {
                unknown.push(name.clone());
            } else if let Value::Object(inner) = value
                && self.is_object(name)
            {
                let paths = inner.keys().map(|key| format!("{name}.{key}"));
                unknown.extend(paths.filter(|path| !self.has(path)));
            }
            if unknown.len() > MAX_FIELD_WARNINGS {
                break;
            }
        }
        let surplus = unknown.len() > MAX_FIELD_WARNINGS;
        unknown.truncate(MAX_FIELD_WARNINGS);
        let mut warnings: Vec<_> =
            unknown.iter().map(|name| complaint(name, self.0.iter().copied())).collect();
        if surplus {
            warnings.push("there are more fields that are not known here".to_owned());
        }
        warnings
    }

    fn has(&self, path: &str) -> bool {
        self.0.contains(&path) || self.is_object(path)
    }

    fn is_object(&self, name: &str) -> bool {
        let below = |path: &&str| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        self.0.iter().any(below)
    }
}

/// What serde says of a field that is unknown or missing, in our words; none where it is about
/// anything else.
pub(crate) fn from_serde(message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix("missing field `") {
        let (name, _) = rest.split_once('`')?;
        return Some(format!("{} is required", shown(name)));
    }
    let rest = message.strip_prefix("unknown field `")?;
    let (name, expected) = rest.rsplit_once("`, expected ").or_else(|| {
        // Of a body that has no fields at all.
        rest.rsplit_once("`, there are no fields")
    })?;
    Some(complaint(name, expected.split('`').skip(1).step_by(2)))
}

fn complaint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let said = format!("{} is not a field here", shown(name));
    match (nearest(name, &known), known.is_empty()) {
        (Some(meant), _) => format!("{said}; did you mean {meant}?"),
        (None, false) => format!("{said}; the fields are {}", known.join(", ")),
        (None, true) => said,
    }
}

/// By its own name, wherever it belongs, and however it is written: `memory_mb` and `memoryMb`.
fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    if wrong.len() > MAX_SHOWN_FIELD_CHARS {
        return None;
    }
    let wrong = bare(wrong);
    let slips = |name: &str| strsim::damerau_levenshtein(&wrong, &bare(name));
    let closest = known.iter().map(|name| (slips(name), *name)).min()?;
    if closest.0 <= 1 + bare(closest.1).len() / 6 {
        return Some(closest.1);
    }
    let part = |name: &&&str| wrong.len() >= 3 && bare(name).contains(&wrong);
    known.iter().filter(part).min_by_key(|name| name.len()).copied()
}

fn bare(path: &str) -> String {
    let name = path.rsplit('.').next().unwrap_or(path);
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn shown(name: &str) -> String {
    if name.is_empty() {
        return "\"\"".to_owned();
    }
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    name.chars().take(MAX_SHOWN_FIELD_CHARS).map(clean).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    const KNOWN: Known = Known(&["sessionKey", "idleTtlMs", "env", "resources.memoryMb"]);

    fn warnings(body: Value) -> Vec<String> {
        KNOWN.warnings(body.as_object().unwrap())
    }

    #[test]
    fn an_unknown_field_is_named_with_the_one_that_was_meant() {
        let known = json!({"sessionKey": "x", "env": {"any": "1"}, "resources": {"memoryMb": 1}});
        assert!(warnings(known).is_empty());
        for (body, meant) in [
            (json!({"memoryMb": 1}), "resources.memoryMb"),
            (json!({"memory": 1}), "resources.memoryMb"),
            (json!({"resources": {"memory_mb": 1}}), "resources.memoryMb"),
            (json!({"resources": {"idleTtlMs": 1}}), "idleTtlMs"),
            (json!({"sesionKey": 1}), "sessionKey"),
            (json!({"ttl": 1}), "idleTtlMs"),
        ] {
            let said = warnings(body.clone());
            assert_eq!(said.len(), 1, "{body}");
            let expected = format!(" is not a field here; did you mean {meant}?");
            assert!(said[0].ends_with(&expected), "{body}: {said:?}");
        }
        let stranger = warnings(json!({"colour": 1}));
        assert!(stranger[0].contains("the fields are sessionKey, "), "{stranger:?}");
    }

    #[test]
    fn a_body_of_unknown_fields_makes_some_short_warnings() {
        let body: Map<String, Value> =
            (0..1000).map(|n| (format!("{n}\n{}", "x".repeat(10_000)), json!(1))).collect();
        let said = KNOWN.warnings(&body);
        assert_eq!(said.len(), MAX_FIELD_WARNINGS + 1);
        assert!(said.iter().all(|text| text.len() < 300 && !text.contains('\n')), "{said:?}");
    }

    #[test]
    fn what_serde_says_of_fields_is_understood() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(dead_code, reason = "only read")]
        struct Body {
            cmd: String,
            timeout_ms: Option<u64>,
        }
        let said =
            |text: &str| from_serde(&serde_json::from_str::<Body>(text).unwrap_err().to_string());
        assert_eq!(said("{}").unwrap(), "cmd is required");
        let slip = said(r#"{"cmd":"x","timeout":1}"#).unwrap();
        assert_eq!(slip, "timeout is not a field here; did you mean timeout_ms?");
        let stranger = said(r#"{"cmd":"x","a`, expected `b":1}"#).unwrap();
        assert!(stranger.ends_with("the fields are cmd, timeout_ms"), "{stranger}");
        assert_eq!(said(r#"{"cmd":1}"#), None);
        assert_eq!(said("{"), None);
    }
}

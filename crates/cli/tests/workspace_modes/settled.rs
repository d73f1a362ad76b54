//! What of an answer is another one each time, or in each place, replaced by a word for it.

use serde_json::{Value, json};

use super::places::Place;

const TIMES: [&str; 6] =
    ["created_at", "updated_at", "decided_at", "expires_at", "started_at", "stopped_at"];

/// Ids that clients choose are the same each time.
pub(crate) const CHOSEN: [&str; 4] = [
    "11111111-1111-4111-8111-111111111111",
    "22222222-2222-4222-8222-222222222222",
    "33333333-3333-4333-8333-333333333333",
    "44444444-4444-4444-8444-444444444444",
];

pub(crate) fn settled(heard: Vec<Value>, place: &Place) -> Vec<Value> {
    let root = heard.iter().find_map(|entry| entry["body"]["workspace_root"].as_str());
    let root = root.unwrap_or_default().to_owned();
    let daemon = place.daemon.url();
    heard
        .into_iter()
        .map(|entry| settle(entry, &[(&root, "<root>"), (&daemon, "<daemon>")]))
        .collect()
}

fn settle(value: Value, names: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) => Value::String(settle_text(text, names)),
        Value::Array(items) => items.into_iter().map(|item| settle(item, names)).collect(),
        Value::Object(fields) => {
            let settled = fields.into_iter().filter_map(|(key, value)| {
                let value = match key.as_str() {
                    // Which of the two it is, and what only one of them has.
                    "workspace_mode" => json!("<mode>"),
                    "sandbox" if value.get("routing_mode").is_some() => return None,
                    key if TIMES.contains(&key) && !value.is_null() => json!("<time>"),
                    _ => settle(value, names),
                };
                Some((settle_text(key, names), value))
            });
            Value::Object(settled.collect())
        }
        other => other,
    }
}

fn settle_text(mut text: String, names: &[(&str, &str)]) -> String {
    for (name, word) in names.iter().filter(|(name, _)| !name.is_empty()) {
        text = text.replace(name, word);
    }
    let mut at = 0;
    while let Some(piece) = text.get(at..at + 36) {
        if is_uuid(piece) && !CHOSEN.contains(&piece) {
            text.replace_range(at..at + 36, "<uuid>");
        }
        at = text.ceil_char_boundary(at + 1);
    }
    if text.split('.').count() == 3 && text.starts_with("eyJ") {
        "<token>".to_owned()
    } else {
        text
    }
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

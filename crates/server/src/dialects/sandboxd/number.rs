//! Numbers as sandboxd reads them: JavaScript's `Number()`, floor, clamp; not a number means the
//! default. So an explicit `null` or `""` is 0 and becomes the *minimum*: clients rely on it.

use std::ops::RangeInclusive;

use serde_json::Value;

/// A field's bounds and what it is when absent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clamp {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) default: u64,
}

impl Clamp {
    pub(super) fn within(range: RangeInclusive<u64>, default: u64) -> Self {
        let (min, max) = range.into_inner();
        Self { min, max, default }
    }

    pub(super) fn read(self, value: Option<&Value>) -> u64 {
        let number = value.map_or(f64::NAN, number).floor();
        if !number.is_finite() {
            return self.default;
        }
        // Saturating by definition of `as`, and clamped right after.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = number as u64;
        whole.clamp(self.min, self.max)
    }
}

/// `Number(value)`.
pub(super) fn number(value: &Value) -> f64 {
    match value {
        Value::Null => 0.0,
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        Value::String(text) => text_number(text),
        // An array is first joined to a text; an object never is a number.
        Value::Array(items) => match items.as_slice() {
            [] => 0.0,
            [Value::Null] => 0.0,
            [Value::Bool(_)] => f64::NAN,
            [one] => number(one),
            _ => f64::NAN,
        },
        Value::Object(_) => f64::NAN,
    }
}

fn text_number(text: &str) -> f64 {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let radix =
        |digits: &str, radix| u64::from_str_radix(digits, radix).map_or(f64::NAN, |n| n as f64);
    match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => return radix(&text[2..], 16),
        Some("0o") => return radix(&text[2..], 8),
        Some("0b") => return radix(&text[2..], 2),
        _ => {}
    }
    match text {
        "" => 0.0,
        "Infinity" | "+Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        // Rust also reads words like "inf" and "nan", which JavaScript does not.
        _ if text.bytes().any(|b| b.is_ascii_alphabetic() && !b"eE".contains(&b)) => f64::NAN,
        _ => text.parse().unwrap_or(f64::NAN),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TTL: Clamp = Clamp { min: 10, max: 1000, default: 500 };

    #[test]
    fn clamping_follows_javascript() {
        for (value, expected) in [
            (json!(20), 20),
            (json!(20.9), 20),
            (json!(-5), 10),
            (json!(5000), 1000),
            (json!(1e300), 1000),
            (json!(null), 10),
            (json!(""), 10),
            (json!("  "), 10),
            (json!(false), 10),
            (json!(true), 10),
            (json!("30"), 30),
            (json!(" 30.7 "), 30),
            (json!("3e1"), 30),
            (json!("0x20"), 32),
            (json!([]), 10),
            (json!([40]), 40),
            (json!(["40"]), 40),
            (json!([1, 2]), 500),
            (json!({}), 500),
            (json!("abc"), 500),
            (json!("30ms"), 500),
            (json!("inf"), 500),
            (json!("nan"), 500),
            (json!("Infinity"), 500),
            (json!("0x"), 500),
        ] {
            assert_eq!(TTL.read(Some(&value)), expected, "{value}");
        }
        assert_eq!(TTL.read(None), 500, "absent");
    }
}

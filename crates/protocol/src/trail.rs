//! Headers by which one request is found in every log and trace on its way.

/// The id of the request that a call is made for.
pub const REQUEST_ID_HEADER: &str = "x-request-id";

/// The W3C's: which trace and which span of it a call belongs to.
pub const TRACEPARENT_HEADER: &str = "traceparent";

/// A longer request id is not used.
pub const MAX_REQUEST_ID_CHARS: usize = 64;

/// The id, if it may stand in a log and in a header: it is short, and has letters, digits, `-`, `_`
/// and `.` only.
pub fn plain_request_id(id: &str) -> Option<&str> {
    let fits = (1..=MAX_REQUEST_ID_CHARS).contains(&id.len());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (fits && id.bytes().all(plain)).then_some(id)
}

/// The trace's id in a `traceparent`, if that is one.
pub fn trace_id(traceparent: &str) -> Option<&str> {
    let mut parts = traceparent.split('-');
    let lower_hex = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let version = parts.next().filter(|version| lower_hex(version, 2) && *version != "ff")?;
    let trace = parts.next().filter(|id| lower_hex(id, 32) && id.bytes().any(|b| b != b'0'))?;
    parts.next().filter(|id| lower_hex(id, 16) && id.bytes().any(|b| b != b'0'))?;
    parts.next().filter(|flags| lower_hex(flags, 2))?;
    (version != "00" || parts.next().is_none()).then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_and_plain_ids_are_used() {
        for plain in ["a", "abc-1.2_3", &"x".repeat(64)] {
            assert_eq!(plain_request_id(plain), Some(plain));
        }
        for odd in ["", "a b", "a\nb", "a\"b", "\u{e9}", &"x".repeat(65), &"x".repeat(10_000)] {
            assert_eq!(plain_request_id(odd), None, "{odd:.20}");
        }
    }

    #[test]
    fn a_traceparent_is_taken_as_the_w3c_writes_it_and_not_otherwise() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        assert_eq!(trace_id(&format!("00-{trace}-{span}-01")), Some(trace));
        assert_eq!(trace_id(&format!("01-{trace}-{span}-01-later")), Some(trace));
        for odd in [
            String::new(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}x-{span}-01"),
        ] {
            assert_eq!(trace_id(&odd), None, "{odd}");
        }
    }
}

//! Text as part of an address.

use std::fmt::Write;

/// Everything is percent-encoded but the unreserved characters, and `also`.
pub fn percent_encoded(text: &str, also: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte) {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_an_address_is_hidden() {
        assert_eq!(percent_encoded("a/../b?c", b""), "a%2F..%2Fb%3Fc");
        assert_eq!(percent_encoded("/a b/ü&", b"/"), "/a%20b/%C3%BC%26");
        assert_eq!(percent_encoded(r#"{"a":["b=c"]}"#, b""), "%7B%22a%22%3A%5B%22b%3Dc%22%5D%7D");
    }
}

//! Names as JSON text, written by hand: a walk writes hundreds of thousands of them.

/// Appends `text` as it stands between the quotes of a JSON string.
pub(super) fn push(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte >= 0x20 && *byte != b'"' && *byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[start..at]);
        start = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            byte => {
                out.extend_from_slice(b"\\u00");
                push_hex(out, &[*byte]);
            }
        }
    }
    out.extend_from_slice(&bytes[start..]);
}

/// Lossy where the bytes are not UTF-8; says whether they are.
pub(super) fn push_lossy(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            push(out, text);
            true
        }
        Err(_) => {
            push(out, &String::from_utf8_lossy(bytes));
            false
        }
    }
}

pub(super) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_is_read_back_as_it_was(text in any::<String>()) {
            let mut out = vec![b'"'];
            push(&mut out, &text);
            out.push(b'"');
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }

    #[test]
    fn controls_quotes_and_odd_bytes_are_written_so_that_lines_stay_lines() {
        let mut out = Vec::new();
        assert!(push_lossy(&mut out, b"a\n\"\\\x00\x7f"));
        assert_eq!(out, b"a\\u000a\\\"\\\\\\u0000\x7f");
        assert!(!push_lossy(&mut out, b"\xff"));
        assert!(out.ends_with("\u{fffd}".as_bytes()));
    }
}

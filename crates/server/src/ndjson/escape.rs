//! JSON string escaping at memory speed: whole blocks without a special byte are copied as they
//! are, which is nearly all of what programs print.

use bytes::{BufMut, BytesMut};

const BLOCK: usize = 32;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` as the inside of a JSON string.
pub(super) fn push_escaped(out: &mut BytesMut, text: &str) {
    let mut rest = text.as_bytes();
    out.reserve(rest.len() + rest.len() / 16);
    loop {
        let clean = clean_prefix(rest);
        out.extend_from_slice(&rest[..clean]);
        let Some(special) = rest.get(clean) else { return };
        push_special(out, *special);
        rest = &rest[clean + 1..];
    }
}

/// How many bytes from the start need no escape.
fn clean_prefix(bytes: &[u8]) -> usize {
    let mut clean = 0;
    for block in bytes.chunks_exact(BLOCK) {
        // No early exit inside a block: the compiler turns this into a few vector instructions.
        if block.iter().fold(false, |any, byte| any | is_special(*byte)) {
            break;
        }
        clean += BLOCK;
    }
    let tail = &bytes[clean..];
    clean + tail.iter().position(|byte| is_special(*byte)).unwrap_or(tail.len())
}

fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn push_special(out: &mut BytesMut, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            return;
        }
    };
    out.put_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = BytesMut::new();
        push_escaped(&mut out, text);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn escapes_are_those_of_json() {
        assert_eq!(
            escaped("a\"b\\c\n\r\t\u{8}\u{c}\u{1b}\u{0}"),
            "a\\\"b\\\\c\\n\\r\\t\\b\\f\\u001b\\u0000"
        );
        let long = format!("{}\n{}", "x".repeat(100), "é".repeat(50));
        assert_eq!(escaped(&long), long.replace('\n', "\\n"));
    }

    proptest! {
        #[test]
        fn any_text_survives(text in any::<String>(), padding in 0usize..70) {
            let text = format!("{}{text}", " ".repeat(padding));
            let json = format!("\"{}\"", escaped(&text));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}

//! JSON string escaping near memory speed, without unsafe code.
//!
//! Text is looked at in blocks. A block without a special byte is left for one large copy; one
//! with few of them (lines of text) is copied in runs; a dense one goes byte by byte through a
//! table without branches.

use bytes::BytesMut;

const BLOCK: usize = 32;

/// More specials than this in a block make copying runs slower than the table.
const FEW: u32 = 3;

/// Appends `text` as the inside of a JSON string.
pub(super) fn push_escaped(out: &mut BytesMut, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + bytes.len() / 16);
    let (blocks, tail) = bytes.as_chunks::<BLOCK>();
    // Everything before this is in `out`.
    let mut done = 0;
    for (number, block) in blocks.iter().enumerate() {
        // No early exit inside a block: the compiler turns this into a few vector instructions.
        if !block.iter().fold(false, |any, byte| any | is_special(*byte)) {
            continue;
        }
        let start = number * BLOCK;
        let mut specials = special_positions(block);
        if specials.count_ones() > FEW {
            out.extend_from_slice(&bytes[done..start]);
            push_by_table(out, block);
            done = start + BLOCK;
            continue;
        }
        while specials != 0 {
            let at = start + specials.trailing_zeros() as usize;
            out.extend_from_slice(&bytes[done..at]);
            let entry = &ESCAPES[usize::from(bytes[at])];
            out.extend_from_slice(&entry[..usize::from(entry[LENGTH])]);
            done = at + 1;
            specials &= specials - 1;
        }
    }
    out.extend_from_slice(&bytes[done..bytes.len() - tail.len()]);
    push_by_table(out, tail);
}

const fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// One bit per byte of the block.
fn special_positions(block: &[u8; BLOCK]) -> u32 {
    // A plain loop: whether `map` becomes vector instructions hangs on where it is inlined.
    let mut flags = [0; BLOCK];
    for (flag, byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(is_special(*byte));
    }
    let (eights, _) = flags.as_chunks::<8>();
    eights.iter().rev().fold(0, |bits, eight| {
        // Gathers the lowest bit of each of the eight bytes in the highest byte.
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        (bits << 8) | u32::try_from(gathered).expect("eight bits")
    })
}

/// At most a block.
fn push_by_table(out: &mut BytesMut, bytes: &[u8]) {
    let mut escaped = [0u8; BLOCK * 6 + 2];
    let mut length = 0;
    for byte in bytes {
        let entry = &ESCAPES[usize::from(*byte)];
        escaped[length..length + 8].copy_from_slice(entry);
        length += usize::from(entry[LENGTH]);
    }
    out.extend_from_slice(&escaped[..length]);
}

const LENGTH: usize = 7;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// What each byte becomes, and in the last place how long that is.
static ESCAPES: [[u8; 8]; 256] = {
    let mut table = [[0u8; 8]; 256];
    let mut index = 0;
    while index < table.len() {
        let byte = index as u8;
        table[index] = match byte {
            b'\n' => [b'\\', b'n', 0, 0, 0, 0, 0, 2],
            b'\r' => [b'\\', b'r', 0, 0, 0, 0, 0, 2],
            b'\t' => [b'\\', b't', 0, 0, 0, 0, 0, 2],
            b'"' | b'\\' => [b'\\', byte, 0, 0, 0, 0, 0, 2],
            0..0x20 => {
                let (high, low) = (HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]);
                [b'\\', b'u', b'0', b'0', high, low, 0, 6]
            }
            _ => [byte, 0, 0, 0, 0, 0, 0, 1],
        };
        index += 1;
    }
    table
};

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
        assert_eq!(escaped("a\"b\\c\n\r\t\u{1b}\u{0}"), "a\\\"b\\\\c\\n\\r\\t\\u001b\\u0000");
        let long = format!("{}\n{}", "x".repeat(100), "é".repeat(50));
        assert_eq!(escaped(&long), long.replace('\n', "\\n"));
    }

    #[test]
    fn every_position_in_a_block_is_seen() {
        for at in 0..3 * BLOCK {
            let text = format!("{}\n{}", "x".repeat(at), "y".repeat(3 * BLOCK - at));
            assert_eq!(escaped(&text), text.replace('\n', "\\n"), "at {at}");
        }
    }

    proptest! {
        #[test]
        fn any_text_survives(text in "(\\PC|[\\x00-\\x1f\"\\\\\n]){0,200}", padding in 0usize..70) {
            let text = format!("{}{text}", " ".repeat(padding));
            let json = format!("\"{}\"", escaped(&text));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}

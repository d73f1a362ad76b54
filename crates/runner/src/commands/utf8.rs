//! Where output may be cut: never inside a character that is still being written.

/// How many bytes at the end are the beginning of a UTF-8 character, at most 3. Bytes that can
/// not become a character are not held back, so binary data passes as it is.
pub(crate) fn unfinished_tail(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(3);
    for length in 1..=longest {
        let tail = &bytes[bytes.len() - length..];
        let is_continuation = tail[0] & 0b1100_0000 == 0b1000_0000;
        if is_continuation {
            continue;
        }
        let unfinished = std::str::from_utf8(tail).is_err_and(|e| e.error_len().is_none());
        return if unfinished { length } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_cut_anywhere_is_valid_up_to_the_tail(text in "\\PC{0,20}", cut in 0usize..80) {
            let cut = cut.min(text.len());
            let piece = &text.as_bytes()[..cut];
            let whole = &piece[..cut - unfinished_tail(piece)];
            prop_assert!(std::str::from_utf8(whole).is_ok());
        }

        #[test]
        fn at_most_three_bytes_of_anything_are_held_back(
            bytes in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            prop_assert!(unfinished_tail(&bytes) <= bytes.len().min(3));
        }
    }

    #[test]
    fn bytes_that_cannot_become_a_character_pass() {
        let never: [&[u8]; 5] = [b"", b"abc", b"\xff", b"\xc0", b"\x80\x80\x80"];
        for bytes in never {
            assert_eq!(unfinished_tail(bytes), 0, "{bytes:x?}");
        }
        assert_eq!(unfinished_tail(b"a\xe2\x82"), 2);
        assert_eq!(unfinished_tail(b"\xf0\x9f\x98"), 3);
        assert_eq!(unfinished_tail("€".as_bytes()), 0);
    }
}

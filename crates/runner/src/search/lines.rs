//! Found lines as records: cut to size, with the places of the matches in them.

use std::borrow::Cow;
use std::ops::Range;

use grep_matcher::Matcher;
use sandbank_protocol::FoundLine;

use super::matcher::Interruptible;
use crate::files::hex;
use crate::limits::MAX_LINE_RANGES;

/// A file's path, as records have it.
#[derive(Debug)]
pub(super) struct ShownPath<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) hex: Option<String>,
}

impl<'a> ShownPath<'a> {
    pub(super) fn new(path: &'a [u8]) -> Self {
        let text = String::from_utf8_lossy(path);
        let hex = matches!(text, Cow::Owned(_)).then(|| hex(path));
        Self { text, hex }
    }
}

/// A line with the matches in it, if any.
pub(super) fn found_line<'a>(
    path: &'a ShownPath<'_>,
    line: u64,
    offset: u64,
    bytes: &'a [u8],
    ranges: Ranges,
    limit: usize,
) -> FoundLine<'a> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let shown = window(bytes, ranges.list.first().map(|first| first.0), limit);
    let text = String::from_utf8_lossy(&bytes[shown.clone()]);
    FoundLine {
        path: Cow::Borrowed(&path.text),
        path_hex: path.hex.clone(),
        line,
        offset,
        lossy: matches!(text, Cow::Owned(_)),
        text,
        text_at: shown.start as u64,
        cut: (shown.len() < bytes.len()).then_some(bytes.len() as u64),
        ranges: ranges.list,
        more_ranges: ranges.more,
    }
}

/// The part of a long line that is shown: its beginning, or what is around the first match when
/// that begins too far behind. Never begins or ends inside a character.
fn window(bytes: &[u8], first: Option<u64>, limit: usize) -> Range<usize> {
    if bytes.len() <= limit {
        return 0..bytes.len();
    }
    let first = first.map_or(0, |first| usize::try_from(first).unwrap_or(usize::MAX));
    let start = if first < limit / 4 * 3 { 0 } else { first.min(bytes.len()) - limit / 4 };
    let inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    // A character has at most four bytes; more such bytes in a row are no text anyway.
    let start = (start..start + 4).find(|at| !inside(*at)).unwrap_or(start);
    let end = (start + limit).min(bytes.len());
    let end = (end.saturating_sub(3)..=end).rev().find(|at| !inside(*at)).unwrap_or(end);
    start..end.max(start)
}

#[derive(Debug, Default)]
pub(super) struct Ranges {
    pub(super) list: Vec<(u64, u64)>,
    pub(super) more: bool,
}

impl Ranges {
    /// Of the matches in `line`, a part of what was searched. What follows it may decide where a
    /// match ends, so a little of that is looked at, but never the end of a single line.
    pub(super) fn find(
        matcher: &Interruptible<'_>,
        searched: &[u8],
        line: Range<usize>,
        over_lines: bool,
    ) -> Self {
        const LOOK_AHEAD: usize = 128;
        let text = &searched[line.clone()];
        let end = if over_lines {
            (line.end + LOOK_AHEAD).min(searched.len())
        } else {
            line.end - usize::from(text.ends_with(b"\n"))
        };
        let mut ranges = Self::default();
        let visible = text.strip_suffix(b"\n").unwrap_or(text).len() as u64;
        // That a search is over is noticed elsewhere; what was found until then is true.
        let _ = matcher.find_iter_at(&searched[..end], line.start, |found| {
            if found.start() >= line.end {
                return false;
            }
            if ranges.list.len() == MAX_LINE_RANGES {
                ranges.more = true;
                return false;
            }
            let place = |at: usize| ((at - line.start) as u64).min(visible);
            ranges.list.push((place(found.start()), place(found.end())));
            true
        });
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_between_characters_around_their_first_match() {
        let line = "ü".repeat(100);
        assert_eq!(window(line.as_bytes(), None, 200), 0..200);
        assert_eq!(window(line.as_bytes(), None, 21), 0..20);
        assert_eq!(window(line.as_bytes(), Some(100), 20), 96..116);
        assert_eq!(window(line.as_bytes(), Some(198), 20), 194..200);
        assert_eq!(window(&[0x80; 100], None, 10), 0..10);
        assert_eq!(window(b"abc", Some(0), 0), 0..0);
    }

    #[test]
    fn paths_that_are_no_text_have_their_bytes_beside_them() {
        assert_eq!(ShownPath::new(b"a/b").hex, None);
        let odd = ShownPath::new(b"a\xff");
        assert_eq!((odd.text.as_ref(), odd.hex.as_deref()), ("a\u{fffd}", Some("61ff")));
    }
}

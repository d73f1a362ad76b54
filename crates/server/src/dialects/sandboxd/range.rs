//! `Range` of a file download: one range of bytes, or the whole file.

use http::{HeaderMap, HeaderValue, header};

/// What the client asks for, before the file's size is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Whole,
    /// From, to (inclusive).
    Part(u64, Option<u64>),
    /// The last so many bytes.
    Tail(u64),
}

/// What it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    Whole,
    Part {
        offset: u64,
        length: u64,
    },
    /// Nothing of the file is in the range.
    Unsatisfiable,
}

impl Wanted {
    /// Other units, several ranges and nonsense mean the whole file, as the RFC has it.
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let value = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
        value.and_then(parse).unwrap_or(Self::Whole)
    }

    pub(super) fn grant(self, size: u64) -> Grant {
        match self {
            Self::Whole => Grant::Whole,
            Self::Part(from, _) if from >= size => Grant::Unsatisfiable,
            Self::Part(from, to) => {
                let end = to.map_or(size, |to| to.saturating_add(1).min(size));
                Grant::Part { offset: from, length: end - from }
            }
            Self::Tail(0) => Grant::Unsatisfiable,
            Self::Tail(_) if size == 0 => Grant::Unsatisfiable,
            Self::Tail(last) => {
                let length = last.min(size);
                Grant::Part { offset: size - length, length }
            }
        }
    }
}

fn parse(value: &str) -> Option<Wanted> {
    let (from, to) = value.strip_prefix("bytes=")?.trim().split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    match (from, to) {
        ("", last) => number(last).map(Wanted::Tail),
        (from, "") => number(from).map(|from| Wanted::Part(from, None)),
        (from, to) => {
            let (from, to) = (number(from)?, number(to)?);
            (from <= to).then_some(Wanted::Part(from, Some(to)))
        }
    }
}

/// Whether `If-Range` (absent, or this very version of the file) lets a range be served.
pub(super) fn range_applies(headers: &HeaderMap, etag: Option<&HeaderValue>) -> bool {
    headers.get(header::IF_RANGE).is_none_or(|version| Some(version) == etag)
}

/// Whether the client has this version of the file already.
pub(super) fn is_known(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let Some(known) = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    let same =
        |version: &str| version.trim().trim_start_matches("W/").as_bytes() == etag.as_bytes();
    known.trim() == "*" || known.split(',').any(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(range: &str, size: u64) -> Grant {
        let headers = [(header::RANGE, range.parse().unwrap())].into_iter().collect();
        Wanted::read(&headers).grant(size)
    }

    #[test]
    fn one_range_is_granted_as_far_as_the_file_goes() {
        assert_eq!(grant("bytes=0-0", 10), Grant::Part { offset: 0, length: 1 });
        assert_eq!(grant("bytes=2-5", 10), Grant::Part { offset: 2, length: 4 });
        assert_eq!(grant("bytes=2-", 10), Grant::Part { offset: 2, length: 8 });
        assert_eq!(grant("bytes=2-99", 10), Grant::Part { offset: 2, length: 8 });
        assert_eq!(grant("bytes=-3", 10), Grant::Part { offset: 7, length: 3 });
        assert_eq!(grant("bytes=-99", 10), Grant::Part { offset: 0, length: 10 });
        let huge = "bytes=0-99999999999999999999999999";
        assert_eq!(grant(huge, 10), Grant::Part { offset: 0, length: 10 });
    }

    #[test]
    fn ranges_beyond_the_end_are_unsatisfiable_and_nonsense_is_the_whole() {
        for beyond in ["bytes=10-", "bytes=10-20", "bytes=-0"] {
            assert_eq!(grant(beyond, 10), Grant::Unsatisfiable, "{beyond}");
        }
        assert_eq!(grant("bytes=0-", 0), Grant::Unsatisfiable);
        for odd in [
            "bytes=5-2",
            "bytes=a-b",
            "lines=1-2",
            "bytes=1-2,4-5",
            "bytes=",
            "bytes=-",
            "bytes=+1-2",
        ] {
            assert_eq!(grant(odd, 10), Grant::Whole, "{odd}");
        }
    }

    #[test]
    fn versions_are_compared_by_etag() {
        let etag = HeaderValue::from_static("\"a-b\"");
        let with = |name: http::HeaderName, value: &'static str| {
            HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
        };
        assert!(range_applies(&HeaderMap::new(), Some(&etag)));
        assert!(range_applies(&with(header::IF_RANGE, "\"a-b\""), Some(&etag)));
        assert!(!range_applies(&with(header::IF_RANGE, "\"other\""), Some(&etag)));
        assert!(!range_applies(&with(header::IF_RANGE, "\"a-b\""), None));
        assert!(is_known(&with(header::IF_NONE_MATCH, "\"x\", W/\"a-b\""), &etag));
        assert!(!is_known(&with(header::IF_NONE_MATCH, "\"x\""), &etag));
        assert!(!is_known(&HeaderMap::new(), &etag));
    }
}

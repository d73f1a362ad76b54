//! `If-Match` and `If-None-Match` of a change: which version of a file it expects to find.

use http::{HeaderMap, header};
use sandbank_protocol::FileTag;

use crate::error::{ApiError, ApiResult};
use crate::limits::MAX_CONDITION_TAGS;

/// As the runner reads it; none without a condition.
pub(super) fn condition(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let text = |name| match headers.get(name) {
        None => Ok(None),
        Some(value) => value.to_str().map(|text| Some(text.trim())).map_err(|_| unclear()),
    };
    match (text(header::IF_MATCH)?, text(header::IF_NONE_MATCH)?) {
        (None, None) => Ok(None),
        (None, Some("*")) => Ok(Some("none".into())),
        (Some("*"), None) => Ok(Some("any".into())),
        (Some(versions), None) => tags(versions).map(Some),
        _ => Err(unclear()),
    }
}

/// An ETag that is none of ours is that of no version, so nothing meets it.
fn tags(versions: &str) -> ApiResult<String> {
    let mut known = Vec::new();
    for (count, version) in versions.split(',').map(str::trim).enumerate() {
        let tag = version.strip_prefix('"').and_then(|version| version.strip_suffix('"'));
        if count == MAX_CONDITION_TAGS || (tag.is_none() && !version.starts_with("W/")) {
            return Err(unclear());
        }
        if let Some(tag) = tag.filter(|tag| tag.parse::<FileTag>().is_ok()) {
            known.push(tag);
        }
    }
    match known.is_empty() {
        true => Err(ApiError::new(
            http::StatusCode::PRECONDITION_FAILED,
            "precondition_failed",
            "the file is not the version that was expected",
        )),
        false => Ok(known.join(",")),
    }
}

fn unclear() -> ApiError {
    ApiError::bad_request("bad_condition", "the condition on the file's version is not understood")
        .with_hint("send If-Match with ETags of the file or `*`, or If-None-Match with `*`")
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn read(pairs: &[(HeaderName, &'static str)]) -> Result<Option<String>, (u16, &'static str)> {
        let pairs =
            pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        condition(&pairs.collect()).map_err(|error| (error.status.as_u16(), error.code))
    }

    #[test]
    fn conditions_are_versions_any_or_none() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[(header::IF_NONE_MATCH, "*")]), Ok(Some("none".into())));
        assert_eq!(read(&[(header::IF_MATCH, "*")]), Ok(Some("any".into())));
        let one = "\"1-2-3-4-5\"";
        assert_eq!(read(&[(header::IF_MATCH, one)]), Ok(Some("1-2-3-4-5".into())));
        let both = "\"1-2-3-4-5\" , \"a-b-c-d-e\"";
        assert_eq!(read(&[(header::IF_MATCH, both)]), Ok(Some("1-2-3-4-5,a-b-c-d-e".into())));
        for other in ["\"another\"", "W/\"1-2-3-4-5\""] {
            let answer = read(&[(header::IF_MATCH, other)]);
            assert_eq!(answer, Err((412, "precondition_failed")), "{other}");
        }
        for odd in ["", "1-2-3-4-5", "\"1-2-3-4-5"] {
            assert_eq!(read(&[(header::IF_MATCH, odd)]), Err((400, "bad_condition")), "{odd}");
        }
        let several = [(header::IF_MATCH, "*"), (header::IF_NONE_MATCH, "*")];
        assert_eq!(read(&several), Err((400, "bad_condition")));
        assert_eq!(read(&[(header::IF_NONE_MATCH, one)]), Err((400, "bad_condition")));
    }
}

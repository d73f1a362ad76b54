//! Where a request's body ends: said once, in one way. hyper knows where it ends in its own
//! reading; this refuses what a proxy in front of us could have read in another.

use http::{HeaderMap, HeaderValue, header};

use crate::error::{ApiError, ApiResult};

pub(crate) fn check(headers: &HeaderMap) -> ApiResult<()> {
    let lengths = headers.get_all(header::CONTENT_LENGTH).iter().count();
    let codings: Vec<_> = headers.get_all(header::TRANSFER_ENCODING).iter().collect();
    match (codings.as_slice(), lengths) {
        ([], 0 | 1) => Ok(()),
        ([one], 0) if is_chunked(one) => Ok(()),
        _ => Err(ApiError::bad_request("bad_framing", "the request's length has two meanings")),
    }
}

/// Codings on top of it would have to be undone, which nobody here does.
fn is_chunked(value: &HeaderValue) -> bool {
    value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(pairs: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        check(&headers).is_ok()
    }

    #[test]
    fn one_length_or_plain_chunks_pass_and_nothing_else() {
        let (length, coding) = ("content-length", "transfer-encoding");
        for good in [&[][..], &[(length, "2")], &[(coding, "chunked")], &[(coding, " ChunkeD ")]] {
            assert!(passes(good), "{good:?}");
        }
        for bad in [
            &[(length, "2"), (length, "2")][..],
            &[(length, "2"), (coding, "chunked")],
            &[(coding, "chunked"), (coding, "chunked")],
            &[(coding, "chunked, chunked")],
            &[(coding, "gzip, chunked")],
            &[(coding, "identity")],
            &[(coding, "")],
        ] {
            assert!(!passes(bad), "{bad:?}");
        }
    }
}

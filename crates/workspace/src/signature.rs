//! How a request to a workspace service shows whose it is.
//!
//! `X-Workspace-Internal-Auth: hmac-sha256:<unix seconds>:<hex>` is over everything that the
//! service acts on: version, method, path with query, the body's hash, the time and a number that
//! is used once. The hash stands in a header of its own, so that a stranger's request is refused
//! before its body is read.

use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue, Method, request};
use sha2::{Digest, Sha256};

use crate::keys::Keys;
use crate::limits::MAX_SKEW_SECONDS;
use crate::request_id;
use crate::version::{API_VERSION, VERSION_HEADER};

pub(crate) const AUTH_HEADER: &str = "x-workspace-internal-auth";
pub(crate) const NONCE_HEADER: &str = "x-workspace-nonce";
pub(crate) const BODY_HEADER: &str = "x-workspace-content-sha256";

const SCHEME: &str = "hmac-sha256";

/// What a right signature says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    pub at: u64,
    pub nonce: u128,
    pub body_hash: [u8; 32],
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadSignature {
    /// There is none, or it is not right. No more is said.
    Wrong,
    /// It is right, and of another time. Positive when it is of the past.
    Clock { behind: i64 },
}

/// Signs requests, and says what time it is.
#[derive(Debug, Clone)]
pub struct Signer {
    keys: Keys,
    /// For tests of clocks that differ.
    offset_seconds: i64,
}

impl Signer {
    pub fn new(keys: Keys) -> Self {
        Self { keys, offset_seconds: 0 }
    }

    /// As a machine would whose clock is wrong by this.
    #[must_use]
    pub fn with_clock_off(mut self, seconds: i64) -> Self {
        self.offset_seconds = seconds;
        self
    }

    /// `path` is as the service sees it, with its query.
    pub fn sign(&self, head: &mut request::Parts, path: &str, body: &[u8]) {
        let at = unix_seconds().saturating_add_signed(self.offset_seconds);
        let version = API_VERSION.to_string();
        let nonce = format!("{:032x}", request_id::random());
        let body_hash = hex(&Sha256::digest(body));
        let message = message(&version, &head.method, path, &body_hash, at, &nonce);
        let tag = hex(&self.keys.sign(message.as_bytes()));
        let headers = [
            (AUTH_HEADER, format!("{SCHEME}:{at}:{tag}")),
            (NONCE_HEADER, nonce),
            (BODY_HEADER, body_hash),
            (VERSION_HEADER, version),
        ];
        for (name, value) in headers {
            let value = HeaderValue::try_from(value).expect("digits and letters");
            head.headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// Whether the head of a request is signed with one of the secrets, and now.
pub(crate) fn check(
    keys: &Keys,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    now: u64,
) -> Result<Signed, BadSignature> {
    let parsed = Claim::read(headers).ok_or(BadSignature::Wrong)?;
    let Claim { version, at, nonce_text, body_text, tag, signed } = parsed;
    let message = message(version, method, path, body_text, at, nonce_text);
    if !keys.verify(message.as_bytes(), &tag) {
        return Err(BadSignature::Wrong);
    }
    // Only who has a secret learns about the clock.
    if now.abs_diff(at) > MAX_SKEW_SECONDS {
        return Err(BadSignature::Clock {
            behind: now.cast_signed().wrapping_sub(at.cast_signed()),
        });
    }
    Ok(signed)
}

struct Claim<'a> {
    version: &'a str,
    at: u64,
    nonce_text: &'a str,
    body_text: &'a str,
    tag: [u8; 32],
    signed: Signed,
}

impl<'a> Claim<'a> {
    fn read(headers: &'a HeaderMap) -> Option<Self> {
        let mut parts = only(headers, AUTH_HEADER)?.split(':');
        let (scheme, time, tag) = (parts.next()?, parts.next()?, parts.next()?);
        let digits = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
        if scheme != SCHEME || !digits || parts.next().is_some() {
            return None;
        }
        let at = time.parse().ok()?;
        let nonce_text = only(headers, NONCE_HEADER)?;
        let body_text = only(headers, BODY_HEADER)?;
        let nonce = u128::from_be_bytes(unhex(nonce_text)?);
        let signed = Signed { at, nonce, body_hash: unhex(body_text)? };
        let version = only(headers, VERSION_HEADER)?;
        Some(Self { version, at, nonce_text, body_text, tag: unhex(tag)?, signed })
    }
}

/// A header that stands there once.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn message(
    version: &str,
    method: &Method,
    path: &str,
    body_hash: &str,
    at: u64,
    nonce: &str,
) -> String {
    format!("sandbank-workspace\n{version}\n{method}\n{path}\n{body_hash}\n{at}\n{nonce}")
}

pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use proptest::prelude::*;

    use super::*;

    fn keys(letter: &str) -> Keys {
        Keys::parse(&letter.repeat(32)).unwrap()
    }

    fn signed(signer: &Signer, path: &str, body: &[u8]) -> request::Parts {
        let request = Request::builder().method("PUT").uri(path).body(()).unwrap();
        let mut head = request.into_parts().0;
        signer.sign(&mut head, path, body);
        head
    }

    #[test]
    fn what_was_signed_is_right_and_nothing_else_is() {
        let head = signed(&Signer::new(keys("a")), "/files?path=x", b"body");
        let now = unix_seconds();
        let ask = |keys: &Keys, method: Method, path: &str, headers: &HeaderMap| {
            check(keys, &method, path, headers, now)
        };
        let right = ask(&keys("a"), Method::PUT, "/files?path=x", &head.headers).unwrap();
        assert_eq!(right.body_hash, <[u8; 32]>::from(Sha256::digest(b"body")));
        let wrong = Err(BadSignature::Wrong);
        assert_eq!(ask(&keys("b"), Method::PUT, "/files?path=x", &head.headers), wrong);
        assert_eq!(ask(&keys("a"), Method::DELETE, "/files?path=x", &head.headers), wrong);
        assert_eq!(ask(&keys("a"), Method::PUT, "/files?path=y", &head.headers), wrong);
        for name in [AUTH_HEADER, NONCE_HEADER, BODY_HEADER, VERSION_HEADER] {
            let mut headers = head.headers.clone();
            let value = headers[name].to_str().unwrap().to_owned();
            let other = value.replace(|c: char| c.is_ascii_digit(), "7");
            headers.insert(name, HeaderValue::try_from(other).unwrap());
            assert_eq!(ask(&keys("a"), Method::PUT, "/files?path=x", &headers), wrong, "{name}");
            headers.insert(name, HeaderValue::try_from(value.clone()).unwrap());
            headers.append(name, HeaderValue::try_from(value).unwrap());
            assert_eq!(
                ask(&keys("a"), Method::PUT, "/files?path=x", &headers),
                wrong,
                "{name} twice"
            );
            headers.remove(name);
            assert_eq!(ask(&keys("a"), Method::PUT, "/files?path=x", &headers), wrong, "no {name}");
        }
    }

    #[test]
    fn a_clock_may_differ_by_five_minutes_and_who_has_a_secret_learns_by_how_much() {
        let now = unix_seconds();
        for (off, right) in [(0, true), (290, true), (-290, true), (400, false), (-400, false)] {
            let head = signed(&Signer::new(keys("a")).with_clock_off(off), "/files", b"");
            let checked = check(&keys("a"), &Method::PUT, "/files", &head.headers, now);
            match checked {
                Ok(_) => assert!(right, "{off} was taken"),
                Err(BadSignature::Clock { behind }) => {
                    assert!(!right && (behind + off).abs() <= 2, "{off}: {behind}");
                }
                Err(BadSignature::Wrong) => panic!("{off} is wrong"),
            }
            let stranger = check(&keys("b"), &Method::PUT, "/files", &head.headers, now);
            assert_eq!(stranger, Err(BadSignature::Wrong), "a stranger learns about the clock");
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(auth in "[ -~]{0,120}", nonce in "[0-9a-f]{0,40}") {
            let mut head = signed(&Signer::new(keys("a")), "/files", b"");
            head.headers.insert(AUTH_HEADER, HeaderValue::try_from(auth).unwrap());
            head.headers.insert(NONCE_HEADER, HeaderValue::try_from(nonce).unwrap());
            prop_assert!(check(&keys("a"), &Method::PUT, "/files", &head.headers, 0).is_err());
        }
    }
}

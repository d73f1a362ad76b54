//! Tokens: how they are presented, hashed, compared and made.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, header};
use sandbank_store::{Store, StoreError, TokenRow};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::scope::Scope;
use crate::config::Secret;

/// sandboxd's header; it wins over `Authorization`.
const ADMIN_HEADER: &str = "x-remcochat-admin-token";

pub(crate) type TokenHash = [u8; 32];

/// Who is calling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Principal {
    /// The token's name, for logs, post-mortems and rate limits. Never the token.
    pub(crate) name: String,
    pub(crate) scope: Scope,
    /// It is one of the store's, which can be taken away at any time.
    pub(crate) revocable: bool,
}

/// Tokens of the configuration are kept as hashes in memory, scoped ones in the store, where revoking one takes
/// effect with the next request.
pub(crate) struct Tokens {
    configured: Vec<(Principal, TokenHash)>,
    store: Store,
}

impl Tokens {
    pub(crate) fn new(configured: &[(&str, Scope, &Secret)], store: Store) -> Self {
        let hashed = |(name, scope, token): &(&str, Scope, &Secret)| {
            let principal = Principal { name: name.to_string(), scope: *scope, revocable: false };
            (principal, hash(token.expose()))
        };
        Self { configured: configured.iter().map(hashed).collect(), store }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) async fn principal(&self, token: &str) -> Result<Option<Principal>, StoreError> {
        let presented = hash(token);
        let mut found: Option<&Principal> = None;
        // Every hash is compared, so the time says nothing about which one was close.
        for (principal, known) in &self.configured {
            let is_larger = found.is_none_or(|other| principal.scope > other.scope);
            if bool::from(known.ct_eq(&presented)) && is_larger {
                found = Some(principal);
            }
        }
        if found.is_some() {
            return Ok(found.cloned());
        }
        let row = self.store.tokens().find(&presented).await?;
        let row = row.filter(|row| bool::from(row.sha256.ct_eq(&presented)));
        let principal =
            |row: TokenRow| Principal { name: row.name, scope: row.scope.into(), revocable: true };
        Ok(row.map(principal))
    }
}

pub(crate) fn hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// 256 random bits with a prefix that secret scanners can know.
pub(crate) fn random() -> Secret {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).expect("the kernel's random source answers");
    Secret::new(format!("sbk_{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// What a request carries, in either header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presented<'a> {
    Nothing,
    /// Credentials that are no token, such as `Basic`. Never the same as nothing: their sender
    /// wants to be somebody.
    Malformed,
    Token(&'a str),
}

/// An empty header is no header: clients send one for a variable that is not set.
pub(crate) fn presented(headers: &HeaderMap) -> Presented<'_> {
    if let Some(value) = headers.get(ADMIN_HEADER).filter(|value| !is_blank(value)) {
        return value.to_str().map_or(Presented::Malformed, |text| Presented::Token(text.trim()));
    }
    match headers.get(header::AUTHORIZATION).filter(|value| !is_blank(value)) {
        None => Presented::Nothing,
        Some(value) => bearer(value).map_or(Presented::Malformed, Presented::Token),
    }
}

fn is_blank(value: &HeaderValue) -> bool {
    value.as_bytes().trim_ascii().is_empty()
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn both_headers_carry_a_token_and_sandboxds_wins() {
        let bearer = ("authorization", "bEaReR  abc ");
        assert_eq!(presented(&headers(&[bearer])), Presented::Token("abc"));
        let both = headers(&[bearer, (ADMIN_HEADER, "xyz")]);
        assert_eq!(presented(&both), Presented::Token("xyz"));
        let empty_one = headers(&[bearer, (ADMIN_HEADER, " ")]);
        assert_eq!(presented(&empty_one), Presented::Token("abc"));
    }

    #[test]
    fn malformed_credentials_are_not_the_same_as_none() {
        for wrong in ["abc", "Basic abc", "Bearer", "Bearer  "] {
            let headers = headers(&[("authorization", wrong)]);
            assert_eq!(presented(&headers), Presented::Malformed, "{wrong}");
        }
        let mut odd = HeaderMap::new();
        odd.insert(ADMIN_HEADER, HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(presented(&odd), Presented::Malformed);
        for name in ["authorization", ADMIN_HEADER] {
            assert_eq!(presented(&headers(&[(name, "")])), Presented::Nothing, "{name}");
        }
        assert_eq!(presented(&headers(&[])), Presented::Nothing);
    }

    #[test]
    fn new_tokens_are_long_and_differ() {
        let (a, b) = (random(), random());
        assert_ne!(a, b);
        assert_eq!(a.expose().len(), 4 + 43);
    }
}

//! The name of a terminal or a chat as its client holds it: opaque, signed, for one user and one
//! purpose, and good for a while.
//!
//! Three parts with dots between them: a header, the claims, and an HMAC of both. A token says
//! nothing that its holder may not know, and one that was changed, is too old, is somebody else's or
//! is for something else is as good as none. A session that is attached lives on when its token ends.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::config::Secret;
use crate::limits::{MAX_SESSION_TOKEN_BYTES, SESSION_TOKEN_RENEWALS, SESSION_TOKEN_SECONDS};

const VERSION: u32 = 1;
const AUDIENCE: &str = "sandbank-workspace";

/// What a session is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Kind {
    Pty,
    Chat,
}

/// What a token is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Claims {
    /// The session's id.
    pub(in super::super) sid: String,
    aud: String,
    pub(in super::super) kind: Kind,
    /// The template that runs in it.
    pub(in super::super) exec: String,
    pub(in super::super) user: String,
    pub(in super::super) workspace: String,
    /// Unix time in seconds.
    iat: u64,
    exp: u64,
    /// How often it was renewed.
    rnw: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    ver: u32,
    alg: String,
    /// Which key it was signed with.
    kid: String,
}

/// The first signs, all of them are believed: that is how a key is changed without an end to what
/// goes on.
pub(in super::super) struct Keys(Vec<Key>);

struct Key {
    id: String,
    mac: Hmac<Sha256>,
}

/// Who asks, and for what.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Purpose<'a> {
    pub(in super::super) kind: Kind,
    pub(in super::super) user: &'a str,
    pub(in super::super) workspace: &'a str,
}

impl Keys {
    /// At least one.
    pub(in super::super) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        Self(secrets.into_iter().map(Key::new).collect())
    }

    pub(in super::super) fn issue(
        &self,
        sid: &str,
        exec: &str,
        purpose: Purpose<'_>,
        now: u64,
    ) -> String {
        self.sign(&Claims {
            sid: sid.to_owned(),
            aud: AUDIENCE.to_owned(),
            kind: purpose.kind,
            exec: exec.to_owned(),
            user: purpose.user.to_owned(),
            workspace: purpose.workspace.to_owned(),
            iat: now,
            exp: now + SESSION_TOKEN_SECONDS,
            rnw: 0,
        })
    }

    /// For the same session and a further while; none when it was renewed often enough.
    pub(in super::super) fn renew(&self, claims: &Claims, now: u64) -> Option<String> {
        (claims.rnw < SESSION_TOKEN_RENEWALS).then(|| {
            self.sign(&Claims {
                iat: now,
                exp: now + SESSION_TOKEN_SECONDS,
                rnw: claims.rnw + 1,
                ..claims.clone()
            })
        })
    }

    /// None for every reason alike: whoever sends a bad one learns nothing from the answer.
    pub(in super::super) fn verify(
        &self,
        token: &str,
        purpose: Purpose<'_>,
        now: u64,
    ) -> Option<Claims> {
        if token.len() > MAX_SESSION_TOKEN_BYTES {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Header = decoded(header)?;
        if header.ver != VERSION || header.alg != "HS256" {
            return None;
        }
        let key = self.0.iter().find(|key| key.id == header.kid)?;
        let same = key.signature(signed).as_bytes().ct_eq(signature.as_bytes());
        let claims: Claims = decoded(claims)?;
        let meant = claims.aud == AUDIENCE
            && claims.kind == purpose.kind
            && claims.user == purpose.user
            && claims.workspace == purpose.workspace;
        let good = claims.iat <= now + MAX_CLOCK_LEAD && now < claims.exp;
        (bool::from(same) && meant && good).then_some(claims)
    }

    fn sign(&self, claims: &Claims) -> String {
        let key = &self.0[0];
        let header = Header { ver: VERSION, alg: "HS256".to_owned(), kid: key.id.clone() };
        let signed = format!("{}.{}", encoded(&header), encoded(claims));
        let signature = key.signature(&signed);
        format!("{signed}.{signature}")
    }
}

/// Of another machine's clock, in seconds.
const MAX_CLOCK_LEAD: u64 = 60;

impl Key {
    fn new(secret: &Secret) -> Self {
        let bytes = secret.expose().as_bytes();
        let mac = Hmac::new_from_slice(bytes).expect("keys have any length");
        let mut id = sandbank_engine::hex(&Sha256::digest([b"key id:", bytes].concat()));
        id.truncate(8);
        Self { id, mac }
    }

    fn signature(&self, signed: &str) -> String {
        let mac = self.mac.clone().chain_update(signed.as_bytes());
        sandbank_engine::hex(&mac.finalize().into_bytes())
    }
}

fn encoded(part: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(part).expect("plain data"))
}

fn decoded<T: for<'de> Deserialize<'de>>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_000_000;

    fn purpose<'a>(user: &'a str, workspace: &'a str, kind: Kind) -> Purpose<'a> {
        Purpose { kind, user, workspace }
    }

    fn keys(secrets: &[&str]) -> Keys {
        let secrets: Vec<Secret> = secrets.iter().map(|text| Secret::new(*text)).collect();
        Keys::new(&secrets)
    }

    #[test]
    fn a_token_is_good_for_its_purpose_its_user_and_its_time_only() {
        let keys = keys(&["a".repeat(32).as_str()]);
        let mine = purpose("me", "w", Kind::Pty);
        let token = keys.issue("s1", "shell", mine, NOW);
        let claims = keys.verify(&token, mine, NOW).unwrap();
        assert_eq!((claims.sid.as_str(), claims.exec.as_str()), ("s1", "shell"));
        assert!(keys.verify(&token, mine, NOW + SESSION_TOKEN_SECONDS - 1).is_some());
        for (other, now) in [
            (purpose("you", "w", Kind::Pty), NOW),
            (purpose("me", "x", Kind::Pty), NOW),
            (purpose("me", "w", Kind::Chat), NOW),
            (mine, NOW + SESSION_TOKEN_SECONDS),
            (mine, NOW - MAX_CLOCK_LEAD - 1),
        ] {
            assert_eq!(keys.verify(&token, other, now), None, "{other:?} at {now}");
        }
    }

    #[test]
    fn no_changed_or_foreign_token_is_believed() {
        let keys = keys(&["a".repeat(32).as_str()]);
        let mine = purpose("me", "w", Kind::Pty);
        let token = keys.issue("s1", "shell", mine, NOW);
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(keys.verify(&changed, mine, NOW), None, "{changed}");
        }
        let none = format!(
            "{}.{}.",
            encoded(&serde_json::json!({ "ver": 1, "alg": "none", "kid": "" })),
            token.split('.').nth(1).unwrap()
        );
        for bad in ["", ".", "..", "a.b.c", &none, &"x".repeat(100_000)] {
            assert_eq!(keys.verify(bad, mine, NOW), None);
        }
    }

    #[test]
    fn an_older_key_is_believed_until_it_is_taken_away() {
        let (old, new) = ("o".repeat(32), "n".repeat(32));
        let mine = purpose("me", "w", Kind::Chat);
        let token = keys(&[&old]).issue("s1", "claude", mine, NOW);
        assert!(keys(&[&new, &old]).verify(&token, mine, NOW).is_some());
        assert!(keys(&[&new]).verify(&token, mine, NOW).is_none());
        let fresh = keys(&[&new, &old]).issue("s1", "claude", mine, NOW);
        assert!(keys(&[&new]).verify(&fresh, mine, NOW).is_some());
    }

    #[test]
    fn a_token_is_renewed_for_the_same_session_and_not_for_ever() {
        let keys = keys(&["a".repeat(32).as_str()]);
        let mine = purpose("me", "w", Kind::Pty);
        let mut claims = keys.verify(&keys.issue("s1", "shell", mine, NOW), mine, NOW).unwrap();
        let mut now = NOW;
        for _ in 0..SESSION_TOKEN_RENEWALS {
            now += SESSION_TOKEN_SECONDS - 1;
            claims = keys.verify(&keys.renew(&claims, now).unwrap(), mine, now).unwrap();
            assert_eq!(claims.sid, "s1");
        }
        assert_eq!(keys.renew(&claims, now), None);
    }
}

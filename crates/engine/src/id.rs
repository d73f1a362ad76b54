//! Names of sandboxes and of daemon instances.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// `sb` and 16 characters of base32: safe in a path, a URL, a DNS label and a host name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxId(String);

/// Names one data directory. Engine objects carry it, so two daemons never touch each other's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceId(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a valid id")]
pub struct InvalidId(pub String);

fn random_base32(length: usize) -> String {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes[..length]).expect("the kernel's random source answers");
    bytes[..length].iter().map(|b| ALPHABET[usize::from(b & 31)] as char).collect()
}

fn parse(text: &str, prefix: &str, length: usize) -> Result<String, InvalidId> {
    match text.strip_prefix(prefix) {
        Some(rest) if rest.len() == length && rest.bytes().all(|b| ALPHABET.contains(&b)) => {
            Ok(text.to_owned())
        }
        _ => Err(InvalidId(text.chars().take(80).collect())),
    }
}

macro_rules! id_type {
    ($name:ident, $prefix:literal, $length:literal) => {
        impl $name {
            pub fn random() -> Self {
                Self(format!(concat!($prefix, "{}"), random_base32($length)))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                parse(text, $prefix, $length).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id_type!(SandboxId, "sb", 16);
id_type!(InstanceId, "i", 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_parse_and_differ() {
        let (a, b) = (SandboxId::random(), SandboxId::random());
        assert_ne!(a, b);
        assert_eq!(a.as_str().parse::<SandboxId>(), Ok(a));
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in ["", "sb", "..", "sb/../../etc/passwd0", "sbAAAAAAAAAAAAAAAA", "i2345678"] {
            assert!(bad.parse::<SandboxId>().is_err(), "{bad:?} was accepted");
        }
    }
}

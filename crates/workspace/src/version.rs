//! The version that the two sides of a workspace service tell each other.

use std::fmt;
use std::str::FromStr;

/// What this build speaks, and the oldest it gets on with.
pub const API_VERSION: ApiVersion = ApiVersion { major: 0, minor: 1, patch: 0 };
pub const COMPATIBLE_FROM: ApiVersion = ApiVersion { major: 0, minor: 1, patch: 0 };

pub(crate) const VERSION_HEADER: &str = "x-workspace-api-version";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiVersion {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl ApiVersion {
    /// The same major version, and a minor one that is not too old.
    pub fn is_compatible(self) -> bool {
        self.major == COMPATIBLE_FROM.major && self.minor >= COMPATIBLE_FROM.minor
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for ApiVersion {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('.').map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| digits).ok_or(())
        });
        let mut next = || parts.next().unwrap_or(Err(()));
        let version = Self { major: next()?, minor: next()?, patch: next()? };
        if parts.next().is_none() { Ok(version) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_the_same_major_that_is_not_too_old_is_compatible() {
        let parse = |text: &str| text.parse::<ApiVersion>();
        for (text, compatible) in
            [("0.1.0", true), ("0.1.9", true), ("0.2.0", true), ("0.0.9", false), ("1.1.0", false)]
        {
            assert_eq!(parse(text).unwrap().is_compatible(), compatible, "{text}");
        }
        for bad in ["", "0.1", "0.1.0.0", "0.1.x", "+0.1.0", "v0.1.0", "0..1"] {
            assert!(parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert_eq!(API_VERSION.to_string().parse(), Ok(API_VERSION));
    }
}

//! The versions of MCP that are spoken here.

/// Newest first.
const SUPPORTED: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// What a client speaks that does not say so with each request.
const UNSAID: Version = Version(SUPPORTED[2]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(&'static str);

impl Version {
    pub(super) fn of(text: &str) -> Option<Self> {
        SUPPORTED.into_iter().find(|known| *known == text).map(Self)
    }

    /// The client's own where it is spoken here, else the newest one.
    pub(super) fn agreed(wanted: &str) -> Self {
        Self::of(wanted).unwrap_or(Self(SUPPORTED[0]))
    }

    /// Of the header that goes with each request.
    pub(super) fn said(header: Option<&str>) -> Option<Self> {
        header.map_or(Some(UNSAID), Self::of)
    }

    pub(super) fn name(self) -> &'static str {
        self.0
    }

    /// Several messages at once came with one version and went with the next.
    pub(super) fn has_batches(self) -> bool {
        self.0 == "2025-03-26"
    }

    pub(super) fn all() -> String {
        SUPPORTED.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_not_spoken_becomes_the_newest() {
        for known in SUPPORTED {
            assert_eq!(Version::agreed(known).name(), known);
        }
        for other in ["2099-01-01", "", "1.0", "2024-10-07"] {
            assert_eq!(Version::agreed(other).name(), "2025-11-25", "{other}");
            assert_eq!(Version::said(Some(other)), None);
        }
        assert_eq!(Version::said(None).map(Version::name), Some("2025-03-26"));
    }
}

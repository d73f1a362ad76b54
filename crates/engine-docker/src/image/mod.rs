//! Images of the engine: which there are, what they say about themselves, and new ones.

mod checked;
mod facts;
mod import;
mod outgoing;
#[cfg(test)]
mod slow_tests;

pub(crate) use facts::{Facts, Images};
pub(crate) use import::{Importing, import};

use sandbank_engine::ImageName;

/// As the engine shows it; none for what has no name that callers could use.
pub(crate) fn name_of(tag: &str) -> Option<ImageName> {
    let name: ImageName = tag.strip_suffix(":latest").unwrap_or(tag).parse().ok()?;
    (!name.is_host()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_tag_is_left_out() {
        let name = |tag| name_of(tag).map(|name| name.to_string());
        assert_eq!(name("python3.13:latest").as_deref(), Some("python3.13"));
        assert_eq!(name("library/debian:bookworm").as_deref(), Some("library/debian:bookworm"));
        assert_eq!(name("host:latest"), None);
        assert_eq!(name("localhost:5000/x:1").as_deref(), Some("localhost:5000/x:1"));
        assert_eq!(name("<none>:<none>"), None);
    }
}

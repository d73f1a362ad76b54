//! Directories that a watch tells of, but does not enter.

use sandbank_protocol::{Fault, FaultCode};

use crate::limits::MAX_WATCH_EXCLUDED;

/// What is left out where nobody says otherwise: large, and nobody's own work.
const USUAL: [&[u8]; 2] = [b".git/objects", b"node_modules"];

/// The last names of their paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Excluded(Vec<Vec<u8>>);

impl Excluded {
    /// From names with commas between them; an empty list leaves nothing out.
    pub(super) fn parse(list: Option<&[u8]>) -> Result<Self, Fault> {
        let Some(list) = list else {
            return Ok(Self(USUAL.iter().map(|name| name.to_vec()).collect()));
        };
        let mut names: Vec<Vec<u8>> = list
            .split(|byte| *byte == b',')
            .map(|name| name.strip_suffix(b"/").unwrap_or(name).to_vec())
            .filter(|name| !name.is_empty())
            .collect();
        let is_odd = |name: &Vec<u8>| {
            name.split(|byte| *byte == b'/').any(|part| matches!(part, b"" | b"." | b".."))
        };
        if names.len() > MAX_WATCH_EXCLUDED || names.iter().any(is_odd) {
            let message = format!(
                "`exclude` has at most {MAX_WATCH_EXCLUDED} names of directories, as `a` or `a/b`"
            );
            return Err(Fault::new(FaultCode::Invalid, message));
        }
        names.sort();
        names.dedup();
        Ok(Self(names))
    }

    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.0.iter().any(|name| {
            path.strip_suffix(&name[..]).is_some_and(|rest| rest.is_empty() || rest.ends_with(b"/"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_at_the_end_of_a_path_are_left_out() {
        let usual = Excluded::parse(None).unwrap();
        assert!(usual.has(b"a/node_modules") && usual.has(b"node_modules"));
        assert!(usual.has(b"x/.git/objects") && !usual.has(b"objects"));
        assert!(!usual.has(b"my_node_modules") && !usual.has(b"node_modules/a"));
        assert!(!Excluded::parse(Some(b"")).unwrap().has(b"node_modules"));
        let own = Excluded::parse(Some(b"target/,a/b,,target")).unwrap();
        assert_eq!(own, Excluded(vec![b"a/b".to_vec(), b"target".to_vec()]));
        for odd in [&b"/a"[..], b"a//b", b"..", b"a/."] {
            assert!(Excluded::parse(Some(odd)).is_err());
        }
    }
}

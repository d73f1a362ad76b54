//! Names of commits and branches as clients give them.

use sandbank_protocol::{Fault, FaultCode};

use super::failure;
use super::repository::Repository;
use super::run::{Run, Session};
use crate::files::query::Query;
use crate::limits::MAX_GIT_REVISION_BYTES;

/// Enough for an object's name and what comes after it.
const ID_BYTES: usize = 256;

/// Never an option, a range, a path in a tree, or a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Revision(String);

impl Revision {
    pub(super) fn parse(text: &[u8]) -> Result<Self, Fault> {
        let refused =
            |why: &str| Err(Fault::new(FaultCode::Invalid, format!("the revision {why}")));
        let Ok(text) = std::str::from_utf8(text) else { return refused("is not UTF-8") };
        if text.is_empty() || text.len() > MAX_GIT_REVISION_BYTES {
            return refused(&format!("must have 1 to {MAX_GIT_REVISION_BYTES} bytes"));
        }
        // `^{/text}` searches all messages with a pattern.
        if text.starts_with(['-', '^']) || text.contains("..") || text.contains("{/") {
            return refused("must name one commit");
        }
        if text.contains(|c: char| c.is_control() || ": ?*[\\".contains(c)) {
            return refused("has a character that no name of a commit has");
        }
        Ok(Self(text.to_owned()))
    }

    pub(super) fn of(query: &mut Query, name: &str) -> Result<Option<Self>, Fault> {
        query.take(name).map(|text| Self::parse(&text)).transpose()
    }

    pub(super) fn head() -> Self {
        Self("HEAD".to_owned())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Session<'_> {
    /// The commit that it names; none when there is no such.
    pub(super) async fn resolve(
        &self,
        repository: &Repository,
        revision: &Revision,
    ) -> Result<Option<String>, Fault> {
        let name = format!("{}^{{commit}}", revision.0);
        let words = ["rev-parse", "--verify", "--quiet", &name];
        let captured = self.try_run(Run::look(repository, &words, ID_BYTES)).await?;
        match captured.code {
            Some(0) => Ok(Some(id(&captured.stdout)?)),
            Some(_) => Ok(None),
            None => Err(failure::of(&captured)),
        }
    }

    /// What is compared with before the first commit.
    pub(super) async fn empty_tree(&self, repository: &Repository) -> Result<String, Fault> {
        let words = ["hash-object", "-t", "tree", "--stdin"];
        id(&self.run(Run::look(repository, &words, ID_BYTES)).await?.stdout)
    }
}

pub(super) fn id(said: &[u8]) -> Result<String, Fault> {
    let id = String::from_utf8_lossy(said.trim_ascii_end()).into_owned();
    let is_id = id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { Ok(id) } else { Err(Fault::new(FaultCode::Internal, "git named no object")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_names_one_commit_is_a_revision() {
        for good in ["HEAD", "HEAD~3", "main@{1}", "v1.0^{}", "feature/é", "0123abc", "@"] {
            assert_eq!(Revision::parse(good.as_bytes()).unwrap().as_str(), good);
        }
        let long = "x".repeat(MAX_GIT_REVISION_BYTES + 1);
        for bad in [
            "",
            "-h",
            "--output=x",
            "^main",
            "a..b",
            "HEAD^{/x}",
            "HEAD:x",
            ":/x",
            "a b",
            "a\nb",
            "a\0",
            &long,
        ] {
            assert_eq!(
                Revision::parse(bad.as_bytes()).unwrap_err().code,
                FaultCode::Invalid,
                "{bad}"
            );
        }
        assert!(Revision::parse(b"\xff").is_err());
    }
}

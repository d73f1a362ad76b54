//! `GET /git/branches`: those of the repository, and those of its remotes as last seen.

use hyper::Response;
use sandbank_protocol::{Fault, GitBranch, GitBranches};

use super::repository::Last;
use super::run::{Run, Session};
use crate::files::query::Query;
use crate::http::{self, RunnerBody};
use crate::limits::{MAX_GIT_ENTRIES, MAX_GIT_STATUS_BYTES, MAX_GIT_TEXT_BYTES};

const FORMAT: &str = "--format=%(refname)%00%(HEAD)%00%(objectname)%00%(upstream:short)%00%(committerdate:unix)%00%(symref)";

pub(super) async fn handle(
    session: &Session<'_>,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let found = session.find_by(&mut query, Last::Enter).await?;
    query.finish()?;
    let repository = match found {
        Ok(repository) => repository,
        Err(repository) => {
            return Ok(http::json(&GitBranches { repository, ..GitBranches::default() }));
        }
    };
    let words = ["for-each-ref", FORMAT, "refs/heads", "refs/remotes"];
    let run = Run::look(&repository, &words, MAX_GIT_STATUS_BYTES);
    let captured = session.run(run).await?;
    let (branches, cut) = parse(&captured.stdout);
    let (repository, truncated) = (repository.describe(), cut || captured.truncated);
    Ok(http::json(&GitBranches { repository, branches, truncated }))
}

/// A line that was cut has too few fields.
fn parse(said: &[u8]) -> (Vec<GitBranch>, bool) {
    let text = String::from_utf8_lossy(said);
    let mut branches = Vec::new();
    let mut text_bytes = 0;
    for line in text.lines() {
        let Some(branch) = branch(line) else { continue };
        text_bytes += branch.name.len() + branch.upstream.as_ref().map_or(0, String::len);
        if branches.len() == MAX_GIT_ENTRIES || text_bytes > MAX_GIT_TEXT_BYTES {
            return (branches, true);
        }
        branches.push(branch);
    }
    (branches, false)
}

/// None of what only points to another one, as a remote's `HEAD`.
fn branch(line: &str) -> Option<GitBranch> {
    let fields: Vec<&str> = line.split('\0').collect();
    let [name, head, commit, upstream, committed_at, symbolic] = fields.try_into().ok()?;
    let (name, remote) = match name.strip_prefix("refs/heads/") {
        Some(name) => (name, false),
        None => (name.strip_prefix("refs/remotes/")?, true),
    };
    symbolic.is_empty().then(|| GitBranch {
        name: name.to_owned(),
        remote,
        current: head == "*",
        commit: commit.to_owned(),
        upstream: (!upstream.is_empty()).then(|| upstream.to_owned()),
        committed_at: committed_at.parse().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_of_both_kinds_are_understood() {
        let said = "refs/heads/a/b\0*\0id\0o/b\x005\0\nrefs/remotes/o/HEAD\0 \0id\0\x005\0refs/x\n\
                    refs/remotes/o/b\0 \0id\0\x005\0\nrefs/heads/cu";
        let (branches, truncated) = parse(said.as_bytes());
        let seen: Vec<_> =
            branches.iter().map(|b| (b.name.as_str(), b.remote, b.current)).collect();
        assert_eq!(seen, [("a/b", false, true), ("o/b", true, false)]);
        assert_eq!((branches[0].upstream.as_deref(), truncated), (Some("o/b"), false));
    }
}

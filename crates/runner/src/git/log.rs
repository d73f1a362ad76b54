//! `GET /git/log`: commits from a revision on, newest first.

use hyper::Response;
use sandbank_protocol::{Fault, GitCommit, GitLog, GitPerson};

use super::repository::Last;
use super::revision::Revision;
use super::run::{Run, Session};
use crate::files::query::Query;
use crate::http::{self, RunnerBody};
use crate::limits::{GIT_COMMITS, MAX_GIT_COMMITS, MAX_GIT_CONTENT_BYTES};

const FORMAT: &str = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B";
const FIELDS: usize = 9;

pub(super) async fn handle(
    session: &Session<'_>,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let revision = Revision::of(&mut query, "revision")?.unwrap_or_else(Revision::head);
    let limit = query.number("limit")?.unwrap_or(GIT_COMMITS).clamp(1, MAX_GIT_COMMITS);
    let after = query.number("after")?.unwrap_or(0).min(i32::MAX as u64);
    let found = session.find_by(&mut query, Last::Enter).await?;
    query.finish()?;
    let repository = match found {
        Ok(repository) => repository,
        Err(repository) => return Ok(http::json(&GitLog { repository, ..GitLog::default() })),
    };
    let described = repository.describe();
    let Some(start) = session.resolve(&repository, &revision).await? else {
        return Ok(http::json(&GitLog { repository: described, ..GitLog::default() }));
    };
    let (count, skip) = (format!("--max-count={}", limit + 1), format!("--skip={after}"));
    let words = [
        "log",
        "-z",
        FORMAT,
        "--encoding=UTF-8",
        "--no-show-signature",
        "--no-patch",
        "--no-color",
        "--no-decorate",
        &count,
        &skip,
        &start,
    ];
    let run = Run::look(&repository, &words, MAX_GIT_CONTENT_BYTES).path(&repository.rest);
    let captured = session.run(run).await?;
    let mut commits = parse(&captured.stdout);
    let more = captured.truncated || commits.len() as u64 > limit;
    commits.truncate(limit as usize);
    Ok(http::json(&GitLog { repository: described, start: Some(start), commits, more }))
}

/// A commit that was cut is left out.
fn parse(said: &[u8]) -> Vec<GitCommit> {
    let end = said.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    let fields: Vec<String> = said[..end]
        .split(|byte| *byte == 0)
        .map(|field| String::from_utf8_lossy(field).into_owned())
        .collect();
    let person = |name: &str, email: &str| GitPerson { name: name.into(), email: email.into() };
    let commits = fields.chunks_exact(FIELDS).map(|field| GitCommit {
        id: field[0].clone(),
        parents: field[1].split(' ').filter(|id| !id.is_empty()).map(str::to_owned).collect(),
        author: person(&field[2], &field[3]),
        authored_at: field[4].parse().unwrap_or(0),
        committer: person(&field[5], &field[6]),
        committed_at: field[7].parse().unwrap_or(0),
        message: field[8].trim_end().to_owned(),
    });
    commits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_commits_are_taken_and_a_cut_one_is_not() {
        let one = "id\0p1 p2\0ann\0a@x\x003\0bob\0b@x\x004\0subject\n\nbody\n\0";
        let commits = parse(format!("{one}{one}id\0p1").as_bytes());
        assert_eq!(commits.len(), 2);
        assert_eq!(commits[0].parents, ["p1", "p2"]);
        assert_eq!((commits[0].authored_at, commits[0].committed_at), (3, 4));
        assert_eq!(commits[0].message, "subject\n\nbody");
        assert!(parse(b"").is_empty());
    }
}

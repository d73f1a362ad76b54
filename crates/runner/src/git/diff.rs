//! `GET /git/diff`: differences as text. Between index and work tree, or of the index (`staged`)
//! from `HEAD`; or with `from` of either from that commit; or with `from` and `to` of two commits.

use hyper::Response;
use sandbank_protocol::{Fault, FaultCode, GitDiff};

use super::repository::{Last, Repository};
use super::revision::Revision;
use super::run::{Run, Session};
use crate::files::query::Query;
use crate::http::{self, RunnerBody};
use crate::limits::MAX_GIT_CONTENT_BYTES;

pub(super) async fn handle(
    session: &Session<'_>,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let staged = query.flag("staged")?;
    let (from, to) = (Revision::of(&mut query, "from")?, Revision::of(&mut query, "to")?);
    if to.is_some() && (from.is_none() || staged) {
        let message = "`to` needs a `from`, and is not of what is staged";
        return Err(Fault::new(FaultCode::Invalid, message));
    }
    let found = session.find_by(&mut query, Last::Enter).await?;
    query.finish()?;
    let repository = match found {
        Ok(repository) => repository,
        Err(repository) => return Ok(http::json(&GitDiff { repository, ..GitDiff::default() })),
    };
    let words = [
        "diff",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--find-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--submodule=short",
        "--ignore-submodules=dirty",
    ];
    let mut run = Run::look(&repository, &words, MAX_GIT_CONTENT_BYTES).word_if(staged, "--cached");
    for revision in [from, to].into_iter().flatten() {
        run = run.word(commit_or_nothing(session, &repository, &revision).await?);
    }
    let rest = if repository.rest.is_empty() { b"." } else { &repository.rest[..] };
    let captured = session.run(run.path(rest)).await?;
    let text = String::from_utf8_lossy(&captured.stdout).into_owned();
    // Lines of a file have a sign before them.
    let binary = text.lines().any(|line| line.starts_with("Binary files "));
    let (repository, truncated) = (repository.describe(), captured.truncated);
    Ok(http::json(&GitDiff { repository, diff: text, binary, truncated }))
}

/// `HEAD` before the first commit has nothing in it.
async fn commit_or_nothing(
    session: &Session<'_>,
    repository: &Repository,
    revision: &Revision,
) -> Result<String, Fault> {
    match session.resolve(repository, revision).await? {
        Some(commit) => Ok(commit),
        None if *revision == Revision::head() => session.empty_tree(repository).await,
        None => {
            let message = format!("there is no commit {:?}", revision.as_str());
            Err(Fault::new(FaultCode::NotFound, message))
        }
    }
}

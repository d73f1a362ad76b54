//! `GET /git/status`: what differs from the last commit, at and below a path.

use hyper::Response;
use sandbank_protocol::{Fault, FaultCode, GitStatus};

use super::porcelain::{self, Parsed};
use super::repository::Last;
use super::run::{Run, Session};
use crate::files::query::Query;
use crate::http::{self, RunnerBody};
use crate::limits::MAX_GIT_STATUS_BYTES;

pub(super) async fn handle(
    session: &Session<'_>,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let untracked = match query.take("untracked").as_deref() {
        None | Some(b"normal") => "--untracked-files=normal",
        Some(b"all") => "--untracked-files=all",
        Some(b"no") => "--untracked-files=no",
        Some(_) => {
            let message = "the parameter \"untracked\" is none of normal, all and no";
            return Err(Fault::new(FaultCode::Invalid, message));
        }
    };
    let ignored = query.flag("ignored")?;
    let found = session.find_by(&mut query, Last::Enter).await?;
    query.finish()?;
    let repository = match found {
        Ok(repository) => repository,
        Err(repository) => {
            return Ok(http::json(&GitStatus { repository, ..GitStatus::default() }));
        }
    };
    let words = [
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--find-renames",
        // Git would look into submodules with their own settings.
        "--ignore-submodules=dirty",
        untracked,
    ];
    let rest = if repository.rest.is_empty() { b"." } else { &repository.rest[..] };
    let run = Run::look(&repository, &words, MAX_GIT_STATUS_BYTES)
        .word_if(ignored, "--ignored=traditional")
        .path(rest);
    let captured = session.run(run).await?;
    let Parsed { head, entries, truncated } =
        porcelain::parse(&captured.stdout, repository.root.as_bytes());
    let truncated = truncated || captured.truncated;
    Ok(http::json(&GitStatus { repository: repository.describe(), head, entries, truncated }))
}

//! `POST /git/stage`, `unstage`, `commit` and `checkout`: what changes a repository. Its hooks,
//! filters and signatures run, as they would by hand; what they leave running does not stay.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use hyper::Response;
use sandbank_protocol::{
    Fault, FaultCode, GitCheckout, GitCommitRequest, GitCommitted, GitPaths, GitPerson,
};
use sandbank_rooted_fs::RelPath;

use super::environment::Purpose;
use super::repository::{Last, Repository};
use super::revision::{Revision, id};
use super::run::{Run, Session};
use crate::files::fault::refuse;
use crate::files::query::Query;
use crate::http::{self, RunnerBody};
use crate::limits::{MAX_GIT_COMPLAINT_BYTES, MAX_GIT_MESSAGE_BYTES, MAX_GIT_PERSON_BYTES};

/// What Git says beside doing it.
const LIMIT: usize = MAX_GIT_COMPLAINT_BYTES;

const FROM_STDIN: [&str; 2] = ["--pathspec-from-file=-", "--pathspec-file-nul"];

pub(super) async fn stage(
    session: &Session<'_>,
    query: Query,
    request: &GitPaths,
) -> Result<Response<RunnerBody>, Fault> {
    query.finish()?;
    index(session, request, &["add", "--all"], &["add"]).await
}

pub(super) async fn unstage(
    session: &Session<'_>,
    query: Query,
    request: &GitPaths,
) -> Result<Response<RunnerBody>, Fault> {
    query.finish()?;
    index(session, request, &["reset", "--quiet"], &["reset", "--quiet"]).await
}

async fn index(
    session: &Session<'_>,
    request: &GitPaths,
    all: &[&str],
    some: &[&str],
) -> Result<Response<RunnerBody>, Fault> {
    if request.all != request.paths.is_empty() {
        let message = "either `paths` or `all` says what is meant";
        return Err(Fault::new(FaultCode::Invalid, message));
    }
    let paths: Vec<RelPath> =
        request.paths.iter().map(|path| session.workspace.path(path)).collect::<Result<_, _>>()?;
    let repository = match (&request.path, paths.first()) {
        (None, Some(first)) => required(session.find(first, Last::Keep).await?)?,
        (path, _) => repository_of(session, path.as_deref()).await?,
    };
    let top = top(session, &repository)?;
    let run = match request.all {
        true => Run::of(&repository, Purpose::Stage, all, LIMIT),
        false => {
            let mut list = Vec::new();
            for path in &paths {
                list.extend_from_slice(below(&repository, path)?);
                list.push(0);
            }
            let words = [some, &FROM_STDIN[..]].concat();
            Run::of(&repository, Purpose::Stage, &words, LIMIT).stdin(list)
        }
    };
    session.run(run.within(top)).await?;
    Ok(http::no_content())
}

pub(super) async fn commit(
    session: &Session<'_>,
    query: Query,
    request: &GitCommitRequest,
) -> Result<Response<RunnerBody>, Fault> {
    query.finish()?;
    let message = &request.message;
    if message.trim().is_empty() || message.len() > MAX_GIT_MESSAGE_BYTES || message.contains('\0')
    {
        let message = format!("the message must have 1 to {MAX_GIT_MESSAGE_BYTES} bytes of text");
        return Err(Fault::new(FaultCode::Invalid, message));
    }
    let author = request.author.as_ref().map(written).transpose()?;
    let repository = repository_of(session, request.path.as_deref()).await?;
    let words = ["commit", "--quiet", "--file=-"];
    let mut run = Run::of(&repository, Purpose::Change, &words, LIMIT)
        .word_if(request.amend, "--amend")
        .stdin(message.clone().into_bytes());
    if let (Some(author), Some(written)) = (&request.author, author) {
        run = run.word(format!("--author={written}"));
        let words = ["var", "GIT_COMMITTER_IDENT"];
        let known = session.try_run(Run::of(&repository, Purpose::Change, &words, LIMIT)).await?;
        if known.code != Some(0) {
            run = run.variable("GIT_COMMITTER_NAME", &author.name);
            run = run.variable("GIT_COMMITTER_EMAIL", &author.email);
        }
    }
    session.run(run.within(top(session, &repository)?)).await?;
    let head = session.run(Run::look(&repository, &["rev-parse", "HEAD"], LIMIT)).await?;
    Ok(http::json(&GitCommitted { commit: id(&head.stdout)? }))
}

pub(super) async fn checkout(
    session: &Session<'_>,
    query: Query,
    request: &GitCheckout,
) -> Result<Response<RunnerBody>, Fault> {
    query.finish()?;
    let branch = Revision::parse(request.branch.as_bytes())?;
    let repository = repository_of(session, request.path.as_deref()).await?;
    let words = ["switch", "--quiet", "--no-guess"];
    let run = Run::of(&repository, Purpose::Change, &words, LIMIT)
        .word_if(request.create, "--create")
        .word(branch.as_str());
    session.run(run.within(top(session, &repository)?)).await?;
    Ok(http::no_content())
}

async fn repository_of(session: &Session<'_>, path: Option<&str>) -> Result<Repository, Fault> {
    let path = path.map_or(Ok(RelPath::root()), |path| session.workspace.path(path))?;
    required(session.find(&path, Last::Enter).await?)
}

fn required(found: super::repository::Found) -> Result<Repository, Fault> {
    found.map_err(|none| {
        let reason = none.reason.unwrap_or_default();
        Fault::new(FaultCode::Conflict, format!("there is no repository to change: {reason}"))
    })
}

fn top(session: &Session<'_>, repository: &Repository) -> Result<Rc<OwnedFd>, Fault> {
    let directory = session.workspace.root().open_directory(&repository.root).map_err(refuse)?;
    let cwd = directory.as_fd().try_clone_to_owned();
    cwd.map(Rc::new).map_err(|error| Fault::new(FaultCode::LimitReached, error.to_string()))
}

/// A path as the repository has it.
fn below<'p>(repository: &Repository, path: &'p RelPath) -> Result<&'p [u8], Fault> {
    let (root, path_bytes) = (repository.root.as_bytes(), path.as_bytes());
    let below = match root {
        b"" => Some(path_bytes),
        root if path_bytes == root => Some(&b""[..]),
        root => path_bytes.strip_prefix(root).and_then(|rest| rest.strip_prefix(b"/")),
    };
    match below {
        Some(b"") => Ok(b"."),
        Some(below) => Ok(below),
        None => {
            let message = format!("{path} is not in the repository at {}", repository.root);
            Err(Fault::new(FaultCode::Invalid, message))
        }
    }
}

/// As Git writes a person.
fn written(person: &GitPerson) -> Result<String, Fault> {
    let GitPerson { name, email } = person;
    let is_odd = |text: &String| {
        text.trim().is_empty()
            || text.len() > MAX_GIT_PERSON_BYTES
            || text.contains(|c: char| c.is_control() || c == '<' || c == '>')
    };
    if is_odd(name) || is_odd(email) {
        let message = "the author's name and email must be text without angle brackets";
        return Err(Fault::new(FaultCode::Invalid, message));
    }
    Ok(format!("{name} <{email}>"))
}

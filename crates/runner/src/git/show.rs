//! `GET /git/show`: a file as a revision has it. The object itself is read: no filter and no
//! converter that the repository names runs for it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::Response;
use sandbank_protocol::{Fault, FaultCode, GitObject, GitShow};

use super::repository::{Last, Repository};
use super::revision::Revision;
use super::run::{Run, Session};
use crate::files::query::Query;
use crate::http::{self, RunnerBody};
use crate::limits::{MAX_GIT_CONTENT_BYTES, MAX_GIT_STATUS_BYTES};

pub(super) async fn handle(
    session: &Session<'_>,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let revision = Revision::of(&mut query, "revision")?.unwrap_or_else(Revision::head);
    let path = session.workspace.path_of(&mut query)?;
    query.finish()?;
    if path.is_root() {
        return Err(Fault::new(FaultCode::Invalid, "the workspace itself is no file"));
    }
    let repository = match session.find(&path, Last::Keep).await? {
        Ok(repository) => repository,
        Err(repository) => return Ok(http::json(&GitShow { repository, ..GitShow::default() })),
    };
    let commit = session.resolve(&repository, &revision).await?;
    let mut shown = GitShow { repository: repository.describe(), commit, ..GitShow::default() };
    if let Some(entry) = look_up(session, &repository, shown.commit.as_deref()).await? {
        shown.found = true;
        shown.kind = Some(entry.kind);
        if !matches!(entry.kind, GitObject::Directory | GitObject::Submodule) {
            read(session, &repository, &entry, &mut shown).await?;
        }
    }
    Ok(http::json(&shown))
}

struct Entry {
    kind: GitObject,
    id: String,
    size: u64,
}

async fn look_up(
    session: &Session<'_>,
    repository: &Repository,
    commit: Option<&str>,
) -> Result<Option<Entry>, Fault> {
    let Some(commit) = commit else { return Ok(None) };
    let words = ["ls-tree", "-z", "--long", commit];
    let run = Run::look(repository, &words, MAX_GIT_STATUS_BYTES).path(&repository.rest);
    Ok(parse(&session.run(run).await?.stdout))
}

/// `mode type object size\tpath`, as of one path.
fn parse(said: &[u8]) -> Option<Entry> {
    let end = said.iter().position(|byte| *byte == b'\t')?;
    let mut words = std::str::from_utf8(&said[..end]).ok()?.split_ascii_whitespace();
    let (mode, _type, id, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let kind = match mode {
        "100755" => GitObject::Executable,
        "120000" => GitObject::Symlink,
        "160000" => GitObject::Submodule,
        "040000" => GitObject::Directory,
        _ => GitObject::File,
    };
    Some(Entry { kind, id: id.to_owned(), size: size.parse().unwrap_or(0) })
}

async fn read(
    session: &Session<'_>,
    repository: &Repository,
    entry: &Entry,
    shown: &mut GitShow,
) -> Result<(), Fault> {
    let words = ["cat-file", "blob", &entry.id];
    let captured = session.run(Run::look(repository, &words, MAX_GIT_CONTENT_BYTES)).await?;
    (shown.size, shown.truncated) = (entry.size, captured.truncated);
    match text(captured.stdout, captured.truncated) {
        Ok(text) => shown.content = Some(text),
        Err(bytes) => shown.content_base64 = Some(STANDARD.encode(bytes)),
    }
    Ok(())
}

/// A character that the limit has cut is left out.
fn text(bytes: Vec<u8>, truncated: bool) -> Result<String, Vec<u8>> {
    String::from_utf8(bytes).or_else(|error| {
        let (at, cut) =
            (error.utf8_error().valid_up_to(), error.utf8_error().error_len().is_none());
        let mut bytes = error.into_bytes();
        if !(truncated && cut) {
            return Err(bytes);
        }
        bytes.truncate(at);
        String::from_utf8(bytes).map_err(|error| error.into_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_character_makes_no_bytes_of_a_text() {
        assert_eq!(text("aé".into(), false), Ok("aé".to_owned()));
        assert_eq!(text(b"a\xc3".to_vec(), true), Ok("a".to_owned()));
        assert_eq!(text(b"a\xc3".to_vec(), false), Err(b"a\xc3".to_vec()));
        assert_eq!(text(b"\xffa".to_vec(), true), Err(b"\xffa".to_vec()));
    }

    #[test]
    fn an_entry_of_a_tree_is_understood() {
        let entry = parse(b"100755 blob 0123     42\ta\tb\0").unwrap();
        assert_eq!(
            (entry.kind, entry.id.as_str(), entry.size),
            (GitObject::Executable, "0123", 42)
        );
        assert_eq!(parse(b"160000 commit 0123       -\ts\0").unwrap().kind, GitObject::Submodule);
        assert!(parse(b"").is_none());
    }
}

//! `GET /files`: a file, or a range of it, as a stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::Response;
use hyper::header::HeaderValue;
use sandbank_protocol::{FILE_STAT_HEADER, Fault};
use sandbank_rooted_fs::RegularFile;

use super::Workspace;
use super::fault::refuse;
use super::query::Query;
use crate::http::RunnerBody;
use crate::limits::FILE_CHUNK_BYTES;

pub(super) fn handle(
    workspace: &Workspace,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let path = workspace.path_of(&mut query)?;
    let offset = query.number("offset")?.unwrap_or(0);
    let length = query.number("length")?;
    query.finish()?;
    let file = workspace.root.open_read(&path).map_err(refuse)?;
    let stat = serde_json::to_vec(file.stat()).expect("protocol types are plain data");
    let end = length.map_or(u64::MAX, |length| offset.saturating_add(length));
    let end = end.min(file.stat().size);
    let body = FileBody { file, at: offset.min(end), end, resting: false };
    let mut response = Response::new(body.boxed_unsync());
    let stat = HeaderValue::from_bytes(&stat).expect("numbers and fixed words are plain ASCII");
    response.headers_mut().insert(FILE_STAT_HEADER, stat);
    Ok(response)
}

/// The bytes from `at` to `end`, whatever is appended meanwhile.
struct FileBody {
    file: RegularFile,
    at: u64,
    end: u64,
    /// Whether the next poll first lets others run: the connection would otherwise take chunk
    /// after chunk for as long as there is room in the window.
    resting: bool,
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.at == self.end {
            return Poll::Ready(None);
        }
        if std::mem::replace(&mut self.resting, true) {
            self.resting = false;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(self.next_chunk().map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.end
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.end - self.at)
    }
}

impl FileBody {
    fn next_chunk(&mut self) -> io::Result<Bytes> {
        let wanted = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let chunk = self.file.read_at(self.at, wanted.min(FILE_CHUNK_BYTES));
        let chunk = chunk.map_err(io::Error::other)?;
        if chunk.is_empty() {
            // The length was promised; ending here would pass for the whole file.
            let text = "the file became shorter while it was read";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        self.at += chunk.len() as u64;
        Ok(chunk.into())
    }
}

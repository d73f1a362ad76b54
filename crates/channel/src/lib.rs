//! The daemon's end of the channel: a typed client of one runner.
//!
//! One connection carries every request to one sandbox. What comes back is hostile input: bodies
//! are bounded, answers are timed, and nothing is trusted beyond its type.

mod archive;
mod client;
mod download;
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod git;
mod guard;
mod limits;
mod one_task;
mod output;
pub mod pipe;
mod records;
mod request_id;
mod search;
mod terminal;
pub mod trace;
mod tree;
mod watch;

pub use archive::ArchiveDownload;
pub use client::{ByteRange, RunnerClient, Tunnel};
pub use download::FileDownload;
pub use error::ChannelError;
pub use git::{DiffQuery, LogQuery, StatusQuery};
pub use guard::{Guard, Obstacle, ObstacleKind};
pub use output::OutputStream;
pub use records::{RecordStream, Records};
pub use request_id::{current_request_id, with_request_id};
pub use terminal::TerminalScreen;
pub use tree::{Condition, TreeOptions};
pub use watch::WatchQuery;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

/// A request body: empty, whole, or streamed.
pub type ChannelBody = UnsyncBoxBody<Bytes, std::io::Error>;

pub fn empty_body() -> ChannelBody {
    full_body(Bytes::new())
}

pub fn full_body(bytes: impl Into<Bytes>) -> ChannelBody {
    http_body_util::Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body from a stream of chunks, sent as they come with the channel's flow control.
pub fn stream_body<S>(chunks: S) -> ChannelBody
where
    S: futures_util::Stream<Item = std::io::Result<Bytes>> + Send + 'static,
{
    use futures_util::TryStreamExt;
    http_body_util::StreamBody::new(chunks.map_ok(http_body::Frame::data)).boxed_unsync()
}

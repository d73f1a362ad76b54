//! What the daemon and the runner say to each other.
//!
//! The channel is HTTP/2 with prior knowledge over one byte stream. This crate owns its
//! vocabulary: routes, JSON bodies, the binary frames of a command's output, and the version
//! handshake. It does no IO and knows neither engines nor HTTP servers.
//!
//! | method and path | body | answer |
//! |---|---|---|
//! | `GET /hello` | | [`Hello`] |
//! | `PUT /environment` | names and values | 204; added to every command's base, before the first one |
//! | `POST /commands` | [`CommandSpec`] | [`Started`]; the same id and spec again attaches |
//! | `GET /commands` | | `[CommandStatus]`, oldest first |
//! | `GET /commands/{id}` | | [`CommandStatus`] |
//! | `GET /commands/{id}/wait` | | [`CommandStatus`] once it has ended |
//! | `GET /commands/{id}/output?after=N&follow=true&hold=true` | | [`frame`]s numbered above N, then the ending |
//! | `GET /commands/{id}/screen` | | [`Screen`] of a command that was started with one |
//! | `POST /commands/{id}/stdin?offset=N&eof=false` | raw bytes | [`StdinStatus`] |
//! | `POST /commands/{id}/input?writer=W&offset=N` | raw bytes | [`StdinStatus`] of one of several writers, who count apart |
//! | `POST /commands/{id}/signal` | [`SignalRequest`] | [`CommandStatus`] |
//! | `POST /commands/{id}/resize` | [`PtySize`] | [`CommandStatus`] |
//! | `GET /files?path=P&offset=N&length=M` | | raw bytes, header [`FILE_STAT_HEADER`] |
//! | `PUT /files?path=P&mode=420` | raw bytes | [`FileStat`]; replaced atomically |
//! | `PUT /files?path=P&offset=N` | raw bytes | [`FileStat`]; written in place |
//! | `POST /files/write-many` | [`file_batch`] records | [`Written`]; all or none |
//! | `GET /files/stat?path=P&follow=false` | | [`FileStat`] |
//! | `GET /files/list?path=P` | | [`DirListing`] |
//! | `POST /files/mkdir` | [`MkdirRequest`] | [`FileStat`] |
//! | `POST /files/move` | [`MoveRequest`] | [`FileStat`] |
//! | `DELETE /files?path=P&recursive=false` | | 204 |
//! | `GET /files/tree?path=P&depth=N&nodes=N&time_ms=N&stat=false&hidden=true&sort=false` | | lines of [`TreeRecord`] |
//! | `GET /files/archive?path=P` | | a tar stream, the last header's comment is an [`ArchiveReport`] |
//! | `PUT /files/archive?path=P` | a tar stream, plain or gzip | [`Unpacked`] |
//! | `POST /files/copy` | [`CopyRequest`] | [`FileStat`]; a file, a link or a whole tree, all or nothing |
//! | `POST /files/chmod` | [`ChmodRequest`] | [`FileStat`] |
//! | `GET /search/names?pattern=P&kind=glob&path=P&case=smart&depth=N&limit=N&hidden=false&ignored=false&sort=path` | | lines of [`NameRecord`] |
//! | `POST /search/text` | [`TextSearch`] | lines of [`TextRecord`] |
//! | `GET /files/watch?path=P&recursive=true&after=N&exclude=a,b/c` | | lines of [`WatchEvent`] |
//! | `GET /git/status?path=P&untracked=normal&ignored=false` | | [`GitStatus`] |
//! | `GET /git/diff?path=P&staged=false&from=R&to=R` | | [`GitDiff`] |
//! | `GET /git/show?path=P&revision=HEAD` | | [`GitShow`] |
//! | `GET /git/log?path=P&revision=HEAD&limit=N&after=N` | | [`GitLog`] |
//! | `GET /git/branches?path=P` | | [`GitBranches`] |
//! | `POST /git/stage`, `POST /git/unstage` | [`GitPaths`] | 204 |
//! | `POST /git/commit` | [`GitCommitRequest`] | [`GitCommitted`] |
//! | `POST /git/checkout` | [`GitCheckout`] | 204 |
//! | `CONNECT 127.0.0.1:{port}` | | a tunnel to that port on any loopback or wildcard address |
//! | `GET /stats` | | [`Stats`] |
//!
//! A refusal is a 4xx or 5xx status with a [`Fault`] as its body. Every request may carry the headers
//! of [`trail`], which say whose it is.

pub mod archive;
pub mod command;
pub mod config;
pub mod containment;
pub mod egress;
pub mod fault;
pub mod file;
pub mod file_batch;
pub mod file_tag;
pub mod frame;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod git;
pub mod hello;
mod percent;
pub mod screen;
pub mod search;
pub mod stats;
pub mod trail;
pub mod tree;
pub mod watch;

pub use archive::{ArchiveReport, Told, Unpacked};
pub use command::{
    CommandId, CommandSpec, CommandState, CommandStatus, Ending, InvalidCommandId,
    InvalidShellName, PtySize, ShellKind, ShellName, ShellStatus, ShellUse, SignalRequest, Started,
    StdinMode, StdinStatus,
};
pub use config::{
    CgroupConfig, CgroupVersion, EgressConfig, LandlockConfig, PrepareConfig, RunnerConfig,
    RunnerLog, WorkloadIdentity,
};
pub use fault::{Fault, FaultCode};
pub use file::{
    ChmodRequest, CopyRequest, DirListing, FILE_STAT_HEADER, FileEntry, FileKind, FileStat,
    MkdirRequest, MoveRequest, Written,
};
pub use file_tag::{FileTag, InvalidFileTag};
pub use frame::{Frame, FrameDecoder, FrameError, StreamKind};
pub use git::{
    GitBranch, GitBranches, GitChange, GitCheckout, GitCommit, GitCommitRequest, GitCommitted,
    GitDiff, GitEntry, GitHead, GitLog, GitObject, GitPaths, GitPerson, GitRepository, GitShow,
    GitStatus,
};
pub use hello::{Hello, PROTOCOL_VERSION};
pub use percent::percent_encoded;
pub use screen::{Screen, ScreenCursor};
pub use search::{
    FoundLine, FoundName, NamePattern, NameRecord, NameSearch, NameSearchEnd, NameSearchTally,
    SearchCase, SearchCut, SearchOrder, SkippedFiles, TextRecord, TextSearch, TextSearchTally,
};
pub use stats::Stats;
pub use trail::{
    MAX_REQUEST_ID_CHARS, REQUEST_ID_HEADER, TRACEPARENT_HEADER, plain_request_id, trace_id,
};
pub use tree::{TreeEnd, TreeEndLine, TreeEntry, TreeLimit, TreeRecord};
pub use watch::{WatchEvent, WatchKind};

/// The workspace's own path in every sandbox on every engine.
pub const WORKSPACE: &str = "/vercel/sandbox/workspace";

/// Other names under which clients reach the same tree.
pub const WORKSPACE_ALIASES: [&str; 2] = ["/workspace", "/home/user"];

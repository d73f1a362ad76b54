//! `GET /files/tree`: everything below a directory as lines, bounded in every way.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use hyper::Response;
use sandbank_protocol::{Fault, FaultCode, FileKind, FileStat, TreeEnd, TreeEndLine, TreeLimit};
use sandbank_rooted_fs::{Directory, Order, RootedError, Visit, Visitor, walk};

use super::Workspace;
use super::fault::refuse;
use super::json_text::{push_hex, push_lossy};
use super::query::Query;
use crate::http::RunnerBody;
use crate::limits::{
    DEFAULT_TREE_DEPTH, DEFAULT_TREE_NODES, DEFAULT_TREE_TIME, MAX_NAMED_PATHS, MAX_TREE_BYTES,
    MAX_TREE_DEPTH, MAX_TREE_NODES, MAX_TREE_TIME, TREE_NODES_PER_LOOK,
};
use crate::offload::{Findings, Offload};

pub(super) fn handle(
    workspace: &Workspace,
    offload: &Offload,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let path = workspace.path_of(&mut query)?;
    let order = if query.flag("sort")? { Order::Sorted } else { Order::Found };
    let wanted = Wanted::read(&mut query)?;
    query.finish()?;
    let top = workspace.root.open_directory(&path).map_err(refuse)?;
    offload
        .begin("tree", move |findings| Tree::new(findings, wanted).run(top, order))
        .map(Response::new)
}

struct Wanted {
    nodes: u64,
    depth: u64,
    time: Duration,
    stat: bool,
    hidden: bool,
}

impl Wanted {
    fn read(query: &mut Query) -> Result<Self, Fault> {
        let mut number = |name: &str, absent: u64, most: u64| match query.number(name)? {
            Some(0) => Err(Fault::new(FaultCode::Invalid, format!("{name} cannot be 0"))),
            number => Ok(number.unwrap_or(absent).min(most)),
        };
        let nodes = number("nodes", DEFAULT_TREE_NODES, MAX_TREE_NODES)?;
        let depth = number("depth", DEFAULT_TREE_DEPTH, MAX_TREE_DEPTH)?;
        let time = query.number("time_ms")?.map_or(DEFAULT_TREE_TIME, Duration::from_millis);
        Ok(Self {
            nodes,
            depth,
            time: time.min(MAX_TREE_TIME),
            stat: query.flag("stat")?,
            hidden: query.flag_or("hidden", true)?,
        })
    }
}

struct Tree {
    findings: Findings,
    wanted: Wanted,
    deadline: Instant,
    bytes: u64,
    end: TreeEnd,
    /// The directory being read, as its entries' lines begin.
    prefix: Vec<u8>,
    /// Whether that is the exact path.
    exact: bool,
    /// Entries, those that are not told included.
    seen: u64,
    gone: bool,
}

impl Tree {
    fn new(findings: Findings, wanted: Wanted) -> Self {
        let end = TreeEnd {
            truncated: false,
            reason: None,
            visited: 0,
            unreadable: 0,
            unreadable_paths: Vec::new(),
        };
        let deadline = Instant::now() + wanted.time;
        Self {
            findings,
            wanted,
            deadline,
            bytes: 0,
            end,
            prefix: Vec::new(),
            exact: true,
            seen: 0,
            gone: false,
        }
    }

    fn run(mut self, top: Directory, order: Order) {
        walk(top, order, &mut self);
        if !self.gone {
            let _ = self.findings.record(&TreeEndLine { end: &self.end });
        }
    }

    /// The first limit that was met is the reason.
    fn cut(&mut self, limit: TreeLimit) -> Visit {
        self.end.truncated = true;
        self.end.reason.get_or_insert(limit);
        Visit::Stop
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    fn tell(&mut self, dir: &Directory, name: &OsStr, kind: FileKind) -> Visit {
        let (stat, target) = match self.wanted.stat {
            true => (dir.stat(name).ok().flatten(), target(dir, name, kind)),
            false => (None, None),
        };
        let Self { findings, prefix, exact, bytes, .. } = self;
        let told = findings.append(|out| {
            let start = out.len();
            out.extend_from_slice(prefix);
            let exact = push_lossy(out, name.as_bytes()) && *exact;
            if !exact {
                out.extend_from_slice(b"\",\"pathHex\":\"");
                push_hex(out, dir.path().join(name).as_bytes());
            }
            out.extend_from_slice(match kind {
                FileKind::File => b"\",\"kind\":\"file\"" as &[u8],
                FileKind::Directory => b"\",\"kind\":\"directory\"",
                FileKind::Symlink => b"\",\"kind\":\"symlink\"",
                FileKind::Other => b"\",\"kind\":\"other\"",
            });
            if let Some(FileStat { size, mode, modified_ms, .. }) = stat {
                let _ =
                    write!(out, ",\"size\":{size},\"mode\":{mode},\"modifiedMs\":{modified_ms}");
            }
            if let Some(target) = target {
                out.extend_from_slice(b",\"target\":\"");
                push_lossy(out, target.as_bytes());
                out.push(b'"');
            }
            out.extend_from_slice(b"}\n");
            *bytes += (out.len() - start) as u64;
        });
        self.end.visited += 1;
        self.gone = told.is_err();
        if self.gone { Visit::Stop } else { Visit::Go }
    }
}

fn target(dir: &Directory, name: &OsStr, kind: FileKind) -> Option<OsString> {
    if kind == FileKind::Symlink { dir.read_link(name).ok().flatten() } else { None }
}

impl Visitor for Tree {
    fn enter(&mut self, dir: &Directory, _: usize) -> Visit {
        self.prefix.clear();
        self.prefix.extend_from_slice(b"{\"path\":\"");
        self.exact = push_lossy(&mut self.prefix, dir.path().as_bytes());
        if !dir.path().is_root() {
            self.prefix.push(b'/');
        }
        if self.is_late() { self.cut(TreeLimit::Time) } else { Visit::Go }
    }

    fn entry(&mut self, dir: &Directory, depth: usize, name: &OsStr, kind: FileKind) -> Visit {
        self.seen += 1;
        if self.seen.is_multiple_of(TREE_NODES_PER_LOOK) && self.is_late() {
            return self.cut(TreeLimit::Time);
        }
        if !self.wanted.hidden && name.as_bytes().starts_with(b".") {
            return Visit::Skip;
        }
        let visited = self.end.visited;
        if visited == self.wanted.nodes {
            return self.cut(TreeLimit::Nodes);
        }
        if self.bytes > MAX_TREE_BYTES {
            return self.cut(TreeLimit::Bytes);
        }
        let told = self.tell(dir, name, kind);
        if told == Visit::Go && kind == FileKind::Directory && depth as u64 >= self.wanted.depth {
            self.cut(TreeLimit::Depth);
            return Visit::Skip;
        }
        told
    }

    fn failed(&mut self, error: RootedError) -> Visit {
        self.end.unreadable += 1;
        if self.end.unreadable_paths.len() < MAX_NAMED_PATHS {
            let path = error
                .path()
                .map_or(Cow::Borrowed(""), |path| String::from_utf8_lossy(path.as_bytes()));
            self.end.unreadable_paths.push(path.into_owned());
        }
        // Many of them are as much work as many entries.
        if self.is_late() { self.cut(TreeLimit::Time) } else { Visit::Go }
    }
}

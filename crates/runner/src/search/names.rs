//! `GET /search/names`: names of files, directories and whatever else there is.

use std::ffi::OsStr;
use std::sync::Arc;

use hyper::Response;
use sandbank_protocol::{
    Fault, FileKind, FoundName, NamePattern, NameRecord, NameSearch, NameSearchEnd,
    NameSearchTally, SearchCase, SearchOrder,
};
use sandbank_rooted_fs::{Directory, RelPath, Root};

use super::bounds::Bounds;
use super::filter::{Filter, invalid};
use super::lines::ShownPath;
use super::pattern::Name;
use super::walk::{Visit, Walk};
use super::{answer, start};
use crate::files::Workspace;
use crate::files::query::Query;
use crate::http::RunnerBody;
use crate::offload::{Findings, Offload};

pub(super) async fn handle(
    workspace: &Workspace,
    offload: &Offload,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let path = start::path(workspace, &query.take("path").unwrap_or_default())?;
    let search = read(&mut query)?;
    query.finish()?;
    let root = workspace.root();
    answer(offload, move || NameWork::prepare(&root, &path, &search), NameWork::run).await
}

/// Everything but the path, which need not be text.
fn read(query: &mut Query) -> Result<NameSearch, Fault> {
    let pattern = String::from_utf8(query.take("pattern").unwrap_or_default())
        .map_err(|_| invalid("the pattern is not UTF-8".to_owned()))?;
    let kind = match query.take("kind").as_deref() {
        None | Some(b"text") => NamePattern::Text,
        Some(b"glob") => NamePattern::Glob,
        Some(b"regex") => NamePattern::Regex,
        Some(_) => return Err(invalid("the kind is none of text, glob and regex".to_owned())),
    };
    let case = match query.take("case").as_deref() {
        None | Some(b"sensitive") => SearchCase::Sensitive,
        Some(b"insensitive") => SearchCase::Insensitive,
        Some(b"smart") => SearchCase::Smart,
        Some(_) => {
            let message = "the case is none of sensitive, insensitive and smart";
            return Err(invalid(message.to_owned()));
        }
    };
    let sort = match query.take("sort").as_deref() {
        None | Some(b"found") => SearchOrder::Found,
        Some(b"path") => SearchOrder::Path,
        Some(_) => return Err(invalid("sort is neither found nor path".to_owned())),
    };
    Ok(NameSearch {
        pattern,
        kind,
        path: String::new(),
        case,
        depth: query.number("depth")?,
        limit: query.number("limit")?,
        time_ms: query.number("time_ms")?,
        hidden: query.flag("hidden")?,
        ignored: query.flag("ignored")?,
        sort,
    })
}

struct NameWork {
    walk: Walk,
    name: Name,
    sort: SearchOrder,
}

impl NameWork {
    fn prepare(root: &Arc<Root>, path: &RelPath, search: &NameSearch) -> Result<Self, Fault> {
        let name = Name::new(search)?;
        let filter = Filter::new(&[], &[], search.hidden, search.ignored)?;
        let bounds = Bounds::new(search.limit, search.time_ms);
        let depth = search.depth.unwrap_or(u64::MAX);
        let walk = start::walk(root, path, filter, bounds, depth)?;
        Ok(Self { walk, name, sort: search.sort })
    }

    fn run(self, mut findings: Findings) {
        let Self { walk, name, sort } = self;
        let visit = |findings| NameVisit {
            name: name.clone(),
            bounds: &walk.bounds,
            findings,
            unreadable: 0,
        };
        let unreadable = match sort {
            SearchOrder::Found => {
                // Each has sent what it found before the end is told.
                walk.run(|| visit(findings.for_another_thread())).into_iter().sum()
            }
            SearchOrder::Path => walk.run_sorted(visit(findings.for_another_thread())),
        };
        let bounds = &walk.bounds;
        let reason = bounds.reason();
        let end = NameSearchTally {
            matches: bounds.matches(),
            nodes: bounds.nodes(),
            unreadable,
            unheeded: walk.budget.unheeded(),
            truncated: reason.is_some(),
            reason,
            elapsed_ms: bounds.elapsed_ms(),
        };
        let _ = findings.record(&NameRecord::End(NameSearchEnd { end }));
    }
}

struct NameVisit<'a> {
    name: Name,
    bounds: &'a Bounds,
    findings: Findings,
    unreadable: u64,
}

impl Visit for NameVisit<'_> {
    type Counts = u64;

    fn counts(self) -> u64 {
        self.unreadable
    }

    fn entry(&mut self, path: &[u8], kind: FileKind) -> bool {
        if !self.name.matches(path) || self.bounds.is_stopped() || !self.bounds.find() {
            return false;
        }
        let ShownPath { text, hex } = ShownPath::new(path);
        let found = FoundName { path: text, path_hex: hex, kind };
        if self.findings.record(&NameRecord::Entry(found)).is_err() {
            self.bounds.unread();
        }
        false
    }

    fn file(&mut self, _directory: &Directory, _name: &OsStr, _path: &[u8]) {}

    fn unreadable(&mut self) {
        self.unreadable += 1;
    }

    fn look(&mut self) {
        if self.findings.bytes(b"").is_err() {
            self.bounds.unread();
        }
    }
}

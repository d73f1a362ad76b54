//! `POST /search/text`: lines of files.

use std::sync::Arc;

use grep_regex::RegexMatcher;
use hyper::Response;
use hyper::body::Incoming;
use sandbank_protocol::{
    Fault, FileKind, SearchOrder, SkippedFiles, TextRecord, TextSearch, TextSearchTally,
};
use sandbank_rooted_fs::{Links, RegularFile, RelPath, Root};

use super::bounds::Bounds;
use super::file::{FileCounts, TextVisit};
use super::filter::{Filter, invalid};
use super::output::Output;
use super::walk::{Visit, Walk};
use super::{answer, pattern, start};
use crate::files::Workspace;
use crate::files::fault::refuse;
use crate::http::{self, RunnerBody};
use crate::limits::{
    FOUND_LINE_BYTES, MAX_CONTEXT_LINES, MAX_FOUND_LINE_BYTES, MAX_SEARCHED_FILE_BYTES,
    MAX_SEARCHED_LINE_BYTES,
};
use crate::offload::{Findings, Offload};

pub(super) async fn handle(
    workspace: &Workspace,
    offload: &Offload,
    body: Incoming,
) -> Result<Response<RunnerBody>, Fault> {
    let search: TextSearch = http::read_json(body).await?;
    let path = start::path(workspace, search.path.as_bytes())?;
    let root = workspace.root();
    answer(offload, move || TextWork::prepare(&root, path, &search), TextWork::run).await
}

/// What a request asks for, checked and within the limits.
pub(super) struct TextPlan {
    pub(super) matcher: RegexMatcher,
    pub(super) multiline: bool,
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) max_per_file: Option<u64>,
    pub(super) max_file_bytes: u64,
    pub(super) max_line_bytes: usize,
}

impl TextPlan {
    fn new(search: &TextSearch) -> Result<Self, Fault> {
        if search.before.max(search.after) > MAX_CONTEXT_LINES {
            let message = format!("there may be {MAX_CONTEXT_LINES} lines of context at most");
            return Err(invalid(message));
        }
        let most = match search.multiline {
            true => MAX_SEARCHED_LINE_BYTES as u64,
            false => MAX_SEARCHED_FILE_BYTES,
        };
        let line = search.max_line_bytes.unwrap_or(FOUND_LINE_BYTES).min(MAX_FOUND_LINE_BYTES);
        Ok(Self {
            matcher: pattern::text(search)?,
            multiline: search.multiline,
            before: search.before,
            after: search.after,
            max_per_file: search.max_per_file,
            max_file_bytes: search.max_file_bytes.map_or(most, |bytes| bytes.min(most)),
            max_line_bytes: usize::try_from(line).unwrap_or(usize::MAX),
        })
    }
}

struct TextWork {
    plan: TextPlan,
    place: Place,
}

enum Place {
    Tree(Box<Walk>, SearchOrder),
    File(RegularFile, RelPath, Bounds),
}

impl TextWork {
    fn prepare(root: &Arc<Root>, path: RelPath, search: &TextSearch) -> Result<Self, Fault> {
        let plan = TextPlan::new(search)?;
        let filter = Filter::new(&search.globs, &search.types, search.hidden, search.ignored)?;
        let bounds = Bounds::new(search.limit, search.time_ms);
        let kind = root.stat(&path, Links::Follow).map_err(refuse)?.kind;
        let place = if kind == FileKind::Directory {
            let walk = start::walk(root, &path, filter, bounds, u64::MAX)?;
            Place::Tree(Box::new(walk), search.sort)
        } else {
            Place::File(root.open_read(&path).map_err(refuse)?, path, bounds)
        };
        Ok(Self { plan, place })
    }

    fn run(self, findings: Findings) {
        let Self { plan, place } = self;
        let output = Output::new(findings);
        let visit = |bounds| TextVisit::new(&plan, bounds, &output);
        let tally = match place {
            Place::Tree(walk, order) => {
                let counts = match order {
                    SearchOrder::Found => walk.run(|| visit(&walk.bounds)),
                    SearchOrder::Path => vec![walk.run_sorted(visit(&walk.bounds))],
                };
                tally(&counts, &walk.bounds, walk.budget.unheeded())
            }
            Place::File(file, path, bounds) => {
                let mut visit = visit(&bounds);
                bounds.count_nodes(1);
                visit.regular(file, path.as_bytes());
                tally(&[visit.counts()], &bounds, 0)
            }
        };
        let _ = output.into_findings().record(&TextRecord::End(tally));
    }
}

fn tally(counts: &[FileCounts], bounds: &Bounds, unheeded: u64) -> TextSearchTally {
    let reason = bounds.reason();
    let mut tally = TextSearchTally {
        matches: bounds.matches(),
        bytes: bounds.bytes(),
        nodes: bounds.nodes(),
        unheeded,
        truncated: reason.is_some(),
        reason,
        elapsed_ms: bounds.elapsed_ms(),
        ..TextSearchTally::default()
    };
    for counts in counts {
        tally.files_searched += counts.searched;
        tally.files_matched += counts.matched;
        let SkippedFiles { binary, too_large, unreadable, special, links } = counts.skipped;
        tally.skipped.binary += binary;
        tally.skipped.too_large += too_large;
        tally.skipped.unreadable += unreadable;
        tally.skipped.special += special;
        tally.skipped.links += links;
    }
    tally
}

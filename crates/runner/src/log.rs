//! The runner's own lines, on stderr: what failed, which command began and ended, and for whose
//! request. Arguments, environments, paths of files and output are never in them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};

use hyper::header::HeaderMap;
use hyper::{Method, Uri};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use sandbank_protocol::{
    CommandId, Ending, Fault, FaultCode, REQUEST_ID_HEADER, RunnerLog, TRACEPARENT_HEADER,
    plain_request_id, trace_id,
};
use serde_json::{Map, Value, json};

use crate::clock::now_ms;
use crate::limits::{MAX_LOG_BYTES, MAX_LOG_LINE_BYTES};

/// Whose request something was done for, as far as the caller says and as it may stand in a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asker {
    request_id: Option<Box<str>>,
    trace_id: Option<Box<str>>,
}

impl Asker {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            request_id: text(REQUEST_ID_HEADER).and_then(plain_request_id).map(Box::from),
            trace_id: text(TRACEPARENT_HEADER).and_then(trace_id).map(Box::from),
        }
    }
}

pub(crate) struct Log {
    what: RunnerLog,
    /// Bytes of the file that stderr is; none when it is something else, which others bound.
    file_bytes: Cell<Option<u64>>,
    /// Who asked for the commands that run, by their numbers.
    askers: RefCell<HashMap<u64, Asker>>,
}

impl Log {
    pub(crate) fn new(what: RunnerLog) -> Self {
        let stat = rustix::fs::fstat(std::io::stderr()).ok();
        let is_file = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
        let size =
            stat.filter(|stat| is_file(stat.st_mode)).map(|stat| stat.st_size.cast_unsigned());
        Self { what, file_bytes: Cell::new(size), askers: RefCell::default() }
    }

    pub(crate) fn wants_failures(&self) -> bool {
        self.what != RunnerLog::Off
    }

    pub(crate) fn failed(&self, asker: &Asker, method: &Method, uri: &Uri, fault: &Fault) {
        let ours = fault.code == FaultCode::Internal;
        if self.what == RunnerLog::Off || (self.what == RunnerLog::Faults && !ours) {
            return;
        }
        // The query has paths of files in it, as has the fault's message.
        let route: String = uri.path().chars().take(80).collect();
        let level = if ours { "ERROR" } else { "WARN" };
        let about = json!({ "method": method.as_str(), "route": route, "code": fault.code });
        self.write(level, "request failed", asker, about);
    }

    pub(crate) fn started(&self, number: u64, id: &CommandId, asker: Asker) {
        if self.what != RunnerLog::All {
            return;
        }
        self.write("INFO", "command started", &asker, json!({ "command": id }));
        self.askers.borrow_mut().insert(number, asker);
    }

    pub(crate) fn ended(&self, number: u64, id: &CommandId, ending: &Ending, took_ms: u64) {
        if self.what != RunnerLog::All {
            return;
        }
        let asker = self.askers.borrow_mut().remove(&number).unwrap_or_default();
        let about = json!({ "command": id, "ending": ending, "ms": took_ms });
        self.write("INFO", "command ended", &asker, about);
    }

    fn write(&self, level: &str, message: &str, asker: &Asker, about: Value) {
        let mut line = Map::new();
        line.insert("time_ms".into(), now_ms().into());
        line.insert("level".into(), level.into());
        line.insert("message".into(), message.into());
        let ids = [("request_id", &asker.request_id), ("trace_id", &asker.trace_id)];
        for (name, id) in ids {
            line.extend(id.as_deref().map(|id| (name.to_owned(), Value::from(id))));
        }
        if let Value::Object(about) = about {
            line.extend(about);
        }
        let mut text = Value::Object(line).to_string();
        text.truncate(text.floor_char_boundary(MAX_LOG_LINE_BYTES));
        text.push('\n');
        self.put(text.as_bytes());
    }

    /// Nobody waits for a log: a pipe that is full loses the line. One that is not has room for it.
    fn put(&self, line: &[u8]) {
        let stderr = std::io::stderr();
        let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
        if !matches!(poll(&mut ready, Some(&Timespec::default())), Ok(1)) {
            return;
        }
        let written = rustix::io::write(&stderr, line).unwrap_or(0) as u64;
        if let Some(before) = self.file_bytes.get() {
            let size = before + written;
            self.file_bytes.set(Some(if size > MAX_LOG_BYTES {
                cut(stderr.as_fd())
            } else {
                size
            }));
        }
    }
}

/// Keeps the newer half, as far as it can be read. Returns what is left.
fn cut(log: BorrowedFd<'_>) -> u64 {
    let mut kept = vec![0; (MAX_LOG_BYTES / 2) as usize];
    let size = rustix::fs::fstat(log).map_or(0, |stat| stat.st_size.cast_unsigned());
    let from = size.saturating_sub(kept.len() as u64);
    let read = rustix::io::pread(log, &mut kept, from).unwrap_or(0);
    // Whole lines.
    let begin = kept[..read].iter().position(|byte| *byte == b'\n').map_or(read, |at| at + 1);
    if rustix::fs::ftruncate(log, 0).is_err() {
        return 0;
    }
    rustix::io::write(log, &kept[begin..read]).unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_calls_itself_is_bounded_and_plain() {
        let of = |id: &[u8], parent: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID_HEADER, id.try_into().unwrap());
            headers.insert(TRACEPARENT_HEADER, parent.parse().unwrap());
            Asker::of(&headers)
        };
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let right = of(b"follow-1", &format!("00-{trace}-b7ad6b7169203331-01"));
        assert_eq!(right.request_id.as_deref(), Some("follow-1"));
        assert_eq!(right.trace_id.as_deref(), Some(trace));
        for hostile in [&b"a\tb"[..], b"a\xffb", b"{\"level\":\"INFO\"}", &[b'x'; 10_000]] {
            assert_eq!(of(hostile, "forged"), Asker::default());
        }
    }
}

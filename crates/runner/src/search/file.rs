//! One thread's part of a text search: files in, found lines out.
//!
//! Files are read, never mapped: one that is made shorter meanwhile would otherwise end the runner.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use sandbank_protocol::{FileKind, SkippedFiles};
use sandbank_rooted_fs::{Directory, RegularFile};

use super::bounds::Bounds;
use super::lines::ShownPath;
use super::matcher::Interruptible;
use super::output::{FileOutput, Output};
use super::sink::LineSink;
use super::text::TextPlan;
use super::walk::Visit;
use crate::limits::{MAX_SEARCHED_LINE_BYTES, SEARCH_WHOLE_FILE_BYTES};

pub(super) struct TextVisit<'a> {
    plan: &'a TextPlan,
    bounds: &'a Bounds,
    matcher: Interruptible<'a>,
    searcher: Searcher,
    /// A whole small file.
    content: Vec<u8>,
    output: FileOutput<'a>,
    counts: FileCounts,
}

/// Of one thread.
#[derive(Debug, Default)]
pub(super) struct FileCounts {
    pub(super) searched: u64,
    pub(super) matched: u64,
    pub(super) skipped: SkippedFiles,
}

impl<'a> TextVisit<'a> {
    pub(super) fn new(plan: &'a TextPlan, bounds: &'a Bounds, output: &'a Output) -> Self {
        let lines = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .multi_line(plan.multiline)
            .before_context(lines(plan.before))
            .after_context(lines(plan.after))
            .max_matches(plan.max_per_file)
            .heap_limit(Some(MAX_SEARCHED_LINE_BYTES))
            .binary_detection(BinaryDetection::quit(0))
            .build();
        Self {
            plan,
            bounds,
            matcher: Interruptible { regex: plan.matcher.clone(), bounds },
            searcher,
            content: vec![0; SEARCH_WHOLE_FILE_BYTES + 1],
            output: FileOutput::new(output),
            counts: FileCounts::default(),
        }
    }

    pub(super) fn regular(&mut self, file: RegularFile, path: &[u8]) {
        let size = file.stat().size;
        if size > self.plan.max_file_bytes {
            self.counts.skipped.too_large += 1;
            return;
        }
        let file = file.into_file();
        let answer = if size <= SEARCH_WHOLE_FILE_BYTES as u64 {
            self.whole(file, path)
        } else {
            self.stream(Bounded::new(file, self.bounds, self.plan.max_file_bytes), path)
        };
        if self.output.finish_file().is_err() {
            self.bounds.unread();
        }
        match answer {
            Ok(Content::Text) => self.counts.searched += 1,
            Ok(Content::Binary) => self.counts.skipped.binary += 1,
            // A search that is over ends in the middle of a file.
            Err(_) if self.bounds.is_stopped() => self.counts.searched += 1,
            Err(error) if error.raw_os_error().is_some() => self.counts.skipped.unreadable += 1,
            Err(_) => self.counts.skipped.too_large += 1,
        }
    }

    /// A small file is read in one go and searched where it lies.
    fn whole(&mut self, mut file: File, path: &[u8]) -> io::Result<Content> {
        let mut content = std::mem::take(&mut self.content);
        let read = read_up_to(&mut file, &mut content);
        let answer = read.and_then(|read| {
            if read > SEARCH_WHOLE_FILE_BYTES {
                // It has grown since it was opened.
                let left = self.plan.max_file_bytes.saturating_sub(read as u64);
                let rest = Bounded::new(file, self.bounds, left);
                return self.stream(io::Cursor::new(&content[..read]).chain(rest), path);
            }
            let content = &content[..read];
            self.bounds.count_bytes(read as u64);
            let is_transcoded =
                content.starts_with(&[0xFF, 0xFE]) || content.starts_with(&[0xFE, 0xFF]);
            if !is_transcoded && memchr::memchr(0, content).is_some() {
                return Ok(Content::Binary);
            }
            self.search(path, |searcher, matcher, sink| {
                searcher.search_slice(matcher, content, sink)
            })
        });
        self.content = content;
        answer
    }

    fn stream(&mut self, content: impl Read, path: &[u8]) -> io::Result<Content> {
        self.search(path, |searcher, matcher, sink| searcher.search_reader(matcher, content, sink))
    }

    fn search(
        &mut self,
        path: &[u8],
        run: impl FnOnce(&mut Searcher, &Interruptible<'a>, &mut LineSink<'_, 'a>) -> io::Result<()>,
    ) -> io::Result<Content> {
        let mut sink = LineSink {
            path: ShownPath::new(path),
            matcher: &self.matcher,
            bounds: self.bounds,
            line_bytes: self.plan.max_line_bytes,
            output: &mut self.output,
            matched: false,
            is_binary: false,
        };
        let answer = run(&mut self.searcher, &self.matcher, &mut sink);
        self.counts.matched += u64::from(sink.matched);
        let content = if sink.is_binary { Content::Binary } else { Content::Text };
        answer.map(|()| content)
    }
}

enum Content {
    Text,
    Binary,
}

impl Visit for TextVisit<'_> {
    type Counts = FileCounts;

    fn counts(self) -> FileCounts {
        self.counts
    }

    fn entry(&mut self, _path: &[u8], kind: FileKind) -> bool {
        match kind {
            FileKind::File => return true,
            FileKind::Symlink => self.counts.skipped.links += 1,
            FileKind::Other => self.counts.skipped.special += 1,
            FileKind::Directory => {}
        }
        false
    }

    fn file(&mut self, directory: &Directory, name: &OsStr, path: &[u8]) {
        use sandbank_rooted_fs::RootedError;
        match directory.open_file(name) {
            Ok(file) => self.regular(file, path),
            // Gone, or replaced by a link or something special since the directory was listed.
            Err(RootedError::NotFound(_)) => {}
            Err(RootedError::WrongKind { .. }) => self.counts.skipped.special += 1,
            Err(RootedError::Escapes(_)) => self.counts.skipped.links += 1,
            Err(_) => self.counts.skipped.unreadable += 1,
        }
    }

    fn unreadable(&mut self) {
        self.counts.skipped.unreadable += 1;
    }

    fn look(&mut self) {
        if self.output.look().is_err() {
            self.bounds.unread();
        }
    }
}

/// A file that grows while it is read has an end all the same, and so has the reading of a long one
/// when the search is over.
struct Bounded<'a> {
    file: File,
    bounds: &'a Bounds,
    left: u64,
}

impl<'a> Bounded<'a> {
    fn new(file: File, bounds: &'a Bounds, left: u64) -> Self {
        Self { file, bounds, left }
    }
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bounds.is_over() {
            return Err(io::Error::other("the search is over"));
        }
        let read = self.file.read(buffer)?;
        self.bounds.count_bytes(read as u64);
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other("the file has become too large"))?;
        Ok(read)
    }
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

//! What the searcher finds in one file, on its way to the reader.

use std::io;

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use sandbank_protocol::TextRecord;

use super::bounds::Bounds;
use super::lines::{Ranges, ShownPath, found_line};
use super::matcher::Interruptible;
use super::output::FileOutput;

pub(super) struct LineSink<'s, 'a> {
    pub(super) path: ShownPath<'s>,
    pub(super) matcher: &'s Interruptible<'a>,
    pub(super) bounds: &'s Bounds,
    pub(super) line_bytes: usize,
    pub(super) output: &'s mut FileOutput<'a>,
    pub(super) matched: bool,
    pub(super) is_binary: bool,
}

impl LineSink<'_, '_> {
    /// Whether to go on.
    fn said(&self, sent: Result<(), crate::offload::Gone>) -> bool {
        if sent.is_err() {
            self.bounds.unread();
        }
        !self.bounds.is_stopped()
    }
}

impl Sink for LineSink<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if !self.bounds.find() {
            return Ok(false);
        }
        self.matched = true;
        let over_lines = searcher.multi_line_with_matcher(self.matcher);
        let place = found.bytes_range_in_buffer();
        let ranges = Ranges::find(self.matcher, found.buffer(), place, over_lines);
        let (line, offset) = (found.line_number().unwrap_or(0), found.absolute_byte_offset());
        let line = found_line(&self.path, line, offset, found.bytes(), ranges, self.line_bytes);
        let sent = self.output.record(&TextRecord::Match(line));
        Ok(self.said(sent))
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let (line, offset) = (context.line_number().unwrap_or(0), context.absolute_byte_offset());
        let ranges = Ranges::default();
        let line = found_line(&self.path, line, offset, context.bytes(), ranges, self.line_bytes);
        let sent = self.output.record(&TextRecord::Context(line));
        Ok(self.said(sent))
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

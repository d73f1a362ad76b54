//! What of a command's output a model is shown.
//!
//! While a command runs it is the end of each stream, and what was dropped before it is counted;
//! of one that is only told when it is over it is the beginning, with a notice. Characters are
//! counted, not bytes. The text is a program's: it is marked as untrusted and never interpreted.

mod decoder;
mod head;
mod pace;
mod tail;

use serde_json::{Map, Value, json};

pub(crate) use pace::Pace;

use decoder::Decoder;
use head::Head;
use tail::Tail;

/// What a command that runs has for an exit code.
pub const RUNNING: i32 = -1;
/// What one has whose time was over.
pub const TIMED_OUT: i32 = 124;
/// What one has that was not wanted any more. A caller who hangs up does not see it; one who waits
/// when the server ends does.
pub const ABORTED: i32 = 130;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// How many characters of each stream are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) stdout: usize,
    pub(crate) stderr: usize,
}

/// Of a command whose output is told while it runs.
pub(crate) struct Live {
    stdout: (Decoder, Tail),
    stderr: (Decoder, Tail),
}

impl Live {
    pub(crate) fn new(room: Room) -> Self {
        let stream = |limit| (Decoder::default(), Tail::new(limit));
        Self { stdout: stream(room.stdout), stderr: stream(room.stderr) }
    }

    pub(crate) fn kept(&self) -> usize {
        self.stdout.1.kept() + self.stderr.1.kept()
    }

    fn view(&self, code: i32, stderr: Option<&str>) -> Value {
        let (out, err) = (&self.stdout.1, &self.stderr.1);
        let mut view = Map::new();
        view.insert("stdout".into(), json!(out.text()));
        view.insert("stderr".into(), json!(stderr.unwrap_or(err.text())));
        view.insert("exitCode".into(), json!(code));
        if out.dropped() > 0 {
            view.insert("stdoutTruncatedChars".into(), json!(out.dropped()));
        }
        if err.dropped() > 0 && stderr.is_none() {
            view.insert("stderrTruncatedChars".into(), json!(err.dropped()));
        }
        view.insert("untrusted".into(), json!(true));
        Value::Object(view)
    }
}

/// Of a command that is told of when it is over.
pub(crate) struct Whole {
    stdout: (Decoder, Head),
    stderr: (Decoder, Head),
}

/// What is collected of a command's output.
pub(crate) enum Collected {
    Live(Live),
    Whole(Whole),
}

impl Collected {
    pub(crate) fn live(room: Room) -> Self {
        Self::Live(Live::new(room))
    }

    pub(crate) fn whole(room: Room) -> Self {
        let stream = |limit| (Decoder::default(), Head::new(limit));
        Self::Whole(Whole { stdout: stream(room.stdout), stderr: stream(room.stderr) })
    }

    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        match (self, stream) {
            (Self::Live(Live { stdout: (decoder, tail), .. }), Stream::Stdout)
            | (Self::Live(Live { stderr: (decoder, tail), .. }), Stream::Stderr) => {
                tail.push(&decoder.push(bytes));
            }
            (Self::Whole(Whole { stdout: (decoder, head), .. }), Stream::Stdout)
            | (Self::Whole(Whole { stderr: (decoder, head), .. }), Stream::Stderr) => {
                head.push(&decoder.push(bytes));
            }
        }
    }

    /// Nobody can say of which stream it was; the one that is mostly the longer one is told of it.
    pub(crate) fn gap(&mut self, missing: u64) {
        match self {
            Self::Live(live) => live.stdout.1.gap(missing),
            Self::Whole(whole) => whole.stdout.1.gap(missing),
        }
    }

    /// Characters that an update would show.
    pub(crate) fn kept(&self) -> usize {
        match self {
            Self::Live(live) => live.kept(),
            Self::Whole(_) => 0,
        }
    }

    /// Of a command that runs; none where nothing is told before the end.
    pub(crate) fn progress(&self) -> Option<Value> {
        match self {
            Self::Live(live) => Some(live.view(RUNNING, None)),
            Self::Whole(_) => None,
        }
    }

    /// `stderr` takes the place of what the command said there.
    pub(crate) fn finish(self, code: i32, stderr: Option<&str>) -> Value {
        match self {
            Self::Live(mut live) => {
                for (decoder, tail) in [&mut live.stdout, &mut live.stderr] {
                    if let Some(cut) = decoder.finish() {
                        tail.push(cut.encode_utf8(&mut [0; 4]));
                    }
                }
                live.view(code, stderr)
            }
            Self::Whole(Whole { stdout, stderr: errors }) => {
                let finish = |(mut decoder, mut head): (Decoder, Head), name| {
                    if let Some(cut) = decoder.finish() {
                        head.push(cut.encode_utf8(&mut [0; 4]));
                    }
                    head.finish(name)
                };
                let stdout = finish(stdout, "stdout");
                let errors = finish(errors, "stderr");
                let stderr = stderr.unwrap_or(&errors);
                json!({ "stdout": stdout, "stderr": stderr, "exitCode": code, "untrusted": true })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { stdout: 5, stderr: 5 };

    #[test]
    fn while_it_runs_the_tail_is_shown_with_what_was_dropped() {
        let mut live = Collected::live(ROOM);
        live.push(Stream::Stdout, "0123456äö".as_bytes());
        live.push(Stream::Stderr, b"err");
        let view = live.progress().unwrap();
        let wanted = json!({
            "stdout": "456äö", "stderr": "err", "exitCode": -1, "stdoutTruncatedChars": 4,
            "untrusted": true,
        });
        assert_eq!(view, wanted);
    }

    #[test]
    fn a_character_that_is_half_there_is_not_shown_before_the_end() {
        let mut live = Collected::live(ROOM);
        live.push(Stream::Stdout, &"ä".as_bytes()[..1]);
        assert_eq!(live.progress().unwrap()["stdout"], "");
        assert_eq!(live.finish(0, None)["stdout"], "\u{fffd}");
    }

    #[test]
    fn a_timeout_says_so_in_the_place_of_the_errors_and_keeps_the_output() {
        let mut live = Collected::live(ROOM);
        live.push(Stream::Stdout, b"out");
        live.push(Stream::Stderr, b"errors that are long");
        let view = live.finish(TIMED_OUT, Some("Command timed out after 5ms."));
        assert_eq!(view["stderr"], "Command timed out after 5ms.");
        assert_eq!((&view["stdout"], &view["exitCode"]), (&json!("out"), &json!(124)));
        assert!(view.get("stderrTruncatedChars").is_none());
    }

    #[test]
    fn at_the_end_the_beginning_is_shown_and_nothing_before() {
        let mut whole = Collected::whole(ROOM);
        whole.push(Stream::Stdout, b"0123456\n");
        assert_eq!(whole.progress(), None);
        let view = whole.finish(3, None);
        assert_eq!(view["stdout"], "01234\n\n[stdout truncated: 2 characters removed]");
        assert_eq!((&view["stderr"], &view["exitCode"]), (&json!(""), &json!(3)));
    }
}

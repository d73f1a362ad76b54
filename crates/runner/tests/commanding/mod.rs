//! Specs, and what a command said and did.

#![allow(dead_code, reason = "each test file uses a part")]

use sandbank_channel::{ChannelError, OutputStream, RunnerClient};
use sandbank_protocol::{CommandId, CommandSpec, Ending, FaultCode, Frame, StreamKind};

pub(crate) fn id(text: &str) -> CommandId {
    text.parse().unwrap()
}

pub(crate) fn spec(name: &str, argv: &[&str]) -> CommandSpec {
    CommandSpec::new(id(name), argv.iter().map(|word| (*word).to_owned()).collect())
}

pub(crate) fn shell(name: &str, script: &str) -> CommandSpec {
    spec(name, &["/bin/sh", "-c", script])
}

/// Everything a reader was sent.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) pty: Vec<u8>,
    /// Numbers of the output frames.
    pub(crate) seqs: Vec<u64>,
    pub(crate) dropped_frames: u64,
    pub(crate) dropped_bytes: u64,
    pub(crate) ending: Option<Ending>,
}

impl Heard {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub(crate) fn errors(&self) -> String {
        String::from_utf8(self.stderr.clone()).unwrap()
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.ending.as_ref().and_then(Ending::exit_code)
    }

    pub(crate) fn take(&mut self, frame: Frame) {
        assert_eq!(self.ending, None, "the ending is the last frame");
        match frame {
            Frame::Output { seq, stream, data, .. } => {
                self.seqs.push(seq);
                match stream {
                    StreamKind::Stdout => self.stdout.extend_from_slice(&data),
                    StreamKind::Stderr => self.stderr.extend_from_slice(&data),
                    StreamKind::Pty => self.pty.extend_from_slice(&data),
                }
            }
            Frame::Dropped { frames, bytes, .. } => {
                self.dropped_frames += frames;
                self.dropped_bytes += bytes;
            }
            Frame::Ended { ending, .. } => {
                self.ending = Some(serde_json::from_slice(&ending).unwrap());
            }
            Frame::Heartbeat { .. } => {}
        }
    }

    pub(crate) async fn take_all(&mut self, stream: &mut OutputStream) {
        while let Some(frame) = stream.next().await.unwrap() {
            self.take(frame);
        }
    }
}

/// All output from frame `after` on, until the ending.
pub(crate) async fn follow(client: &RunnerClient, name: &str, after: u64) -> Heard {
    let mut heard = Heard::default();
    let mut stream = client.output(&id(name), after, true).await.unwrap();
    heard.take_all(&mut stream).await;
    heard
}

pub(crate) async fn run(client: &RunnerClient, spec: &CommandSpec) -> Heard {
    client.start(spec).await.unwrap();
    follow(client, spec.id.as_str(), 0).await
}

/// Reads until the output so far contains `text`.
pub(crate) async fn read_until(stream: &mut OutputStream, heard: &mut Heard, text: &str) {
    while !contains(&heard.stdout, text) && !contains(&heard.pty, text) {
        let frame = stream.next().await.unwrap();
        heard.take(frame.unwrap_or_else(|| panic!("the output ended before {text:?}: {heard:?}")));
        assert_eq!(heard.ending, None, "the command ended before {text:?}");
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

pub(crate) fn fault_code<T: std::fmt::Debug>(result: Result<T, ChannelError>) -> FaultCode {
    match result {
        Err(ChannelError::Refused(fault)) => fault.code,
        other => panic!("a refusal was expected, not {other:?}"),
    }
}

/// Processes whose environment says that they belong to this command.
pub(crate) fn processes_of(name: &str) -> Vec<u32> {
    let marker = format!("SANDBANK_COMMAND={name}");
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let marked = |pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
    };
    pids.filter(marked).collect()
}

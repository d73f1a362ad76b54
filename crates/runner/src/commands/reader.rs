//! A command's output as a response body: frames from an offset on, then the ending.

use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame as BodyFrame;
use sandbank_protocol::Frame;
use tokio::sync::mpsc;

use super::Command;
use super::output::{Output, OutputReader};
use crate::clock::now_ms;
use crate::http::{Open, RunnerBody};
use crate::limits::{HEARTBEAT_INTERVAL, MAX_JOINED_BYTES, READER_CHUNKS};

/// What a reader asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) after: u64,
    pub(crate) follow: bool,
    /// The command waits for it, within reason.
    pub(crate) hold: bool,
}

/// The body. A task of its own fills it, as far ahead as a few chunks.
pub(crate) fn stream(command: Rc<Command>, wanted: Wanted, open: Open) -> RunnerBody {
    let (sender, mut receiver) = mpsc::channel(READER_CHUNKS);
    tokio::task::spawn_local(async move {
        let _open = open;
        tokio::select! {
            () = sender.closed() => {}
            _ = send_frames(command.output(), wanted, &sender) => {}
        }
    });
    let chunks = futures_util::stream::poll_fn(move |context| {
        receiver.poll_recv(context).map(|chunk| chunk.map(|data| Ok(BodyFrame::data(data))))
    });
    StreamBody::new(chunks).boxed_unsync()
}

type Gone = mpsc::error::SendError<Bytes>;

async fn send_frames(
    output: &Output,
    wanted: Wanted,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), Gone> {
    let mut reader = match wanted.hold {
        true => OutputReader::new(output, wanted.after),
        false => OutputReader::onlooker(output, wanted.after),
    };
    loop {
        let growth = reader.growth();
        send_available(&mut reader, sender).await?;
        if reader.ended() || !wanted.follow {
            return Ok(());
        }
        if tokio::time::timeout(HEARTBEAT_INTERVAL, growth).await.is_err() {
            let heartbeat = Frame::Heartbeat { seq: reader.after(), time_ms: now_ms() };
            sender.send(heartbeat.encode().0).await?;
        }
    }
}

/// Small frames travel together; large ones alone, because joining them would copy them.
async fn send_available(
    reader: &mut OutputReader<'_>,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), Gone> {
    let mut joined = BytesMut::new();
    loop {
        // Room first: a frame that is taken counts as read.
        let permit = sender.reserve().await.map_err(|_| mpsc::error::SendError(Bytes::new()))?;
        let Some(frame) = reader.next() else {
            if !joined.is_empty() {
                permit.send(joined.freeze());
            }
            return Ok(());
        };
        let (head, payload) = frame.encode();
        joined.put_slice(&head);
        let Some(payload) = payload else { continue };
        if payload.len() <= MAX_JOINED_BYTES / 4 {
            joined.put_slice(&payload);
            if joined.len() > MAX_JOINED_BYTES {
                permit.send(joined.split().freeze());
            }
        } else {
            permit.send(joined.split().freeze());
            sender.send(payload).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use sandbank_protocol::{FrameDecoder, StreamKind};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_carries_heartbeats_and_then_what_comes() {
        let output = Output::new(1 << 20);
        output.append(1, StreamKind::Stdout, Bytes::from_static(b"first"), drop);
        let (sender, mut receiver) = mpsc::channel(READER_CHUNKS);
        let speaking = async {
            tokio::time::sleep(HEARTBEAT_INTERVAL * 2 + HEARTBEAT_INTERVAL / 2).await;
            output.append(2, StreamKind::Stderr, Bytes::from_static(b"second"), drop);
            output.end(3, Bytes::from_static(b"{}"));
        };
        let reading = async {
            send_frames(&output, Wanted { after: 0, follow: true, hold: true }, &sender)
                .await
                .unwrap();
            drop(sender);
        };
        let mut decoder = FrameDecoder::default();
        let mut frames = Vec::new();
        let hearing = async {
            while let Some(chunk) = receiver.recv().await {
                decoder.push(chunk);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    frames.push(frame);
                }
            }
        };
        tokio::join!(speaking, reading, hearing);
        let kinds: Vec<&str> = frames
            .iter()
            .map(|frame| match frame {
                Frame::Output { .. } => "output",
                Frame::Heartbeat { .. } => "heartbeat",
                Frame::Ended { .. } => "ended",
                Frame::Dropped { .. } => "dropped",
            })
            .collect();
        assert_eq!(kinds, ["output", "heartbeat", "heartbeat", "output", "ended"]);
    }

    #[tokio::test(start_paused = true)]
    async fn large_frames_and_small_ones_keep_their_order() {
        let output = Output::new(64 << 20);
        let sizes = [1, 100_000, 5, 5, 9_000, 131_072, 0, 40_000, 3];
        for size in sizes {
            output.append(0, StreamKind::Stdout, Bytes::from(vec![7; size]), drop);
        }
        output.end(0, Bytes::from_static(b"{}"));
        let (sender, mut receiver) = mpsc::channel(100);
        send_frames(&output, Wanted { after: 0, follow: false, hold: true }, &sender)
            .await
            .unwrap();
        drop(sender);
        let mut decoder = FrameDecoder::default();
        while let Some(chunk) = receiver.recv().await {
            decoder.push(chunk);
        }
        for (index, size) in sizes.into_iter().enumerate() {
            let Some(Frame::Output { seq, data, .. }) = decoder.next_frame().unwrap() else {
                panic!("frame {index} is missing");
            };
            assert_eq!((seq, data.len()), (index as u64 + 1, size));
        }
        assert!(matches!(decoder.next_frame().unwrap(), Some(Frame::Ended { .. })));
    }
}

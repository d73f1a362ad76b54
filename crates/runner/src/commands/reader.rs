//! A command's output as a response body: frames from an offset on, then the ending.

use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame as BodyFrame;
use sandbank_protocol::Frame;
use tokio::sync::mpsc;

use super::Command;
use super::output::OutputReader;
use crate::clock::now_ms;
use crate::http::{Open, RunnerBody};
use crate::limits::{HEARTBEAT_INTERVAL, MAX_JOINED_BYTES, READER_CHUNKS};

/// The body. A task of its own fills it, as far ahead as a few chunks.
pub(crate) fn stream(command: Rc<Command>, after: u64, follow: bool, open: Open) -> RunnerBody {
    let (sender, mut receiver) = mpsc::channel(READER_CHUNKS);
    tokio::task::spawn_local(async move {
        let _open = open;
        tokio::select! {
            () = sender.closed() => {}
            _ = send_frames(&command, after, follow, &sender) => {}
        }
    });
    let chunks = futures_util::stream::poll_fn(move |context| {
        receiver.poll_recv(context).map(|chunk| chunk.map(|data| Ok(BodyFrame::data(data))))
    });
    StreamBody::new(chunks).boxed_unsync()
}

type Gone = mpsc::error::SendError<Bytes>;

async fn send_frames(
    command: &Command,
    after: u64,
    follow: bool,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), Gone> {
    let mut reader = OutputReader::new(command.output(), after);
    loop {
        let growth = reader.growth();
        send_available(&mut reader, sender).await?;
        if reader.ended() || !follow {
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

//! A watch as a response body: lines, as they come. A reader that is too slow to be told all of
//! them is told to list again.

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use sandbank_protocol::{WatchEvent, WatchKind};
use tokio::sync::mpsc;

use super::ring::{Unknown, line};
use super::shared::{Phase, Reader};
use crate::http::{Open, RunnerBody};
use crate::limits::{HEARTBEAT_INTERVAL, MAX_JOINED_BYTES, READER_CHUNKS};

/// From the change numbered `after` on, or from now on.
pub(super) fn stream(reader: Reader, after: Option<u64>, open: Open) -> RunnerBody {
    let (sender, mut receiver) = mpsc::channel(READER_CHUNKS);
    tokio::task::spawn_local(async move {
        let _open = open;
        tokio::select! {
            () = sender.closed() => {}
            _ = send(&reader, after, &sender) => {}
        }
    });
    let chunks = futures_util::stream::poll_fn(move |context| {
        receiver.poll_recv(context).map(|chunk| chunk.map(|data| Ok(Frame::data(data))))
    });
    StreamBody::new(chunks).boxed_unsync()
}

type Gone = mpsc::error::SendError<Bytes>;

async fn send(
    reader: &Reader,
    after: Option<u64>,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), Gone> {
    let mut at = after.unwrap_or_else(|| reader.last());
    let mut known = reader.next(at).is_ok();
    if known {
        sender.send(line(&WatchEvent::new(at, WatchKind::Ready))).await?;
    }
    loop {
        let news = reader.news();
        if !known {
            at = reader.last();
            let reset = WatchEvent::new(at, WatchKind::Reset);
            let reset = reset.because("what happened since then is not kept: list again");
            sender.send(line(&reset)).await?;
        }
        known = send_known(reader, &mut at, sender).await?;
        if !known {
            continue;
        }
        if let Phase::Over(reason) = reader.phase() {
            let end = WatchEvent::new(at, WatchKind::End).because(reason);
            return sender.send(line(&end)).await;
        }
        if tokio::time::timeout(HEARTBEAT_INTERVAL, news).await.is_err() {
            sender.send(line(&WatchEvent::new(at, WatchKind::Heartbeat))).await?;
        }
    }
}

/// All lines there are; false when the next one is not kept any more.
async fn send_known(
    reader: &Reader,
    at: &mut u64,
    sender: &mpsc::Sender<Bytes>,
) -> Result<bool, Gone> {
    loop {
        // Room first: what is taken counts as read.
        let permit = sender.reserve().await.map_err(|_| mpsc::error::SendError(Bytes::new()))?;
        let mut joined = BytesMut::new();
        let more = loop {
            match reader.next(*at) {
                Ok(Some(line)) => {
                    *at += 1;
                    joined.extend_from_slice(&line);
                    if joined.len() >= MAX_JOINED_BYTES {
                        break Ok(true);
                    }
                }
                Ok(None) => break Ok(false),
                Err(Unknown) => break Err(Unknown),
            }
        };
        if !joined.is_empty() {
            permit.send(joined.freeze());
        }
        match more {
            Ok(true) => {}
            Ok(false) => return Ok(true),
            Err(Unknown) => return Ok(false),
        }
    }
}

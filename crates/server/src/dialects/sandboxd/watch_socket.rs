//! A watched tree over a WebSocket. At most one message is on its way to the client; whoever does
//! not take it is closed, and the runner keeps what comes meanwhile for who comes back.

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use tokio::time::{interval_at, timeout};

use super::file_watch::text;
use super::watch_feed::{Stopped, WatchFeed};
use crate::auth::Caller;
use crate::limits::{HEARTBEAT, MAX_WATCH_MESSAGE_BYTES, SOCKET_CLOSE_TIME, SOCKET_SEND_TIME};
use crate::request::Carried;
use crate::terminal::closing::{Closing, REVOKED};

pub(super) fn serve(upgrade: WebSocketUpgrade, feed: WatchFeed, caller: Caller) -> Response {
    let carried = Carried::now();
    upgrade
        .max_message_size(MAX_WATCH_MESSAGE_BYTES)
        .max_frame_size(MAX_WATCH_MESSAGE_BYTES)
        .on_upgrade(move |socket| carried.over(Box::pin(talk(socket, feed, caller))))
}

async fn talk(socket: WebSocket, mut feed: WatchFeed, caller: Caller) {
    let (mut sink, mut words) = socket.split();
    let mut heard = tokio::time::Instant::now();
    let mut beat = interval_at(heard + HEARTBEAT, HEARTBEAT);
    let (code, reason) = loop {
        let message = tokio::select! {
            biased;
            word = words.next() => match word {
                // What a client says is of no interest, only that it is there.
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {
                    heard = tokio::time::Instant::now();
                    continue;
                }
            },
            () = caller.revoked() => break (Closing::Revoked.code(), REVOKED),
            event = feed.next() => match event {
                Ok(event) => Message::text(text(&event)),
                Err(Stopped::Ended) => break (close_code::NORMAL, "the watch has ended"),
                Err(Stopped::Draining) => break (close_code::AWAY, "the daemon is stopping"),
                Err(Stopped::Unreachable) => break (close_code::ERROR, "the sandbox does not answer"),
            },
            _ = beat.tick() => {
                // Two without an answer: there is nobody at the other end.
                if heard.elapsed() > 2 * HEARTBEAT {
                    return;
                }
                Message::Ping(Default::default())
            }
        };
        match timeout(SOCKET_SEND_TIME, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => break (close_code::AGAIN, "messages are not taken"),
        }
    };
    // It no longer counts as a reader, however long the farewell takes.
    drop(feed);
    close(sink, code, reason).await;
}

async fn close(mut sink: SplitSink<WebSocket, Message>, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let _ = timeout(SOCKET_CLOSE_TIME, sink.send(Message::Close(Some(frame)))).await;
}

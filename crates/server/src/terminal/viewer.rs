//! A WebSocket joined to a terminal, whatever its frames look like.
//!
//! Three things go on at once: what is shown goes out, what comes in is read, and what was typed is
//! written, so that a program that reads nothing keeps nobody from interrupting it. The first that
//! ends decides how the connection is closed.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use sandbank_protocol::PtySize;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::closing::Closing;
use super::{Hands, Shown, Terminal};
use crate::auth::Caller;
use crate::limits::{
    MAX_TYPED_AHEAD_BYTES, MAX_TYPED_AT_ONCE_BYTES, TYPED_MESSAGE_BYTES, VIEWER_CLOSE_PATIENCE,
    VIEWER_PATIENCE, VIEWER_PING, VIEWER_PONG_DEADLINE, VIEWER_REPLIES,
};

/// How a dialect writes and reads the frames of a viewer.
pub(crate) trait Spelling: Send + Sync + 'static {
    /// What is sent first.
    fn attached(&self, terminal: &Terminal) -> Vec<Message>;

    fn shown(&self, shown: &Shown) -> Vec<Message>;

    /// The refusal is what the viewer is told; the connection goes on.
    fn refused(&self, why: String) -> Option<Message>;

    /// The answer to a [`Asked::Ping`].
    fn pong(&self) -> Message;

    /// What a message asks for; an error closes the connection with those words.
    fn heard(&self, message: Message) -> Result<Asked, String>;

    fn close_code(&self, closing: &Closing) -> u16 {
        closing.code()
    }

    fn close_reason(&self, closing: &Closing) -> String {
        closing.reason()
    }

    /// Whether a viewer that takes its time is painted the screen; else it is shown everything that
    /// is still kept.
    fn catches_up(&self) -> bool {
        true
    }

    /// Whether the connection stays open when the command has ended.
    fn stays(&self) -> bool {
        false
    }
}

/// What a viewer asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    Input(Bytes),
    Resize(PtySize),
    Signal(i32),
    Ping,
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    /// The viewer said that it goes.
    Left,
    /// It was gone without a word.
    Gone,
    Closed(Closing),
}

impl Parting {
    pub(crate) fn is_sudden(&self) -> bool {
        matches!(self, Self::Gone | Self::Closed(Closing::Unresponsive))
    }
}

/// Answers to what came in, on their way out.
enum Reply {
    Pong,
    Refused(String),
}

/// What was typed and not yet taken.
#[derive(Default)]
struct Typed {
    bytes: AtomicUsize,
}

impl Typed {
    /// Also of a message with nothing in it, which has its place in the queue.
    fn cost(bytes: &Bytes) -> usize {
        bytes.len() + TYPED_MESSAGE_BYTES
    }
}

/// Until one side has enough.
pub(crate) async fn view(
    socket: WebSocket,
    mut terminal: Terminal,
    hands: Hands,
    spelling: impl Spelling,
    caller: &Caller,
) -> Parting {
    let (mut sink, mut source) = socket.split();
    let (spelling, hands, typed) = (&spelling, &hands, &Typed::default());
    let (replies, to_send) = mpsc::channel(VIEWER_REPLIES);
    let (typing, to_write) = mpsc::unbounded_channel();
    let parting = tokio::select! {
        closing = show(&mut sink, &mut terminal, to_send, spelling) => Parting::Closed(closing),
        parting = hear(&mut source, hands, typing, typed, replies, spelling) => parting,
        closing = write(hands, to_write, typed) => Parting::Closed(closing),
        () = caller.revoked() => Parting::Closed(Closing::Revoked),
    };
    let Parting::Closed(closing) = &parting else { return parting };
    tracing::debug!(?closing, "a viewer is let go");
    let code = spelling.close_code(closing);
    let frame = CloseFrame { code, reason: spelling.close_reason(closing).into() };
    let _ = timeout(VIEWER_CLOSE_PATIENCE, async {
        // Until it has read all of it: what is closed with something unread is reset.
        if sink.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = source.next().await {}
        }
    })
    .await;
    parting
}

async fn show(
    sink: &mut SplitSink<WebSocket, Message>,
    terminal: &mut Terminal,
    mut replies: mpsc::Receiver<Reply>,
    spelling: &impl Spelling,
) -> Closing {
    let mut messages = spelling.attached(terminal);
    let mut ended = false;
    let mut ping = tokio::time::interval_at(Instant::now() + VIEWER_PING, VIEWER_PING);
    loop {
        let begun = Instant::now();
        for message in messages {
            let sending = timeout(VIEWER_PING + VIEWER_PONG_DEADLINE, sink.send(message));
            if !matches!(sending.await, Ok(Ok(()))) {
                return Closing::Unresponsive;
            }
        }
        if ended && !spelling.stays() {
            return Closing::Ended;
        }
        if begun.elapsed() > VIEWER_PATIENCE
            && !ended
            && spelling.catches_up()
            && let Err(closing) = terminal.catch_up().await
        {
            return closing;
        }
        messages = tokio::select! {
            biased;
            Some(reply) = replies.recv() => match reply {
                Reply::Pong => vec![spelling.pong()],
                Reply::Refused(why) => spelling.refused(why).into_iter().collect(),
            },
            _ = ping.tick() => vec![Message::Ping(Bytes::new())],
            shown = terminal.next() => match shown {
                Ok(shown) => {
                    ended = matches!(shown, Shown::Ended(_));
                    spelling.shown(&shown)
                }
                Err(closing) => return closing,
            },
        };
    }
}

async fn hear(
    source: &mut SplitStream<WebSocket>,
    hands: &Hands,
    typing: mpsc::UnboundedSender<Bytes>,
    typed: &Typed,
    replies: mpsc::Sender<Reply>,
    spelling: &impl Spelling,
) -> Parting {
    let mut read_ahead = None;
    loop {
        let asked = match read_ahead.take() {
            Some(asked) => asked,
            // A viewer that says nothing answers a ping at least.
            None => match timeout(VIEWER_PING + VIEWER_PONG_DEADLINE, source.next()).await {
                Err(_) => return Parting::Closed(Closing::Unresponsive),
                Ok(message) => read(message, spelling),
            },
        };
        let done = match asked {
            Err(parting) => return parting,
            Ok(Asked::Nothing) => Ok(()),
            Ok(Asked::Input(bytes)) => {
                let cost = Typed::cost(&bytes);
                let ahead = typed.bytes.fetch_add(cost, Ordering::Relaxed) + cost;
                if ahead > MAX_TYPED_AHEAD_BYTES {
                    return Parting::Closed(Closing::InputOverflow);
                }
                let _ = typing.send(bytes);
                Ok(())
            }
            Ok(Asked::Resize(mut size)) => {
                // While a window is dragged, only the size that it has by now is worth a call.
                while read_ahead.is_none()
                    && let Some(message) = source.next().now_or_never()
                {
                    match read(message, spelling) {
                        Ok(Asked::Resize(newer)) => size = newer,
                        Ok(Asked::Nothing) => {}
                        other => read_ahead = Some(other),
                    }
                }
                hands.resize(size).await
            }
            Ok(Asked::Signal(signal)) => hands.signal(signal).await,
            Ok(Asked::Ping) => {
                let _ = replies.try_send(Reply::Pong);
                Ok(())
            }
        };
        if let Err(error) = done {
            let _ = replies.try_send(Reply::Refused(error.to_string()));
        }
    }
}

/// What a message asks for, or how the connection ends with it.
fn read(
    message: Option<Result<Message, axum::Error>>,
    spelling: &impl Spelling,
) -> Result<Asked, Parting> {
    match message {
        Some(Ok(Message::Close(_))) => Err(Parting::Left),
        None | Some(Err(_)) => Err(Parting::Gone),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(Asked::Nothing),
        Some(Ok(message)) => {
            spelling.heard(message).map_err(|why| Parting::Closed(Closing::Misunderstood(why)))
        }
    }
}

/// What was typed while the program was not reading goes to it together.
async fn write(
    hands: &Hands,
    mut typing: mpsc::UnboundedReceiver<Bytes>,
    typed: &Typed,
) -> Closing {
    let mut closed = false;
    loop {
        let Some(first) = typing.recv().await else { return std::future::pending().await };
        let mut cost = Typed::cost(&first);
        let mut bytes = first;
        while bytes.len() < MAX_TYPED_AT_ONCE_BYTES
            && let Ok(more) = typing.try_recv()
        {
            cost += Typed::cost(&more);
            let mut joined = BytesMut::from(bytes);
            joined.extend_from_slice(&more);
            bytes = joined.freeze();
        }
        // Input of a program that has ended goes nowhere; its ending is on its way out.
        if !closed && !bytes.is_empty() {
            match hands.write(bytes).await {
                Ok(()) => {}
                Err(Closing::InputClosed) => closed = true,
                Err(closing) => return closing,
            }
        }
        typed.bytes.fetch_sub(cost, Ordering::Relaxed);
    }
}

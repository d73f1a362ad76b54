//! Greetings that never come, come too slowly, or say something else.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use sandbank_channel::{ChannelError, RunnerClient};

use crate::fake::{HELLO, full, greeted, scripted};

#[tokio::test(start_paused = true)]
async fn a_runner_that_never_greets_is_given_up() {
    let greeting = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00";
    for (what, bytes) in
        [("nothing", &b""[..]), ("half a frame", &greeting[..5]), ("settings", greeting)]
    {
        let result = RunnerClient::connect(scripted(bytes.to_vec(), false)).await;
        assert!(matches!(result.err(), Some(ChannelError::TimedOut(_))), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_hangs_up_or_speaks_something_else_is_a_broken_channel() {
    for (what, bytes) in [
        ("nothing", &b""[..]),
        ("HTTP/1.1", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
        ("zeroes", &[0; 1000]),
        ("ones", &[0xff; 1000]),
        ("its own echo", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ] {
        let result = RunnerClient::connect(scripted(bytes.to_vec(), true)).await;
        let error = result.err().unwrap();
        assert!(error.is_broken(), "{what}: {error}");
        assert!(error.to_string().len() < 1000, "{what}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_greeting_of_one_byte_a_second_is_given_up() {
    let slow = |_: &str| {
        let bytes = futures_util::stream::unfold(0, |sent| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let byte = Bytes::copy_from_slice(&HELLO.as_bytes()[sent..=sent]);
            Some((Ok(http_body::Frame::data(byte)), sent + 1))
        });
        http::Response::new(BodyExt::boxed(StreamBody::new(SyncStream(Box::pin(bytes)))))
    };
    let begin = tokio::time::Instant::now();
    let result = greeted(slow).await;
    assert!(matches!(result.err(), Some(ChannelError::TimedOut(_))));
    assert!(begin.elapsed() < Duration::from_secs(HELLO.len() as u64), "it was read to its end");
}

/// A body has to be `Sync`, of which nothing is ever asked.
struct SyncStream<S>(S);

impl<S: futures_util::Stream + Unpin> futures_util::Stream for SyncStream<S> {
    type Item = S::Item;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::pin::Pin::new(&mut self.0).poll_next(context)
    }
}

#[tokio::test(start_paused = true)]
async fn greetings_that_make_no_sense_are_violations_and_the_honest_one_is_not() {
    assert!(greeted(|_| full(HELLO)).await.is_ok());
    let other = HELLO.replace("\"protocol\":1", "\"protocol\":4294967295");
    let theirs = greeted(move |_| full(other.clone())).await.err();
    assert!(matches!(theirs, Some(ChannelError::Incompatible { theirs: u32::MAX, .. })));
    let deep = "[".repeat(100_000);
    for hello in ["", "null", "{}", "{\"protocol\":-1}", "\u{feff}{}", "\0", &deep] {
        let hello = hello.to_owned();
        let error = greeted(move |_| full(hello.clone())).await.err().unwrap();
        assert!(matches!(error, ChannelError::Violation(_)), "{error}");
    }
}

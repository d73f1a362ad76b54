//! Answers in good HTTP/2 that lie, contradict themselves, or do not end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, StreamBody};
use sandbank_channel::{ByteRange, ChannelError};
use sandbank_protocol::{CommandId, CommandSpec, Ending, FILE_STAT_HEADER, Frame};

use crate::fake::{Body, full, liar};

fn status(id: &str, state: &str) -> String {
    format!(
        r#"{{"id":"{id}","argv":[],"pty":false,{state},"pid":1,"started_at_ms":0,"stdout_bytes":18446744073709551615,"stderr_bytes":18446744073709551615,"dropped_bytes":0,"last_seq":0,"stdin_offset":0}}"#
    )
}

const ENDED: &str = r#""state":"ended","ending":{"kind":"signaled","signal":2147483647}"#;

fn id(text: &str) -> CommandId {
    text.parse().unwrap()
}

fn spec(name: &str) -> CommandSpec {
    CommandSpec::new(id(name), vec!["true".to_owned()])
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_another_command_is_a_violation() {
    let told = |name: &'static str| {
        liar(move |path| {
            let status = status(name, ENDED);
            match path.split('?').next().unwrap_or(path) {
                "/commands" => full(format!(r#"{{"attached":false,"status":{status}}}"#)),
                _ => full(status),
            }
        })
    };
    let honest = told("c1").await;
    assert_eq!(honest.start(&spec("c1")).await.unwrap().status.id, id("c1"));
    let patience = Duration::from_secs(1);
    let started = honest.start_and_wait(&spec("c1"), patience).await.unwrap();
    assert_eq!(started.status.id, id("c1"));
    assert_eq!(honest.command(&id("c1")).await.unwrap().id, id("c1"));
    let waited = honest.wait(&id("c1")).await.unwrap();
    assert_eq!(waited.ending().and_then(Ending::exit_code), Some(i32::MAX), "no overflow");

    let liar = told("c2").await;
    let violation = |error: Option<ChannelError>| matches!(error, Some(ChannelError::Violation(_)));
    assert!(violation(liar.start(&spec("c1")).await.err()));
    assert!(violation(liar.start_and_wait(&spec("c1"), patience).await.err()));
    assert!(violation(liar.command(&id("c1")).await.err()));
    assert!(violation(liar.wait(&id("c1")).await.err()));
}

/// Bytes without end, and how many of them were taken.
fn endless(taken: &Arc<AtomicU64>) -> Response<Body> {
    const PIECE: Bytes = Bytes::from_static(&[b'['; 64 << 10]);
    let taken = taken.clone();
    let pieces = futures_util::stream::repeat_with(move || {
        taken.fetch_add(PIECE.len() as u64, Ordering::Relaxed);
        Ok(http_body::Frame::data(PIECE))
    });
    Response::new(BodyExt::boxed(StreamBody::new(pieces)))
}

#[tokio::test]
async fn an_answer_without_end_is_cut_at_the_limit() {
    let taken = Arc::new(AtomicU64::new(0));
    let counted = taken.clone();
    let client = liar(move |_| endless(&counted)).await;
    assert!(client.stats().await.is_err());
    assert!(client.commands().await.is_err());
    assert!(client.list(".").await.is_err());
    let taken = taken.load(Ordering::Relaxed);
    assert!(taken < 3 * (24 << 20), "{taken} bytes were taken");
}

#[tokio::test(start_paused = true)]
async fn refusals_may_say_anything() {
    for (status, body) in [
        (400, "{\"code\":\"invalid\",\"message\":\"x\\ny\"}".to_owned()),
        (404, "no JSON".to_owned()),
        (500, "{\"code\":\"unheard_of\",\"message\":\"\"}".to_owned()),
        (599, "[".repeat(100_000)),
        (302, String::new()),
    ] {
        let client = liar(move |_| {
            let mut answer = full(body.clone());
            *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
            answer
        })
        .await;
        assert!(matches!(client.stats().await.err(), Some(ChannelError::Refused(_))), "{status}");
    }
}

fn output(kind: u8, seq: u64, length: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend(seq.to_be_bytes());
    out.extend(0u64.to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend(payload);
    out
}

/// Every frame up to the error or the end.
async fn read(wire: Vec<u8>) -> (Vec<Frame>, Option<ChannelError>) {
    let client = liar(move |_| full(wire.clone())).await;
    let mut stream = client.output(&id("c1"), 0, true).await.unwrap();
    let mut frames = Vec::new();
    loop {
        match stream.next().await {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn frames_that_cannot_be_end_the_output_after_what_was_good() {
    let good = output(1, 1, 2, b"ok");
    let (frames, error) = read(good.clone()).await;
    assert!((frames.len(), error.is_none()) == (1, true));
    for (what, bad) in [
        ("4 GiB", output(1, 2, u32::MAX, b"x")),
        ("one byte too many", output(1, 2, 256 * 1024 + 1, b"x")),
        ("an unknown kind", output(0, 2, 0, b"")),
        ("another", output(255, 2, 0, b"")),
        ("a heartbeat with a body", output(6, 2, 1, b"x")),
        ("a drop without its numbers", output(4, 2, 15, &[0; 15])),
    ] {
        let (frames, error) = read([good.clone(), bad].concat()).await;
        assert_eq!(frames.len(), 1, "{what}");
        assert!(matches!(error, Some(ChannelError::Violation(_))), "{what}: {error:?}");
    }
    let (frames, error) = read([good.clone(), output(1, 2, 10, b"half")].concat()).await;
    assert!(frames.len() == 1 && error.is_some_and(|error| error.is_broken()));
}

#[tokio::test(start_paused = true)]
async fn a_file_without_a_description_is_a_violation() {
    for (what, header) in [
        ("none", None),
        ("no JSON", Some("x")),
        ("another type", Some("[]")),
        ("a negative size", Some(r#"{"kind":"file","size":-1,"mode":0,"modified_ms":0}"#)),
        ("deep", Some("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[")),
    ] {
        let client = liar(move |_| {
            let mut answer = full("content");
            if let Some(value) = header {
                answer.headers_mut().insert(FILE_STAT_HEADER, value.parse().unwrap());
            }
            answer
        })
        .await;
        let error = client.read_file("f", ByteRange::default()).await.err();
        assert!(matches!(error, Some(ChannelError::Violation(_))), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_runner_says_cannot_forge_a_line_of_the_log() {
    let forged = "{\"id\":\"c1\",\"state\":\"x\\nWARN forged\\u001b[31m\"}";
    let client = liar(move |_| full(forged)).await;
    let error = client.command(&id("c1")).await.unwrap_err().to_string();
    assert!(!error.chars().any(char::is_control), "{error:?}");
}

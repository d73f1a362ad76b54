//! What a workspace service writes down. A test of its own, since a process has one log.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ground;
mod plain_http;

use std::io::Write;
use std::sync::{Arc, Mutex};

use ground::SECRET;
use plain_http::{Wire, served, signed, signer};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_has_request_ids_and_no_secret_no_signature_and_no_query() {
    let log = Log::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    let subscriber = lines.with_writer(move || writer.clone()).with_ansi(false).finish();
    let _default = tracing::subscriber::set_default(subscriber);
    let served = served().await;
    let mut right = signed(&signer(), "PUT", "/files?path=private-name", b"private-body");
    right.headers.push(("x-request-id".into(), "trace-me-1".into()));
    let mut wrong = signed(&signer(), "GET", "/hello", b"");
    wrong.path = "/stats".into();
    wrong.headers.push(("x-request-id".into(), "trace-me-2".into()));
    let answer = served.send(&right).await;
    assert!(
        answer.status == 200 && answer.head.contains("x-request-id: trace-me-1"),
        "{}",
        answer.head
    );
    assert_eq!(served.send(&wrong).await.status, 403);
    served.end().await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("trace-me-1") && text.contains("trace-me-2"), "{text}");
    let signature = |wire: &Wire| {
        let header = wire.headers.iter().find(|(name, _)| name == "x-workspace-internal-auth");
        header.unwrap().1.rsplit(':').next().unwrap().to_owned()
    };
    for private in [SECRET, &signature(&right), &signature(&wrong), "private-name", "private-body"]
    {
        let ours: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("sandbank") && line.contains(private))
            .collect();
        assert!(ours.is_empty(), "{ours:#?}");
    }
}

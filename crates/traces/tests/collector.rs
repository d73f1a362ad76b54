//! A collector that is away, slow or talks nonsense: nobody notices, and nothing grows.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sandbank_channel::trace::SPANS;
use sandbank_traces::{Endpoint, Sampling, TraceError, TraceSettings, Traces};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tracing_subscriber::layer::SubscriberExt;

/// Long enough for every bound of the product, far from for ever.
const PATIENCE: Duration = Duration::from_secs(60);

const SPANS_MADE: usize = 20_000;

/// Answers every request with these bytes, or never. Counts bytes that came.
async fn collector(answer: Option<&'static [u8]>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = Arc::new(AtomicUsize::new(0));
    let counted = received.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut buffer = vec![0; 64 << 10];
                while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                    counted.fetch_add(length, Ordering::Relaxed);
                    if let Some(answer) = answer
                        && stream.write_all(answer).await.is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    (url, received)
}

fn settings(endpoint: Endpoint) -> TraceSettings {
    let sampling = Sampling::parse("always_on", None).unwrap();
    TraceSettings { endpoint, headers: None, service_name: "test".to_owned(), sampling }
}

/// Makes spans as fast as it can and ends.
async fn busy(endpoint: Endpoint, made: usize) {
    let traces = Traces::open(&settings(endpoint)).unwrap();
    let subscriber = tracing_subscriber::registry().with(traces.layer());
    let guard = tracing::subscriber::set_default(subscriber);
    for number in 0..made {
        drop(tracing::info_span!(target: SPANS, "work", number));
        if number % 1_000 == 0 {
            tokio::task::yield_now().await;
        }
    }
    drop(guard);
    traces.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_slow_or_talks_nonsense_holds_up_nobody() {
    let nonsense = b"no HTTP at all";
    let failing = b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n";
    let endless = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nx";
    for (what, answer) in [
        ("slow", None),
        ("nonsense", Some(&nonsense[..])),
        ("failing", Some(&failing[..])),
        ("endless", Some(&endless[..])),
    ] {
        let (url, _) = collector(answer).await;
        let ended =
            tokio::time::timeout(PATIENCE, busy(Endpoint::Collector(url), SPANS_MADE)).await;
        assert!(ended.is_ok(), "a collector that is {what} held up the work");
    }
    let away = "http://127.0.0.1:1".to_owned();
    assert!(
        tokio::time::timeout(PATIENCE, busy(Endpoint::Collector(away), SPANS_MADE)).await.is_ok()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_that_are_too_many_are_dropped_and_few_arrive() {
    let right = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let (url, few) = collector(Some(right)).await;
    tokio::time::timeout(PATIENCE, busy(Endpoint::Collector(url), 100)).await.unwrap();
    let one = few.load(Ordering::Relaxed) / 100;
    assert!(one > 20, "100 spans arrived as {} bytes", one * 100);
    let (url, stuck) = collector(None).await;
    tokio::time::timeout(PATIENCE, busy(Endpoint::Collector(url), SPANS_MADE)).await.unwrap();
    let most = stuck.load(Ordering::Relaxed);
    assert!(most < one * SPANS_MADE / 2, "{most} bytes were sent to who takes none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_go_below_a_collector_or_exactly_where_they_are_told() {
    for (path, expected) in [("/below", "POST /below/v1/traces "), ("/exactly", "POST /exactly ")] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}{path}", listener.local_addr().unwrap());
        let endpoint = match path {
            "/below" => Endpoint::Collector(url),
            _ => Endpoint::Traces(url),
        };
        let heard = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut first = vec![0; expected.len()];
            stream.read_exact(&mut first).await.unwrap();
            String::from_utf8(first).unwrap()
        };
        let (heard, ()) = tokio::join!(heard, busy(endpoint, 10));
        assert_eq!(heard, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_collector_over_https_needs_the_systems_certificates() {
    let (file, nowhere) = ("SSL_CERT_FILE", "/no/such/certificates");
    if std::env::var_os(file).is_none_or(|path| path != nowhere) {
        // Where they are looked for is said by the environment, which is one for all tests here.
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "only_a_collector_over_https_needs_the_systems_certificates"]);
        let output = again.env(file, nowhere).env_remove("SSL_CERT_DIR").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let (url, received) = collector(Some(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")).await;
    let sent = busy(Endpoint::Collector(url.clone()), 10);
    tokio::time::timeout(PATIENCE, sent).await.unwrap();
    assert_ne!(received.load(Ordering::Relaxed), 0);
    for scheme in ["https", "HTTPS"] {
        let url = url.replace("http", scheme);
        let refused = Traces::open(&settings(Endpoint::Collector(url))).err();
        assert!(matches!(refused, Some(TraceError::NoCertificates(_))), "{scheme}: {refused:?}");
    }
}

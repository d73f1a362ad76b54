//! Names that are no text, and requests that no well-meaning client sends, on the bare wire.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod live_runner;

use std::fs;
use std::os::unix::ffi::OsStrExt;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use live_runner::LiveRunner;
use sandbank_protocol::DirListing;
use tokio::net::UnixStream;

struct Wire(SendRequest<Full<Bytes>>);

impl Wire {
    async fn connect(runner: &LiveRunner) -> Self {
        let stream = UnixStream::connect(runner.socket()).await.unwrap();
        let (sender, connection) =
            handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    async fn call(&mut self, method: Method, target: &str, body: &[u8]) -> (u16, Bytes) {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://runner{target}"))
            .body(Full::new(Bytes::copy_from_slice(body)))
            .unwrap();
        let response = self.0.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        (status, response.into_body().collect().await.unwrap().to_bytes())
    }
}

fn percent_encoded(hex: &str) -> String {
    hex.as_bytes().chunks(2).map(|pair| format!("%{}", str::from_utf8(pair).unwrap())).collect()
}

#[tokio::test]
async fn any_name_makes_the_round_through_write_list_read_and_delete() {
    let runner = LiveRunner::start();
    let mut wire = Wire::connect(&runner).await;
    let long = "78".repeat(255);
    let names = ["6e65770a6c696e65", "2d7266", "fffe2e747874", "2e2e2e", "20", &long];
    for hex in names {
        let target = format!("/files?path={}", percent_encoded(hex));
        assert_eq!(wire.call(Method::PUT, &target, hex.as_bytes()).await.0, 200, "{hex}");
    }
    let (status, listing) = wire.call(Method::GET, "/files/list?path=.", b"").await;
    let listing: DirListing = serde_json::from_slice(&listing).unwrap();
    assert_eq!((status, listing.entries.len()), (200, names.len()));
    for entry in listing.entries {
        let plain = || entry.name.bytes().map(|byte| format!("{byte:02x}")).collect();
        let hex: String = entry.name_hex.clone().unwrap_or_else(plain);
        let target = format!("/files?path={}", percent_encoded(&hex));
        assert_eq!(wire.call(Method::GET, &target, b"").await, (200, hex.into()));
        assert_eq!(wire.call(Method::DELETE, &target, b"").await.0, 204);
    }
    assert_eq!(runner.names(""), [] as [&str; 0]);
}

#[tokio::test]
async fn requests_that_are_not_understood_are_refused_and_change_nothing() {
    let runner = LiveRunner::start();
    let mut wire = Wire::connect(&runner).await;
    fs::write(runner.inside("f"), b"old").unwrap();
    let odd = runner.inside("").join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::write(&odd, b"").unwrap();
    for (method, target, status) in [
        (Method::PUT, "/files", 400),
        (Method::PUT, "/files?path=", 400),
        (Method::PUT, "/files?path=f&path=g", 400),
        (Method::PUT, "/files?path=f&mode=rw", 400),
        (Method::PUT, "/files?path=f&mode=99999", 400),
        (Method::PUT, "/files?path=f&offset=-1", 400),
        (Method::PUT, "/files?path=f&offset=0&mode=420", 400),
        (Method::PUT, "/files?path=f%00", 400),
        (Method::PUT, "/files?path=%2e%2e%2ff", 400),
        (Method::PUT, "/files?path=%", 400),
        (Method::DELETE, "/files?path=f&recursive=yes", 400),
        (Method::DELETE, "/files?path=f&force=true", 400),
        (Method::POST, "/files?path=f", 404),
        (Method::POST, "/files/../files/mkdir", 404),
        (Method::POST, "/files/mkdir", 400),
        (Method::POST, "/files/move", 400),
    ] {
        let answer = wire.call(method.clone(), target, b"{}").await;
        assert_eq!(answer.0, status, "{method} {target}: {:?}", answer.1);
    }
    assert_eq!(fs::read(runner.inside("f")).unwrap(), b"old");
    assert!(odd.exists());
}

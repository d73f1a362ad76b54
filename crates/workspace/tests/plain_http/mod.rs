//! Requests to a workspace service in the plainest form, signed or not.

#![allow(dead_code, reason = "each test file uses a part")]

use std::net::SocketAddr;
use std::sync::Arc;

use http::Request;
use sandbank_workspace::{Keys, LocalPlace, Signer};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ground::{Ground, SECRET, Serving, keys};

/// What a request looks like on the wire.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn detail(&self) -> &str {
        self.body["detail"].as_str().unwrap_or_default()
    }
}

pub(crate) fn signed(signer: &Signer, method: &str, path: &str, body: &[u8]) -> Wire {
    let request = Request::builder().method(method).uri(path).body(()).unwrap();
    let mut head = request.into_parts().0;
    signer.sign(&mut head, path, body);
    let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
    Wire {
        method: method.into(),
        path: path.into(),
        headers: headers.collect(),
        body: body.to_vec(),
    }
}

pub(crate) fn unsigned(method: &str, path: &str) -> Wire {
    Wire { method: method.into(), path: path.into(), headers: vec![], body: vec![] }
}

pub(crate) async fn send(address: SocketAddr, wire: &Wire) -> Answer {
    let mut text =
        format!("{} {} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n", wire.method, wire.path);
    for (name, value) in &wire.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("content-length: {}\r\n\r\n", wire.body.len());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    // A refused body may not be taken to its end.
    let _ = stream.write_all(&wire.body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head: head.to_lowercase(),
        body: serde_json::from_str(body).unwrap_or_default(),
    }
}

pub(crate) fn signer() -> Signer {
    Signer::new(Keys::parse(SECRET).unwrap())
}

pub(crate) struct Served {
    pub(crate) ground: Ground,
    pub(crate) place: Arc<LocalPlace>,
    pub(crate) serving: Serving,
}

pub(crate) async fn served() -> Served {
    let ground = Ground::new();
    let place = Arc::new(ground.open());
    let serving = Serving::start(place.clone(), keys(SECRET)).await;
    Served { ground, place, serving }
}

impl Served {
    pub(crate) async fn send(&self, wire: &Wire) -> Answer {
        send(self.serving.address, wire).await
    }

    pub(crate) async fn end(self) {
        self.serving.stop().await;
        self.place.stop().await.unwrap();
    }
}

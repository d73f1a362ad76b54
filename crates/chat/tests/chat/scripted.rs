//! A model's server: each request is answered with the next of some canned answers.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Scripted {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

/// One answer, as bytes; after the last one, it is given again.
#[derive(Clone)]
pub(crate) enum Canned {
    /// With status 200, and to the end of the connection.
    Stream(String),
    Status(u16, String),
    /// The same piece until nobody reads any more.
    Endless(&'static str),
}

impl Scripted {
    pub(crate) async fn start(answers: Vec<Canned>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        tokio::spawn(async move {
            for turn in 0.. {
                let (socket, _) = listener.accept().await.unwrap();
                let answer = answers[turn.min(answers.len() - 1)].clone();
                let seen = seen.clone();
                tokio::spawn(async move { serve(socket, answer, &seen).await });
            }
        });
        Self { url, requests }
    }

    /// Heads and bodies of what was asked.
    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.requests().into_iter().map(|(_, body)| body).collect()
    }
}

async fn serve(mut socket: TcpStream, answer: Canned, seen: &Mutex<Vec<(String, Value)>>) {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        let mut piece = [0; 8192];
        let read = socket.read(&mut piece).await.unwrap();
        assert!(read > 0, "the request broke off");
        bytes.extend_from_slice(&piece[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        if bytes.len() >= end + 4 + length {
            break (head, serde_json::from_slice(&bytes[end + 4..]).unwrap());
        }
    };
    seen.lock().unwrap().push((head, body));
    let events = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    match answer {
        Canned::Stream(text) => {
            // In odd pieces: nothing may depend on how it arrives.
            socket.write_all(events.as_bytes()).await.unwrap();
            for piece in text.as_bytes().chunks(11) {
                if socket.write_all(piece).await.is_err() {
                    return;
                }
            }
        }
        Canned::Status(status, body) => {
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nretry-after: 0\r\n\
                 connection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            socket.write_all(head.as_bytes()).await.unwrap();
        }
        Canned::Endless(piece) => {
            socket.write_all(events.as_bytes()).await.unwrap();
            let many = piece.repeat(1 + 16_384 / piece.len());
            while socket.write_all(many.as_bytes()).await.is_ok() {}
        }
    }
    let _ = socket.shutdown().await;
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// A completion of these deltas.
pub(crate) fn completion(deltas: &[Value], reason: &str) -> Canned {
    let chunk = |delta: &Value, reason: Value| {
        data(&json!({ "id": "c", "object": "chat.completion.chunk", "choices": [
            { "index": 0, "delta": delta, "finish_reason": reason } ] }))
    };
    let mut text: String = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    text.push_str(&chunk(&json!({}), json!(reason)));
    Canned::Stream(text + "data: [DONE]\n\n")
}

pub(crate) fn says(words: &str) -> Canned {
    completion(
        &[json!({ "role": "assistant", "content": "" }), json!({ "content": words })],
        "stop",
    )
}

/// A completion with calls, whose arguments come in two pieces each, all first pieces first.
pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Canned {
    let texts: Vec<String> = calls.iter().map(|(_, _, input)| input.to_string()).collect();
    let mut deltas = Vec::new();
    for (index, (id, name, _)) in calls.iter().enumerate() {
        let (first, _) = texts[index].split_at(texts[index].len() / 2);
        let function = json!({ "name": name, "arguments": first });
        let call = json!({ "index": index, "id": id, "type": "function", "function": function });
        deltas.push(json!({ "tool_calls": [call] }));
    }
    for (index, text) in texts.iter().enumerate() {
        let (_, rest) = text.split_at(text.len() / 2);
        let call = json!({ "index": index, "function": { "arguments": rest } });
        deltas.push(json!({ "tool_calls": [call] }));
    }
    completion(&deltas, "tool_calls")
}

/// Anthropic's events, each under its own name.
pub(crate) fn message(events: &[Value]) -> Canned {
    let one =
        |event: &Value| format!("event: {}\n{}", event["type"].as_str().unwrap(), data(event));
    Canned::Stream(events.iter().map(one).collect())
}

//! What happens to files, as server-sent events and over a WebSocket.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::world::{World, code, refused};

/// Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// An open stream of events.
struct Events {
    response: reqwest::Response,
    text: String,
    seen: Vec<Value>,
}

impl Events {
    async fn open(world: &World, id: &str, query: &str, last: Option<u64>) -> Self {
        let mut request =
            world.api.request("GET", &format!("/v1/sandboxes/{id}/files:watch{query}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new(), seen: Vec::new() }
    }

    /// Up to the event about `path`, or of that kind.
    async fn until(&mut self, wanted: &str) -> Value {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let line = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let data = line("data: ").map(|data| serde_json::from_str::<Value>(data).unwrap());
                if let Some(data) = &data {
                    assert_eq!(line("id: "), Some(&*data["seq"].to_string()), "{event}");
                    assert_eq!(line("event: "), data["kind"].as_str(), "{event}");
                }
                self.text = rest.to_owned();
                let Some(data) = data else { continue };
                self.seen.push(data.clone());
                if data["path"] == wanted || data["kind"] == wanted {
                    return data;
                }
            }
            let chunk = timeout(PATIENCE, self.response.chunk()).await.expect("nothing is told");
            let chunk = chunk.unwrap().expect("the stream goes on");
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

async fn bash(world: &World, id: &str, script: &str) {
    assert_eq!(world.api.run(id, script).await.unwrap().0, 0, "{script}");
}

#[tokio::test]
async fn changes_are_told_and_go_on_by_number_also_when_the_channel_breaks() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let mut events = Events::open(&world, &id, "", None).await;
    events.until("ready").await;
    bash(&world, &id, "mkdir -p a/b && echo x > a/b/file").await;
    events.until("a/b/file").await;
    bash(&world, &id, "mv a c").await;
    let moved = events.until("c").await;
    assert_eq!((&moved["kind"], &moved["from"]), (&"moved".into(), &"a".into()));
    world.engine.cut_channels();
    bash(&world, &id, "echo y > c/b/file").await;
    let last = events.until("c/b/file").await;
    assert_eq!(last["kind"], "modified");
    let seqs: Vec<u64> = events.seen.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "without a gap: {:?}", events.seen);
    assert_eq!(events.seen.iter().filter(|event| event["kind"] == "ready").count(), 1);
    drop(events);

    bash(&world, &id, "echo z > unseen").await;
    let mut again = Events::open(&world, &id, "", last["seq"].as_u64()).await;
    let unseen = again.until("unseen").await;
    assert!(unseen["seq"].as_u64() > last["seq"].as_u64());
    let mut unknown = Events::open(&world, &id, "?after=5", None).await;
    assert!(unknown.until("reset").await["reason"].as_str().unwrap().contains("list again"));
    world.api.stop(&id).await.unwrap();
    again.until("end").await;
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused() {
    let world = World::start().await;
    let id = world.sandbox().await;
    bash(&world, &id, "echo x > file").await;
    let get =
        |query: &str| world.api.request("GET", &format!("/v1/sandboxes/{id}/files:watch?{query}"));
    for (query, status, reason) in [
        ("path=../x", 400, "invalid_path"),
        ("path=nothing", 404, "not_found"),
        ("path=file", 409, "wrong_kind"),
        ("exclude=a//b", 400, "invalid"),
        ("after=x", 400, "bad_query"),
    ] {
        assert_eq!(refused(get(query)).await, code(status, reason), "{query}");
    }
    let odd = get("").header("upgrade", "nothing").header("connection", "upgrade");
    assert_eq!(refused(odd).await, code(400, "bad_upgrade"));
    let open = world.open("GET", &format!("/v1/sandboxes/{id}/files:watch"));
    assert_eq!(open.send().await.unwrap().status(), 401);
}

type Socket = WebSocketStream<tokio::net::TcpStream>;

/// `room` is what the client takes without reading.
async fn connect(world: &World, id: &str, room: Option<u32>) -> Socket {
    let url = format!("ws://127.0.0.1:{}/v1/sandboxes/{id}/files:watch", world.address.port());
    let mut request = url.into_client_request().unwrap();
    let token = format!("Bearer {}", world.token).parse().unwrap();
    request.headers_mut().insert("authorization", token);
    let socket = TcpSocket::new_v4().unwrap();
    if let Some(room) = room {
        socket.set_recv_buffer_size(room).unwrap();
    }
    let address = ([127, 0, 0, 1], world.address.port()).into();
    let stream = socket.connect(address).await.unwrap();
    client_async_with_config(request, stream, None).await.unwrap().0
}

async fn message(socket: &mut Socket) -> Message {
    loop {
        let next = timeout(PATIENCE, socket.next()).await.expect("nothing is told");
        match next.expect("the socket is open").unwrap() {
            Message::Ping(_) => {}
            message => return message,
        }
    }
}

async fn event(socket: &mut Socket) -> Value {
    serde_json::from_str(message(socket).await.to_text().unwrap()).unwrap()
}

fn close_code(message: &Message) -> Option<u16> {
    match message {
        Message::Close(Some(frame)) => Some(frame.code.into()),
        _ => None,
    }
}

#[tokio::test]
async fn a_websocket_is_told_the_same_and_closed_with_a_reason() {
    let world = World::start().await;
    let (id, other) = (world.sandbox().await, world.api.create("other").await.unwrap());
    let mut socket = connect(&world, &id, None).await;
    assert_eq!(event(&mut socket).await["kind"], "ready");
    bash(&world, &id, "echo x > file").await;
    let created = event(&mut socket).await;
    assert_eq!((&created["kind"], &created["path"]), (&"created".into(), &"file".into()));
    world.api.stop(&id).await.unwrap();
    while event(&mut socket).await["kind"] != "end" {}
    assert_eq!(close_code(&message(&mut socket).await), Some(1000));

    let mut socket = connect(&world, &other, None).await;
    assert_eq!(event(&mut socket).await["kind"], "ready");
    world.shutdown.drain();
    assert_eq!(close_code(&message(&mut socket).await), Some(1001));
}

#[tokio::test]
async fn a_websocket_that_takes_nothing_is_closed_and_can_come_back() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let mut socket = connect(&world, &id, Some(4 << 10)).await;
    let ready = event(&mut socket).await;
    let name = "x".repeat(220);
    let script = format!("mkdir d; for i in $(seq 24000); do : > d/{name}$i; done");
    bash(&world, &id, &script).await;
    let mut witness = Events::open(&world, &id, "", None).await;
    witness.until("ready").await;
    // Until the server has given up: then the end of what it sent is the reason.
    let closed = timeout(PATIENCE, async {
        tokio::time::sleep(SOCKET_PATIENCE).await;
        let mut told = 0;
        while let Some(Ok(message)) = socket.next().await {
            if let Some(code) = close_code(&message) {
                return (told, Some(code));
            }
            told += 1;
        }
        (told, None)
    });
    let (told, code) = closed.await.expect("it is never closed");
    assert!(matches!(code, Some(1013) | None), "{code:?}");
    assert!(told < 24_000, "it was told everything");
    let after = ready["seq"].as_u64().unwrap();
    let mut again = Events::open(&world, &id, &format!("?after={after}"), None).await;
    again.until("reset").await;
    bash(&world, &id, "echo x > still-told").await;
    again.until("still-told").await;
    witness.until("still-told").await;
}

/// As long as the server waits for somebody who takes nothing, and a little.
const SOCKET_PATIENCE: Duration = Duration::from_secs(12);

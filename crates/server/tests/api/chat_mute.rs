//! Clients of a chat that take nothing, or do not say that they are there.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use sandbank_test_support::wait_for;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::world::World;

/// A ping, the time for its answer, and a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

const TOLD: (u16, &str) = (4007, "nothing came back in time");

/// Nothing is read, and no ping answered, but by who asks for the next message.
type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn world(agent: &str) -> World {
    World::with(&[("workspace.mode", "sandbox"), ("workspace.chat_command", agent)]).await
}

async fn open(world: &World) -> Socket {
    let url = format!("ws://127.0.0.1:{}/ws/claude-stream", world.address.port());
    let mut request = url.into_client_request().unwrap();
    let token = format!("Bearer {}", world.token);
    request.headers_mut().insert("authorization", token.parse().unwrap());
    let mut socket = connect_async(request).await.unwrap().0;
    let connected = socket.next().await.unwrap().unwrap();
    assert!(connected.to_text().unwrap().contains("connected"), "{connected}");
    socket
}

/// Until one client was given up.
async fn is_let_go(world: &World) {
    let line = r#"sandbank_workspace_disconnects_total{kind="chat"} 1"#;
    let is_counted = || async {
        let metrics = world.api.request("GET", "/metrics").send().await.unwrap();
        metrics.text().await.unwrap().lines().any(|seen| seen == line)
    };
    wait_for("a mute client is let go", PATIENCE, is_counted).await.unwrap();
}

/// Reads what it left, and with which code it was closed.
async fn closed(mut socket: Socket) -> (u16, String) {
    let reading = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(Some(frame)))) => {
                    return (frame.code.into(), frame.reason.to_string());
                }
                Some(Ok(_)) => {}
                other => panic!("closed without a code: {other:?}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("it is closed in time")
}

async fn clients(world: &World) -> Vec<u64> {
    let list = world.api.call("GET", "/api/sessions", None).await.unwrap();
    let sessions = list["sessions"].as_array().unwrap().iter();
    let mut clients: Vec<u64> =
        sessions.map(|session| session["clients"].as_u64().unwrap()).collect();
    clients.sort_unstable();
    clients
}

async fn next_text(socket: &mut Socket) -> Value {
    loop {
        if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

#[tokio::test]
async fn who_answers_no_heartbeat_is_closed_with_4007_and_who_does_stays() {
    let world = world("bash,-c,cat").await;
    let deaf = open(&world).await;
    let mut attentive = open(&world).await;
    let listening = async {
        loop {
            match attentive.next().await {
                Some(Ok(Message::Ping(_))) => {}
                other => panic!("nothing is said to it: {other:?}"),
            }
        }
    };
    tokio::select! {
        () = is_let_go(&world) => {}
        () = listening => {}
    }
    let (code, reason) = closed(deaf).await;
    assert_eq!((code, reason.as_str()), TOLD);
    attentive.send(Message::text(json!({ "type": "ping" }).to_string())).await.unwrap();
    assert_eq!(next_text(&mut attentive).await, json!({ "type": "pong" }));
    let is_free = || async { clients(&world).await == [0, 1] };
    wait_for("its place is free", PATIENCE, is_free).await.unwrap();
}

#[tokio::test]
async fn who_takes_nothing_of_a_flood_is_closed_with_4007_and_its_place_is_free() {
    let world = world(r#"bash,-c,read -r _; exec yes '{"type":"assistant"}'"#).await;
    let mut slow = open(&world).await;
    let begin = json!({ "type": "user", "message": "go" });
    slow.send(Message::text(begin.to_string())).await.unwrap();
    is_let_go(&world).await;
    let (code, reason) = closed(slow).await;
    assert_eq!((code, reason.as_str()), TOLD);
    let is_free = || async { clients(&world).await == [0] };
    wait_for("its place is free", PATIENCE, is_free).await.unwrap();
}

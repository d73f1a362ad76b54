//! What was opened with a token ends when the token is revoked, and nothing else does.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::world::World;

type Socket = Box<WebSocketStream<MaybeTlsStream<TcpStream>>>;

const PATIENCE: Duration = Duration::from_secs(20);

async fn token(world: &World, name: &str) -> String {
    let body = json!({ "name": name, "scope": "sandbox" });
    let made = world.api.call("POST", "/v1/tokens", Some(body)).await.unwrap();
    made["token"].as_str().unwrap().to_owned()
}

/// On the heap: a test's thread has little stack for many of them.
fn open<'a>(world: &'a World, path: &'a str, token: &'a str) -> LocalBoxFuture<'a, Socket> {
    Box::pin(async move {
        let url = format!("ws://127.0.0.1:{}{path}", world.address.port());
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        Box::new(connect_async(request).await.unwrap().0)
    })
}

/// Until it is closed, and with which code and words.
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

/// It answers still.
async fn pongs(socket: &mut Socket) -> bool {
    socket.send(Message::text(json!({ "type": "ping" }).to_string())).await.unwrap();
    let answered = async {
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Text(text) = message
                && serde_json::from_str::<Value>(&text).unwrap()["type"] == "pong"
            {
                return true;
            }
        }
        false
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("an answer in time")
}

#[tokio::test]
async fn revoking_a_token_closes_what_is_open_with_it_and_nothing_else() {
    let settings = [("workspace.mode", "sandbox"), ("workspace.chat_command", "bash,-c,cat")];
    let world = World::with(&settings).await;
    let (guest, other) = (token(&world, "guest").await, token(&world, "other").await);
    let sandbox = world.sandbox().await;
    let body = json!({ "argv": ["cat"], "pty": { "rows": 24, "cols": 80 } });
    let command = world.api.start(&sandbox, body).await.unwrap();
    let attach = format!("/v1/sandboxes/{sandbox}/commands/{command}/attach");
    let watch = format!("/v1/sandboxes/{sandbox}/files:watch?path=.");
    let logs = format!("/v1/sandboxes/{sandbox}/commands/{command}/logs");

    let sockets = [
        (open(&world, "/ws/pty", &guest).await, 4008),
        (open(&world, "/ws/claude-stream", &guest).await, 4008),
        (open(&world, &attach, &guest).await, 4401),
        (open(&world, &watch, &guest).await, 4401),
    ];
    let stream = async |path: &str, token: &str| {
        let request = world.open("GET", path).bearer_auth(token).send().await.unwrap();
        assert_eq!(request.status().as_u16(), 200, "{path}");
        request
    };
    let streams = [stream("/v1/events", &guest).await, stream(&logs, &guest).await];
    let mut kept = [
        open(&world, "/ws/pty", &other).await,
        open(&world, "/ws/claude-stream", &other).await,
        open(&world, &attach, &other).await,
    ];
    let mut kept_stream = stream("/v1/events", &other).await.bytes_stream();

    world.api.call("DELETE", "/v1/tokens/guest", None).await.unwrap();
    for (socket, code) in sockets {
        assert_eq!(closed(socket).await, (code, "the token was revoked".to_owned()));
    }
    for stream in streams {
        let url = stream.url().to_string();
        let read = tokio::time::timeout(PATIENCE, stream.bytes()).await;
        assert!(read.expect("it ends in time").is_err(), "{url} was cut and looks whole");
    }
    for socket in &mut kept {
        assert!(pongs(socket).await, "what another token opened goes on");
    }
    world.api.create("another").await.unwrap();
    let event = tokio::time::timeout(PATIENCE, kept_stream.next()).await;
    assert!(event.expect("an event in time").expect("the stream goes on").is_ok());
}

#[tokio::test]
async fn who_revokes_their_own_token_is_told_so() {
    let world = World::start().await;
    let body = json!({ "name": "own", "scope": "admin" });
    let made = world.api.call("POST", "/v1/tokens", Some(body)).await.unwrap();
    let own = made["token"].as_str().unwrap();
    let revoke = || world.open("DELETE", "/v1/tokens/own").bearer_auth(own);
    let answer = revoke().send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.bytes().await.is_ok()), (200, true));
    assert_eq!(revoke().send().await.unwrap().status().as_u16(), 401);
}

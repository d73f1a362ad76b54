//! `/ws/claude-stream`, frame by frame, with a program that speaks as the agent does.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use sandbank_test_support::wait_for;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(60);

/// Says its arguments first, then each line that it is given; `die` ends it.
const AGENT: &str = r#"
printf '{"type":"system","subtype":"init","args":"%s"}\n' "$*"
trap 'echo "{\"type\":\"interrupted\"}"' INT
while true; do
    if read -r line; then
        case $line in
            *die*) echo last words >&2; exit 7 ;;
            *plain*) echo no json ;;
            *later*)
                touch asked
                until [ -e go ]; do sleep 0.05; done
                echo '{"type":"assistant","late":true}'
                touch spoken ;;
            *) printf '{"type":"assistant","heard":%s}\n' "$line" ;;
        esac
    elif [ $? -le 128 ]; then
        exit 0
    fi
done
"#;

struct Chat(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Chat {
    async fn open(world: &World, query: &str) -> Self {
        let url = format!("ws://127.0.0.1:{}/ws/claude-stream?{query}", world.address.port());
        let mut request = url.into_client_request().unwrap();
        let token = format!("Bearer {}", world.token);
        request.headers_mut().insert("authorization", token.parse().unwrap());
        Self(connect_async(request).await.unwrap().0)
    }

    async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next frame that is not a heartbeat; the close code when it is closed.
    async fn next(&mut self) -> Result<Value, u16> {
        loop {
            let message = tokio::time::timeout(Duration::from_secs(20), self.0.next());
            match message.await.expect("an answer in time") {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(Some(frame)))) => return Err(frame.code.into()),
                Some(Ok(Message::Close(None)) | Err(_)) | None => return Err(1006),
                Some(Ok(_)) => {}
            }
        }
    }

    /// Skips to the first frame with this subtype or type.
    async fn until(&mut self, word: &str) -> Value {
        loop {
            let frame = self.next().await.unwrap();
            if frame["subtype"] == word || frame["type"] == word {
                return frame;
            }
        }
    }
}

async fn world() -> World {
    let world =
        World::with(&[("workspace.mode", "sandbox"), ("workspace.chat_command", "bash,agent.sh")])
            .await;
    let write = world.api.request("PUT", "/api/file?path=agent.sh");
    write.json(&json!({ "content": AGENT })).send().await.unwrap().error_for_status().unwrap();
    world
}

fn user(text: &str) -> Value {
    json!({ "type": "user", "message": text })
}

#[tokio::test]
async fn a_chat_is_begun_spoken_to_and_ends_with_its_program() {
    let world = world().await;
    let id = "11111111-1111-4111-8111-111111111111";
    let mut chat = Chat::open(&world, &format!("session_id={id}&model=opus&max_turns=3")).await;
    let connected = chat.next().await.unwrap();
    assert_eq!(
        connected,
        json!({ "type": "system", "subtype": "connected", "session_id": id, "resumed": false,
            "settings": { "model": "opus", "max_thinking_tokens": null } })
    );
    let init = chat.next().await.unwrap();
    let args = init["args"].as_str().unwrap();
    assert!(args.contains("--model opus") && args.contains("--max-turns 3"), "{args}");
    assert!(args.contains(&format!("--session-id {id}")), "{args}");
    chat.say(json!({ "type": "control", "subtype": "initialize", "capabilities": {} })).await;
    assert_eq!(chat.next().await.unwrap()["subtype"], "echo");
    chat.say(json!({ "type": "user", "message": "hi", "context_files": ["a.txt"] })).await;
    let heard = chat.next().await.unwrap()["heard"]["message"]["content"].clone();
    assert_eq!(
        heard,
        json!([{ "type": "text", "text": "@a.txt" }, { "type": "text", "text": "hi" }])
    );
    chat.say(user("plain")).await;
    assert_eq!(chat.next().await.unwrap(), json!({ "type": "raw", "data": "no json" }));
    let answer = json!({ "type": "control_response", "request_id": "r", "decision": "deny", "message": "no" });
    chat.say(answer).await;
    let heard = chat.next().await.unwrap()["heard"].clone();
    assert_eq!(heard["response"]["response"], json!({ "behavior": "deny", "message": "no" }));
    chat.say(json!({ "type": "ping" })).await;
    assert_eq!(chat.next().await.unwrap(), json!({ "type": "pong" }));
    chat.say(json!({ "type": "interrupt" })).await;
    assert_eq!(chat.until("interrupted").await["session_id"], id);
    chat.say(user("die")).await;
    let stderr = chat.until("stderr").await;
    assert_eq!(stderr["message"], "last words");
    assert_eq!(
        chat.next().await.unwrap(),
        json!({ "type": "result", "subtype": "exit", "exit_code": 7 })
    );
    assert_eq!(chat.next().await, Err(1000));
}

#[tokio::test]
async fn whoever_comes_back_hears_what_was_said_meanwhile_and_others_hear_it_too() {
    let world = world().await;
    let id = "22222222-2222-4222-8222-222222222222";
    let query = format!("session_id={id}");
    let mut first = Chat::open(&world, &query).await;
    first.until("init").await;
    let mut second = Chat::open(&world, &format!("{query}&resume=1")).await;
    assert_eq!(second.next().await.unwrap()["resumed"], true);
    assert_eq!(second.next().await.unwrap()["subtype"], "init");
    second.say(user("one")).await;
    for chat in [&mut first, &mut second] {
        assert_eq!(chat.next().await.unwrap()["heard"]["message"]["content"][0]["text"], "one");
    }
    drop(second);
    first.say(user("two")).await;
    assert_eq!(first.next().await.unwrap()["type"], "assistant");
    let list = world.api.request("GET", "/api/sessions").send().await.unwrap();
    let list: Value = list.json().await.unwrap();
    assert_eq!(
        (&list["sessions"][0]["id"], &list["sessions"][0]["type"]),
        (&json!(id), &json!("stream"))
    );
    drop(first);
    // All of it, for a page that has nothing any more.
    let mut back = Chat::open(&world, &format!("{query}&resume=1")).await;
    assert_eq!(back.next().await.unwrap()["resumed"], true);
    assert_eq!(back.next().await.unwrap()["subtype"], "init");
    for text in ["one", "two"] {
        assert_eq!(back.next().await.unwrap()["heard"]["message"]["content"][0]["text"], text);
    }
}

#[tokio::test]
async fn other_options_and_a_restart_mean_a_new_program_with_the_same_conversation() {
    let world = world().await;
    let id = "33333333-3333-4333-8333-333333333333";
    let mut chat = Chat::open(&world, &format!("session_id={id}")).await;
    chat.until("init").await;
    chat.say(json!({ "type": "restart" })).await;
    let mut init = None;
    let mut restarted = false;
    while init.is_none() || !restarted {
        let frame = chat.next().await.unwrap();
        match frame["subtype"].as_str() {
            Some("init") => init = Some(frame),
            Some("restarted") => restarted = true,
            other => panic!("{other:?}"),
        }
    }
    let args = init.unwrap()["args"].as_str().unwrap().to_owned();
    assert!(args.contains(&format!("--resume {id}")), "{args}");
    let mut other = Chat::open(&world, &format!("session_id={id}&mode=plan")).await;
    assert_eq!(other.next().await.unwrap()["resumed"], false);
    let args = other.next().await.unwrap()["args"].as_str().unwrap().to_owned();
    assert!(args.contains("--permission-mode plan") && args.contains("--resume"), "{args}");
    // The one who was there is with the new program, too.
    assert!(chat.until("init").await["args"].as_str().unwrap().contains("plan"));
}

#[tokio::test]
async fn what_is_set_while_it_runs_is_given_to_the_next_program_of_the_conversation() {
    let world = world().await;
    let id = "55555555-5555-4555-8555-555555555555";
    let query = format!("session_id={id}&model=sonnet&mode=ask");
    let mut chat = Chat::open(&world, &query).await;
    let args = chat.until("init").await["args"].as_str().unwrap().to_owned();
    assert!(args.contains("--permission-mode default --model sonnet"), "the control: {args}");
    for control in [
        json!({ "type": "control", "subtype": "set_model", "model": "opus" }),
        json!({ "type": "control", "subtype": "set_permission_mode", "mode": "plan" }),
        json!({ "type": "control", "subtype": "set_max_thinking_tokens", "max_thinking_tokens": 99 }),
    ] {
        chat.say(control.clone()).await;
        assert_eq!(chat.until("assistant").await["heard"], control, "it is passed on as it is");
    }
    let expected = |args: &str| {
        args.contains("--permission-mode plan --model opus")
            && args.contains("--max-thinking-tokens 99")
            && args.contains(&format!("--resume {id}"))
    };
    chat.say(json!({ "type": "restart" })).await;
    let args = chat.until("init").await["args"].as_str().unwrap().to_owned();
    assert!(expected(&args), "after a restart: {args}");
    // Another who comes as the first did joins that program, and is told what counts.
    let mut second = Chat::open(&world, &query).await;
    let connected = second.next().await.unwrap();
    assert_eq!(
        (&connected["resumed"], &connected["settings"]["model"]),
        (&json!(true), &json!("opus"))
    );
    drop(second);
    chat.say(user("die")).await;
    chat.until("exit").await;
    let mut back = Chat::open(&world, &query).await;
    let args = back.until("init").await["args"].as_str().unwrap().to_owned();
    assert!(expected(&args), "after its end: {args}");
    // Who asks for something else gets that, and keeps the rest.
    let other = format!("session_id={id}&model=haiku&mode=ask");
    let mut other = Chat::open(&world, &other).await;
    let args = other.until("init").await["args"].as_str().unwrap().to_owned();
    assert!(args.contains("--permission-mode plan --model haiku"), "asked anew: {args}");
}

#[tokio::test]
async fn a_token_is_good_for_its_session_and_what_is_none_begins_a_new_one() {
    let world = world().await;
    let mut chat = Chat::open(&world, "").await;
    let token = chat.next().await.unwrap()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(token.split('.').count(), 3, "{token}");
    chat.until("init").await;
    drop(chat);
    let mut back = Chat::open(&world, &format!("session_id={token}")).await;
    assert_eq!(back.next().await.unwrap()["resumed"], true);
    let forged = format!("{}x", token);
    let mut other = Chat::open(&world, &format!("session_id={forged}")).await;
    assert_eq!(other.next().await.unwrap()["subtype"], "session_not_found");
    let connected = other.next().await.unwrap();
    assert_eq!(connected["resumed"], false);
    assert_ne!(connected["session_id"], json!(token));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_and_canned_frames_need_none() {
    let world =
        World::with(&[("workspace.mode", "sandbox"), ("workspace.chat_command", "no-such-agent")])
            .await;
    let mut chat = Chat::open(&world, "").await;
    let error = chat.until("error").await;
    assert!(error["message"].as_str().unwrap().contains("no-such-agent"), "{error}");
    assert_eq!(chat.next().await, Err(1011));
    let world = self::world().await;
    let mut chat = Chat::open(&world, "test_events=1").await;
    chat.until("init").await;
    chat.say(user("__emit_permission__")).await;
    assert_eq!(chat.next().await.unwrap()["request"]["subtype"], "can_use_tool");
    chat.say(user("hello")).await;
    assert_eq!(chat.next().await.unwrap()["type"], "assistant");
}

#[tokio::test]
async fn a_chat_needs_a_token_and_its_own_origin() {
    let world = world().await;
    let url = format!("ws://127.0.0.1:{}/ws/claude-stream", world.address.port());
    let refused = connect_async(&url).await.unwrap_err();
    assert!(refused.to_string().contains("401"), "{refused}");
    let mut request = url.into_client_request().unwrap();
    let token = format!("Bearer {}", world.token);
    request.headers_mut().insert("authorization", token.parse().unwrap());
    request.headers_mut().insert("origin", "https://elsewhere.example".parse().unwrap());
    let refused = connect_async(request).await.unwrap_err();
    assert!(refused.to_string().contains("403"), "{refused}");
}

#[tokio::test]
async fn a_conversation_whose_program_ended_is_taken_up_again() {
    let world = world().await;
    let id = "44444444-4444-4444-8444-444444444444";
    let query = format!("session_id={id}");
    for round in 0..3 {
        let mut chat = Chat::open(&world, &query).await;
        assert_eq!(chat.next().await.unwrap()["subtype"], "connected");
        let args = chat.until("init").await["args"].as_str().unwrap().to_owned();
        let word = if round == 0 { "--session-id" } else { "--resume" };
        assert!(args.contains(&format!("{word} {id}")), "round {round}: {args}");
        chat.say(user("die")).await;
        chat.until("exit").await;
        assert_eq!(chat.next().await, Err(1000));
    }
}

#[tokio::test]
async fn who_looks_at_the_sessions_meanwhile_ends_none_of_them() {
    let settings = [
        ("workspace.mode", "sandbox"),
        ("workspace.chat_command", "bash,agent.sh"),
        ("workspace.chat_window_seconds", "1"),
    ];
    let world = World::with(&settings).await;
    let write = world.api.request("PUT", "/api/file?path=agent.sh");
    write.json(&json!({ "content": AGENT })).send().await.unwrap().error_for_status().unwrap();
    let looking = async {
        for _ in 0..100 {
            let list = world.api.request("GET", "/api/sessions").send().await.unwrap();
            assert_eq!(list.status(), 200);
        }
    };
    let talking = async {
        let mut chat = Chat::open(&world, "").await;
        chat.until("init").await;
        chat.say(json!({ "type": "restart" })).await;
        chat.until("restarted").await;
        // Longer than one that nobody attends is waited for.
        tokio::time::sleep(Duration::from_secs(3)).await;
        chat.say(user("still there?")).await;
        chat.until("assistant").await;
        chat
    };
    let (mut chat, ()) = tokio::join!(talking, looking);
    chat.say(user("and now?")).await;
    chat.until("assistant").await;
    drop(chat);
    let is_over = || async {
        let list = world.api.request("GET", "/api/sessions").send().await.unwrap();
        let list: Value = list.json().await.unwrap();
        list["sessions"].as_array().unwrap().is_empty()
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !is_over().await {
        assert!(std::time::Instant::now() < deadline, "nobody came back, and it goes on");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn what_was_said_while_nobody_was_there_is_heard_once_by_who_comes_back() {
    let world = world().await;
    let is_there = |name: &'static str| {
        let world = &world;
        move || async move {
            let file = world.api.request("GET", &format!("/api/file?path={name}"));
            file.send().await.unwrap().status() == 200
        }
    };
    let nobody = || async {
        let list = world.api.call("GET", "/api/sessions", None).await.unwrap();
        list["sessions"][0]["clients"] == 0
    };
    let query = "session_id=55555555-5555-4555-8555-555555555555";
    let mut chat = Chat::open(&world, query).await;
    chat.until("init").await;
    chat.say(user("one")).await;
    assert_eq!(chat.next().await.unwrap()["heard"]["message"]["content"][0]["text"], "one");
    chat.say(user("later")).await;
    wait_for("the agent has heard it", PATIENCE, is_there("asked")).await.unwrap();
    drop(chat);
    wait_for("nobody is there", PATIENCE, nobody).await.unwrap();
    let go = world.api.request("PUT", "/api/file?path=go").json(&json!({ "content": "" }));
    go.send().await.unwrap().error_for_status().unwrap();
    wait_for("the agent has spoken", PATIENCE, is_there("spoken")).await.unwrap();
    let mut back = Chat::open(&world, query).await;
    assert_eq!(back.next().await.unwrap()["resumed"], true);
    assert_eq!(back.next().await.unwrap()["subtype"], "init");
    assert_eq!(back.next().await.unwrap(), json!({ "type": "assistant", "late": true }));
    back.say(user("two")).await;
    assert_eq!(back.next().await.unwrap()["heard"]["message"]["content"][0]["text"], "two");
}

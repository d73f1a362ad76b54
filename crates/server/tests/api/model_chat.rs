//! `/api/chat` with a model's server that plays a script: whose chat it is, when there are tools, what waits for a person, and how
//! it ends with the server.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Response;
use sandbank_test_support::wait_for;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::World;

const ON: (&str, &str) = ("REMCOCHAT_ENABLE_BASH_TOOL", "1");
const LIMIT: Duration = Duration::from_secs(20);

/// A model that answers everything with the same words, and keeps what it was asked.
struct Model {
    url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    /// `events` is what it streams; where it has no `[DONE]`, it goes on saying nothing.
    async fn start(events: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let keep = asked.clone();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(socket, events.clone(), keep.clone()));
            }
        });
        Self { url, asked }
    }

    async fn says(words: &str) -> Self {
        let text = delta(&json!({ "content": words }), "null") + &delta(&json!({}), "\"stop\"");
        Self::start(text + "data: [DONE]\n\n").await
    }

    /// Whether it was offered tools, each time it was asked.
    fn offered(&self) -> Vec<bool> {
        self.asked.lock().unwrap().iter().map(|body| body["tools"].is_array()).collect()
    }
}

fn delta(delta: &Value, reason: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n")
}

async fn answer(mut socket: TcpStream, events: String, asked: Arc<Mutex<Vec<Value>>>) {
    let mut bytes = Vec::new();
    let body = loop {
        let mut piece = [0; 8192];
        let read = socket.read(&mut piece).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        bytes.extend_from_slice(&piece[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        if let Ok(body) = serde_json::from_slice(&bytes[end + 4..]) {
            break body;
        }
    };
    asked.lock().unwrap().push(body);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let _ = socket.write_all(head.as_bytes()).await;
    let _ = socket.write_all(events.as_bytes()).await;
    if !events.contains("[DONE]") {
        // Until whoever asked hangs up.
        let _ = socket.read(&mut [0; 1]).await;
    }
}

struct Chats {
    world: World,
    _file: tempfile::NamedTempFile,
}

impl Chats {
    async fn with(model: &Model, tools: &str, chat: &str, env: &[(&str, &str)]) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!(
            "[app.chat]\nmodel = \"scripted\"\nbase_url = \"{}\"\n{chat}\n[app.bash_tools]\n{tools}\n",
            model.url
        );
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let env = [&[("REMCOCHAT_CONFIG_PATH", path.as_str())], env].concat();
        Self { world: World::with_env(&env).await, _file: file }
    }

    fn say(&self, id: &str, words: &str) -> reqwest::RequestBuilder {
        let parts = json!([{ "type": "text", "text": words }]);
        let body = json!({ "id": id, "messages": [{ "id": "1", "role": "user", "parts": parts }] });
        self.world.open("POST", "/api/chat").body(body.to_string())
    }

    async fn token(&self, name: &str) -> String {
        let body = json!({ "name": name, "scope": "sandbox" });
        let made = self.world.api.call("POST", "/v1/tokens", Some(body)).await.unwrap();
        made["token"].as_str().unwrap().to_owned()
    }
}

fn header(response: &Response) -> String {
    response.headers()["x-remcochat-bash-tools-enabled"].to_str().unwrap().to_owned()
}

/// Parts as they come; the last is `[DONE]`.
struct Parts {
    response: Response,
    text: String,
}

impl Parts {
    async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self { response, text: String::new() }
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.strip_prefix("data: ").map(str::to_owned);
                self.text = rest.to_owned();
                match data.as_deref() {
                    None => continue,
                    Some("[DONE]") => return None,
                    Some(data) => return Some(serde_json::from_str(data).unwrap()),
                }
            }
            let piece = tokio::time::timeout(LIMIT, self.response.chunk()).await;
            let piece = piece.expect("it goes on").unwrap().expect("it ends with [DONE]");
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let part = self.next().await.expect("there is such a part");
            if wanted(&part) {
                return part;
            }
        }
    }

    async fn rest(mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(part) = self.next().await {
            rest.push(part);
        }
        rest
    }
}

fn kind(wanted: &str) -> impl Fn(&Value) -> bool {
    let wanted = wanted.to_owned();
    move |part| part["type"] == wanted
}

#[tokio::test]
async fn a_chat_of_the_same_name_is_another_one_for_another_token() {
    let model = Model::says("hi").await;
    let tools = "enabled = true\nmax_concurrent_sandboxes = 6";
    let chats = Chats::with(&model, tools, "", &[ON]).await;
    let (one, two) = (chats.token("one").await, chats.token("two").await);
    let output = async |token: Option<&str>, words: &str| {
        let request = chats.say("same", words);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let mut parts = Parts::of(request).await;
        parts.until(kind("tool-output-available")).await["output"].clone()
    };
    let write = "/bash test ! -e kept && echo mine > kept && cat kept";
    assert_eq!(output(Some(&one), write).await["stdout"], "mine");
    for other in [Some(two.as_str()), None] {
        let looked = output(other, "/bash cat kept").await;
        assert_eq!((&looked["exitCode"], &looked["stdout"]), (&json!(1), &json!("")), "{looked}");
    }
    assert_eq!(output(Some(&one), "/bash cat kept").await["stdout"], "mine");

    // Nor does the tools' own route lead there.
    let read = |session: &str| {
        let request = chats.world.open("POST", "/api/tools/readFile").bearer_auth(&two);
        request.header("x-sandbank-session", session).body(json!({ "path": "kept" }).to_string())
    };
    for (session, code) in [
        ("@chat:one:same", "bad_session"),
        (" @chat:one:same", "bad_session"),
        ("chat:one:same", "not_found"),
        ("same", "not_found"),
    ] {
        let answer: Value = read(session).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["code"], code, "{session}: {answer}");
    }
}

#[tokio::test]
async fn each_closed_gate_takes_the_tools_from_a_chat_and_its_header_says_so() {
    let order = "/bash echo done";
    for (tools, chat, env, forwarded) in [
        ("enabled = false", "", vec![ON], false),
        ("enabled = true", "", vec![], false),
        ("enabled = true", "", vec![ON], true),
        ("enabled = true", "tools = false", vec![ON], false),
    ] {
        let model = Model::says("I have no shell").await;
        let chats = Chats::with(&model, tools, chat, &env).await;
        let request = chats.say("c", order);
        let request = if forwarded { request.header("x-real-ip", "10.0.0.9") } else { request };
        let parts = Parts::of(request).await;
        assert_eq!(header(&parts.response), "0", "{tools} {chat} {env:?}");
        let rest = parts.rest().await;
        let tool = |part: &Value| part["type"].as_str().unwrap().starts_with("tool-");
        assert!(!rest.iter().any(tool), "{rest:?}");
        assert!(
            rest.contains(&json!({ "type": "text-delta", "id": "1", "delta": "I have no shell" }))
        );
        assert_eq!(model.offered(), [false], "the order was a message like any other");
        assert!(chats.world.api.sandboxes().await.unwrap().is_empty());
    }
    let model = Model::says("hi").await;
    let chats = Chats::with(&model, "enabled = true", "", &[ON]).await;
    let parts = Parts::of(chats.say("c", "hello")).await;
    assert_eq!(header(&parts.response), "1");
    parts.rest().await;
    assert_eq!(model.offered(), [true]);
    let nameless = chats.world.open("POST", "/api/chat");
    let body = json!({ "messages": [{ "role": "user", "parts": [] }] });
    let parts = Parts::of(nameless.body(body.to_string())).await;
    assert_eq!(header(&parts.response), "0", "nothing names a sandbox");
    let refused = chats.world.open("POST", "/api/chat").body("{}").send().await.unwrap();
    assert_eq!((refused.status().as_u16(), header(&refused).as_str()), (400, "1"));
}

#[tokio::test]
async fn an_engine_that_does_not_answer_takes_the_tools_from_a_chat() {
    let model = Model::says("I have no shell").await;
    let chats = Chats::with(&model, "enabled = true", "", &[ON]).await;
    chats.world.engine.is_away.store(true, Ordering::SeqCst);
    let parts = Parts::of(chats.say("c", "/bash echo done")).await;
    assert_eq!(header(&parts.response), "0");
    let rest = parts.rest().await;
    assert_eq!(rest.last().unwrap()["type"], "finish", "{rest:?}");
    assert_eq!(model.offered(), [false]);
}

#[tokio::test]
async fn a_call_that_waits_for_a_person_is_a_part_that_says_how_it_ended() {
    let model = Model::says("hi").await;
    let tools = "enabled = true\n[[app.bash_tools.approvals.rules]]\naction = \"ask\"\n\
                 command = \"touch\"\nreason = \"it makes files\"";
    let chats = Chats::with(&model, tools, "", &[ON]).await;
    for (decision, status, last) in
        [("allow", "allowed", "tool-output-available"), ("deny", "denied", "tool-output-error")]
    {
        let mut parts = Parts::of(chats.say("c", &format!("/bash touch {decision}"))).await;
        let call = parts.until(kind("tool-input-available")).await["toolCallId"].clone();
        let asked = parts.next().await.unwrap();
        let data = &asked["data"];
        assert_eq!(asked["type"], "data-approval", "{asked}");
        assert_eq!((&data["status"], &data["toolCallId"]), (&json!("waiting"), &call));
        assert!(data["rule"].as_str().unwrap().contains("it makes files"), "{asked}");
        let path = format!("/api/tools/approvals/{}", data["approvalId"].as_str().unwrap());
        let body = json!({ "decision": decision, "digest": data["digest"] });
        chats.world.api.call("POST", &path, Some(body)).await.unwrap();
        let rest = parts.rest().await;
        assert_eq!(
            (&rest[0]["type"], &rest[0]["id"], &rest[0]["data"]["status"]),
            (&json!("data-approval"), &asked["id"], &json!(status)),
            "{rest:?}"
        );
        assert_eq!(rest[1]["type"], last, "{rest:?}");
    }
}

#[tokio::test]
async fn a_call_that_was_allowed_says_so_also_where_it_cannot_be_made() {
    let model = Model::says("hi").await;
    let tools = "enabled = true\nproject_root = \"/no/such/directory\"\n\
                 [[app.bash_tools.approvals.rules]]\naction = \"ask\"\ncommand = \"touch\"";
    let chats = Chats::with(&model, tools, "", &[ON]).await;
    let mut parts = Parts::of(chats.say("c", "/bash touch x")).await;
    let asked = parts.until(kind("data-approval")).await;
    let path = format!("/api/tools/approvals/{}", asked["data"]["approvalId"].as_str().unwrap());
    let body = json!({ "decision": "allow", "digest": asked["data"]["digest"] });
    chats.world.api.call("POST", &path, Some(body)).await.unwrap();
    let rest = parts.rest().await;
    assert_eq!(
        (&rest[0]["id"], &rest[0]["data"]["status"]),
        (&asked["id"], &json!("allowed")),
        "{rest:?}"
    );
    assert_eq!(rest[1]["type"], "tool-output-error", "{rest:?}");
    assert!(rest[1]["errorText"].as_str().unwrap().contains("/no/such/directory"), "{rest:?}");
}

/// Processes of this machine that sleep for so long.
pub(crate) fn sleeping(seconds: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let wanted = format!("sleep\0{seconds}\0");
    let is_it = |path: std::path::PathBuf| {
        std::fs::read(path.join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())
    };
    processes.filter(|process| is_it(process.path())).count()
}

#[tokio::test]
async fn the_end_of_the_server_aborts_a_chat_and_kills_its_command() {
    let silent = Model::start(delta(&json!({ "content": "Let me" }), "null")).await;
    let chats = Chats::with(&silent, "enabled = true", "", &[ON]).await;
    let mut parts = Parts::of(chats.say("c", "hello")).await;
    parts.until(kind("text-delta")).await;
    chats.world.shutdown.drain();
    let rest = parts.rest().await;
    assert_eq!(rest, [json!({ "type": "abort" })]);

    // A number of seconds that nobody else sleeps.
    let seconds = format!("7{}.5", std::process::id());
    let input = json!({ "command": format!("echo begun; sleep {seconds}") }).to_string();
    let function = json!({ "name": "bash", "arguments": input });
    let call = json!({ "index": 0, "id": "x", "type": "function", "function": function });
    let calls = delta(&json!({ "tool_calls": [call] }), "\"tool_calls\"") + "data: [DONE]\n\n";
    let model = Model::start(calls).await;
    let chats = Chats::with(&model, "enabled = true", "", &[ON]).await;
    let mut parts = Parts::of(chats.say("c", "wait")).await;
    parts.until(|part| part["output"]["stdout"] == "begun\n").await;
    wait_for("the command to sleep", LIMIT, || async { sleeping(&seconds) > 0 }).await.unwrap();
    chats.world.shutdown.drain();
    let rest = parts.rest().await;
    assert_eq!(rest.last(), Some(&json!({ "type": "abort" })), "{rest:?}");
    wait_for("the command to be gone", LIMIT, || async { sleeping(&seconds) == 0 }).await.unwrap();
}

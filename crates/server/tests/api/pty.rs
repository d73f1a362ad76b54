//! `/ws/pty`, frame by frame, wherever the workspace is.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sandbank_test_support::{Pty, PtySeen, wait_for};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::everywhere::everywhere;
use crate::log_lines::capture;
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(60);
const SHELL: (&str, &str) = ("workspace.pty_shell_command", "bash,--norc,--noprofile");
const SECRET: &str = "a secret of thirty-two characters or more";

async fn open(world: &World, query: &str) -> Pty {
    Pty::open(&url(world), &world.token, query).await.unwrap()
}

fn url(world: &World) -> String {
    format!("http://127.0.0.1:{}", world.address.port())
}

async fn sandbox(settings: &[(&str, &str)]) -> World {
    World::with(&[&[("workspace.mode", "sandbox"), SHELL], settings].concat()).await
}

async fn sessions(world: &World) -> Vec<Value> {
    let list = world.api.call("GET", "/api/sessions", None).await.unwrap();
    list["sessions"].as_array().unwrap().clone()
}

/// Told `session_not_found`, and closed with its code.
async fn not_found(pty: &mut Pty) {
    assert_eq!(pty.frame().await.unwrap()["type"], "session_not_found");
    assert_eq!(pty.closed().await.unwrap(), (4001, "Session not found".to_owned()));
}

#[tokio::test]
async fn a_terminal_speaks_the_recorded_frames_wherever_the_workspace_is() {
    for place in everywhere(&[SHELL]).await {
        let (world, mode) = (&place.world, place.mode);
        let id = "11111111-1111-4111-8111-111111111111";
        let mut pty = open(world, &format!("provider=shell&session_id={id}")).await;
        let session = pty.frame().await.unwrap();
        assert_eq!(session, json!({ "type": "session", "session_id": id }), "{mode}");
        let output = pty.frame().await.unwrap();
        let data = output["data"].as_str().unwrap();
        assert_eq!(output, json!({ "type": "output", "data": data, "session_id": id }), "{mode}");
        pty.say(json!({ "type": "resize", "rows": 30, "cols": 100 })).await.unwrap();
        pty.say(json!({ "type": "unheard of" })).await.unwrap();
        pty.say(json!({ "type": "ping" })).await.unwrap();
        assert_eq!(pty.said("pong").await.unwrap(), json!({ "type": "pong" }), "{mode}");
        // What is no JSON is input.
        pty.raw("stty size; echo $TERM\n").await.unwrap();
        pty.read_until("30 100\r\nxterm-256color\r\n").await.unwrap();
        // A character that is cut by the program is not cut on the way.
        pty.input("printf '<\\xe2\\x82'; sleep 0.3; printf '\\xac>'\n").await.unwrap();
        pty.read_until("<\u{20ac}>").await.unwrap();
        assert!(!pty.output.contains('\u{fffd}'), "{mode}: {:?}", pty.output);
        pty.input("exit 5\n").await.unwrap();
        let exit = pty.said("exit").await.unwrap();
        assert_eq!(exit, json!({ "type": "exit", "code": 5, "session_id": id }), "{mode}");
        pty.say(json!({ "type": "ping" })).await.unwrap();
        assert_eq!(pty.frame().await.unwrap(), json!({ "type": "pong" }), "{mode}: it stays open");
        // The name is free again.
        let mut again = open(world, &format!("session_id={id}")).await;
        again.said("output").await.unwrap();
        again.input("echo $((6*7))\n").await.unwrap();
        again.read_until("42\r\n").await.unwrap();
        place.end().await;
    }
}

#[tokio::test]
async fn who_comes_back_is_painted_the_screen_with_what_scrolled_away_above_it() {
    for place in everywhere(&[SHELL]).await {
        let (world, mode) = (&place.world, place.mode);
        let mut first = open(world, "").await;
        let token = first.frame().await.unwrap()["session_id"].as_str().unwrap().to_owned();
        assert_eq!(token.split('.').count(), 3, "{token}");
        first.input("seq -f line-%g 100; echo do''ne\n").await.unwrap();
        first.read_until("done\r\n").await.unwrap();
        let mut second = open(world, &format!("session_id={token}&resume=1")).await;
        let renewed = second.frame().await.unwrap()["session_id"].as_str().unwrap().to_owned();
        let history = second.frame().await.unwrap();
        assert_eq!(history["type"], "history", "{mode}");
        let data = history["data"].as_str().unwrap();
        assert!(data.starts_with("\x18\x1bc"), "{mode}: {data:?}");
        let (above, screen) = data.split_once("\x1b[0m\x1b[H\x1b[2J").unwrap();
        assert!(
            above.contains("line-1\r\n") && above.contains("line-100\r\n"),
            "{mode}: {above:?}"
        );
        assert!(screen.contains("done") && !screen.contains("line-5\u{1b}"), "{mode}: {screen:?}");
        assert!(!screen.contains("line-50"), "{mode}: {screen:?}");
        // All see output, all may type.
        second.input("echo from-se''cond\n").await.unwrap();
        for pty in [&mut first, &mut second] {
            pty.read_until("from-second\r\n").await.unwrap();
        }
        let [session] = &sessions(world).await[..] else { panic!("one session") };
        assert_eq!((&session["type"], &session["alive"]), (&json!("pty"), &json!(true)), "{mode}");
        assert_eq!(session["clients"], 2, "{mode}");
        assert!(session["history_count"].as_u64().unwrap() > 700, "{mode}: {session}");
        drop((first, second));
        let mut back = open(world, &format!("session_id={renewed}")).await;
        back.frame().await.unwrap();
        assert!(back.frame().await.unwrap()["data"].as_str().unwrap().contains("from-second"));
        back.input("echo sti''ll\n").await.unwrap();
        back.read_until("still\r\n").await.unwrap();
        place.end().await;
    }
}

#[tokio::test]
async fn who_counts_frames_is_sent_every_byte_once_and_no_cut_character() {
    let script = "stty -echo -onlcr; LC_ALL=C; for i in $(seq 100); do printf \"$i:\\xf0\\x9f\"; \
                  read -r -t 0.01; printf '\\x98'; read -r -t 0.01; printf '\\x80\\n'; done; \
                  read -r; exit 3";
    let settings = [("workspace.pty_shell_command", format!("bash,-c,{script}"))];
    let settings: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let world = sandbox(&settings).await;
    let id = "22222222-2222-4222-8222-222222222222";
    let (mut seen, mut seq, mut times) = (String::new(), 0, 0);
    let expected: String = (1..=100).map(|i| format!("{i}:\u{1f600}\n")).collect();
    while seen.len() < expected.len() {
        let mut pty = open(&world, &format!("session_id={id}&after={seq}")).await;
        assert_eq!(pty.frame().await.unwrap()["type"], "session");
        for _ in 0..5 {
            if seen.len() + pty.output.len() < expected.len() {
                let output = pty.frame().await.unwrap();
                assert_eq!((&output["type"], &output["repaint"]), (&json!("output"), &Value::Null));
            }
        }
        seen.push_str(&pty.output);
        seq = pty.seq;
        times += 1;
    }
    assert_eq!(seen, expected);
    assert!(times > 1, "it came back {times} times");
    let mut pty = open(&world, &format!("session_id={id}&after={seq}")).await;
    pty.input("\n").await.unwrap();
    assert_eq!(pty.said("exit").await.unwrap()["code"], 3);
    assert_eq!(pty.output, "");
}

#[tokio::test]
async fn what_cannot_be_had_is_refused_with_its_code() {
    let agent = ("workspace.chat_command", "no-such-agent");
    let few = ("workspace.pty_max_sessions", "2");
    let world = sandbox(&[agent, few]).await;
    let closed = |query: &'static str| {
        let world = &world;
        async move { open(world, query).await.closed().await.unwrap() }
    };
    let unknown = "Unknown provider: nope. Available: ['shell', 'claude']";
    assert_eq!(closed("provider=nope").await, (4003, unknown.to_owned()));
    let invalid = "Invalid session_id (must be a UUID)";
    assert_eq!(closed("session_id=x").await, (4004, invalid.to_owned()));
    assert_eq!(closed("session_id=../../etc").await.0, 4004);
    assert_eq!(closed("after=x").await.0, 4004);
    not_found(&mut open(&world, "resume=1&session_id=33333333-3333-4333-8333-333333333333").await)
        .await;
    let mut agent = open(&world, "provider=claude").await;
    agent.said("session").await.unwrap();
    let error = agent.frame().await.unwrap();
    assert_eq!(error["type"], "error");
    assert!(error["data"].as_str().unwrap().contains("no-such-agent"), "{error}");
    assert!(error["session_id"].is_string() && error["request_id"].is_string(), "{error}");
    assert_eq!(agent.closed().await.unwrap(), (1011, "PTY start failed".to_owned()));
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut pty = open(&world, "").await;
        pty.said("output").await.unwrap();
        held.push(pty);
    }
    let mut more = open(&world, "").await;
    let error = more.frame().await.unwrap();
    assert_eq!(
        (&error["type"], &error["data"]),
        (&json!("error"), &json!("Maximum sessions reached"))
    );
    assert_eq!(more.closed().await.unwrap().0, 4005);
    held[0].input("exit\n").await.unwrap();
    held[0].said("exit").await.unwrap();
    open(&world, "").await.said("output").await.unwrap();
}

#[tokio::test]
async fn who_found_nothing_and_who_was_suddenly_gone_are_counted() {
    let world = sandbox(&[]).await;
    not_found(&mut open(&world, "resume=1&session_id=33333333-3333-4333-8333-333333333333").await)
        .await;
    let mut pty = open(&world, "").await;
    pty.said("output").await.unwrap();
    drop(pty);
    let lines = [
        r#"sandbank_workspace_attach_failures_total{kind="pty"} 1"#,
        r#"sandbank_workspace_disconnects_total{kind="pty"} 1"#,
    ];
    let are_counted = || async {
        let metrics = world.api.request("GET", "/metrics").send().await.unwrap();
        let text = metrics.text().await.unwrap();
        lines.iter().all(|line| text.lines().any(|seen| seen == *line))
    };
    wait_for("both are counted", PATIENCE, are_counted).await.unwrap();
}

/// As the server signs, with any times.
fn token(sid: &str, kind: &str, user: &str, iat: u64, exp: u64) -> String {
    let mut kid = sandbank_engine::hex(&Sha256::digest([b"key id:", SECRET.as_bytes()].concat()));
    kid.truncate(8);
    let header = json!({ "ver": 1, "alg": "HS256", "kid": kid });
    let claims = json!({
        "sid": sid, "aud": "sandbank-workspace", "kind": kind, "exec": "shell", "user": user,
        "workspace": "workspace", "iat": iat, "exp": exp, "rnw": 0,
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    let signature = mac.chain_update(signed.as_bytes()).finalize().into_bytes();
    format!("{signed}.{}", sandbank_engine::hex(&signature))
}

#[tokio::test]
async fn a_token_that_is_not_good_finds_no_session() {
    let world = World::with_env(&[
        ("WORKSPACE_MODE", "sandbox"),
        ("SANDBANK_PTY_SHELL_COMMAND", SHELL.1),
        ("SESSION_TOKEN_SECRET", SECRET),
    ])
    .await;
    let id = "44444444-4444-4444-8444-444444444444";
    let mut pty = open(&world, &format!("session_id={id}")).await;
    pty.said("output").await.unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let good = token(id, "pty", "admin", now, now + 60);
    let mut back = open(&world, &format!("session_id={good}")).await;
    back.said("history").await.unwrap();
    let mut forged = good.clone();
    forged.replace_range(forged.len() - 1.., if good.ends_with('0') { "1" } else { "0" });
    for (what, bad) in [
        ("forged", forged),
        ("expired", token(id, "pty", "admin", now - 100, now - 1)),
        ("another user's", token(id, "pty", "somebody", now, now + 60)),
        ("of a chat", token(id, "chat", "admin", now, now + 60)),
        (
            "of no session",
            token("55555555-5555-4555-8555-555555555555", "pty", "admin", now, now + 60),
        ),
    ] {
        let mut refused = open(&world, &format!("session_id={bad}")).await;
        let said = refused.frame().await.unwrap();
        assert_eq!(said["type"], "session_not_found", "{what}: {said}");
        assert_eq!(refused.closed().await.unwrap().0, 4001, "{what}");
    }
    let other = json!({ "name": "other", "scope": "sandbox" });
    let other = world.api.call("POST", "/v1/tokens", Some(other)).await.unwrap();
    let other = other["token"].as_str().unwrap();
    let mut stolen = Pty::open(&url(&world), other, &format!("session_id={good}")).await.unwrap();
    not_found(&mut stolen).await;
    let query = format!("session_id={id}&resume=1");
    not_found(&mut Pty::open(&url(&world), other, &query).await.unwrap()).await;
    // Who is attached stays, whatever became of its token.
    back.input("echo he''re\n").await.unwrap();
    back.read_until("here\r\n").await.unwrap();
}

#[tokio::test]
async fn a_token_of_the_key_before_is_good_until_that_key_is_taken_out() {
    let id = "44444444-4444-4444-8444-444444444444";
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let earlier = format!("session_id={}", token(id, "pty", "admin", now, now + 60));
    let newer = ("SESSION_TOKEN_SECRET", "another secret of thirty-two characters or more");
    let before = ("SANDBANK_PREVIOUS_SESSION_TOKEN_SECRET", SECRET);
    for (secrets, is_good) in [(vec![newer, before], true), (vec![newer], false)] {
        let shell = ("SANDBANK_PTY_SHELL_COMMAND", SHELL.1);
        let settings = [vec![("WORKSPACE_MODE", "sandbox"), shell], secrets].concat();
        let world = World::with_env(&settings).await;
        let mut pty = open(&world, &format!("session_id={id}")).await;
        pty.said("output").await.unwrap();
        let mut back = open(&world, &earlier).await;
        match is_good {
            true => drop(back.said("history").await.unwrap()),
            false => not_found(&mut back).await,
        }
    }
}

#[tokio::test]
async fn after_the_window_there_is_no_session_and_no_program() {
    let world = sandbox(&[("workspace.pty_window_seconds", "1")]).await;
    let mut pty = open(&world, "").await;
    let token = pty.frame().await.unwrap()["session_id"].as_str().unwrap().to_owned();
    pty.said("output").await.unwrap();
    drop(pty);
    let mut back = open(&world, &format!("session_id={token}")).await;
    back.said("history").await.unwrap();
    drop(back);
    let gone = || async { sessions(&world).await.is_empty() };
    wait_for("the session is given up", PATIENCE, gone).await.unwrap();
    not_found(&mut open(&world, &format!("session_id={token}")).await).await;
}

#[tokio::test]
async fn a_terminal_ends_when_it_did_nothing_or_has_lived_for_long() {
    let world = sandbox(&[("workspace.pty_idle_seconds", "1")]).await;
    let mut pty = open(&world, "").await;
    assert_eq!(pty.said("exit").await.unwrap()["code"], 137);
    let world = sandbox(&[("workspace.pty_life_seconds", "1")]).await;
    let mut pty = open(&world, "").await;
    assert_eq!(pty.said("exit").await.unwrap()["code"], 124);
}

#[tokio::test]
async fn force_new_ends_what_has_the_name() {
    let world = sandbox(&[]).await;
    let query = "session_id=66666666-6666-4666-8666-666666666666";
    let mut old = open(&world, query).await;
    old.input("export MARK=old\n").await.unwrap();
    old.said("output").await.unwrap();
    let mut new = open(&world, &format!("{query}&force_new=1")).await;
    old.said("exit").await.unwrap();
    new.input("echo \"<$MARK>\"\n").await.unwrap();
    new.read_until("<>\r\n").await.unwrap();
    assert_eq!(sessions(&world).await.len(), 1);
}

#[tokio::test]
async fn strangers_foreign_pages_and_floods_get_no_terminal() {
    let world = sandbox(&[("workspace.connects_per_second", "2")]).await;
    let refused = Pty::open_with(&url(&world), &[], "").await.err().unwrap();
    assert!(refused.to_string().contains("401"), "{refused}");
    let authorization = format!("Bearer {}", world.token);
    let foreign =
        [("authorization", authorization.as_str()), ("origin", "https://elsewhere.example")];
    let refused = Pty::open_with(&url(&world), &foreign, "").await.err().unwrap();
    assert!(refused.to_string().contains("403"), "{refused}");
    let query = "session_id=77777777-7777-4777-8777-777777777777";
    let mut first = open(&world, query).await;
    first.said("output").await.unwrap();
    let mut refused = 0;
    for _ in 0..40 {
        let seen = open(&world, query).await.next().await.unwrap();
        if seen == PtySeen::Closed(4005, "Too many connections".to_owned()) {
            refused += 1;
        }
    }
    assert!((1..40).contains(&refused), "{refused} of 40");
    first.input("echo unaf''fected\n").await.unwrap();
    first.read_until("unaffected\r\n").await.unwrap();
}

#[tokio::test]
async fn what_is_typed_and_written_is_in_no_log_and_who_came_and_went_is() {
    let (log, _guard) = capture();
    let world = sandbox(&[]).await;
    let id = "99999999-9999-4999-8999-999999999999";
    let mut pty = open(&world, &format!("session_id={id}")).await;
    pty.input("echo my-pass''word; exit\n").await.unwrap();
    pty.said("exit").await.unwrap();
    drop(pty);
    let left = || async { log.text().contains("a terminal was left") };
    wait_for("the log", PATIENCE, left).await.unwrap();
    let text = log.text();
    for line in ["started", "attached to", "left"] {
        let line = format!("a terminal was {line}");
        let line = text.lines().find(|found| found.contains(&line)).unwrap();
        assert!(line.contains(id) && line.contains("\"admin\""), "{line}");
        assert!(line.contains("request_id"), "{line}");
    }
    assert!(text.contains("a terminal ended"));
    assert!(!text.contains("my-pass"), "typed");
    assert!(!text.contains("my-password"), "written");
}

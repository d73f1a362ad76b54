//! Terminals that are joined, left and come back to.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sandbank_test_support::{Seen, Viewer, wait_for};
use serde_json::{Value, json};

use crate::world::{World, code, refused};

const PATIENCE: Duration = Duration::from_secs(60);

/// The path of a command on a terminal.
async fn terminal(world: &World, sandbox: &str, script: &str, screen: bool) -> String {
    let body = json!({
        "argv": ["bash", "-c", script], "pty": {"rows": 24, "cols": 80}, "screen": screen,
    });
    let path = format!("/v1/sandboxes/{sandbox}/commands");
    let started = world.api.call("POST", &path, Some(body)).await.unwrap();
    format!("{path}/{}", started["commandId"].as_str().unwrap())
}

async fn attach(world: &World, command: &str, query: &str) -> Viewer {
    world.api.attach(command, query).await.unwrap()
}

async fn screen(world: &World, command: &str) -> Value {
    world.api.call("GET", &format!("{command}/screen"), None).await.unwrap()
}

#[tokio::test]
async fn a_terminal_is_typed_into_resized_interrupted_and_ends() {
    let world = World::start().await;
    let id = world.sandbox().await;
    // A trap is not run while a read waits.
    let script = "stty -echo; trap 'echo got-int' INT; trap 'stty size' WINCH; echo ready; while :; do \
                  read -r -t 0.05 line && echo \"<$line>\"; [ \"$line\" = end ] && exit 7; done";
    let command = terminal(&world, &id, script, true).await;
    let mut viewer = attach(&world, &command, "").await;
    viewer.read_until("ready").await.unwrap();
    viewer.write("typed\n").await.unwrap();
    viewer.read_until("<typed>").await.unwrap();
    viewer.say(json!({"type": "resize", "rows": 40, "cols": 999})).await.unwrap();
    viewer.read_until("40 500").await.unwrap();
    viewer.say(json!({"type": "signal", "signal": "INT"})).await.unwrap();
    viewer.read_until("got-int").await.unwrap();
    viewer.say(json!({"type": "ping"})).await.unwrap();
    viewer.said("pong").await.unwrap();
    let shown = screen(&world, &command).await;
    assert_eq!((&shown["rows"], &shown["cols"]), (&json!(40), &json!(500)));
    viewer.write("end\n").await.unwrap();
    let ended = viewer.said("ended").await.unwrap();
    assert_eq!((&ended["exitCode"], &ended["ending"]["kind"]), (&json!(7), &json!("exited")));
    assert_eq!(viewer.closed().await.unwrap(), Some(1000));
    let mut late = attach(&world, &command, "").await;
    late.said("ended").await.unwrap();
    assert_eq!(late.output, viewer.output);
}

#[tokio::test]
async fn who_comes_later_is_painted_the_screen_and_then_shown_what_follows() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let script =
        "printf 'old\\033[2J\\033[5;5Hnew\\033]0;name\\007'; read -r _; printf MORE; read -r _";
    let command = terminal(&world, &id, script, true).await;
    let painted = || async {
        let shown = screen(&world, &command).await;
        shown["title"] == "name"
    };
    wait_for("the screen is painted", PATIENCE, painted).await.unwrap();
    let shown = screen(&world, &command).await;
    assert_eq!(shown["cursor"], json!({"row": 4, "col": 7, "visible": true}));
    let mut viewer = attach(&world, &command, "?repaint=true").await;
    assert_eq!(viewer.attached["rows"], 24);
    let said = viewer.said("screen").await.unwrap();
    assert_eq!((&said["seq"], &said["title"]), (&shown["seq"], &json!("name")));
    let Seen::Repaint(repaint) = viewer.next().await.unwrap() else { panic!("no repaint") };
    assert_eq!(BASE64.encode(&repaint), shown["repaintBase64"].as_str().unwrap());
    let text = String::from_utf8_lossy(&repaint).into_owned();
    assert!(text.contains("new") && !text.contains("old"), "{text:?}");
    viewer.write("\r").await.unwrap();
    viewer.read_until("MORE").await.unwrap();
    let mut back = attach(&world, &command, &format!("?after={}", said["seq"])).await;
    back.read_until("MORE").await.unwrap();
    assert_eq!(back.output, viewer.output);
}

#[tokio::test]
async fn what_cannot_be_joined_is_refused_with_the_reason() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let piped = world.bash(&id, "sleep 60").await;
    let plain = terminal(&world, &id, "sleep 60", false).await;
    let get = |path: String| world.api.request("GET", &path);
    let upgrade = |path: String| {
        get(path)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
    };
    let attach_plain = format!("{plain}/attach");
    assert_eq!(refused(get(attach_plain.clone())).await, code(400, "websocket_required"));
    assert_eq!(refused(upgrade(format!("{piped}/attach"))).await, code(409, "not_a_terminal"));
    let repaint = upgrade(format!("{plain}/attach?repaint=true"));
    assert_eq!(refused(repaint).await, code(409, "conflict"));
    let both = upgrade(format!("{plain}/attach?repaint=true&after=3"));
    assert_eq!(refused(both).await, code(400, "bad_query"));
    assert_eq!(refused(get(format!("{plain}/screen"))).await, code(409, "conflict"));
    let unknown = format!("/v1/sandboxes/{id}/commands/none/attach");
    assert_eq!(refused(upgrade(unknown)).await, code(404, "command_not_found"));
    let stranger = world.open("GET", &attach_plain).header("connection", "upgrade");
    assert_eq!(refused(stranger).await.0, 401);
    let body = json!({"argv": ["true"], "screen": true});
    let (status, answer) = world
        .api
        .try_call("POST", &format!("/v1/sandboxes/{id}/commands"), Some(body))
        .await
        .unwrap();
    assert_eq!((status, &answer["code"]), (400, &json!("bad_field")));
    attach(&world, &plain, "").await;
}

#[tokio::test]
async fn messages_that_are_not_understood_and_input_without_end_close_the_connection() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = terminal(&world, &id, "stty raw -echo; echo ready; sleep 60", false).await;
    let mut odd = attach(&world, &command, "").await;
    odd.say(json!({"type": "dance"})).await.unwrap();
    assert_eq!(odd.closed().await.unwrap(), Some(4400));
    let mut eager = attach(&world, &command, "").await;
    eager.read_until("ready").await.unwrap();
    for _ in 0..40 {
        if eager.write(vec![b'x'; 64 << 10]).await.is_err() {
            break;
        }
    }
    assert_eq!(eager.closed().await.unwrap(), Some(4413));
    attach(&world, &command, "").await.read_until("ready").await.unwrap();
}

#[tokio::test]
async fn a_hundred_viewers_see_the_same_and_may_all_type() {
    let world = World::with(&[("server.max_streams", "300")]).await;
    let id = world.sandbox().await;
    let script = "stty raw -echo; echo ready; head -c 100; seq 1 500; echo over";
    let command = terminal(&world, &id, script, true).await;
    let mut viewers = Vec::new();
    for _ in 0..100 {
        viewers.push(attach(&world, &command, "").await);
    }
    let watching = viewers.into_iter().map(|mut viewer| {
        tokio::spawn(async move {
            viewer.read_until("ready").await.unwrap();
            viewer.write("k").await.unwrap();
            viewer.said("ended").await.unwrap();
            viewer.output
        })
    });
    let outputs: Vec<_> = futures_util::future::join_all(watching).await;
    let first = outputs[0].as_ref().unwrap();
    let text = String::from_utf8(first.clone()).unwrap();
    assert_eq!(text.matches('k').count(), 100);
    assert!(text.ends_with("500\r\nover\r\n") || text.ends_with("500\nover\n"), "{text:?}");
    assert!(outputs.iter().all(|output| output.as_ref().unwrap() == first));
}

#[tokio::test]
async fn broken_channels_lose_and_double_nothing_in_either_direction() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let script = "stty raw -echo; echo ready; head -c 2000 | od -An -v -tu1 -w1; seq 1 2000";
    let command = terminal(&world, &id, script, true).await;
    let mut viewer = attach(&world, &command, "").await;
    viewer.read_until("ready").await.unwrap();
    let mut typed = Vec::new();
    for round in 0..200u32 {
        let piece: Vec<u8> = (0..10).map(|n| (round * 10 + n) as u8).collect();
        typed.extend_from_slice(&piece);
        viewer.write(piece).await.unwrap();
        if round % 20 == 7 {
            world.engine.cut_channels();
        }
    }
    let ended = viewer.said("ended").await.unwrap();
    assert_eq!(ended["exitCode"], 0);
    let text = String::from_utf8(viewer.output).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect();
    let expected: Vec<u64> = typed.iter().map(|byte| u64::from(*byte)).chain(1..=2_000).collect();
    assert_eq!(numbers, expected);
}

/// One viewer reads nothing while its program floods; others are served as ever.
#[tokio::test]
async fn a_viewer_that_falls_behind_gets_the_screen_and_holds_up_nobody() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let flood =
        terminal(&world, &id, "yes 0123456789 | head -c 60000000; echo; echo over", true).await;
    let mut slow = attach(&world, &flood, "").await;
    let other = terminal(&world, &id, "stty -echo; echo ready; cat", true).await;
    let mut typist = attach(&world, &other, "").await;
    typist.read_until("ready").await.unwrap();
    for n in 0..50 {
        let text = format!("echo-{n};");
        typist.write(format!("{text}\n")).await.unwrap();
        let echo = typist.read_until(&text);
        tokio::time::timeout(Duration::from_secs(10), echo).await.unwrap().unwrap();
    }
    let over = || async {
        let status = world.api.call("GET", &flood, None).await.unwrap();
        !status["ending"].is_null() || status["state"] == "ended"
    };
    wait_for("the flood is over", PATIENCE, over).await.unwrap();
    let said = slow.said("screen").await.unwrap();
    assert_eq!(said["seq"], screen(&world, &flood).await["seq"]);
    let Seen::Repaint(repaint) = slow.next().await.unwrap() else { panic!("no repaint") };
    assert!(String::from_utf8_lossy(&repaint).contains("over"));
    slow.said("ended").await.unwrap();
    assert!(slow.output.len() < 30_000_000, "{} bytes of backlog", slow.output.len());
}

#[tokio::test]
async fn a_daemon_that_goes_says_so_and_a_sandbox_that_goes_ends_the_terminal() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = terminal(&world, &id, "echo ready; sleep 60", false).await;
    let mut viewer = attach(&world, &command, "").await;
    viewer.read_until("ready").await.unwrap();
    let gone = world.api.create("other").await.unwrap();
    let ending = terminal(&world, &gone, "echo ready; sleep 60", false).await;
    let mut left = attach(&world, &ending, "").await;
    left.read_until("ready").await.unwrap();
    world.api.call("DELETE", &format!("/v1/sandboxes/{gone}"), None).await.unwrap();
    let ended = left.said("ended").await.unwrap();
    assert!(["lost", "killed", "signaled"].contains(&ended["ending"]["kind"].as_str().unwrap()));
    world.shutdown.drain();
    assert_eq!(viewer.closed().await.unwrap(), Some(1012));
}

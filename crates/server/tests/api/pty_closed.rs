//! Terminals that are closed because of what is behind them: 4006 where there is no workspace to be
//! had, 1012 where the server goes.

use std::time::Duration;

use futures_util::future::join_all;
use sandbank_test_support::{Pty, wait_for};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::breaker::opens;
use crate::far::{Far, terminal};
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(90);
const QUERY: &str = "session_id=11111111-1111-4111-8111-111111111111";
const TERMINALS: usize = 20;

async fn open(world: &World, query: &str) -> Pty {
    let url = format!("http://127.0.0.1:{}", world.address.port());
    Pty::open(&url, &world.token, query).await.unwrap()
}

/// Told that the workspace is not to be had, and closed with its code.
async fn finds_none(world: &World, kind: &str) {
    let mut pty = open(world, QUERY).await;
    let error = pty.frame().await.unwrap();
    let data = format!("Workspace unavailable: {kind}");
    assert_eq!((&error["type"], &error["data"]), (&json!("error"), &json!(data)));
    assert_eq!((&error["session_id"], error["request_id"].is_string()), (&Value::Null, true));
    assert_eq!(pty.closed().await.unwrap(), (4006, "PTY start failed".to_owned()));
}

#[tokio::test]
async fn who_finds_no_workspace_is_told_so_and_closed_with_4006() {
    let mut far = Far::start().await;
    far.carry(false).await;
    let world = far.world("60").await;
    finds_none(&world, "unreachable").await;
    opens(&world).await;
    finds_none(&world, "breaker_open").await;
    far.end().await;
}

#[tokio::test]
async fn a_terminal_whose_workspace_goes_is_closed_with_4006_and_found_again() {
    let away = (4006, "the workspace does not answer".to_owned());
    let mut far = Far::start().await;
    let world = far.world("600").await;
    let mut pty = open(&world, QUERY).await;
    pty.input("echo be''fore\n").await.unwrap();
    pty.read_until("before\r\n").await.unwrap();
    far.carry(false).await;
    // Others find it away as well, so that the breaker opens while the terminal looks for it.
    let (closed, ()) = tokio::join!(pty.closed(), opens(&world));
    assert_eq!(closed.unwrap(), away);
    far.carry(true).await;
    let is_back = || async {
        let tree = world.api.request("GET", "/api/tree?path=.").send().await.unwrap();
        tree.status() == 200
    };
    wait_for("the workspace is back", PATIENCE, is_back).await.unwrap();
    let mut back = open(&world, &format!("{QUERY}&resume=1")).await;
    assert!(back.said("history").await.unwrap()["data"].as_str().unwrap().contains("before"));
    back.input("echo af''ter\n").await.unwrap();
    back.read_until("after\r\n").await.unwrap();
    // And where nobody else asks.
    far.carry(false).await;
    assert_eq!(back.closed().await.unwrap(), away);
    far.end().await;
}

#[tokio::test]
async fn a_server_that_goes_while_a_terminal_looks_for_its_workspace_says_1012() {
    let mut far = Far::start().await;
    let world = far.world("600").await;
    let mut pty = terminal(&world).await;
    far.carry(false).await;
    far.was_tried().await;
    world.shutdown.drain();
    assert_eq!(pty.closed().await.unwrap(), (1012, "the daemon is shutting down".to_owned()));
    world.server.await.unwrap().unwrap();
    far.end().await;
}

#[tokio::test]
async fn before_a_server_has_ended_every_terminal_and_chat_has_been_told_with_1012() {
    let (started, starting) = oneshot::channel();
    // In a runtime of its own: what was not said when the server has ended is never said.
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let settings = [
                ("workspace.mode", "sandbox"),
                ("workspace.pty_shell_command", "bash,--norc,--noprofile"),
                ("workspace.pty_max_sessions", "100"),
                ("workspace.chat_command", "bash,-c,cat"),
            ];
            let world = World::with(&settings).await;
            let url = format!("http://127.0.0.1:{}", world.address.port());
            started.send((url, world.token.clone(), world.shutdown.clone())).ok().unwrap();
            world.server.await.unwrap().unwrap();
        });
    });
    let (url, token, shutdown) = starting.await.unwrap();
    let mut open = Vec::new();
    for n in 0..TERMINALS {
        let mut pty = Pty::open(&url, &token, "provider=shell").await.unwrap();
        pty.said("output").await.unwrap();
        match n {
            0 => {
                pty.input("exit\n").await.unwrap();
                pty.said("exit").await.unwrap();
            }
            1 => pty.input("yes\n").await.unwrap(),
            _ => {}
        }
        open.push(pty);
    }
    let mut chat = Pty::chat(&url, &token, "").await.unwrap();
    assert_eq!(chat.frame().await.unwrap()["subtype"], "connected");
    open.push(chat);
    shutdown.drain();
    for closed in join_all(open.iter_mut().map(Pty::closed)).await {
        assert_eq!(closed.unwrap().0, 1012);
    }
    tokio::task::spawn_blocking(|| serving.join().unwrap()).await.unwrap();
}

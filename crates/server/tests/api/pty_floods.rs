//! Terminals that are flooded, in either direction: they stay of use, and so do all others.

use sandbank_test_support::Pty;
use serde_json::json;

use crate::world::World;

const SHELL: (&str, &str) = ("workspace.pty_shell_command", "bash,--norc,--noprofile");

async fn open(world: &World, query: &str) -> Pty {
    let url = format!("http://127.0.0.1:{}", world.address.port());
    Pty::open(&url, &world.token, query).await.unwrap()
}

/// It answers, now. Where it was painted the screen anew, what follows the words may be anything.
async fn answers(pty: &mut Pty, word: &str) {
    pty.input(&format!("echo {word}''-heard\n")).await.unwrap();
    pty.read_until(&format!("{word}-heard")).await.unwrap();
}

#[tokio::test]
async fn a_storm_of_sizes_beside_a_flood_ends_with_the_last_one_and_others_are_served() {
    let world = World::with(&[("workspace.mode", "sandbox"), SHELL]).await;
    let flood = "session_id=88888888-8888-4888-8888-888888888888";
    let mut mute = open(&world, flood).await;
    mute.input("yes\n").await.unwrap();
    mute.read_until("y\r\ny\r\n").await.unwrap();
    let mut other = open(&world, "").await;
    answers(&mut other, "before").await;
    let mut pty = open(&world, "").await;
    for n in 0..5_000 {
        let size = json!({ "type": "resize", "rows": n % 600, "cols": 600 - n % 600 });
        pty.say(size).await.unwrap();
        if n % 500 == 0 {
            answers(&mut other, &format!("during-{n}")).await;
        }
    }
    pty.input("stty size; echo o''k\n").await.unwrap();
    pty.read_until("ok\r\n").await.unwrap();
    assert!(pty.output.contains("199 401\r\n"), "{:?}", pty.output);
    // A storm on the flooded terminal itself, by somebody who looks.
    let mut looking = open(&world, flood).await;
    looking.said("history").await.unwrap();
    for n in 0..1_000 {
        looking.say(json!({ "type": "resize", "rows": 20 + n % 9, "cols": 80 })).await.unwrap();
    }
    looking.input("\u{3}").await.unwrap();
    answers(&mut looking, "quiet").await;
    looking.input("stty size\n").await.unwrap();
    looking.read_until("20 80").await.unwrap();
    // The mute one takes up again where everybody is.
    mute.output.clear();
    mute.read_until("quiet-heard").await.unwrap();
    answers(&mut other, "after").await;
}

#[tokio::test]
async fn messages_with_nothing_in_them_are_not_kept_without_end() {
    let world = World::with(&[("workspace.mode", "sandbox"), SHELL]).await;
    let mut pty = open(&world, "").await;
    // From here on nothing that is typed is taken.
    pty.input("stty raw -echo; echo read''y; exec sleep 600\n").await.unwrap();
    pty.read_until("ready").await.unwrap();
    for _ in 0..100 {
        pty.input(&"x".repeat(1_000)).await.unwrap();
    }
    for _ in 0..100_000 {
        if pty.input("").await.is_err() {
            break;
        }
    }
    assert_eq!(pty.closed().await.unwrap().0, 4005);
    answers(&mut open(&world, "").await, "another").await;
}

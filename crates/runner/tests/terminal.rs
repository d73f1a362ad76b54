//! Commands on a terminal.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;

use commanding::{Heard, fault_code, follow, id, read_until, run, shell, spec};
use live_runner::{LiveRunner, wait_for};
use sandbank_channel::{empty_body, full_body};
use sandbank_protocol::{CommandSpec, Ending, FaultCode, PtySize, ShellUse, SignalRequest};

const SIZE: PtySize = PtySize { rows: 30, cols: 100 };

fn on_terminal(mut spec: CommandSpec) -> CommandSpec {
    spec.pty = Some(SIZE);
    spec
}

#[tokio::test]
async fn a_terminal_has_its_size_and_one_stream() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = "test -t 0 && test -t 1 && test -t 2 && stty size </dev/tty; echo err >&2";
    let heard = run(&client, &on_terminal(shell("c", script))).await;
    assert_eq!(String::from_utf8(heard.pty).unwrap(), "30 100\r\nerr\r\n");
    assert_eq!((heard.stdout.len(), heard.stderr.len()), (0, 0));
    assert!(client.command(&id("c")).await.unwrap().pty);
}

#[tokio::test]
async fn what_is_typed_is_echoed_and_read() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&on_terminal(spec("c", &["cat"]))).await.unwrap();
    let mut stream = client.output(&id("c"), 0, true).await.unwrap();
    let mut heard = Heard::default();
    client.stdin(&id("c"), 0, false, full_body("typed\n")).await.unwrap();
    read_until(&mut stream, &mut heard, "typed\r\ntyped\r\n").await;
    let ended = client.stdin(&id("c"), 6, true, empty_body()).await.unwrap();
    assert!(ended.closed);
    heard.take_all(&mut stream).await;
    assert_eq!(heard.ending, Some(Ending::Exited { code: 0 }));
}

#[tokio::test]
async fn input_that_ends_inside_a_line_is_handed_over_with_that_line() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&on_terminal(spec("c", &["cat"]))).await.unwrap();
    client.stdin(&id("c"), 0, true, full_body("no newline")).await.unwrap();
    let heard = follow(&client, "c", 0).await;
    assert!(String::from_utf8(heard.pty).unwrap().ends_with("no newline"));
    assert_eq!(heard.ending, Some(Ending::Exited { code: 0 }));
}

#[tokio::test]
async fn resizing_reaches_the_program() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done";
    client.start(&on_terminal(shell("c", script))).await.unwrap();
    let mut stream = client.output(&id("c"), 0, true).await.unwrap();
    let mut heard = Heard::default();
    read_until(&mut stream, &mut heard, "ready").await;
    client.resize(&id("c"), PtySize { rows: 50, cols: 132 }).await.unwrap();
    heard.take_all(&mut stream).await;
    assert!(String::from_utf8(heard.pty).unwrap().contains("50 132"));
    let late = client.resize(&id("c"), SIZE).await;
    assert_eq!(fault_code(late), FaultCode::Closed);
    client.start(&spec("plain", &["true"])).await.unwrap();
    assert_eq!(fault_code(client.resize(&id("plain"), SIZE).await), FaultCode::Conflict);
}

#[tokio::test]
async fn an_interrupt_key_interrupts() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&on_terminal(shell("c", "echo ready; exec sleep 60"))).await.unwrap();
    let mut stream = client.output(&id("c"), 0, true).await.unwrap();
    let mut heard = Heard::default();
    read_until(&mut stream, &mut heard, "ready").await;
    client.stdin(&id("c"), 0, false, full_body("\u{3}")).await.unwrap();
    heard.take_all(&mut stream).await;
    assert_eq!(heard.ending, Some(Ending::Signaled { signal: libc::SIGINT }));
}

#[tokio::test]
async fn all_output_of_a_terminal_comes_before_the_ending() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for round in 0..20 {
        let name = format!("c{round}");
        let heard = run(&client, &on_terminal(shell(&name, "seq 1 2000"))).await;
        let expected: String = (1..=2_000).map(|n| format!("{n}\r\n")).collect();
        assert_eq!(String::from_utf8(heard.pty).unwrap(), expected);
    }
    let descriptors = format!("/proc/{}/fd", runner.pid());
    let open = async || std::fs::read_dir(&descriptors).unwrap().count();
    wait_for("the terminals are closed", async || open().await < 20).await;
}

#[tokio::test]
async fn a_terminal_that_was_closed_and_opened_again_is_heard_again() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = "t=$(tty); echo before; exec </dev/null >/dev/null 2>&1; sleep 0.2; \
                  echo after >$t; sleep 0.1; exit 5";
    let heard = run(&client, &on_terminal(shell("c", script))).await;
    assert_eq!(String::from_utf8(heard.pty).unwrap(), "before\r\nafter\r\n");
    assert_eq!(heard.ending, Some(Ending::Exited { code: 5 }));
}

#[tokio::test]
async fn a_shell_on_a_terminal_can_be_hung_up_with_its_jobs() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut spec = on_terminal(spec("hangup-shell", &["/bin/sh", "-i"]));
    spec.env = [("PS1".to_owned(), "$ ".to_owned())].into();
    client.start(&spec).await.unwrap();
    let mut stream = client.output(&id("hangup-shell"), 0, true).await.unwrap();
    let mut heard = Heard::default();
    read_until(&mut stream, &mut heard, "$ ").await;
    client.stdin(&id("hangup-shell"), 0, false, full_body("sleep 61 &\n")).await.unwrap();
    let hangup = SignalRequest { signal: libc::SIGHUP, by: "ann".to_owned(), tree: true };
    client.signal(&id("hangup-shell"), &hangup).await.unwrap();
    heard.take_all(&mut stream).await;
    let killed = Ending::Killed { by: "ann".to_owned(), signal: libc::SIGHUP };
    assert_eq!(heard.ending, Some(killed));
}

/// A terminal hands out a few KiB at a time, and this one is never empty.
#[tokio::test]
async fn a_terminal_that_is_never_silent_keeps_nobody_waiting() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let flood = "while :; do printf '%4000d' 1; done";
    for (name, shell) in [("plain", None), ("remembering", Some("main"))] {
        let argv: &[&str] = if shell.is_some() { &[flood] } else { &["bash", "-c", flood] };
        let shell = shell.map(|name| ShellUse {
            name: name.parse().unwrap(),
            merged: false,
            begin_in: None,
        });
        let command =
            CommandSpec { pty: Some(SIZE), shell, timeout_ms: Some(2_000), ..spec(name, argv) };
        client.start(&command).await.unwrap();
        for _ in 0..50 {
            client.stats().await.unwrap();
        }
        assert_eq!(follow(&client, name, 0).await.ending, Some(Ending::TimedOut), "{name}");
    }
}

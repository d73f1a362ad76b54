//! How commands end: on their own, by request, by timeout, and with things left behind.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;

use commanding::{Heard, fault_code, follow, id, processes_of, read_until, run, shell, spec};
use live_runner::{LiveRunner, wait_for};
use sandbank_protocol::{Ending, FaultCode, SignalRequest};

fn signal(signal: i32, tree: bool) -> SignalRequest {
    SignalRequest { signal, by: "ann".to_owned(), tree }
}

#[tokio::test]
async fn a_command_that_kills_itself_is_signaled() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let killed = run(&client, &shell("k", "kill -9 $$")).await;
    assert_eq!(killed.ending, Some(Ending::Signaled { signal: 9 }));
    let crashed = run(&client, &shell("s", "kill -SEGV $$")).await;
    assert_eq!(crashed.ending, Some(Ending::Signaled { signal: 11 }));
}

#[tokio::test]
async fn a_requested_death_names_who_asked() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&shell("c", "sleep 60")).await.unwrap();
    client.signal(&id("c"), &signal(15, false)).await.unwrap();
    let ended = client.wait(&id("c")).await.unwrap();
    let killed = Ending::Killed { by: "ann".to_owned(), signal: 15 };
    assert_eq!(ended.ending(), Some(&killed));
    assert_eq!(fault_code(client.signal(&id("c"), &signal(15, false)).await), FaultCode::Closed);
    assert_eq!(fault_code(client.signal(&id("c"), &signal(0, false)).await), FaultCode::Invalid);
}

#[tokio::test]
async fn a_handled_signal_is_an_ordinary_exit() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = "trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.01; done";
    client.start(&shell("c", script)).await.unwrap();
    let mut heard = Heard::default();
    let mut stream = client.output(&id("c"), 0, true).await.unwrap();
    read_until(&mut stream, &mut heard, "ready").await;
    client.signal(&id("c"), &signal(libc::SIGUSR1, false)).await.unwrap();
    heard.take_all(&mut stream).await;
    assert!(heard.text().ends_with("caught\n"));
    assert_eq!(heard.ending, Some(Ending::Exited { code: 5 }));
}

#[tokio::test]
async fn a_tree_signal_reaches_what_left_the_session() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&shell("tree", "setsid sleep 60 & sleep 60")).await.unwrap();
    wait_for("both sleep", async || processes_of("tree").len() == 3).await;
    client.signal(&id("tree"), &signal(9, true)).await.unwrap();
    wait_for("all are gone", async || processes_of("tree").is_empty()).await;
    let killed = Ending::Killed { by: "ann".to_owned(), signal: 9 };
    assert_eq!(client.wait(&id("tree")).await.unwrap().ending(), Some(&killed));
}

#[tokio::test]
async fn what_an_ended_command_left_behind_can_still_be_killed() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let heard = run(&client, &shell("left", "setsid sleep 60 >/dev/null 2>&1 & echo")).await;
    assert_eq!(heard.code(), Some(0));
    wait_for("it sleeps", async || processes_of("left").len() == 1).await;
    client.signal(&id("left"), &signal(9, true)).await.unwrap();
    wait_for("it is gone", async || processes_of("left").is_empty()).await;
    assert_eq!(fault_code(client.signal(&id("left"), &signal(9, true)).await), FaultCode::Closed);
}

#[tokio::test]
async fn a_timeout_leaves_nothing_behind() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    // One in the background, one in a session of its own, one whose parents are gone.
    let script = "sleep 60 & setsid sleep 60 & (setsid sh -c 'sleep 60 & exec sleep 60' &) & \
                  echo started; sleep 60";
    let mut timed = shell("timed-5", script);
    timed.timeout_ms = Some(300);
    let heard = run(&client, &timed).await;
    assert_eq!(heard.text(), "started\n");
    assert_eq!(heard.ending, Some(Ending::TimedOut));
    assert_eq!(processes_of("timed-5"), Vec::<u32>::new());
}

#[tokio::test]
async fn a_timeout_kills_what_ignores_it() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut stubborn =
        shell("timed-6", "trap '' TERM; setsid sleep 60 & while :; do sleep 1; done");
    stubborn.timeout_ms = Some(100);
    let heard = run(&client, &stubborn).await;
    assert_eq!(heard.ending, Some(Ending::TimedOut));
    assert_eq!(processes_of("timed-6"), Vec::<u32>::new());
}

#[tokio::test]
async fn a_timeout_lets_a_command_say_goodbye_even_when_it_is_stopped() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut stopped = shell("s", "trap 'echo bye; exit 0' TERM; kill -STOP $$; sleep 60");
    stopped.timeout_ms = Some(200);
    let heard = run(&client, &stopped).await;
    assert_eq!(heard.text(), "bye\n");
    assert_eq!(heard.ending, Some(Ending::TimedOut));
}

#[tokio::test]
async fn a_background_child_that_keeps_stdout_open_does_not_delay_the_ending() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let heard = run(&client, &shell("background-8", "sleep 60 & echo done")).await;
    assert_eq!(heard.text(), "done\n");
    assert_eq!(heard.ending, Some(Ending::Exited { code: 0 }));
    assert_eq!(
        processes_of("background-8").len(),
        1,
        "the ending came while the child was still there"
    );
}

#[tokio::test]
async fn a_background_child_that_writes_after_the_ending_lives_and_is_counted() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    // Far more than a pipe holds: it would block or die if nobody read it.
    let script = "(sleep 0.5; head -c 4000000 /dev/zero; touch written) & echo first";
    let heard = run(&client, &shell("c", script)).await;
    assert_eq!(heard.text(), "first\n");
    wait_for("the child has written", async || runner.inside("written").exists()).await;
    let late = async || client.command(&id("c")).await.unwrap().dropped_bytes;
    wait_for("all of it is counted", async || late().await == 4_000_000).await;
    assert_eq!(client.command(&id("c")).await.unwrap().stdout_bytes, 4_000_006);
    let again = follow(&client, "c", 0).await;
    assert_eq!(again.text(), "first\n");
}

#[tokio::test]
async fn a_background_child_that_never_stops_writing_does_not_delay_the_ending() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let heard = run(&client, &shell("background-10", "yes & exit 3")).await;
    assert_eq!(heard.ending, Some(Ending::Exited { code: 3 }));
    client.signal(&id("background-10"), &signal(9, true)).await.unwrap();
    wait_for("it is gone", async || processes_of("background-10").is_empty()).await;
}

#[tokio::test]
async fn orphans_are_reaped() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = "i=0; while [ $i -lt 300 ]; do (sh -c 'sleep 0.01 &' &); i=$((i+1)); done";
    let heard = run(&client, &shell("o", script)).await;
    assert_eq!(heard.code(), Some(0));
    wait_for("no child is left", async || children(runner.pid()).is_empty()).await;
}

fn children(pid: u32) -> Vec<String> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
async fn waiting_is_answered_when_the_command_ends() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&spec("c", &["cat", "pipe"])).await.unwrap();
    let ended = client.wait(&id("c")).await.unwrap();
    assert_eq!(ended.ending(), Some(&Ending::Exited { code: 1 }));
    let again = client.wait(&id("c")).await.unwrap();
    assert_eq!(again, ended);
}

//! Feeding stdin: by offset, without doubling, without buffering.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;

use bytes::Bytes;
use commanding::{fault_code, follow, id, run, shell, spec};
use futures_util::stream;
use live_runner::{LiveRunner, wait_for};
use sandbank_channel::{ChannelBody, empty_body, full_body, stream_body};
use sandbank_protocol::{CommandSpec, Ending, FaultCode, StdinMode};

fn fed(mut spec: CommandSpec) -> CommandSpec {
    spec.stdin = StdinMode::Open;
    spec
}

/// Chunks of the repeating bytes 0..=250 from `offset` up to `end`.
fn pattern(offset: u64, end: u64) -> ChannelBody {
    const CHUNK: u64 = 100_000;
    stream_body(stream::iter((offset..end).step_by(CHUNK as usize).map(move |from| {
        let to = (from + CHUNK).min(end);
        Ok(Bytes::from_iter((from..to).map(|position| (position % 251) as u8)))
    })))
}

#[tokio::test]
async fn stdin_arrives_in_order_and_ends() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&fed(spec("c", &["cat"]))).await.unwrap();
    let first = client.stdin(&id("c"), 0, false, full_body("hello ")).await.unwrap();
    assert_eq!((first.next_offset, first.closed), (6, false));
    let last = client.stdin(&id("c"), 6, true, full_body("world")).await.unwrap();
    assert_eq!((last.next_offset, last.closed), (11, true));
    let heard = follow(&client, "c", 0).await;
    assert_eq!(heard.text(), "hello world");
    assert_eq!(heard.ending, Some(Ending::Exited { code: 0 }));
    assert_eq!(client.command(&id("c")).await.unwrap().stdin_offset, 11);
}

#[tokio::test]
async fn repeated_bytes_are_skipped_and_gaps_are_refused() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&fed(spec("c", &["cat"]))).await.unwrap();
    client.stdin(&id("c"), 0, false, full_body("abc")).await.unwrap();
    client.stdin(&id("c"), 0, false, full_body("abc")).await.unwrap();
    client.stdin(&id("c"), 1, false, full_body("bcdef")).await.unwrap();
    let gap = client.stdin(&id("c"), 9, false, full_body("x")).await;
    assert_eq!(fault_code(gap), FaultCode::Conflict);
    client.stdin(&id("c"), 6, true, empty_body()).await.unwrap();
    assert_eq!(follow(&client, "c", 0).await.text(), "abcdef");
    // The last request again, as after a lost answer.
    let again = client.stdin(&id("c"), 1, true, full_body("bcdef")).await.unwrap();
    assert_eq!((again.next_offset, again.closed), (6, true));
    let more = client.stdin(&id("c"), 6, false, full_body("more")).await;
    assert_eq!(fault_code(more), FaultCode::Closed);
}

#[tokio::test]
async fn a_command_without_stdin_reads_nothing_and_takes_nothing() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let heard = run(&client, &spec("c", &["cat"])).await;
    assert_eq!((heard.text().as_str(), heard.code()), ("", Some(0)));
    let refused = client.stdin(&id("c"), 0, false, full_body("x")).await;
    assert_eq!(fault_code(refused), FaultCode::Closed);
}

#[tokio::test]
async fn a_command_that_stops_reading_closes_its_stdin() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&fed(shell("c", "head -c 10; exec <&-; sleep 60"))).await.unwrap();
    let refused = client.stdin(&id("c"), 0, false, pattern(0, 10_000_000)).await;
    assert_eq!(fault_code(refused), FaultCode::Closed);
    let accepted = client.command(&id("c")).await.unwrap().stdin_offset;
    assert!((10..10_000_000).contains(&accepted), "{accepted}");
}

#[tokio::test]
async fn a_writer_that_waits_is_released_when_the_command_ends() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    // The child keeps the pipe open without ever reading it.
    client.start(&fed(shell("c", "sleep 60 <&0 & exec sleep 0.2"))).await.unwrap();
    let refused = client.stdin(&id("c"), 0, false, pattern(0, 10_000_000)).await;
    assert_eq!(fault_code(refused), FaultCode::Closed);
}

#[tokio::test]
async fn a_hundred_megabytes_survive_a_lost_connection() {
    const BYTES: u64 = 100_000_000;
    let runner = LiveRunner::start();
    let first = runner.client().await;
    let script = "cksum; touch counted";
    first.start(&fed(shell("c", script))).await.unwrap();
    let feeding = {
        let first = first.clone();
        tokio::spawn(async move { first.stdin(&id("c"), 0, true, pattern(0, BYTES)).await })
    };
    let second = runner.client().await;
    let accepted = async || second.command(&id("c")).await.unwrap().stdin_offset;
    wait_for("some was accepted", async || accepted().await > 1_000_000).await;
    feeding.abort();
    drop(first);
    // What was in flight may still arrive; the offset sorts it out.
    let from = accepted().await.min(BYTES / 2);
    let done = second.stdin(&id("c"), from, true, pattern(from, BYTES)).await.unwrap();
    assert_eq!((done.next_offset, done.closed), (BYTES, true));
    let heard = follow(&second, "c", 0).await;
    std::fs::write(
        runner.inside("expected"),
        Vec::from_iter((0..BYTES).map(|position| (position % 251) as u8)),
    )
    .unwrap();
    let expected = run(&second, &shell("e", "cksum < expected")).await;
    assert_eq!(heard.text(), expected.text());
    let status = std::fs::read_to_string(format!("/proc/{}/status", runner.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let peak: u64 = peak.trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 64 << 10, "the runner grew to {peak} KiB");
}

#[tokio::test]
async fn writers_take_turns() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&fed(shell("c", "sleep 0.2; cat | cksum"))).await.unwrap();
    // All send the same bytes; each byte must arrive once.
    let writers = (0..8).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.stdin(&id("c"), 0, false, pattern(0, 3_000_000)).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        assert_eq!(writer.await.unwrap().unwrap().next_offset, 3_000_000);
    }
    client.stdin(&id("c"), 3_000_000, true, empty_body()).await.unwrap();
    let heard = follow(&client, "c", 0).await;
    assert!(heard.text().trim_end().ends_with(" 3000000"), "{}", heard.text());
}

#[tokio::test]
async fn writers_that_wait_do_not_hold_up_other_requests() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for number in 0..40 {
        let name = format!("c{number}");
        client.start(&fed(spec(&name, &["sleep", "60"]))).await.unwrap();
        let client = client.clone();
        tokio::spawn(
            async move { client.stdin(&id(&name), 0, false, pattern(0, 9_000_000)).await },
        );
    }
    let accepted = async || client.command(&id("c39")).await.unwrap().stdin_offset;
    wait_for("all pipes are full", async || accepted().await > 0).await;
    let heard = run(&client, &shell("other", "echo still here")).await;
    assert_eq!(heard.text(), "still here\n");
}

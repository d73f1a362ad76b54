//! Log streams: one valid line per frame, live, resumable, and honest about how they end.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::Response;
use sandbank_test_support::wait_for;
use serde_json::{Value, json};

use crate::world::{World, code, refused};

/// Reads whole lines as they come.
struct Lines {
    response: Response,
    rest: Vec<u8>,
}

impl Lines {
    fn of(response: Response) -> Self {
        assert_eq!(response.headers()["content-type"], "application/x-ndjson; charset=utf-8");
        Self { response, rest: Vec::new() }
    }

    /// None at a clean end; an error when the transfer broke off.
    async fn next(&mut self) -> Result<Option<Value>, reqwest::Error> {
        loop {
            if let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=at).collect();
                return Ok(Some(serde_json::from_slice(&line).expect("every line is JSON")));
            }
            match self.response.chunk().await? {
                Some(chunk) => self.rest.extend_from_slice(&chunk),
                None => {
                    assert!(self.rest.is_empty(), "a line without its end");
                    return Ok(None);
                }
            }
        }
    }

    async fn all(mut self) -> Vec<Value> {
        let mut lines = Vec::new();
        while let Some(line) = self.next().await.unwrap() {
            lines.push(line);
        }
        lines
    }
}

async fn logs(world: &World, command: &str, query: &str) -> Lines {
    let path = format!("{command}/logs{query}");
    Lines::of(world.open("GET", &path).send().await.unwrap())
}

fn text(lines: &[Value], stream: &str) -> String {
    let of = lines.iter().filter(|line| line["stream"] == stream);
    of.map(|line| line["data"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn output_is_replayed_in_order_and_ends_with_the_ending() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "echo a; echo b >&2; echo héllo; exit 4").await;
    for _ in 0..2 {
        let lines = logs(&world, &command, "").await.all().await;
        assert_eq!(
            (text(&lines, "stdout"), text(&lines, "stderr")),
            ("a\nhéllo\n".into(), "b\n".into())
        );
        let last = lines.last().unwrap();
        assert_eq!((&last["stream"], &last["type"]), (&json!("control"), &json!("ending")));
        assert_eq!((&last["exitCode"], &last["ending"]["kind"]), (&json!(4), &json!("exited")));
        let seqs: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
        assert!(seqs[..seqs.len() - 1].windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    }
}

#[tokio::test]
async fn lines_come_while_the_command_runs() {
    let world = World::start().await;
    let id = world.sandbox().await;
    world.api.run(&id, "mkfifo gate").await.unwrap();
    let command = world.bash(&id, "echo first; read -r _ < gate; echo second").await;
    let mut lines = logs(&world, &command, "").await;
    assert_eq!(lines.next().await.unwrap().unwrap()["data"], "first\n");
    world.api.run(&id, "echo go > gate").await.unwrap();
    assert_eq!(lines.next().await.unwrap().unwrap()["data"], "second\n");
    assert_eq!(lines.all().await.len(), 1, "only the ending is left");
}

#[tokio::test]
async fn a_stream_resumes_after_any_record() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "for i in 1 2 3 4 5; do echo $i; sleep 0.02; done").await;
    let lines = logs(&world, &command, "").await.all().await;
    let (ending, output) = lines.split_last().unwrap();
    for (at, line) in output.iter().enumerate() {
        let after = format!("?after={}", line["seq"]);
        let rest = logs(&world, &command, &after).await.all().await;
        assert_eq!(rest, lines[at + 1..], "after {}", line["seq"]);
    }
    assert_eq!(ending["seq"], output.last().unwrap()["seq"], "the ending has no number of its own");
}

#[tokio::test]
async fn without_follow_a_stream_ends_with_what_is_there() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "echo there; sleep 60").await;
    wait_for("the output", Duration::from_secs(10), || async {
        let lines = logs(&world, &command, "?follow=false").await.all().await;
        text(&lines, "stdout") == "there\n"
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn odd_bytes_stay_valid_lines_and_base64_has_them_exactly() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let script = r#"printf '\0\377\376"\\\r\033[31m\n'; printf 'caf\303\251'"#;
    let command = world.bash(&id, script).await;
    let exact = b"\0\xff\xfe\"\\\r\x1b[31m\ncaf\xc3\xa9";
    let lines = logs(&world, &command, "").await.all().await;
    assert_eq!(text(&lines, "stdout"), String::from_utf8_lossy(exact));
    let lines = logs(&world, &command, "?encoding=base64").await.all().await;
    let bytes: Vec<u8> = lines
        .iter()
        .filter(|line| line["stream"] == "stdout")
        .flat_map(|line| BASE64.decode(line["data"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(bytes, exact);
}

#[tokio::test]
async fn much_output_arrives_complete_and_in_order() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "seq 1 300000").await;
    let lines = logs(&world, &command, "").await.all().await;
    let expected: String = (1..=300_000).map(|n| format!("{n}\n")).collect();
    assert!(text(&lines, "stdout") == expected, "the output differs");
}

#[tokio::test]
async fn dropped_output_is_counted() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let total: u64 = 40 << 20;
    let command = world.bash(&id, &format!("head -c {total} /dev/zero | tr '\\0' x")).await;
    world.api.wait(&id, command.rsplit('/').next().unwrap()).await.unwrap();
    let lines = logs(&world, &command, "").await.all().await;
    let dropped: u64 = lines
        .iter()
        .filter(|line| line["type"] == "dropped")
        .map(|line| line["bytes"].as_u64().unwrap())
        .sum();
    assert!(dropped > 0, "nothing was dropped of 40 MiB");
    assert_eq!(dropped + text(&lines, "stdout").len() as u64, total);
}

#[tokio::test]
async fn a_stream_survives_a_broken_channel_without_loss_or_repetition() {
    let world = World::start().await;
    let id = world.sandbox().await;
    world.api.run(&id, "mkfifo gate").await.unwrap();
    let script = "for i in $(seq 1 200); do echo $i; done; read -r _ < gate; seq 201 400; exit 6";
    let command = world.bash(&id, script).await;
    let mut lines = logs(&world, &command, "").await;
    let mut seen = vec![lines.next().await.unwrap().unwrap()];
    world.engine.cut_channels();
    world.api.run(&id, "echo go > gate").await.unwrap();
    world.engine.cut_channels();
    seen.extend(lines.all().await);
    let expected: String = (1..=400).map(|n| format!("{n}\n")).collect();
    assert_eq!(text(&seen, "stdout"), expected);
    assert_eq!(seen.last().unwrap()["exitCode"], 6);
}

#[tokio::test]
async fn a_stream_ends_with_its_sandbox_and_says_so() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "echo up; sleep 60").await;
    let mut lines = logs(&world, &command, "").await;
    assert_eq!(lines.next().await.unwrap().unwrap()["data"], "up\n");
    world.api.stop(&id).await.unwrap();
    let rest = lines.all().await;
    let last = rest.last().unwrap();
    assert_eq!((&last["type"], &last["ending"]["kind"]), (&json!("ending"), &json!("lost")));
}

#[tokio::test]
async fn odd_queries_are_refused() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "true").await;
    for query in ["?after=x", "?after=-1", "?encoding=latin1", "?follow=maybe", "?format=xml"] {
        let request = world.open("GET", &format!("{command}/logs{query}"));
        assert_eq!(refused(request).await, code(400, "bad_query"), "{query}");
    }
}

#[tokio::test]
async fn a_client_that_goes_leaves_nothing_behind() {
    let world = World::with(&[("server.max_streams", "1")]).await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "echo up; sleep 60").await;
    let mut first = logs(&world, &command, "").await;
    first.next().await.unwrap();
    let path = format!("{command}/logs");
    let response = world.open("GET", &path).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers().contains_key("retry-after")),
        (503, true)
    );
    drop(first);
    wait_for("the place of the stream", Duration::from_secs(10), || async {
        world.open("GET", &path).send().await.unwrap().status() == 200
    })
    .await
    .unwrap();
}

//! Reading output: whole characters, any offset, bounded memory, exact counts.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;

use commanding::{Heard, fault_code, follow, id, read_until, run, shell, spec};
use live_runner::{LiveRunner, wait_for};
use sandbank_protocol::{Ending, FaultCode, Frame};

const MIB: u64 = 1 << 20;

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn characters_are_never_cut_between_frames() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    // Each character arrives in pieces, with a pause inside.
    let script = r"for i in 1 2 3; do printf '\342'; sleep 0.02; printf '\202'; sleep 0.02;
                   printf '\254x\360\237'; sleep 0.02; printf '\230\200'; done; printf '\303'";
    client.start(&shell("utf8", script)).await.unwrap();
    let mut stream = client.output(&id("utf8"), 0, true).await.unwrap();
    let mut pieces = Vec::new();
    while let Some(frame) = stream.next().await.unwrap() {
        if let Frame::Output { data, .. } = frame {
            pieces.push(data);
        }
    }
    let unfinished = pieces.pop().unwrap();
    assert_eq!(&unfinished[..], b"\xc3", "what never became a character comes at the end");
    let text: String = pieces.iter().map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    assert_eq!(text, "€x😀€x😀€x😀");
}

#[tokio::test]
async fn binary_output_passes_unchanged() {
    let runner = LiveRunner::start();
    let bytes: Vec<u8> = (0..=255u8).cycle().take(3_000_000).collect();
    std::fs::write(runner.inside("bytes"), &bytes).unwrap();
    let heard = run(&runner.client().await, &spec("cat", &["cat", "bytes"])).await;
    assert_eq!(heard.stdout.len(), bytes.len());
    assert!(heard.stdout == bytes, "some byte changed");
}

#[tokio::test]
async fn a_reader_resumes_behind_the_last_frame_it_saw() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.03; done";
    let whole = run(&client, &shell("c", script)).await;
    assert_eq!(whole.text(), "1\n2\n3\n4\n5\n6\n");
    let numbered: Vec<u64> = (1..=whole.seqs.len() as u64).collect();
    assert_eq!(whole.seqs, numbered);
    for after in &whole.seqs {
        let rest = follow(&client, "c", *after).await;
        assert_eq!(rest.seqs, numbered[*after as usize..]);
        assert_eq!(rest.ending, whole.ending);
    }
    let beyond = client.output(&id("c"), 1_000, true).await;
    assert_eq!(fault_code(beyond.map(drop)), FaultCode::Invalid);
}

#[tokio::test]
async fn a_cut_stream_continues_on_another_connection_without_loss() {
    let runner = LiveRunner::start();
    let first = runner.client().await;
    first.start(&shell("c", "seq 1 200000; echo end")).await.unwrap();
    let mut heard = Heard::default();
    let mut stream = first.output(&id("c"), 0, true).await.unwrap();
    heard.take(stream.next().await.unwrap().unwrap());
    drop((stream, first));
    let second = runner.client().await;
    let mut stream = second.output(&id("c"), *heard.seqs.last().unwrap(), true).await.unwrap();
    heard.take_all(&mut stream).await;
    let expected: String = (1..=200_000).map(|n| format!("{n}\n")).collect::<String>() + "end\n";
    assert!(heard.text() == expected, "something is missing or doubled");
}

#[tokio::test]
async fn without_follow_a_reader_gets_what_is_there() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&shell("c", "echo one; read line < /dev/zero || sleep 60")).await.unwrap();
    wait_for("it spoke", async || client.command(&id("c")).await.unwrap().last_seq == 1).await;
    let mut now = Heard::default();
    now.take_all(&mut client.output(&id("c"), 0, false).await.unwrap()).await;
    assert_eq!(now.text(), "one\n");
    assert_eq!(now.ending, None);
}

#[tokio::test]
async fn a_small_journal_tells_exactly_what_it_dropped() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut flood = shell("c", "seq 1 300000");
    flood.journal_bytes = Some(256 << 10);
    client.start(&flood).await.unwrap();
    let status = client.wait(&id("c")).await.unwrap();
    let all: String = (1..=300_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(status.stdout_bytes, all.len() as u64);
    let heard = follow(&client, "c", 0).await;
    assert!(heard.dropped_bytes > 0 && heard.dropped_bytes == status.dropped_bytes);
    assert_eq!(heard.dropped_frames + heard.seqs.len() as u64, status.last_seq);
    assert_eq!(heard.text(), all[heard.dropped_bytes as usize..]);
    // A reader that had seen the first frame is told of the others only.
    let resumed = follow(&client, "c", 1).await;
    assert_eq!(resumed.dropped_frames, heard.dropped_frames - 1);
    assert!(resumed.dropped_bytes < heard.dropped_bytes);
    assert_eq!(resumed.seqs, heard.seqs);
}

#[tokio::test]
async fn all_journals_together_stay_within_their_budget() {
    let runner = LiveRunner::start_with(|config| config.journal_total_bytes = 4 * MIB);
    let client = runner.client().await;
    for number in 0..6 {
        let heard = run(&client, &shell(&format!("c{number}"), "head -c 2000000 /dev/zero")).await;
        assert_eq!(heard.stdout.len(), 2_000_000);
    }
    assert!(client.stats().await.unwrap().journal_bytes <= 4 * MIB);
    let first = follow(&client, "c0", 0).await;
    assert_eq!((first.stdout.len(), first.dropped_bytes), (0, 2_000_000));
    assert_eq!(first.ending, Some(Ending::Exited { code: 0 }));
    let last = follow(&client, "c5", 0).await;
    assert_eq!((last.stdout.len(), last.dropped_bytes), (2_000_000, 0));
}

#[tokio::test]
async fn running_commands_share_the_budget_fairly() {
    let runner = LiveRunner::start_with(|config| config.journal_total_bytes = MIB);
    let client = runner.client().await;
    client.start(&shell("small", "echo precious; sleep 60")).await.unwrap();
    wait_for("it spoke", async || client.command(&id("small")).await.unwrap().last_seq == 1).await;
    client.start(&shell("big", "head -c 8000000 /dev/zero; sleep 60")).await.unwrap();
    let written = async || client.command(&id("big")).await.unwrap().stdout_bytes;
    wait_for("the big one has written", async || written().await == 8_000_000).await;
    assert!(client.stats().await.unwrap().journal_bytes <= MIB);
    assert_eq!(client.command(&id("small")).await.unwrap().dropped_bytes, 0);
}

#[tokio::test]
async fn a_gibibyte_passes_a_reader_completely_and_memory_stays_flat() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let bytes = 1 << 30;
    client.start(&shell("g", &format!("head -c {bytes} /dev/zero"))).await.unwrap();
    let mut stream = client.output(&id("g"), 0, true).await.unwrap();
    let (mut seen, mut dropped, mut peak, mut ending) = (0, 0, 0, None);
    while let Some(frame) = stream.next().await.unwrap() {
        match frame {
            Frame::Output { seq, data, .. } => {
                seen += data.len() as u64;
                if seq % 512 == 0 {
                    peak = peak.max(resident_kib(runner.pid()));
                }
            }
            Frame::Dropped { bytes, .. } => dropped += bytes,
            Frame::Ended { ending: json, .. } => ending = serde_json::from_slice(&json).ok(),
            Frame::Heartbeat { .. } => {}
        }
    }
    assert_eq!(ending, Some(Ending::Exited { code: 0 }));
    assert_eq!((seen, dropped), (bytes, 0), "a reader that keeps up loses nothing");
    assert!(peak < 64 << 10, "the runner grew to {peak} KiB");
}

#[tokio::test]
async fn a_gibibyte_without_a_reader_is_counted_and_memory_stays_flat() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let bytes = 1 << 30;
    client.start(&shell("g", &format!("head -c {bytes} /dev/zero"))).await.unwrap();
    let ended = client.wait(&id("g")).await.unwrap();
    assert_eq!(ended.stdout_bytes, bytes);
    let heard = follow(&client, "g", 0).await;
    assert_eq!(heard.dropped_bytes, ended.dropped_bytes);
    assert_eq!(heard.stdout.len() as u64 + heard.dropped_bytes, bytes);
    let resident = resident_kib(runner.pid());
    assert!(resident < 64 << 10, "the runner grew to {resident} KiB");
}

#[tokio::test]
async fn a_reader_that_stops_reading_holds_up_neither_the_command_nor_other_readers() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let bytes = 64 * MIB;
    client.start(&shell("c", &format!("head -c {bytes} /dev/zero; echo"))).await.unwrap();
    let mut stuck = client.output(&id("c"), 0, true).await.unwrap();
    let other = runner.client().await;
    let heard = follow(&other, "c", 0).await;
    assert_eq!(heard.stdout.len() as u64 + heard.dropped_bytes, bytes + 1);
    assert_eq!(heard.ending, Some(Ending::Exited { code: 0 }));
    // The stuck one is told what it missed, and still gets the ending.
    let mut late = Heard::default();
    late.take_all(&mut stuck).await;
    assert!(late.dropped_bytes > 0);
    assert_eq!(late.stdout.len() as u64 + late.dropped_bytes, bytes + 1);
    assert_eq!(late.ending, heard.ending);
}

#[tokio::test]
async fn many_readers_see_the_same_frames() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = "for i in $(seq 1 50); do echo line $i; echo error $i >&2; done";
    client.start(&shell("c", script)).await.unwrap();
    let readers = (0..50).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { follow(&client, "c", 0).await })
    });
    let mut all = Vec::new();
    for reader in readers.collect::<Vec<_>>() {
        all.push(reader.await.unwrap());
    }
    for heard in &all {
        assert_eq!((&heard.stdout, &heard.seqs), (&all[0].stdout, &all[0].seqs));
    }
    let closed = async || client.stats().await.unwrap().readers_open == 0;
    wait_for("no reader is left", closed).await;
}

#[tokio::test]
async fn a_reader_that_leaves_is_noticed() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&shell("c", "echo here; sleep 60")).await.unwrap();
    let mut stream = client.output(&id("c"), 0, true).await.unwrap();
    read_until(&mut stream, &mut Heard::default(), "here").await;
    assert_eq!(client.stats().await.unwrap().readers_open, 1);
    drop(stream);
    wait_for("it left", async || client.stats().await.unwrap().readers_open == 0).await;
}

#[tokio::test]
async fn readers_that_stopped_reading_do_not_hold_up_other_requests() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&shell("c", "head -c 6000000 /dev/zero")).await.unwrap();
    client.wait(&id("c")).await.unwrap();
    let mut stuck = Vec::new();
    for _ in 0..40 {
        let mut stream = client.output(&id("c"), 0, true).await.unwrap();
        assert!(stream.next().await.unwrap().is_some());
        stuck.push(stream);
    }
    let heard = run(&client, &shell("other", "echo still here")).await;
    assert_eq!(heard.text(), "still here\n");
    for mut stream in stuck {
        let mut rest = Heard::default();
        rest.take_all(&mut stream).await;
        assert_eq!(rest.ending, Some(Ending::Exited { code: 0 }));
    }
}

//! The channel over stdin and stdout: attachments that break anywhere, and more than one daemon.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(unsafe_code, reason = "live_runner kills by number")]

mod attaching;
mod commanding;
mod live_runner;

use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use attaching::{AttachableRunner, Attachment, connect};
use commanding::{Heard, follow, id, run, shell, spec};
use live_runner::wait_for;
use sandbank_channel::pipe::{self, ESC, Nonce, OPEN_BYTES};
use sandbank_channel::{ByteRange, RunnerClient, full_body};
use sandbank_protocol::StdinMode;
use sandbank_test_support::Seeded;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::broadcast;

const CUTS: u64 = 200;

#[tokio::test]
async fn a_command_runs_over_stdin_and_stdout() {
    let runner = AttachableRunner::start();
    let link = pipe::open(runner.attach()).await.unwrap();
    let (client, hello) = RunnerClient::connect(link).await.unwrap();
    assert_eq!(hello.workspace, runner.workspace().to_str().unwrap());
    let heard = run(&client, &shell("c", "echo over the link; echo and errors >&2; exit 3")).await;
    assert_eq!((heard.text().as_str(), heard.code()), ("over the link\n", Some(3)));
    assert_eq!(heard.errors(), "and errors\n");
}

#[tokio::test]
async fn commands_see_nothing_of_the_link() {
    let runner = AttachableRunner::start();
    let client = runner.client().await;
    let heard = run(&client, &spec("c", &["ls", "-l", "/proc/self/fd"])).await;
    assert!(heard.text().contains("pipe:["), "it shows pipes: {}", heard.text());
    for pipe in runner.pipes() {
        assert!(!heard.text().contains(&pipe), "{pipe} is the link: {}", heard.text());
    }
}

#[tokio::test]
async fn a_link_that_was_cut_anywhere_opens_again() {
    let runner = AttachableRunner::start();
    let open = Nonce::new([3; 16]).open();
    let mut beginnings: Vec<Vec<u8>> = (0..=OPEN_BYTES).map(|end| open[..end].to_vec()).collect();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for end in 0..=preface.len() {
        beginnings.push([&open[..], &preface[..end]].concat());
    }
    // The head of a frame, half a frame, an escape without its rest, and plain nonsense.
    for rest in [&b"\0\0\x12\x04\0"[..], b"\0\0\x12\x04\0\0\0\0\0abc", &[ESC], &[ESC, 9], &[0; 99]]
    {
        beginnings.push([&open[..], preface, rest].concat());
    }
    for (number, beginning) in beginnings.iter().enumerate() {
        let mut attachment = runner.attach();
        attachment.write_all(beginning).await.unwrap();
        drop(attachment);
        let attachment = runner.attach();
        let life = attachment.life();
        let client = connect(attachment).await.unwrap();
        let heard = run(&client, &spec(&format!("c{number}"), &["echo", "here"])).await;
        assert_eq!(heard.text(), "here\n", "after {beginning:x?}");
        life.end();
    }
}

#[tokio::test]
async fn output_is_complete_after_two_hundred_cuts_under_load() {
    let mut random = Seeded::announce("cuts of the link");
    let runner = AttachableRunner::start();
    let script = "i=0; while [ ! -e stop ]; do n=0; while [ $n -lt 200 ]; do \
                  echo \"line $i\"; i=$((i+1)); n=$((n+1)); done; sleep 0.02; done; echo last $i";
    let mut heard = Heard::default();
    let attachment = runner.attach();
    let life = attachment.life();
    let client = connect(attachment).await.unwrap();
    client.start(&shell("c", script)).await.unwrap();
    // One pipe has one reader: a link that only waits for its end would take what is another's.
    life.end();
    drop(client);
    // An upload that is never complete, beside every reader.
    let noise = vec![ESC; 100_000];
    let mut frames_read = 0;
    for _ in 0..CUTS {
        let (read, written) = (random.below(60_000), random.below(4_000));
        let attachment = runner.attach_for(1 + read as usize, 1 + written as usize);
        let Ok(client) = connect(attachment).await else { continue };
        let after = heard.seqs.last().copied().unwrap_or_default();
        let Ok(mut stream) = client.output(&id("c"), after, true).await else { continue };
        let mut upload = None;
        let calm = random.below(6);
        for number in 0.. {
            if number >= calm && upload.is_none() {
                let (client, noise) = (client.clone(), full_body(noise.clone()));
                let sending = async move { client.write_file("noise", None, noise).await };
                upload = Some(tokio::spawn(sending));
            }
            let Ok(Some(frame)) = stream.next().await else { break };
            heard.take(frame);
            frames_read += 1;
        }
        client.closed().await;
        if let Some(upload) = upload {
            assert!(upload.await.unwrap().is_err(), "an attachment lived longer than it should");
        }
    }
    println!("{frames_read} frames arrived between {CUTS} cuts");
    assert!(frames_read > 0, "no attachment lived long enough to read anything");

    std::fs::write(runner.workspace().join("stop"), "").unwrap();
    let client = runner.client().await;
    let after = heard.seqs.last().copied().unwrap_or_default();
    let mut stream = client.output(&id("c"), after, true).await.unwrap();
    heard.take_all(&mut stream).await;
    assert_eq!(heard.code(), Some(0));
    assert_eq!((heard.dropped_frames, heard.dropped_bytes), (0, 0));
    let text = heard.text();
    let lines: Vec<&str> = text.lines().collect();
    let (last, lines) = lines.split_last().unwrap();
    assert_eq!(*last, format!("last {}", lines.len()));
    for (number, line) in lines.iter().enumerate() {
        assert_eq!(*line, format!("line {number}"));
    }
}

/// As a container engine does it: what the runner says goes to everyone who is attached.
struct Broadcaster {
    said: broadcast::Sender<Vec<u8>>,
    attachment: std::sync::Arc<tokio::sync::Mutex<tokio::io::WriteHalf<Attachment>>>,
}

impl Broadcaster {
    fn new(attachment: Attachment) -> Self {
        let (mut reader, writer) = tokio::io::split(attachment);
        let said = broadcast::Sender::new(1_000);
        let to_all = said.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; 32 << 10];
            while let Ok(length) = reader.read(&mut buffer).await {
                let _ = to_all.send(buffer[..length].to_vec());
            }
        });
        Self { said, attachment: std::sync::Arc::new(writer.into()) }
    }

    fn attach(&self) -> tokio::io::DuplexStream {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (mut reader, mut writer) = tokio::io::split(ours);
        let mut said = self.said.subscribe();
        tokio::spawn(async move {
            while let Ok(bytes) = said.recv().await {
                let _ = writer.write_all(&bytes).await;
            }
        });
        let attachment = self.attachment.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; 32 << 10];
            while let Ok(length @ 1..) = reader.read(&mut buffer).await {
                attachment.lock().await.write_all(&buffer[..length]).await.unwrap();
            }
        });
        theirs
    }
}

#[tokio::test]
async fn a_second_daemon_takes_over_and_the_first_is_told() {
    let runner = AttachableRunner::start();
    let engine = Broadcaster::new(runner.attach());
    let mut first = pipe::open(engine.attach()).await.unwrap();
    let mut byte = [0; 1];
    // The runner's side of HTTP/2 speaks only when spoken to.
    first.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    first.read_exact(&mut byte).await.unwrap();

    let second = pipe::open(engine.attach()).await.unwrap();
    let error = loop {
        match first.read(&mut [0; 4096]).await {
            Ok(length) => assert_ne!(length, 0, "the first sees an end instead of the reason"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
    assert!(error.to_string().contains("another daemon"), "{error}");
    let error = first.write(b"x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionAborted);

    let (client, _) = RunnerClient::connect(second).await.unwrap();
    assert_eq!(run(&client, &spec("c", &["echo", "mine"])).await.text(), "mine\n");
    // And the client of the one before, too, when it had one.
    let third = pipe::open(engine.attach()).await.unwrap();
    client.closed().await;
    let (client, _) = RunnerClient::connect(third).await.unwrap();
    assert_eq!(follow(&client, "c", 0).await.text(), "mine\n");
}

#[tokio::test]
async fn a_runner_that_nobody_listens_to_goes_on_and_is_opened_again() {
    let runner = AttachableRunner::start();
    // It breaks long before the runner has sent what it may.
    let client = connect(runner.attach_for(40_000, usize::MAX)).await.unwrap();
    client.start(&shell("c", "yes | head -c 3000000")).await.unwrap();
    let unread = client.output(&id("c"), 0, true).await;
    client.closed().await;
    wait_for("the pipe is full", async || runner.is_full()).await;

    // Its one thread is not held up by that.
    let beside = tokio::net::UnixStream::connect(runner.socket()).await.unwrap();
    let (beside, _) = RunnerClient::connect(beside).await.unwrap();
    assert_eq!(run(&beside, &spec("d", &["echo", "awake"])).await.text(), "awake\n");
    assert!(runner.is_full(), "somebody has read what was there");

    let client = runner.client().await;
    assert_eq!(follow(&client, "c", 0).await.stdout.len(), 3_000_000);
    drop(unread);
}

#[tokio::test]
async fn bytes_that_mean_something_to_the_link_pass_it_unchanged() {
    let runner = AttachableRunner::start();
    let client = runner.client().await;
    let mut random = Seeded::announce("bytes over the link");
    let noise: Vec<u8> = (0..700_000).map(|_| random.below(256) as u8).collect();
    let opens = Nonce::new([9; 16]).open().repeat(10_000);
    for (number, bytes) in [vec![ESC; 500_000], noise, opens].into_iter().enumerate() {
        let name = format!("c{number}");
        let cat =
            sandbank_protocol::CommandSpec { stdin: StdinMode::Open, ..spec(&name, &["cat"]) };
        client.start(&cat).await.unwrap();
        client.stdin(&id(&name), 0, true, full_body(bytes.clone())).await.unwrap();
        assert!(follow(&client, &name, 0).await.stdout == bytes, "{name} was changed");
        client.write_file(&name, None, full_body(bytes.clone())).await.unwrap();
        let mut file = client.read_file(&name, ByteRange::default()).await.unwrap();
        let mut read = Vec::new();
        while let Some(piece) = file.chunk().await.unwrap() {
            read.extend_from_slice(&piece);
        }
        assert!(read == bytes, "the file {name} was changed");
    }
}

#[tokio::test]
async fn a_stdin_that_everybody_left_is_read_again_when_somebody_comes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stdin");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let open = || -> OwnedFd {
        let both = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        drop(both);
        writer.into()
    };
    let both = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let stdin = std::fs::File::open(&path).unwrap();
    let writer = open();
    drop(both);
    let mut runner = AttachableRunner::start_reading(stdin.into(), writer);
    wait_for("the socket is there", async || runner.socket().exists()).await;
    let beside = tokio::net::UnixStream::connect(runner.socket());
    let (beside, _) = RunnerClient::connect(beside.await.unwrap()).await.unwrap();
    for round in ["c0", "c1", "c2"] {
        let attachment = runner.attach();
        let life = attachment.life();
        let client = connect(attachment).await.unwrap();
        client.start(&spec(round, &["sleep", "1000"])).await.unwrap();
        let reader = client.output(&id(round), 0, true).await.unwrap();
        assert_eq!(beside.stats().await.unwrap().readers_open, 1);
        // Every writer leaves, in the middle of an open. Nothing else ends the connection.
        life.end();
        runner.leave(&[ESC, 1]);
        drop((client, reader));
        wait_for("the runner knows", async || beside.stats().await.unwrap().readers_open == 0)
            .await;
        runner.come_back(open());
    }
    assert_eq!(run(&runner.client().await, &spec("d", &["echo", "here"])).await.text(), "here\n");
}

#[tokio::test]
async fn a_stdin_that_cannot_be_waited_for_is_refused() {
    let file = tempfile::tempfile().unwrap();
    let runner = std::process::Command::new(env!("CARGO_BIN_EXE_runner"))
        .args(["serve", "--stdio", "--config", "{\"workspace\":\"/tmp\"}"])
        .stdin(file)
        .output()
        .unwrap();
    assert_eq!(runner.status.code(), Some(70));
    let said = String::from_utf8(runner.stderr).unwrap();
    assert!(said.contains("stdin and stdout"), "{said}");
}

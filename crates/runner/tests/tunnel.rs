//! Tunnels to ports, through the daemon's own client.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod live_runner;

use live_runner::{LiveRunner, wait_for};
use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_protocol::FaultCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Reads everything, then answers with `answer` and what it read.
async fn answer_at_the_end(mut stream: TcpStream, answer: &str) {
    let mut question = Vec::new();
    stream.read_to_end(&mut question).await.unwrap();
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.write_all(&question).await.unwrap();
}

/// Asks, ends its own direction, and reads the rest.
async fn ask(client: &RunnerClient, port: u16, question: &[u8]) -> Vec<u8> {
    let mut tunnel = client.tunnel(port).await.unwrap();
    tunnel.write_all(question).await.unwrap();
    tunnel.shutdown().await.unwrap();
    let mut answer = Vec::new();
    tunnel.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn servers_on_every_loopback_and_wildcard_address_are_reached() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0", "localhost:0"] {
        let listener = match TcpListener::bind(address).await {
            Ok(listener) => listener,
            Err(error) => {
                println!("skipped: {address}: {error}");
                continue;
            }
        };
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            answer_at_the_end(stream, "hello ").await;
        });
        assert_eq!(ask(&client, port, b"you").await, b"hello you", "{address}");
    }
}

#[tokio::test]
async fn a_closed_port_is_refused_with_its_own_code() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    match client.tunnel(port).await.map(drop) {
        Err(ChannelError::Refused(fault)) => {
            assert_eq!(fault.code, FaultCode::Refused);
            assert!(fault.message.contains(&port.to_string()), "{}", fault.message);
        }
        other => panic!("expected a refusal, not {other:?}"),
    }
    assert!(client.stats().await.is_ok(), "the connection survives");
}

#[tokio::test]
async fn either_side_may_speak_first_and_end_first() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"banner").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        rest
    });
    let mut tunnel = client.tunnel(port).await.unwrap();
    let mut banner = Vec::new();
    tunnel.read_to_end(&mut banner).await.unwrap();
    assert_eq!(banner, b"banner");
    tunnel.write_all(b"late").await.unwrap();
    tunnel.shutdown().await.unwrap();
    assert_eq!(server.await.unwrap(), b"late");
}

#[tokio::test]
async fn many_megabytes_pass_in_both_directions_at_once() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await.unwrap();
            });
        }
    });
    let echoes = (0..8u8).map(|seed| {
        let client = client.clone();
        async move {
            let sent: Vec<u8> = (0..4_000_000u32).map(|at| (at % 253) as u8 ^ seed).collect();
            let (mut read, mut write) = tokio::io::split(client.tunnel(port).await.unwrap());
            let mut back = Vec::new();
            let writing = async {
                write.write_all(&sent).await.unwrap();
                write.shutdown().await.unwrap();
            };
            let (read, ()) = tokio::join!(read.read_to_end(&mut back), writing);
            read.unwrap();
            assert!(back == sent, "echo {seed} differs");
        }
    });
    futures_util::future::join_all(echoes).await;
}

#[tokio::test]
async fn open_tunnels_are_counted_and_closed_ones_let_the_server_go() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tunnel = client.tunnel(port).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    wait_for("one tunnel is open", async || client.stats().await.unwrap().tunnels_open == 1).await;
    drop(tunnel);
    let mut rest = Vec::new();
    // Dropped in the middle: an end or a reset, but not silence.
    let _ = server.read_to_end(&mut rest).await;
    drop(server);
    wait_for("no tunnel is open", async || client.stats().await.unwrap().tunnels_open == 0).await;
}

#[tokio::test]
async fn stats_show_the_disk_and_the_processes() {
    let runner = LiveRunner::start();
    let stats = runner.client().await.stats().await.unwrap();
    assert!(stats.disk_total_bytes > 0 && stats.disk_used_bytes <= stats.disk_total_bytes);
    assert!(stats.processes > 0);
    assert_eq!((stats.commands_running, stats.tunnels_open), (0, 0));
}

//! Published ports.

use std::time::Duration;

use sandbank_engine::SandboxId;
use sandbank_orchestrator::{Published, SandboxState, Settings};
use sandbank_test_support::{eventually, free_port};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::world::{SOON, World, request, settings};

/// Machines of the test engine share the host's network, so a server in the test stands in the
/// same place as one inside a sandbox.
struct Inside {
    port: u16,
    listener: TcpListener,
}

async fn inside() -> Inside {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Inside { port: listener.local_addr().unwrap().port(), listener }
}

async fn create(world: &World, ports: Vec<u16>) -> SandboxId {
    let mut request = request("chat:1");
    request.ports = ports;
    world.try_create(request).await.unwrap().id
}

async fn publish(world: &World, id: &SandboxId, port: u16) -> Option<Published> {
    let id = id.clone();
    world.run(|daemon| async move { daemon.publish(&id, port).await.unwrap() }).await
}

async fn connect(published: Published) -> TcpStream {
    TcpStream::connect((published.address, published.host_port)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_allowed_ports_are_published_and_only_once() {
    let world = World::new(settings()).await;
    let id = create(&world, vec![3000, 3001]).await;
    assert_eq!(publish(&world, &id, 4000).await, None);
    let first = publish(&world, &id, 3000).await.unwrap();
    assert_eq!(publish(&world, &id, 3000).await.unwrap(), first);
    assert!(first.address.is_loopback() && first.host_port != 3000);
    let mut again = request("chat:1");
    again.ports = vec![3001];
    assert!(!world.try_create(again.clone()).await.unwrap().created);
    assert_eq!(world.info(&id).await.published.len(), 2, "reconnecting publishes");
    again.ports = vec![5000];
    let error = world.try_create(again).await.unwrap_err();
    assert_eq!(error.code(), "port_not_allowed");
    assert!(error.to_string().starts_with("Port 5000 is not enabled for this sandbox."));
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_pass_both_ways_and_a_half_close_is_kept() {
    let world = World::new(settings()).await;
    let inside = inside().await;
    let id = create(&world, vec![inside.port]).await;
    let published = publish(&world, &id, inside.port).await.unwrap();
    let server = tokio::spawn(async move {
        let (mut socket, _) = inside.listener.accept().await.unwrap();
        let mut question = Vec::new();
        socket.read_to_end(&mut question).await.unwrap();
        let answer = vec![b'x'; question.len() * 3];
        socket.write_all(&answer).await.unwrap();
        question
    });
    let mut client = connect(published).await;
    let question = vec![b'?'; 300_000];
    client.write_all(&question).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = Vec::new();
    timeout(SOON, client.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert_eq!(server.await.unwrap(), question);
    assert_eq!(answer.len(), 900_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_port_answers_http_with_502() {
    let world = World::new(settings()).await;
    let port = free_port().unwrap();
    let id = create(&world, vec![port]).await;
    let published = publish(&world, &id, port).await.unwrap();
    let mut client = connect(published).await;
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(SOON, client.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
    assert!(answer.ends_with("in the sandbox.\n"), "{answer}");

    let mut other = connect(published).await;
    other.write_all(b"\x16\x03\x01\x02\x00").await.unwrap();
    let mut nothing = Vec::new();
    let read = timeout(SOON, other.read_to_end(&mut nothing)).await.unwrap();
    assert!(read.is_err() || nothing.is_empty(), "just closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_connection_keeps_the_sandbox() {
    let ttl = Duration::from_secs(3);
    let world = World::new(Settings { default_idle_ttl: ttl, ..settings() }).await;
    let inside = inside().await;
    let id = create(&world, vec![inside.port]).await;
    let published = publish(&world, &id, inside.port).await.unwrap();
    let mut client = connect(published).await;
    let (mut socket, _) = inside.listener.accept().await.unwrap();
    let quiet_until = std::time::Instant::now() + 2 * ttl;
    eventually("two TTLs to pass", SOON, || async {
        (std::time::Instant::now() > quiet_until).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(world.info(&id).await.state, SandboxState::Running);
    socket.write_all(b"still here").await.unwrap();
    drop(socket);
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "still here");
    drop(client);
    world.ended(&id).await;
    let refused = TcpStream::connect((published.address, published.host_port)).await;
    assert!(refused.is_err(), "nothing listens for a dead sandbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawing_a_port_cuts_its_connections() {
    let world = World::new(settings()).await;
    let inside = inside().await;
    let id = create(&world, vec![inside.port]).await;
    let published = publish(&world, &id, inside.port).await.unwrap();
    let mut client = connect(published).await;
    let (_socket, _) = inside.listener.accept().await.unwrap();
    for _ in 0..2 {
        let (id, port) = (id.clone(), inside.port);
        world.run(move |daemon| async move { daemon.unpublish(&id, port).await.unwrap() }).await;
    }
    let mut rest = Vec::new();
    let _ = timeout(SOON, client.read_to_end(&mut rest)).await.expect("the connection is cut");
    assert!(TcpStream::connect((published.address, published.host_port)).await.is_err());
    assert!(world.info(&id).await.published.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowded_port_says_so() {
    let world = World::new(settings()).await;
    let inside = inside().await;
    let id = create(&world, vec![inside.port]).await;
    let published = publish(&world, &id, inside.port).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..100 {
        let client = connect(published).await;
        let (server, _) = timeout(SOON, inside.listener.accept()).await.unwrap().unwrap();
        open.push((client, server));
    }
    let mut client = connect(published).await;
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(SOON, client.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    drop(open);
    timeout(SOON, async {
        loop {
            let _client = connect(published).await;
            if timeout(Duration::from_millis(200), inside.listener.accept()).await.is_ok() {
                break;
            }
        }
    })
    .await
    .expect("there is room again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_port_taken_during_a_restart_moves_and_is_told() {
    let mut world = World::new(settings()).await;
    let id = create(&world, vec![3000]).await;
    let before = publish(&world, &id, 3000).await.unwrap();
    world.kill();
    let thief = eventually("the port to be free", SOON, || async {
        TcpListener::bind((before.address, before.host_port)).await.ok()
    })
    .await
    .unwrap();
    world.start().await;
    let after = world.info(&id).await.published;
    assert_eq!(after.len(), 1);
    assert_ne!(after[0].host_port, before.host_port);
    let (events, _) = world.run(|daemon| async move { daemon.events(0).await.unwrap() }).await;
    let moved = events.iter().find(|event| event.kind == "port.moved").expect("an event");
    assert_eq!(moved.detail["from"], before.host_port);
    drop(thief);
}

/// Two that are free right now.
async fn two_ports() -> std::ops::RangeInclusive<u16> {
    for first in (33_000..44_000).step_by(5) {
        let binds = [first, first + 1].map(|port| TcpListener::bind(("127.0.0.1", port)));
        if futures_util::future::try_join_all(binds).await.is_ok() {
            return first..=first + 1;
        }
    }
    panic!("no two free ports in a row");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_of_host_ports_is_kept_to_and_its_end_is_said() {
    let range = two_ports().await;
    let (first, second) = (*range.start(), *range.end());
    let mut world = World::new(Settings { port_range: Some(range), ..settings() }).await;
    let id = create(&world, vec![3000, 3001, 3002]).await;
    let host_port = async |world: &World, port| publish(world, &id, port).await.unwrap().host_port;
    assert_eq!(host_port(&world, 3000).await, first);
    assert_eq!(host_port(&world, 3001).await, second);
    let of = id.clone();
    let refused = world.run(|daemon| async move { daemon.publish(&of, 3002).await });
    let error = refused.await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), ("no_host_port", true));
    let said = format!("{error} {}", error.hint().unwrap());
    assert!(said.contains("ports.range") && said.contains(&format!("{first}-{second}")), "{said}");
    let of = id.clone();
    world.run(|daemon| async move { daemon.unpublish(&of, 3000).await.unwrap() }).await;
    assert_eq!(host_port(&world, 3002).await, first, "the freed one");

    world.kill();
    world.start().await;
    let published = world.info(&id).await.published;
    let ports: Vec<_> = published.iter().map(|p| (p.port, p.host_port)).collect();
    assert_eq!(ports, [(3001, second), (3002, first)], "the same after a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_is_listened_on_where_the_settings_say_and_told_by_its_publish_address() {
    let elsewhere = "192.0.2.1".parse().unwrap();
    let listen_address = Some("127.0.0.1".parse().unwrap());
    let settings = Settings { publish_address: elsewhere, listen_address, ..settings() };
    let world = World::new(settings).await;
    let inside = inside().await;
    let id = create(&world, vec![inside.port]).await;
    let published = publish(&world, &id, inside.port).await.unwrap();
    assert_eq!(published.address, elsewhere);
    let _client = TcpStream::connect(("127.0.0.1", published.host_port)).await.unwrap();
    timeout(SOON, inside.listener.accept()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_published_while_its_sandbox_ends_is_forgotten_with_it() {
    let world = World::new(settings()).await;
    for _ in 0..10 {
        let ports: Vec<u16> = (3000..3020).collect();
        let id = create(&world, ports.clone()).await;
        let mut publishers = tokio::task::JoinSet::new();
        for port in ports {
            let (daemon, id) = (world.daemon(), id.clone());
            publishers.spawn(async move { daemon.publish(&id, port).await });
        }
        world.stop(&id).await.unwrap();
        publishers.join_all().await;
        world.ended(&id).await;
        let of = id.clone();
        let rows = world.run(|daemon| async move { daemon.store().ports().of(&of).await });
        assert_eq!(rows.await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_leaves_a_port_that_is_written_down_and_listened_on() {
    use futures_util::FutureExt;
    let world = World::new(settings()).await;
    let ports: Vec<u16> = (3000..3040).collect();
    let id = create(&world, ports.clone()).await;
    for port in ports.clone() {
        let id = id.clone();
        // Polled once, then dropped: the row is on its way to the disk.
        world.run(|daemon| async move { daemon.publish(&id, port).now_or_never() }).await;
    }
    let agreed = eventually("every port is whole", SOON, || async {
        let of = id.clone();
        let rows = world.run(|daemon| async move { daemon.store().ports().of(&of).await });
        let rows: Vec<u16> = rows.await.unwrap().iter().map(|row| row.port).collect();
        let listening = world.info(&id).await.published;
        let listening: Vec<u16> = listening.iter().map(|published| published.port).collect();
        (rows == ports && listening == ports).then_some(())
    });
    agreed.await.unwrap();
}

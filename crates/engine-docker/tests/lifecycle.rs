//! A machine's life, against a real Docker daemon.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use sandbank_engine::{DeathCause, Engine, EngineError, MachineState, NetworkMode, SandboxId};
use support::{TestEngine, run, soon, spec, wait_for};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_runs_commands_keeps_files_pauses_and_goes() {
    let Some(test) = TestEngine::start().await else { return };
    let machine = test
        .create_with(|spec| {
            spec.env.insert("GREETING".into(), "hello".into());
        })
        .await;
    let id = &machine.id;
    assert_eq!(machine.state, MachineState::Running);

    let output = test.sh(id, "echo $GREETING; id -u; id -g; hostname; exit 3").await;
    assert_eq!(output.code(), Some(3), "{}", output.stderr);
    assert_eq!(output.stdout, format!("hello\n1000\n1000\n{id}\n"));
    let shown = test.inspect(id).to_string();
    assert!(!shown.contains("GREETING"), "the caller's variables are Docker's to show");

    let client = test.client(id).await;
    let content = Bytes::from(vec![0xC1; 300_000]);
    let body = sandbank_channel::full_body(content.to_vec());
    client.write_file("/workspace/dir/file", None, body).await.unwrap();
    for path in ["/vercel/sandbox/workspace", "/workspace", "/home/user"] {
        let output = test.sh(id, &format!("wc -c < {path}/dir/file")).await;
        assert_eq!(output.stdout.trim(), "300000", "below {path}");
    }

    test.engine.pause(id).await.unwrap();
    test.engine.pause(id).await.unwrap();
    let listed = test.engine.list().await.unwrap();
    assert_eq!(listed.iter().find(|m| m.id == *id).unwrap().state, MachineState::Paused);
    test.engine.resume(id).await.unwrap();
    test.engine.resume(id).await.unwrap();
    assert_eq!(test.sh(id, "cat dir/file | wc -c").await.stdout.trim(), "300000");

    let stats = test.engine.stats(id).await.unwrap();
    assert!(stats.memory_bytes > 0 && stats.pids > 0 && stats.cpu_usage_us > 0, "{stats:?}");
    assert!(stats.disk_bytes >= 300_000, "{stats:?}");

    test.engine.destroy(id).await.unwrap();
    test.engine.destroy(id).await.unwrap();
    let gone = test.engine.connect(id).await.err().unwrap();
    assert!(matches!(gone, EngineError::NotFound(_)), "{gone}");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_reached_through_the_link() {
    let Some(test) = TestEngine::start().await else { return };
    let id = test.create().await.id;
    let client = test.client(&id).await;
    let server = support::command(&["nc", "-l", "-p", "8080", "-e", "/bin/cat"]);
    client.start(&server).await.unwrap();
    let mut tunnel = support::soon("a listener", async {
        loop {
            if let Ok(tunnel) = client.tunnel(8080).await {
                return tunnel;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let sent: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    tunnel.write_all(&sent).await.unwrap();
    let mut read = vec![0; sent.len()];
    soon("the echo", tunnel.read_exact(&mut read)).await.unwrap();
    assert_eq!(read, sent);
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_behind_our_back_is_noticed_with_its_cause() {
    let Some(test) = TestEngine::start().await else { return };
    for (arguments, cause) in [
        (&["kill"][..], DeathCause::ContainerKilled),
        (&["stop"][..], DeathCause::ContainerKilled),
        (&["rm", "--force"][..], DeathCause::ContainerRemoved),
    ] {
        let id = test.create().await.id;
        let name = format!("sandbank-{id}");
        let waiting = {
            let (engine, id) = (test.engine.clone(), id.clone());
            tokio::spawn(async move { engine.wait_dead(&id).await })
        };
        test.docker.said(&[arguments, &[&name]].concat()).unwrap();
        let told = soon("a death", waiting).await.unwrap().unwrap();
        assert_eq!(told, cause, "after docker {arguments:?}");
        let connected = test.engine.connect(&id).await.err().unwrap();
        assert!(
            matches!(connected, EngineError::Dead(_) | EngineError::NotFound(_)),
            "{connected}"
        );
        // Half of it may be gone already; what is left is listed as dead.
        let listed = test.engine.list().await.unwrap();
        assert_eq!(listed.iter().find(|m| m.id == id).unwrap().state, MachineState::Dead);
        test.engine.destroy(&id).await.unwrap();
    }
    // Not through Docker: who it was cannot be known.
    let id = test.create().await.id;
    let pid = test.inspect(&id)["State"]["Pid"].to_string();
    let mut kill = test.docker.enter("kill").unwrap();
    assert!(kill.args(["-KILL", &pid]).status().unwrap().success());
    let told = soon("a death", test.engine.wait_dead(&id)).await.unwrap();
    assert_eq!(told, DeathCause::Signaled { signal: 9 });
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_killed_for_memory_is_counted_and_does_not_end_the_machine() {
    let Some(test) = TestEngine::start().await else { return };
    let id = test.create_with(|spec| spec.limits.memory_bytes = 32 << 20).await.id;
    let output = test.sh(&id, "dd if=/dev/zero of=/dev/null bs=200M count=1").await;
    assert_ne!(output.code(), Some(0), "{}", output.stdout);
    assert_eq!(test.sh(&id, "echo alive").await.stdout, "alive\n");
    wait_for("the kill is counted", async || test.engine.stats(&id).await.unwrap().oom_kills > 0)
        .await;
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_machine_can_be_destroyed() {
    let Some(test) = TestEngine::start().await else { return };
    let id = test.create().await.id;
    let client = test.client(&id).await;
    client.start(&support::command(&["sleep", "1000"])).await.unwrap();
    test.engine.pause(&id).await.unwrap();
    soon("destroying it", test.engine.destroy(&id)).await.unwrap();
    assert!(test.engine.list().await.unwrap().is_empty());
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_paused_again_at_once_stands_still_and_goes_on() {
    let Some(test) = TestEngine::start().await else { return };
    let id = test.create().await.id;
    let client = test.client(&id).await;
    client.start(&support::command(&["sh", "-c", "while :; do :; done"])).await.unwrap();
    for round in 0..5 {
        test.engine.pause(&id).await.unwrap();
        test.engine.resume(&id).await.unwrap();
        test.engine.pause(&id).await.unwrap();
        let used = async || test.engine.stats(&id).await.unwrap().cpu_usage_us;
        let before = used().await;
        // There is nothing to wait for: that it stands still is seen by looking twice.
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        assert_eq!(before, used().await, "it goes on in round {round}");
        test.engine.resume(&id).await.unwrap();
        let output = soon("an answer", test.sh(&id, "echo alive")).await;
        assert_eq!(output.stdout, "alive\n", "in round {round}");
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_daemon_finds_machines_and_what_is_left_of_them() {
    let Some(test) = TestEngine::start().await else { return };
    let (alive, dead, half) = (test.create().await.id, test.create().await.id, SandboxId::random());
    let client = test.client(&alive).await;
    let command = support::command(&["/bin/sh", "-c", "for i in 1 2 3; do echo $i; sleep 1; done"]);
    client.start(&command).await.unwrap();
    drop(client);
    let instance = test.settings.instance.clone();
    let label = format!("sandbank.instance={instance}");
    let sandbox = format!("sandbank.sandbox={half}");
    let volume = format!("sandbank-{half}-workspace");
    let make = ["volume", "create", "--label", &label, "--label", &sandbox, &volume];
    test.docker.said(&make).unwrap();
    let test = {
        test.docker.said(&["kill", &format!("sandbank-{dead}")]).unwrap();
        test.restart().await
    };
    let listed = test.engine.list().await.unwrap();
    let state = |id: &SandboxId| listed.iter().find(|m| m.id == *id).map(|m| m.state);
    assert_eq!(state(&alive), Some(MachineState::Running));
    assert_eq!(state(&dead), Some(MachineState::Dead));
    assert_eq!(state(&half), Some(MachineState::Dead));
    let cause = soon("its death", test.engine.wait_dead(&dead)).await.unwrap();
    assert_eq!(cause, DeathCause::Signaled { signal: 9 });
    // The command went on, and not a byte of it is lost.
    let client = test.client(&alive).await;
    let status = client.wait(&command.id).await.unwrap();
    assert_eq!(status.ending().unwrap().exit_code(), Some(0));
    let mut frames = client.output(&command.id, 0, true).await.unwrap();
    let mut text = Vec::new();
    while let Some(frame) = frames.next().await.unwrap() {
        if let sandbank_protocol::Frame::Output { data, .. } = frame {
            text.extend(data);
        }
    }
    assert_eq!(String::from_utf8(text).unwrap(), "1\n2\n3\n");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_on_one_docker_do_not_touch_each_other_s() {
    let Some(one) = TestEngine::start().await else { return };
    let two = TestEngine::on(one.docker.clone(), |_| {}).await.unwrap();
    let (a, b) = tokio::join!(one.create(), two.create());
    let ids = |machines: Vec<sandbank_engine::Machine>| {
        machines.into_iter().map(|machine| machine.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(one.engine.list().await.unwrap()), std::slice::from_ref(&a.id));
    assert_eq!(ids(two.engine.list().await.unwrap()), std::slice::from_ref(&b.id));
    let foreign = one.engine.connect(&b.id).await.err().unwrap();
    assert!(matches!(foreign, EngineError::NotFound(_)), "{foreign}");
    one.engine.destroy(&b.id).await.unwrap();
    assert_eq!(two.sh(&b.id, "echo mine").await.stdout, "mine\n");
    one.finish().await;
    assert_eq!(two.sh(&b.id, "echo still mine").await.stdout, "still mine\n");
    two.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_docker_cannot_hold_to_is_refused() {
    let Some(test) = TestEngine::start().await else { return };
    let mut wanted = spec();
    wanted.limits.disk_bytes = Some(1 << 20);
    let refused = test.engine.create(&wanted).await.err().unwrap();
    assert!(matches!(refused, EngineError::ControlUnavailable { .. }), "{refused}");
    let mut host = spec();
    host.image = sandbank_engine::ImageName::host();
    let missing = test.engine.create(&host).await.err().unwrap();
    assert!(matches!(missing, EngineError::ImageNotFound(_)), "{missing}");
    let mut other = spec();
    other.image = "not-there:1".parse().unwrap();
    let missing = test.engine.create(&other).await.err().unwrap();
    assert!(matches!(missing, EngineError::ImageNotFound(_)), "{missing}");
    test.create_with(|spec| spec.network = NetworkMode::Default).await;
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_new_links_under_output_lose_nothing() {
    let Some(test) = TestEngine::start().await else { return };
    let id = test.create().await.id;
    let command = support::command(&["/bin/sh", "-c", "seq 1 200000; sleep 1; seq 200001 400000"]);
    test.client(&id).await.start(&command).await.unwrap();
    let (mut after, mut text) = (0, Vec::new());
    for _ in 0..50 {
        let client = test.client(&id).await;
        let mut frames = client.output(&command.id, after, true).await.unwrap();
        // A piece of it, then the link is cut in the middle.
        if let Some(sandbank_protocol::Frame::Output { seq, data, .. }) =
            soon("a frame", frames.next()).await.unwrap()
        {
            after = seq;
            text.extend(data);
        }
    }
    let client = test.client(&id).await;
    let mut frames = client.output(&command.id, after, true).await.unwrap();
    while let Some(frame) = soon("a frame", frames.next()).await.unwrap() {
        if let sandbank_protocol::Frame::Output { data, .. } = frame {
            text.extend(data);
        }
    }
    let expected: String = (1..=400_000).map(|n| format!("{n}\n")).collect();
    assert!(text == expected.as_bytes(), "{} of {} bytes", text.len(), expected.len());
    assert_eq!(run(&client, &["true"]).await.code(), Some(0));
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_cut_in_an_upload_leaves_nothing_in_the_next_one() {
    const PIECE: usize = 16 << 10;
    let Some(test) = TestEngine::start().await else { return };
    let id = test.create().await.id;
    for round in 0..25u8 {
        let client = test.client(&id).await;
        // Without a length or an end, and text, so that nothing on the way tells one from another.
        let sent = std::sync::Arc::new(AtomicUsize::new(0));
        let counted = sent.clone();
        let endless = futures_util::stream::repeat_with(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(Bytes::from(vec![b'x'; PIECE]))
        });
        let body = sandbank_channel::stream_body(endless);
        let upload = async { client.write_file("/workspace/old", None, body).await.err() };
        let fresh: Vec<u8> = (0..40 * PIECE).map(|at| b'a' + (at / 7 % 23) as u8).collect();
        let next = async {
            let under_way = 3 + usize::from(round);
            wait_for("enough is under way", async || sent.load(Ordering::Relaxed) > under_way)
                .await;
            let client = test.client(&id).await;
            let pieces: Vec<_> = fresh.chunks(PIECE).map(|p| Ok(p.to_vec().into())).collect();
            let body = sandbank_channel::stream_body(futures_util::stream::iter(pieces));
            client.write_file("/workspace/new", None, body).await.unwrap();
            client
        };
        let (cut, client) = soon("both uploads", async { tokio::join!(upload, next) }).await;
        assert!(cut.is_some(), "the first link was cut");
        let mut file = client.read_file("/workspace/new", Default::default()).await.unwrap();
        let mut content = Vec::new();
        while let Some(piece) = soon("the file", file.chunk()).await.unwrap() {
            content.extend_from_slice(&piece);
        }
        assert!(content == fresh, "round {round}: {} of {} bytes", content.len(), fresh.len());
        let left = run(&client, &["ls", "-A", "/workspace"]).await.stdout;
        assert_eq!(left, "new\n", "half of a file is none");
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_files_are_told_and_a_missing_git_is_named() {
    let Some(test) = TestEngine::start().await else { return };
    let id = test.create_with(|_| {}).await.id;
    let client = test.client(&id).await;
    let query = sandbank_channel::WatchQuery {
        path: ".".into(),
        recursive: true,
        after: None,
        exclude: None,
    };
    let mut events = client.watch(&query).await.unwrap();
    // Over the same link: another one would end it.
    let script = "mkdir -p a/b && echo x > a/b/file";
    assert_eq!(run(&client, &["/bin/sh", "-c", script]).await.code(), Some(0));
    let told = tokio::time::timeout(std::time::Duration::from_secs(30), async {
        loop {
            let records = events.next().await.unwrap().expect("it goes on").records;
            if records.iter().any(|event| event.path.as_deref() == Some("a/b/file")) {
                return;
            }
        }
    });
    told.await.expect("nothing is told");
    let status = client.git_status(&sandbank_channel::StatusQuery::default()).await;
    match status {
        Ok(status) => assert!(!status.repository.is_repository),
        Err(error) => assert!(error.to_string().contains("there is no git"), "{error}"),
    }
    test.finish().await;
}

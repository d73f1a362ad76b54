//! A runner on a directory of this machine: found again, never shared, never mistaken.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ground;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Child, Command, Stdio};

use ground::{Ground, is_alive, output_of, spec, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use sandbank_channel::{ByteRange, full_body, with_request_id};
use sandbank_workspace::{
    LocalPlace, LocalSettings, Place, PlaceCalls, PlaceErrorKind, PlaceState,
};

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

fn field_of_stat(pid: u32, place: usize) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(place).unwrap().parse().unwrap()
}

/// Processes are told apart by the tick they started in; a number is not given again within one.
fn started_in_another_tick_than(tick: u64) -> Child {
    loop {
        let mut process = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        if field_of_stat(process.id(), 19) != tick {
            return process;
        }
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[tokio::test]
async fn a_runner_and_its_commands_are_found_again_by_the_next_owner_and_end_when_told() {
    let ground = Ground::new();
    let place = ground.open();
    let client = place.client().await.unwrap();
    client.write_file("a.txt", None, full_body("kept")).await.unwrap();
    let started = client.start(&spec("long", "sleep 1000 & wait")).await.unwrap();
    let second = client.start(&spec("away", "setsid sleep 1000 & sleep 1000")).await.unwrap();
    let pid = place.pid().unwrap();
    let processes = [started.status.pid, second.status.pid].map(i32::unsigned_abs);
    drop((client, place));

    let place = ground.open();
    let commands = place.run(|client| async move { client.commands().await }).await.unwrap();
    assert_eq!(place.pid(), Some(pid), "it is another runner");
    assert_eq!(commands.len(), 2);
    assert!(commands.iter().all(|command| command.ending().is_none()), "{commands:?}");
    assert_eq!(fs::read(ground.root().join("a.txt")).unwrap(), b"kept");
    let below = || ground::descendants(pid.cast_signed());
    wait_for("the commands have started others", async || below().len() >= 4).await;
    let below = below();

    place.stop().await.unwrap();
    assert_eq!(place.pid(), None);
    for pid in below.iter().map(|pid| pid.unsigned_abs()).chain([pid]).chain(processes) {
        wait_for("everything has ended", async || !is_alive(pid)).await;
    }
}

#[tokio::test]
async fn two_owners_never_share_a_runner() {
    let ground = Ground::new();
    let place = ground.open();
    let settings = LocalSettings::new(ground.root(), ground.runner());
    let second = LocalPlace::open(settings.clone()).err().unwrap();
    assert_eq!(second.kind(), PlaceErrorKind::InUse);
    drop(place);
    LocalPlace::open(settings).unwrap();
}

#[tokio::test]
async fn a_process_that_only_has_the_number_of_a_runner_is_neither_ended_nor_taken_over() {
    let ground = Ground::new();
    let place = ground.open();
    place.client().await.unwrap();
    let old = place.pid().unwrap();
    let record = ground.runner().join("runner.json");
    let mut text: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    drop(place);
    kill(old);
    wait_for("the old runner is gone", async || !is_alive(old)).await;

    let mut bystander = started_in_another_tick_than(text["started"].as_u64().unwrap());
    text["pid"] = bystander.id().into();
    fs::write(&record, text.to_string()).unwrap();
    let place = ground.open();
    assert_eq!(place.pid(), None, "the bystander was taken for it");
    place.client().await.unwrap();
    assert_ne!(place.pid(), Some(bystander.id()));
    assert!(matches!(bystander.try_wait(), Ok(None)), "the bystander was killed");
    place.stop().await.unwrap();
    assert!(matches!(bystander.try_wait(), Ok(None)), "the bystander was killed");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn a_runner_that_died_is_started_again_for_the_next_call() {
    let ground = Ground::new();
    fs::write(ground.root().join("a"), "a").unwrap();
    let place = ground.open();
    let ask = || place.run(|client| async move { client.stat("a").await });
    assert_eq!(ask().await.unwrap().size, 1);
    for _ in 0..3 {
        let pid = place.pid().unwrap();
        kill(pid);
        assert_eq!(ask().await.unwrap().size, 1);
        assert_ne!(place.pid(), Some(pid));
        wait_for("no zombie stays", async || {
            !std::path::Path::new(&format!("/proc/{pid}")).exists()
        })
        .await;
    }
    let health = place.health().await;
    assert_eq!((health.state, health.breaker), (PlaceState::Healthy, None));
    assert_eq!(health.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    place.stop().await.unwrap();
}

#[tokio::test]
async fn a_runner_is_closed_to_others_and_has_nothing_of_its_owners_terminal_or_environment() {
    let ground = Ground::new();
    let place = ground.open();
    let client = place.client().await.unwrap();
    let mode = |name: &str| fs::metadata(ground.runner().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode(""), mode("runner.sock"), mode("runner.log")), (0o700, 0o600, 0o600));
    let pid = place.pid().unwrap();
    assert_eq!(field_of_stat(pid, 3), u64::from(pid), "it is in somebody else's session");
    if rustix::process::geteuid().is_root() {
        assert_eq!(fs::read(format!("/proc/{pid}/environ")).unwrap(), b"");
        let stdin = fs::read_link(format!("/proc/{pid}/fd/0")).unwrap();
        assert_eq!(stdin.to_str(), Some("/dev/null"));
    }
    let started = client.start(&spec("who", "id -u; echo $PATH; pwd")).await.unwrap();
    let said = String::from_utf8(output_of(&client, &started).await).unwrap();
    let uid = rustix::process::geteuid().as_raw();
    let root = ground.root();
    let expected = format!("{uid}\n{}\n{}\n", std::env::var("PATH").unwrap(), root.display());
    assert_eq!(said, expected);
    place.stop().await.unwrap();
}

#[tokio::test]
async fn a_directory_that_was_exchanged_gets_a_runner_of_its_own_and_a_missing_one_is_said() {
    let ground = Ground::new();
    fs::write(ground.root().join("old"), "").unwrap();
    let place = ground.open();
    place.client().await.unwrap();
    let old = place.pid().unwrap();
    drop(place);
    fs::rename(ground.root(), ground.path("moved")).unwrap();
    fs::create_dir(ground.root()).unwrap();
    fs::write(ground.root().join("new"), "").unwrap();
    let place = ground.open();
    let names = place.run(|client| async move { client.list(".").await }).await.unwrap();
    let names: Vec<_> = names.entries.iter().map(|entry| entry.name.clone()).collect();
    assert_eq!(names, ["new"]);
    assert!(!is_alive(old), "a runner on a directory that nobody wants stays");

    kill(place.pid().unwrap());
    fs::remove_dir_all(ground.root()).unwrap();
    let error = place.run(|client| async move { client.list(".").await }).await.unwrap_err();
    assert_eq!(error.kind(), PlaceErrorKind::Settings);
    assert!(error.to_string().contains("is not there any more"), "{error}");
    let health = place.health().await;
    assert_eq!(health.wrong.unwrap().kind, PlaceErrorKind::Settings);
}

#[tokio::test]
async fn a_workspace_that_holds_the_runners_own_files_is_refused_at_the_start() {
    let ground = Ground::new();
    let inside = LocalSettings::new(ground.root(), ground.root().join("runner"));
    let error = LocalPlace::open(inside).err().unwrap();
    assert_eq!(error.kind(), PlaceErrorKind::Settings);
    assert!(error.to_string().contains("lies in the workspace"), "{error}");
    assert!(!ground.root().join("runner").exists(), "it was made nevertheless");
    let program = std::env::current_exe().unwrap();
    let around = LocalSettings::new(program.parent().unwrap(), ground.runner());
    let error = LocalPlace::open(around).err().unwrap();
    assert!(error.to_string().starts_with("the program: "), "{error}");
    ground.open();
}

#[tokio::test]
async fn a_log_is_cut_and_its_end_is_kept_and_a_long_path_is_no_obstacle() {
    let ground = Ground::new();
    let deep = ground.path(&format!("{}/{}", "d".repeat(120), "e".repeat(120)));
    fs::create_dir_all(&deep).unwrap();
    fs::set_permissions(&deep, PermissionsExt::from_mode(0o755)).unwrap();
    let mut log = vec![b'x'; 1 << 20];
    log.extend_from_slice(b"\nthe last line\n");
    fs::write(deep.join("runner.log"), log).unwrap();
    let place = LocalPlace::open(LocalSettings::new(ground.root(), &deep)).unwrap();
    let client = place.client().await.unwrap();
    fs::write(ground.root().join("a"), "abc").unwrap();
    let mut file = client.read_file("a", ByteRange::default()).await.unwrap();
    assert_eq!(file.chunk().await.unwrap().unwrap(), "abc");
    let log = fs::read(deep.join("runner.log")).unwrap();
    assert!(log.len() <= 256 << 10 && log.ends_with(b"the last line\n"), "{}", log.len());
    assert_eq!(fs::metadata(&deep).unwrap().mode() & 0o777, 0o700, "it stays open to others");
    place.stop().await.unwrap();
}

#[tokio::test]
async fn a_log_that_grows_is_cut_while_its_runner_runs_and_has_the_newest_whole_lines() {
    const BOUND: usize = 256 << 10;
    const REQUESTS: usize = 1_500;
    let ground = Ground::new();
    let path = ground.runner().join("runner.log");
    fs::create_dir_all(ground.runner()).unwrap();
    // Almost full: the runner has to cut it at once, and a second time later.
    let before: String = (0..BOUND / 100).map(|number| format!("{number:099}\n")).collect();
    fs::write(&path, &before).unwrap();
    let place = ground.open();
    let client = place.client().await.unwrap();
    for number in 0..REQUESTS {
        let id = format!("request-{number}").into();
        let read = with_request_id(id, client.read_file("missing", ByteRange::default())).await;
        assert!(read.is_err());
        // A line may just have been written, and a cut just have begun.
        assert!(fs::metadata(&path).unwrap().len() as usize <= BOUND + 1_001);
    }
    let last = format!("request-{}", REQUESTS - 1);
    let log = || fs::read_to_string(&path).unwrap();
    wait_for("the last request is in the log", async || log().contains(&last)).await;
    let log = log();
    assert!(log.len() <= BOUND && log.ends_with('\n'), "{} bytes", log.len());
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let ids: Vec<String> =
        lines.map(|line| line["request_id"].as_str().unwrap().to_owned()).collect();
    let expected: Vec<String> = (0..REQUESTS)
        .map(|number| format!("request-{number}"))
        .skip(REQUESTS - ids.len())
        .collect();
    assert_eq!(ids, expected, "the newest ones, each once");
    assert!(ids.len() < REQUESTS, "it was cut only once: this tests nothing");
    place.stop().await.unwrap();
}

#[tokio::test]
async fn a_runner_that_cannot_start_says_why() {
    let ground = Ground::new();
    let mut settings = LocalSettings::new(ground.root(), ground.runner());
    settings.env.insert("A".into(), "x".repeat(200 << 10));
    let place = LocalPlace::open(settings).unwrap();
    let error = place.client().await.err().unwrap();
    assert_eq!(error.kind(), PlaceErrorKind::Start);
    assert!(error.to_string().contains("Argument list too long"), "{error}");
    drop(place);
    let place = ground.open();
    place.client().await.unwrap();
    place.stop().await.unwrap();
}

#[tokio::test]
async fn a_runner_that_is_only_slow_is_waited_for_and_never_ended() {
    let ground = Ground::new();
    let place = ground.open();
    place.client().await.unwrap();
    let pid = place.pid().unwrap();
    drop(place);
    let runner = Pid::from_raw(pid.cast_signed()).unwrap();
    kill_process(runner, Signal::STOP).unwrap();
    let place = ground.open();
    let error = place.client().await.err().unwrap();
    assert_eq!(error.kind(), PlaceErrorKind::TimedOut, "{error}");
    kill_process(runner, Signal::CONT).unwrap();
    place.run(|client| async move { client.list(".").await }).await.unwrap();
    assert_eq!(place.pid(), Some(pid), "it was ended");
    place.stop().await.unwrap();
}

/// A program in the place of a runner, which accepts and says that it is of another time.
const OLD_RUNNER: &str = r#"
import os, socket, struct, sys
os.chdir(sys.argv[1])
listener = socket.socket(socket.AF_UNIX)
listener.bind("runner.sock")
listener.listen()
print("ready", flush=True)
while True:
    stream, _ = listener.accept()
    body = b'{"protocol":0,"runner_version":"0","epoch":"e","started_at_ms":1,"workspace":"/"}'
    frame = lambda kind, flags, number, data: struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", number) + data
    # Settings, then the answer to the first request: status 200 is one byte of HPACK.
    stream.recv(65536)
    stream.sendall(frame(4, 0, 0, b"") + frame(4, 1, 0, b""))
    stream.sendall(frame(1, 4, 1, b"\x88") + frame(0, 1, 1, body))
"#;

#[tokio::test]
async fn a_runner_of_another_protocol_is_replaced() {
    let ground = Ground::new();
    std::fs::create_dir(ground.runner()).unwrap();
    let spawned = Command::new("python3")
        .args(["-c", OLD_RUNNER])
        .arg(ground.runner())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut old) = spawned else {
        println!("skipped: there is no python3 to stand in for an old runner");
        return;
    };
    let mut ready = String::new();
    let stdout = old.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut ready).unwrap();
    let root = fs::metadata(ground.root()).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", old.id())).unwrap();
    let started: u64 =
        stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let record = serde_json::json!({
        "pid": old.id(), "started": started, "boot": boot.trim(), "root": [root.dev(), root.ino()],
        "version": "0", "protocol": 0,
    });
    fs::write(ground.runner().join("runner.json"), record.to_string()).unwrap();
    let place = ground.open();
    assert_eq!(place.pid(), Some(old.id()));
    // It is this test's child, and has ended when it has been waited for.
    let reaper = tokio::task::spawn_blocking(move || old.wait());
    place.run(|client| async move { client.list(".").await }).await.unwrap();
    assert_ne!(place.pid(), Some(record["pid"].as_u64().unwrap() as u32));
    reaper.await.unwrap().unwrap();
    place.stop().await.unwrap();
}

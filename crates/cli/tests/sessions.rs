//! run, exec, logs, cp, ps and shell as a person types them, against a real daemon.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sandbank_protocol::WORKSPACE;
use sandbank_test_support::{TestDaemon, skip_unless_root};
use serde_json::Value;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const SOON: Duration = Duration::from_secs(20);

fn cli(daemon: &TestDaemon, words: &[&str]) -> Command {
    let mut command = daemon.cli();
    command.args(words).stdin(Stdio::null());
    command
}

fn run(daemon: &TestDaemon, words: &[&str]) -> Output {
    cli(daemon, words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn run_passes_everything_through_and_leaves_nothing() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let none = ["run", "--network", "none"];
    let of = |words: &[&str]| run(&daemon, &[&none[..], words].concat());

    let both = of(&["--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(both.status.code(), Some(7));
    assert_eq!((text(&both.stdout), text(&both.stderr)), ("out\n".into(), "err\n".into()));

    assert_eq!(of(&["sh", "-c", "kill -SEGV $$"]).status.code(), Some(139));
    assert_eq!(of(&["--timeout", "300ms", "--", "sleep", "60"]).status.code(), Some(124));
    assert_eq!(of(&["no-such-program"]).status.code(), Some(127));
    let env = of(&["--env", "A=b c", "--workdir", "/tmp", "sh", "-c", "echo $A; pwd"]);
    assert_eq!(succeeded(&env), "b c\n/tmp\n");

    let binary = of(&["--", "printf", "\\377\\000\\001"]);
    assert_eq!(binary.stdout, b"\xff\x00\x01");
    assert_eq!(succeeded(&run(&daemon, &["ps", "-q"])), "", "a run left its sandbox");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn piped_input_arrives_whole_and_ends() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let input: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let mut child = cli(&daemon, &["run", "--network", "none", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().unwrap();
    let sent = input.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent));
    let output = child.wait_with_output()?;
    writer.join().unwrap()?;
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == input, "{} of {} bytes", output.stdout.len(), input.len());
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_reaches_the_command_and_a_second_one_kills_it() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let polite = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.1; done";
    let stubborn = "trap '' INT; echo ready; while :; do sleep 0.1; done";
    for (script, presses, code) in [(polite, 1, 5), (stubborn, 2, 130)] {
        let mut child = cli(&daemon, &["run", "--network", "none", "--", "bash", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut ready = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut ready)?;
        let mut stderr = child.stderr.take().unwrap();
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::INT)?;
        if presses == 2 {
            // The note says that the first one was taken.
            let mut note = [0; 9];
            stderr.read_exact(&mut note)?;
            kill_process(pid, Signal::INT)?;
        }
        let output = child.wait_with_output()?;
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stdout));
    }
    assert_eq!(succeeded(&run(&daemon, &["ps", "-q"])), "", "a run left its sandbox");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_sandbox_is_used_by_prefix_and_key_and_removed() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let kept = run(&daemon, &["run", "--keep", "--network", "none", "--", "touch", "here"]);
    assert!(text(&kept.stderr).contains("sandbank rm"), "{}", text(&kept.stderr));
    let id = succeeded(&run(&daemon, &["ps", "-q"])).trim().to_owned();
    let prefix = &id[..8];
    assert_eq!(succeeded(&run(&daemon, &["exec", prefix, "--", "ls"])), "here\n");

    let sandboxes: Vec<Value> = serde_json::from_str(&succeeded(&run(&daemon, &["ps", "--json"])))?;
    let key = sandboxes[0]["key"].as_str().unwrap();
    assert_eq!(succeeded(&run(&daemon, &["exec", key, "--", "ls"])), "here\n");
    let table = succeeded(&run(&daemon, &["ps"]));
    assert!(table.starts_with("ID\tKEY\tSTATE\t") && table.contains(&id), "{table}");

    let seen = succeeded(&run(&daemon, &["inspect", prefix]));
    assert!(seen.contains("running") && seen.contains("touch here"), "{seen}");
    let word = |text: &str| text.split_whitespace().any(|word| word == "here");
    let exec = run(&daemon, &["exec", prefix, "--json", "--", "ls"]);
    assert!(exec.status.success());
    let path = format!("/v1/sandboxes/{id}/commands");
    let commands = daemon.api()?.call("GET", &path, None).await?;
    let newest = commands["commands"].as_array().unwrap().last().unwrap()["commandId"].clone();
    let newest = newest.as_str().unwrap();
    let shortened = &newest[..newest.len() - 2];
    assert!(word(&succeeded(&run(&daemon, &["logs", prefix, shortened]))));
    let outside = run(&daemon, &["cp", &format!("{prefix}:/etc/passwd"), "-"]);
    assert!(text(&outside.stderr).contains(WORKSPACE), "{}", text(&outside.stderr));
    assert_eq!(succeeded(&run(&daemon, &["rm", prefix])).trim(), id);
    let after = succeeded(&run(&daemon, &["inspect", &id]));
    assert!(after.contains("ended"), "{after}");
    let gone = run(&daemon, &["exec", "nothing-like-it", "--", "ls"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(text(&gone.stderr).contains("hint: `sandbank ps`"), "{}", text(&gone.stderr));
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_survive_the_way_in_and_out() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let id = daemon.api()?.create("copies").await?;
    let dir = tempfile::tempdir()?;
    let tree = dir.path().join("tree");
    std::fs::create_dir_all(tree.join("sub/empty"))?;
    std::fs::write(tree.join("plain ü.txt"), "hello")?;
    std::fs::write(tree.join("sub/big"), vec![7u8; 5_000_000])?;
    std::fs::write(tree.join("sub/tool"), "#!/bin/sh\necho ran\n")?;
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tree.join("sub/tool"), executable)?;
    std::os::unix::fs::symlink("big", tree.join("sub/link"))?;

    succeeded(&run(&daemon, &["cp", tree.to_str().unwrap(), &format!("{id}:in")]));
    assert_eq!(succeeded(&run(&daemon, &["exec", &id, "--", "in/sub/tool"])), "ran\n");
    let link = succeeded(&run(&daemon, &["exec", &id, "--", "readlink", "in/sub/link"]));
    assert_eq!(link, "big\n");

    let out = dir.path().join("out");
    succeeded(&run(&daemon, &["cp", &format!("{id}:in"), out.to_str().unwrap()]));
    let same =
        Command::new("diff").args(["-r", "--no-dereference"]).arg(&tree).arg(&out).output()?;
    assert!(same.status.success(), "{}", text(&same.stdout));
    assert!(out.join("sub/empty").is_dir());

    let stdout = run(&daemon, &["cp", &format!("{id}:in/plain ü.txt"), "-"]);
    assert_eq!(succeeded(&stdout), "hello");
    let missing = run(&daemon, &["cp", &format!("{id}:nothing"), "."]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("does not exist"), "{}", text(&missing.stderr));
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_with_colons_are_told_from_the_paths_behind_them() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("file");
    std::fs::write(&file, "hello")?;
    let file = file.to_str().unwrap();
    let api = daemon.api()?;
    let (short, long) = (api.create("chat").await?, api.create("chat:1").await?);
    for to in ["chat:1:a", "chat:1:", "chat:1:/workspace/b", "chat:./1:c"] {
        succeeded(&run(&daemon, &["cp", file, to]));
    }
    assert_eq!(succeeded(&run(&daemon, &["exec", &long, "--", "ls"])), "a\nb\nfile\n");
    assert_eq!(succeeded(&run(&daemon, &["exec", &short, "--", "ls"])), "1:c\n");
    assert_eq!(succeeded(&run(&daemon, &["cp", "chat:1:a", "-"])), "hello");
    api.stop(&long).await?;
    assert_eq!(succeeded(&run(&daemon, &["cp", "chat:1:c", "-"])), "hello", "a path again");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_link_keeps_its_name_and_brings_what_it_points_to() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let id = daemon.api()?.create("links").await?;
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("target"), "pointed to")?;
    let link = dir.path().join("lnk");
    std::os::unix::fs::symlink("target", &link)?;
    succeeded(&run(&daemon, &["cp", link.to_str().unwrap(), &format!("{id}:")]));
    assert_eq!(succeeded(&run(&daemon, &["exec", &id, "--", "ls"])), "lnk\n");
    assert_eq!(succeeded(&run(&daemon, &["exec", &id, "--", "cat", "lnk"])), "pointed to");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_or_must_stay_is_answered_with_a_next_step() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    for (words, said) in [
        (&["image", "rm", "host"][..], "is always there and cannot be removed"),
        (&["inspect", "sbaaaaaaaaaaaaaaaa"], "hint: `sandbank ps`"),
        (&["rm", "sbaaaaaaaaaaaaaaaa"], "hint: `sandbank ps`"),
        (&["exec", "sbaaaaaaaaaaaaaaaa", "--", "true"], "hint: `sandbank ps`"),
    ] {
        let output = run(&daemon, words);
        let text = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
        assert!(text.contains(said) && text.contains("hint: "), "{words:?}: {text}");
    }
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_tree_cannot_write_outside_the_copy() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let id = daemon.api()?.create("hostile").await?;
    let dir = tempfile::tempdir()?;
    let victim = dir.path().join("victim");
    std::fs::create_dir(&victim)?;
    let out = dir.path().join("out");
    // First a link to the victim, then a directory of the same name with a file in it.
    let script = format!("mkdir t; ln -s {} t/a; echo evil > t/ok", victim.display());
    succeeded(&run(&daemon, &["exec", &id, "--", "sh", "-c", &script]));
    let first = run(&daemon, &["cp", &format!("{id}:t"), out.to_str().unwrap()]);
    assert_eq!(first.status.code(), Some(1), "a link that leads out is reported");
    assert!(!out.join("a").exists() && out.join("ok").exists());
    std::os::unix::fs::symlink(&victim, out.join("a"))?;
    let script = "rm t/a; mkdir t/a; echo evil > t/a/file";
    succeeded(&run(&daemon, &["exec", &id, "--", "sh", "-c", script]));
    let second = run(&daemon, &["cp", &format!("{id}:t/."), out.to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(1), "{}", text(&second.stderr));
    assert_eq!(std::fs::read_dir(&victim)?.count(), 0, "something was written through a link");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_go_on_where_they_stopped_when_the_server_restarts() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let id = daemon.api()?.create("restart").await?;
    let script = "for n in $(seq 1 40); do echo line $n; sleep 0.1; done";
    let started = run(&daemon, &["exec", &id, "--detach", "--", "bash", "-c", script]);
    let command = succeeded(&started).trim().to_owned();
    let mut logs = cli(&daemon, &["logs", &id, &command, "-f"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut first = [0; 7];
    logs.stdout.as_mut().unwrap().read_exact(&mut first)?;
    daemon.kill_9()?;
    daemon.launch().await?;
    let output = tokio::task::spawn_blocking(move || logs.wait_with_output()).await??;
    let expected: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    assert_eq!(format!("{}{}", text(&first), text(&output.stdout)), expected);
    assert!(text(&output.stderr).contains("connected again"), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));

    let tail = run(&daemon, &["logs", &id, &command, "--json", "--after", "39"]);
    let tail = succeeded(&tail);
    assert!(tail.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{tail}");
    assert!(tail.contains("line 40") && !tail.contains("line 1\\n"), "{tail}");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn input_goes_on_where_it_stopped_when_the_server_restarts() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let id = daemon.api()?.create("input").await?;
    let mut child = cli(&daemon, &["exec", &id, "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdin.write_all(b"before\n")?;
    let mut before = [0; 7];
    stdout.read_exact(&mut before)?;
    daemon.kill_9()?;
    stdin.write_all(b"between\n")?;
    daemon.launch().await?;
    stdin.write_all(b"after\n")?;
    drop(stdin);
    let rest = tokio::task::spawn_blocking(move || {
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).map(|_| rest)
    });
    assert_eq!(rest.await??, "between\nafter\n");
    assert_eq!(child.wait()?.code(), Some(0));
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_on_a_terminal_runs_detaches_and_comes_back() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let id = daemon.api()?.create("shell").await?;
    let done = on_terminal(&daemon, &format!("shell {id}"), &["stty size; exit 9\r"]);
    assert_eq!(done.status.code(), Some(9), "{}", text(&done.stdout));
    assert!(text(&done.stdout).contains("24 80"), "{}", text(&done.stdout));

    let left = on_terminal(&daemon, &format!("shell {id}"), &["kept=still-here\r", "\x1d\x1d\x1d"]);
    let said = text(&left.stdout);
    assert_eq!(left.status.code(), Some(0), "{said}");
    let command = said.split("--attach ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    let words = format!("shell {id} --attach {command}");
    let back = on_terminal(&daemon, &words, &["echo $kept; exit 3\r"]);
    assert_eq!(back.status.code(), Some(3), "{}", text(&back.stdout));
    assert!(text(&back.stdout).contains("still-here\r\n"), "{}", text(&back.stdout));
    daemon.finish().await
}

/// `script` gives the program a terminal of 24 lines and 80 columns; each text is typed when
/// something new has been printed.
fn on_terminal(daemon: &TestDaemon, words: &str, typed: &[&str]) -> Output {
    let line = format!("stty rows 24 cols 80; exec {SANDBANK} {words}");
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    for (name, value) in daemon.cli().get_envs() {
        script.env(name, value.unwrap_or_default());
    }
    let mut child = script.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let printed = Arc::new(Mutex::new(Vec::new()));
    let collect = printed.clone();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stdout.read(&mut buffer) {
            collect.lock().unwrap().extend_from_slice(&buffer[..count]);
        }
    });
    let mut seen = 0;
    for keys in typed {
        until("the terminal to print something", || printed.lock().unwrap().len() > seen);
        seen = printed.lock().unwrap().len();
        stdin.write_all(keys.as_bytes()).unwrap();
    }
    let mut status = None;
    until("the program to end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    reader.join().unwrap();
    let stdout = printed.lock().unwrap().clone();
    Output { status: status.unwrap(), stdout, stderr: Vec::new() }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < deadline, "gave up waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

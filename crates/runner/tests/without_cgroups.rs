//! What a command started is found and killed where commands have no cgroups, and nothing else is.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(unsafe_code, reason = "a process enters a cgroup between fork and exec")]

mod commanding;
mod live_runner;
mod remembering;
mod test_cgroup;

use std::os::unix::process::CommandExt;
use std::process::Command;

use commanding::{id, run, shell, spec};
use live_runner::{LiveRunner, wait_for};
use remembering::script;
use sandbank_protocol::{Ending, PrepareConfig, SignalRequest, WorkloadIdentity};
use sandbank_test_support::skip_unless_root;
use test_cgroup::TestCgroup;

/// A filter that allows everything: the runner adds its own to it.
const ALLOW_ALL: &str = "060000000000ff7f";

/// Two sleepers without a parent, a session, a group or an environment that tells whose they are,
/// and that ignore what can be ignored. The number of seconds names them.
fn hide(seconds: u32) -> String {
    let inner = format!("trap \"\" TERM INT HUP; sleep {seconds} & exec sleep {seconds}");
    format!("(env -i setsid sh -c '{inner}' >/dev/null 2>&1 &)")
}

fn sleeping(seconds: u32) -> usize {
    let wanted = format!("sleep\0{seconds}\0");
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_wanted = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == wanted.as_bytes())
    };
    pids.filter(is_wanted).count()
}

async fn hidden(seconds: u32) {
    wait_for("both hide", async || sleeping(seconds) == 2).await;
}

#[tokio::test]
async fn a_timeout_kills_what_hides_and_nothing_of_another_command() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&shell("other", &format!("{}; sleep 60", hide(8101)))).await.unwrap();
    hidden(8101).await;
    let mut timed = shell("timed", &format!("{}; sleep 60", hide(8102)));
    timed.timeout_ms = Some(300);
    let heard = run(&client, &timed).await;
    assert_eq!(heard.ending, Some(Ending::TimedOut));
    assert_eq!(sleeping(8102), 0, "something outlived its timeout");
    assert_eq!(sleeping(8101), 2, "another command lost something");
    assert_eq!(client.command(&id("other")).await.unwrap().ending(), None);
}

#[tokio::test]
async fn what_an_ended_command_hid_can_still_be_killed() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for (name, seconds) in [("left", 8103), ("other", 8104)] {
        assert_eq!(run(&client, &shell(name, &hide(seconds))).await.code(), Some(0));
        hidden(seconds).await;
    }
    let kill = SignalRequest { signal: 9, by: "ann".to_owned(), tree: true };
    client.signal(&id("left"), &kill).await.unwrap();
    wait_for("both are gone", async || sleeping(8103) == 0).await;
    assert_eq!(sleeping(8104), 2);
}

#[tokio::test]
async fn whoever_claims_to_be_another_command_is_not_believed() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let liar = "SANDBANK_COMMAND=timed setsid sleep 8105 & SANDBANK_COMMAND=timed sleep 8105";
    client.start(&shell("liar", liar)).await.unwrap();
    hidden(8105).await;
    let mut timed = shell("timed", "sleep 60");
    timed.timeout_ms = Some(100);
    assert_eq!(run(&client, &timed).await.ending, Some(Ending::TimedOut));
    assert_eq!(sleeping(8105), 2, "the wrong command was killed");
}

#[tokio::test]
async fn a_late_script_loses_what_it_hid_and_other_shells_lose_nothing() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let other = script("other", &hide(8106));
    assert_eq!(run(&client, &other).await.code(), Some(0));
    let before = script("mine", &hide(8107));
    assert_eq!(run(&client, &before).await.code(), Some(0));
    hidden(8106).await;
    hidden(8107).await;
    let mut late = script("mine", &format!("{}; sleep 60", hide(8108)));
    late.timeout_ms = Some(500);
    assert_eq!(run(&client, &late).await.ending, Some(Ending::TimedOut));
    assert_eq!(sleeping(8108), 0, "something outlived its script's timeout");
    assert_eq!(sleeping(8107), 2, "an earlier script lost its background");
    assert_eq!(sleeping(8106), 2, "another shell lost its background");
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_timeout() {
    let Some(pids) = TestCgroup::v1("pids") else {
        println!("skipped: needs root and that cgroup hierarchy");
        return;
    };
    pids.write("pids.max", "150");
    let runner = LiveRunner::start();
    pids.write("cgroup.procs", &runner.pid().to_string());
    let client = runner.client().await;
    let bomb = "trap '' TERM; bomb() { bomb | bomb & }; bomb; sleep 60";
    let mut bomb = shell("bomb", &format!("{}; {bomb}", hide(8109)));
    bomb.timeout_ms = Some(500);
    client.start(&bomb).await.unwrap();
    let full = async || pids.read("pids.events").trim() != "max 0";
    wait_for("there is no room for another process", full).await;
    let ended = client.wait(&id("bomb")).await.unwrap();
    assert_eq!(ended.ending(), Some(&Ending::TimedOut));
    assert_eq!(pids.read("cgroup.procs").trim(), runner.pid().to_string());
    assert_eq!(run(&client, &spec("after", &["true"])).await.code(), Some(0));
}

#[tokio::test]
async fn no_command_can_change_whose_it_is() {
    let escape = "bash -c 'ulimit -x 7'; ulimit -Sn 100 && echo limited";
    let runner = LiveRunner::start();
    let control = run(&runner.client().await, &shell("c", escape)).await;
    assert_eq!((control.text().as_str(), control.errors().as_str()), ("limited\n", ""));

    let runner = LiveRunner::start_with(|config| config.seccomp_hex = Some(ALLOW_ALL.to_owned()));
    let refused = run(&runner.client().await, &shell("c", escape)).await;
    assert_eq!(refused.text(), "limited\n", "other limits are theirs");
    assert!(refused.errors().contains("not permitted"), "{}", refused.errors());
}

#[tokio::test]
async fn an_out_of_memory_kill_is_told_by_the_cgroup_the_runner_was_put_into() {
    if skip_unless_root() {
        return;
    }
    let Some(memory) = TestCgroup::v1("memory") else {
        println!("skipped: needs that cgroup hierarchy");
        return;
    };
    memory.write("memory.limit_in_bytes", "67108864");
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    let procs = memory.path("cgroup.procs");
    // SAFETY: it allocates in the child of a test, which glibc allows after a fork.
    unsafe { command.pre_exec(move || std::fs::write(&procs, "0")) };
    let runner = LiveRunner::start_by(&mut command, |config| {
        config.workload = Some(WorkloadIdentity { uid: 0, gid: 0 });
        config.prepare = Some(PrepareConfig { watch_memory: true, ..PrepareConfig::default() });
    });
    let client = runner.client().await;
    let hog = run(&client, &spec("hog", &["tail", "/dev/zero"])).await;
    assert_eq!(hog.ending, Some(Ending::OomKilled), "{}", memory.read("memory.oom_control"));
    let suicide = run(&client, &shell("suicide", "kill -9 $$")).await;
    assert_eq!(suicide.ending, Some(Ending::Signaled { signal: 9 }));
}

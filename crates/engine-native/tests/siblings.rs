//! Two machines of one daemon: neither finds anything of the other, and neither can starve it.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sandbank_engine::{Engine, SandboxId};
use sandbank_protocol::Ending;
use support::{TestEngine, cannot_run, wait_for};

sandbank_engine_native::spawner_entry!();

/// Longer than any answer takes unless it never comes.
const HANG: Duration = Duration::from_secs(30);

/// Part of every Debian, and able to make any system call.
fn no_perl() -> bool {
    let missing = !Path::new("/usr/bin/perl").exists();
    if missing {
        println!("skipped: sockets and pipes are made with perl, which this host lacks");
    }
    missing
}

/// Made in the background by `make`, announced by a file, and found by `find`.
const SHARED: &[(&str, &str, &str)] = &[
    (
        "an abstract socket",
        "perl -e 'socket(S,1,1,0) && bind(S,pack(\"Sa*\",1,\"\\0sandbank-sibling\")) && listen(S,5) \
         or die; open(F,\">ready\"); close F; sleep 60'",
        "perl -e 'socket(S,1,1,0); connect(S,pack(\"Sa*\",1,\"\\0sandbank-sibling\")) or exit 1'",
    ),
    (
        "a port on loopback",
        "perl -e 'socket(S,2,1,6) && bind(S,pack(\"SnC4x8\",2,4711,127,0,0,1)) && listen(S,5) \
         or die; open(F,\">ready\"); close F; sleep 60'",
        "perl -e 'socket(S,2,1,6); connect(S,pack(\"SnC4x8\",2,4711,127,0,0,1)) or exit 1'",
    ),
    (
        "System V shared memory",
        "perl -e 'defined shmget(4711,4096,01666) or die; open(F,\">ready\"); close F; sleep 60'",
        "perl -e 'defined shmget(4711,4096,0) or exit 1'",
    ),
    (
        "a System V message queue",
        "perl -e 'defined msgget(4711,01666) or die; open(F,\">ready\"); close F; sleep 60'",
        "perl -e 'defined msgget(4711,0) or exit 1'",
    ),
    (
        "POSIX shared memory",
        "echo x > /dev/shm/sibling; touch ready; sleep 60",
        "test -e /dev/shm/sibling",
    ),
    ("a file in /tmp", "echo x > /tmp/sibling; touch ready; sleep 60", "test -e /tmp/sibling"),
    ("a file in the workspace", "echo x > sibling; touch ready; sleep 60", "test -e sibling"),
    (
        "a process",
        "cp /bin/sleep ./sibling-sleep; touch ready; ./sibling-sleep 60",
        "grep -sq [s]ibling-sleep /proc/[0-9]*/cmdline",
    ),
];

async fn start(test: &TestEngine, id: &SandboxId, script: &str) {
    let background = format!("rm -f ready; ({script}) > /dev/null 2>&1 &");
    assert_eq!(test.sh(id, &background).await.code(), Some(0));
    wait_for("it is made", async || test.sh(id, "test -e ready").await.code() == Some(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_one_makes_is_found_by_another() {
    if cannot_run() || no_perl() {
        return;
    }
    let test = TestEngine::start().await;
    let (one, two) = (test.create().await, test.create().await);
    for (what, make, find) in SHARED {
        assert_ne!(test.sh(&one.id, find).await.code(), Some(0), "{what} was there before");
        start(&test, &one.id, make).await;
        assert_eq!(
            test.sh(&one.id, find).await.code(),
            Some(0),
            "{what} is not found by its maker"
        );
        assert_ne!(test.sh(&two.id, find).await.code(), Some(0), "{what} is found by a sibling");
    }
    let names = (test.sh(&one.id, "hostname").await, test.sh(&two.id, "hostname").await);
    assert_ne!(names.0.stdout, names.1.stdout);
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_one_forks_without_end_another_answers_and_it_can_be_ended() {
    if cannot_run() || no_perl() {
        return;
    }
    let test = TestEngine::start().await;
    let (bomb, quiet) = (test.create_with(|spec| spec.limits.pids = 64).await, test.create().await);
    let client = test.client(&bomb.id).await;
    let script = "perl -e '$SIG{ALRM} = sub { exit }; alarm 20; while (1) { fork }'";
    let running =
        tokio::spawn(async move { support::run(&client, &["/bin/sh", "-c", script]).await });
    wait_for("the bomb has gone off", async || {
        test.engine.stats(&bomb.id).await.unwrap().pids >= 60
    })
    .await;
    for _ in 0..10 {
        let answer = tokio::time::timeout(HANG, test.sh(&quiet.id, "echo alive")).await;
        assert_eq!(answer.expect("it answers").stdout, "alive\n");
        assert!(test.engine.stats(&bomb.id).await.unwrap().pids <= 64);
    }
    let made = tokio::time::timeout(HANG, test.create()).await;
    made.expect("machines are still made");
    let ended = tokio::time::timeout(HANG, test.engine.destroy(&bomb.id)).await;
    ended.expect("it can be ended").unwrap();
    running.abort();
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_counted_however_it_is_used_and_only_its_user_pays() {
    if cannot_run() || no_perl() {
        return;
    }
    let test = TestEngine::start().await;
    let limit = 48 << 20;
    let hog = test
        .create_with(|spec| {
            spec.limits.memory_bytes = limit;
            spec.limits.tmp_bytes = 1 << 30;
        })
        .await;
    let quiet = test.create().await;
    let allocate = "exec perl -e '$x .= \"x\" x (1 << 20) for 1..200'";
    assert_eq!(test.sh(&hog.id, allocate).await.ending, Ending::OomKilled);
    // A tmpfs that may be larger than memory: the writer dies of it, and can be freed again.
    let tmpfs = "perl -e 'open(F,\">/tmp/hog\"); syswrite(F, \"x\" x (1<<20)) for 1..200'";
    let output = test.sh(&hog.id, tmpfs).await;
    assert_ne!(output.code(), Some(0), "200 MiB in a tmpfs within 48 MiB");
    assert_eq!(test.sh(&hog.id, "rm -f /tmp/hog && echo alive").await.stdout, "alive\n");
    // Pipes, each made as large as it may be, filled and never read.
    let pipes = "exec perl -e 'use Fcntl; for (1..400) { pipe(my $r, my $w); push @k, $r, $w; \
        fcntl($w, 1031, 1<<20); fcntl($w, F_SETFL, O_NONBLOCK); \
        1 while syswrite($w, \"x\" x 65536) } print \"filled\"'";
    let output = test.sh(&hog.id, pipes).await;
    assert!(output.ending == Ending::OomKilled || output.stdout == "filled", "{:?}", output.ending);
    // The page cache gives way instead.
    let cache = "head -c 150000000 /dev/zero > big && cat big > /dev/null && rm big && echo alive";
    assert_eq!(test.sh(&hog.id, cache).await.stdout, "alive\n");
    let stats = test.engine.stats(&hog.id).await.unwrap();
    assert!(stats.memory_peak_bytes <= limit, "{stats:?}");
    assert!(stats.oom_kills >= 2, "{stats:?}");
    assert_eq!(test.sh(&quiet.id, "echo alive").await.stdout, "alive\n");
    assert_eq!(test.engine.stats(&quiet.id).await.unwrap().oom_kills, 0);
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spinning_on_every_core_stays_within_the_limit() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let spinner = test.create_with(|spec| spec.limits.cpu_millis = 500).await;
    let quiet = test.create().await;
    let used = async || test.engine.stats(&spinner.id).await.unwrap().cpu_usage_us;
    let (before, started) = (used().await, std::time::Instant::now());
    let spin = "for i in 1 2 3 4; do timeout 3 sh -c 'while :; do :; done' & done; wait";
    let (_, answer) = tokio::join!(
        test.sh(&spinner.id, spin),
        tokio::time::timeout(HANG, test.sh(&quiet.id, "echo alive"))
    );
    assert_eq!(answer.expect("a neighbour answers").stdout, "alive\n");
    let (used, wall) = (used().await - before, started.elapsed().as_micros() as u64);
    // Half a core, a fifth more, and the periods that were running at either end.
    assert!(used <= wall * 6 / 10 + 100_000, "{used} us of {wall} us");
    assert!(used > 0);
    test.finish().await;
}

/// Idle machines at once. The whole thousand takes a minute or so in a build for development.
fn crowd() -> usize {
    if std::env::var("SANDBANK_TORTURE").as_deref() == Ok("full") { 1000 } else { 100 }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_idle_machines_lives_and_leaves_nothing() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let engine = Arc::clone(&test.engine);
    let permits = Arc::new(tokio::sync::Semaphore::new(engine.capabilities().concurrent_creates));
    let makers: Vec<_> = (0..crowd())
        .map(|_| {
            let (engine, permits) = (Arc::clone(&engine), Arc::clone(&permits));
            tokio::spawn(async move {
                let _turn = permits.acquire().await.unwrap();
                let mut spec = support::spec();
                spec.limits.memory_bytes = 32 << 20;
                engine.create(&spec).await.map(|machine| machine.id)
            })
        })
        .collect();
    let mut ids = Vec::new();
    for maker in makers {
        ids.push(maker.await.unwrap().unwrap());
    }
    assert_eq!(engine.list().await.unwrap().len(), crowd());
    for id in ids.iter().step_by(crowd() / 10) {
        assert_eq!(test.sh(id, "echo alive").await.stdout, "alive\n");
    }
    drop(engine);
    test.finish().await;
}

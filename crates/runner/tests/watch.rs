//! What is told of changes below a directory: all of them, in order, or that some are missing.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use commanding::fault_code;
use live_runner::LiveRunner;
use sandbank_channel::{RecordStream, RunnerClient, WatchQuery};
use sandbank_protocol::{FaultCode, WatchEvent, WatchKind};
use tokio::time::{Instant, timeout_at};

use WatchKind as K;

/// Long enough for a loaded machine; only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(30);

fn query(path: &str) -> WatchQuery {
    WatchQuery { path: path.into(), recursive: true, after: None, exclude: None }
}

/// A reader with what it has read.
struct Listener {
    stream: RecordStream<WatchEvent>,
    heard: Vec<WatchEvent>,
    taken: usize,
}

impl Listener {
    async fn open(client: &RunnerClient, query: &WatchQuery) -> Self {
        let stream = client.watch(query).await.unwrap();
        let mut listener = Self { stream, heard: Vec::new(), taken: 0 };
        let first = listener.next().await;
        assert!(matches!(first.kind, K::Ready | K::Reset), "{first:?}");
        listener
    }

    async fn start(client: &RunnerClient, path: &str) -> Self {
        let listener = Self::open(client, &query(path)).await;
        assert_eq!(listener.heard[0].kind, K::Ready);
        listener
    }

    async fn next(&mut self) -> WatchEvent {
        let deadline = Instant::now() + PATIENCE;
        while self.taken == self.heard.len() {
            let records = timeout_at(deadline, self.stream.next()).await.expect("nothing is told");
            let records = records.unwrap().expect("the stream ended").records;
            self.heard.extend(records.into_iter().filter(|event| event.kind != K::Heartbeat));
        }
        self.taken += 1;
        self.heard[self.taken - 1].clone()
    }

    /// Up to the one about `path`, which is the last.
    async fn until(&mut self, path: &str) -> Vec<WatchEvent> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await;
            let is_last = event.path.as_deref() == Some(path);
            events.push(event);
            if is_last {
                return events;
            }
        }
    }

    /// What is there by all that was told, from a listing before.
    async fn told(&mut self, mark: &str) -> Vec<(WatchKind, String)> {
        let events = self.until(mark).await;
        let events = events.iter().filter(|event| event.path.as_deref() != Some(mark));
        events.map(|event| (event.kind, event.path.clone().unwrap_or_default())).collect()
    }
}

fn pairs(expected: &[(WatchKind, &str)]) -> Vec<(WatchKind, String)> {
    expected.iter().map(|(kind, path)| (*kind, (*path).to_owned())).collect()
}

fn signal(runner: &LiveRunner, signal: &str) {
    let pid = runner.pid().to_string();
    assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

fn mark(runner: &LiveRunner, name: &str) {
    std::fs::write(runner.inside(name), "").unwrap();
}

#[tokio::test]
async fn a_burst_of_writes_is_one_change_and_the_order_is_kept() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    std::fs::create_dir(runner.inside("d")).unwrap();
    std::fs::write(runner.inside("old"), "x").unwrap();
    let mut listener = Listener::start(&client, ".").await;
    // All of it at once, however slow this machine is.
    signal(&runner, "-STOP");
    for number in 0..200 {
        std::fs::write(runner.inside("d/new"), format!("{number}")).unwrap();
    }
    std::fs::write(runner.inside("old"), "y").unwrap();
    std::fs::remove_file(runner.inside("d/new")).unwrap();
    mark(&runner, "mark");
    signal(&runner, "-CONT");
    let told = listener.told("mark").await;
    let expected = [(K::Created, "d/new"), (K::Modified, "old"), (K::Removed, "d/new")];
    assert_eq!(told, pairs(&expected));
    let seqs: Vec<u64> = listener.heard.iter().map(|event| event.seq).collect();
    assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "numbers without a gap: {seqs:?}");
}

#[tokio::test]
async fn moves_within_into_and_out_of_the_tree_are_told_as_such() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for path in ["tree/a/deep", "outside/in/deep", "tree/node_modules"] {
        std::fs::create_dir_all(runner.inside(path)).unwrap();
    }
    std::fs::write(runner.inside("outside/in/deep/file"), "x").unwrap();
    let mut listener = Listener::start(&client, "tree").await;
    let rename = |from: &str, to: &str| {
        std::fs::rename(runner.inside(from), runner.inside(to)).unwrap();
    };
    rename("tree/a", "tree/b");
    mark(&runner, "tree/1");
    let moved = listener.until("tree/1").await.remove(0);
    assert_eq!((moved.kind, moved.path.as_deref()), (K::Moved, Some("tree/b")));
    assert_eq!((moved.from.as_deref(), moved.is_dir), (Some("tree/a"), Some(true)));
    mark(&runner, "tree/b/deep/after");
    assert_eq!(listener.told("tree/b/deep/after").await, [], "told of by its new path");

    rename("outside/in", "tree/in");
    let told = listener.told("tree/in/deep/file").await;
    assert_eq!(told, pairs(&[(K::Created, "tree/in"), (K::Created, "tree/in/deep")]));
    mark(&runner, "tree/in/deep/after");
    listener.until("tree/in/deep/after").await;

    rename("tree/b", "outside/b");
    mark(&runner, "outside/b/deep/unseen");
    mark(&runner, "tree/node_modules/unseen");
    mark(&runner, "tree/3");
    assert_eq!(listener.told("tree/3").await, pairs(&[(K::Removed, "tree/b")]));
    std::os::unix::fs::symlink(runner.inside("outside"), runner.inside("tree/link")).unwrap();
    mark(&runner, "outside/unseen");
    mark(&runner, "tree/4");
    assert_eq!(listener.told("tree/4").await, pairs(&[(K::Created, "tree/link")]));
}

fn listing(top: &Path, at: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        into.insert(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
        if path.is_dir() {
            listing(top, &path, into);
        }
    }
}

/// What is there by what was told.
fn replay(events: &[WatchEvent]) -> BTreeSet<String> {
    let mut there: BTreeSet<String> = BTreeSet::new();
    for event in events {
        let path = event.path.clone().unwrap_or_default();
        let below = |from: &str, one: &String| one == from || one.starts_with(&format!("{from}/"));
        match event.kind {
            K::Created | K::Modified => drop(there.insert(path)),
            K::Removed => there.retain(|one| !below(&path, one)),
            K::Moved => {
                let from = event.from.clone().unwrap();
                let (moved, stay): (BTreeSet<String>, BTreeSet<String>) =
                    there.into_iter().partition(|one| below(&from, one));
                there = stay.into_iter().filter(|one| !below(&path, one)).collect();
                there.extend(moved.iter().map(|one| format!("{path}{}", &one[from.len()..])));
                there.insert(path);
            }
            _ => {}
        }
    }
    there
}

#[tokio::test]
async fn trees_made_and_moved_while_they_are_entered_are_known_when_all_is_still() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let top = runner.inside("");
    let mut listener = Listener::start(&client, ".").await;
    let makers: Vec<_> = (0..4)
        .map(|maker| {
            let top = top.clone();
            std::thread::spawn(move || {
                for round in 0..40 {
                    let base = top.join(format!("m{maker}/r{round}/x/y/z"));
                    std::fs::create_dir_all(&base).unwrap();
                    for file in 0..5 {
                        std::fs::write(base.join(format!("f{file}")), "x").unwrap();
                    }
                    let round_dir = top.join(format!("m{maker}/r{round}"));
                    match round % 4 {
                        0 => std::fs::remove_dir_all(&round_dir).unwrap(),
                        1 => {
                            std::fs::rename(&round_dir, top.join(format!("m{maker}/moved{round}")))
                                .unwrap();
                            std::fs::create_dir_all(round_dir.join("again")).unwrap();
                            std::fs::write(round_dir.join("again/f"), "x").unwrap();
                        }
                        2 => {
                            let from = round_dir.join("x/y");
                            std::fs::rename(from, round_dir.join("up")).unwrap();
                            std::fs::write(round_dir.join("up/z/late"), "x").unwrap();
                        }
                        _ => {}
                    }
                }
            })
        })
        .collect();
    makers.into_iter().for_each(|maker| maker.join().unwrap());
    mark(&runner, "mark");
    listener.until("mark").await;
    // New directories may still be listed; then a mark in each of them is told of.
    let mut there = BTreeSet::new();
    listing(&top, &top, &mut there);
    let mut deadline = 0;
    while replay(&listener.heard) != there {
        deadline += 1;
        assert!(
            deadline < 200,
            "told otherwise: {:?}",
            replay(&listener.heard).symmetric_difference(&there).collect::<Vec<_>>()
        );
        let name = format!("mark{deadline}");
        mark(&runner, &name);
        there.insert(name.clone());
        listener.until(&name).await;
    }
    assert!(listener.heard.iter().all(|event| event.kind != K::Reset));
    let directories = there.iter().filter(|path| runner.inside(path).is_dir());
    let mut proofs: BTreeSet<String> = directories.map(|path| format!("{path}/proof")).collect();
    proofs.iter().for_each(|proof| mark(&runner, proof));
    while !proofs.is_empty() {
        proofs.remove(&listener.next().await.path.unwrap());
    }
}

#[tokio::test]
async fn who_comes_back_goes_on_without_a_gap_and_who_was_away_too_long_is_told() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut listener = Listener::start(&client, ".").await;
    mark(&runner, "seen");
    let seq = listener.until("seen").await.last().unwrap().seq;
    drop(listener);
    mark(&runner, "unseen");
    let after = |after| WatchQuery { after: Some(after), ..query(".") };
    let mut again = Listener::open(&client, &after(seq)).await;
    assert_eq!((again.heard[0].kind, again.heard[0].seq), (K::Ready, seq));
    assert!(again.until("unseen").await.iter().all(|event| event.seq > seq));
    for unknown in [0, seq - 1_000_000, seq + 1_000_000] {
        let late = Listener::open(&client, &after(unknown)).await;
        assert_eq!(late.heard[0].kind, K::Reset, "{unknown}");
        assert!(late.heard[0].reason.is_some() && late.heard[0].seq > seq);
    }
    // Another tree has other numbers.
    let other = WatchQuery { recursive: false, ..after(seq) };
    assert_eq!(Listener::open(&client, &other).await.heard[0].kind, K::Reset);
}

#[tokio::test]
async fn a_reader_that_stands_still_is_told_to_list_again_and_holds_nobody_up() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    std::fs::create_dir(runner.inside("d")).unwrap();
    let stuck = client.watch(&query(".")).await.unwrap();
    let mut listener = Listener::start(&client, ".").await;
    let long = "x".repeat(200);
    for round in 0..20 {
        for number in 0..1_000 {
            let name = format!("d/{round:02}-{number:04}-{long}");
            std::fs::write(runner.inside(&name), "").unwrap();
        }
        mark(&runner, &format!("mark{round}"));
        listener.until(&format!("mark{round}")).await;
    }
    let mut late = Listener { stream: stuck, heard: Vec::new(), taken: 0 };
    while late.next().await.kind != K::Reset {}
    mark(&runner, "after");
    late.until("after").await;
    assert!(client.stats().await.is_ok());
}

#[tokio::test]
async fn too_many_directories_refuse_a_watch_and_reset_one_that_grows() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let make = |range: std::ops::Range<u32>| {
        for number in range {
            std::fs::create_dir(runner.inside(&format!("{number}"))).unwrap();
        }
    };
    make(0..9_000);
    let mut listener = Listener::start(&client, ".").await;
    make(9_000..10_100);
    let reset = loop {
        let event = listener.next().await;
        if event.kind == K::Reset {
            break event;
        }
    };
    assert!(reset.reason.unwrap().contains("too many directories"));
    let end = listener.next().await;
    assert_eq!((end.kind, end.seq), (K::End, reset.seq));
    assert_eq!(fault_code(client.watch(&query(".")).await.map(drop)), FaultCode::LimitReached);
    let flat = WatchQuery { recursive: false, ..query(".") };
    let mut flat = Listener::open(&client, &flat).await;
    mark(&runner, "still");
    flat.until("still").await;
    mark(&runner, "5/unseen");
    mark(&runner, "seen");
    assert_eq!(flat.told("seen").await, []);
}

#[tokio::test]
async fn an_overflow_of_the_kernel_is_told_and_the_tree_is_entered_anew() {
    let queue: usize = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    if queue > 70_000 {
        return println!("skipped: the kernel keeps {queue} events, which is too many to exceed");
    }
    let runner = LiveRunner::start();
    let client = runner.client().await;
    std::fs::create_dir(runner.inside("d")).unwrap();
    let mut listener = Listener::start(&client, ".").await;
    // While the runner stands still, as on a busy machine.
    signal(&runner, "-STOP");
    for number in 0..queue + 100 {
        let path = runner.inside(&format!("d/{}", number % 2));
        std::fs::write(&path, "x").unwrap();
        std::fs::remove_file(&path).unwrap();
    }
    std::fs::create_dir_all(runner.inside("late/deep")).unwrap();
    signal(&runner, "-CONT");
    let reset = loop {
        let event = listener.next().await;
        if event.kind == K::Reset {
            break event;
        }
    };
    assert!(reset.reason.unwrap().contains("the kernel did not keep all"));
    mark(&runner, "late/deep/after");
    listener.until("late/deep/after").await;
}

#[tokio::test]
async fn a_watched_directory_that_goes_away_ends_its_watch() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    std::fs::create_dir(runner.inside("d")).unwrap();
    let mut listener = Listener::start(&client, "d").await;
    std::fs::remove_dir(runner.inside("d")).unwrap();
    assert_eq!(listener.next().await.kind, K::Reset);
    assert_eq!(listener.next().await.kind, K::End);
    assert_eq!(fault_code(client.watch(&query("d")).await.map(drop)), FaultCode::NotFound);
    std::fs::write(runner.inside("file"), "").unwrap();
    assert_eq!(fault_code(client.watch(&query("file")).await.map(drop)), FaultCode::WrongKind);
    assert_eq!(fault_code(client.watch(&query("..")).await.map(drop)), FaultCode::OutsideWorkspace);
}

fn open_inotify(pid: u32) -> usize {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let is_one = |path: std::path::PathBuf| path.to_string_lossy().contains("inotify");
    entries
        .filter(|entry| std::fs::read_link(entry.as_ref().unwrap().path()).is_ok_and(is_one))
        .count()
}

#[tokio::test]
async fn fifty_watchers_of_fifty_trees_hear_their_own_with_one_instance_of_the_kernels() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    assert_eq!(open_inotify(runner.pid()), 0, "nothing is there before it is needed");
    let mut listeners = Vec::new();
    for number in 0..50 {
        std::fs::create_dir_all(runner.inside(&format!("{number}/deep"))).unwrap();
        listeners.push(Listener::start(&client, &number.to_string()).await);
    }
    let mut all = Listener::start(&client, ".").await;
    for number in 0..50 {
        mark(&runner, &format!("{number}/deep/own"));
    }
    for (number, listener) in listeners.iter_mut().enumerate() {
        let own = format!("{number}/deep/own");
        assert_eq!(listener.told(&own).await, []);
        all.until(&own).await;
    }
    assert_eq!(open_inotify(runner.pid()), 1);
    let too_many = async {
        for number in 0..50 {
            let flat = WatchQuery { recursive: false, ..query(&format!("{number}/deep")) };
            match client.watch(&flat).await {
                Ok(stream) => listeners.push(Listener { stream, heard: Vec::new(), taken: 0 }),
                refused => return fault_code(refused.map(drop)),
            }
        }
        panic!("there is no limit")
    };
    assert_eq!(too_many.await, FaultCode::LimitReached);
}

#[tokio::test]
async fn names_of_any_bytes_are_told_exactly() {
    use std::os::unix::ffi::OsStrExt;
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut listener = Listener::start(&client, ".").await;
    let name = std::ffi::OsStr::from_bytes(b"no\xfftext");
    std::fs::write(runner.inside("").join(name), "").unwrap();
    mark(&runner, "line\nend");
    let events = listener.until("line\nend").await;
    assert_eq!(events[0].path_hex.as_deref(), Some("6e6fff74657874"));
}

#[tokio::test]
async fn a_watch_whose_parent_was_moved_ends_and_a_new_one_is_of_what_is_there_now() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    std::fs::create_dir_all(runner.inside("a/b")).unwrap();
    let mut before = Listener::start(&client, "a/b").await;
    std::fs::rename(runner.inside("a"), runner.inside("c")).unwrap();
    std::fs::create_dir_all(runner.inside("a/b")).unwrap();
    let mut after = Listener::start(&client, "a/b").await;
    mark(&runner, "c/b/old");
    mark(&runner, "a/b/new");
    assert_eq!(after.told("a/b/new").await, []);
    let reset = before.next().await;
    assert_eq!(reset.kind, K::Reset, "{reset:?}");
    assert_eq!(reset.reason.as_deref(), Some("the watched directory was removed or moved"));
    assert_eq!(before.next().await.kind, K::End);
}

#[tokio::test]
async fn what_happens_in_a_directory_that_moved_with_its_parent_is_not_told_as_the_old_place() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    std::fs::create_dir_all(runner.inside("a/b")).unwrap();
    let mut listener = Listener::start(&client, "a/b").await;
    std::fs::rename(runner.inside("a"), runner.inside("c")).unwrap();
    mark(&runner, "c/b/file");
    let kinds = [listener.next().await.kind, listener.next().await.kind];
    assert_eq!(kinds, [K::Reset, K::End], "{:?}", listener.heard);
}

#[tokio::test]
async fn a_directory_with_more_than_is_told_comes_as_a_reset() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let outside = runner.inside("").parent().unwrap().join("wide");
    std::fs::create_dir(&outside).unwrap();
    for number in 0..20_000 {
        std::fs::write(outside.join(number.to_string()), "").unwrap();
    }
    let mut listener = Listener::start(&client, ".").await;
    std::fs::rename(&outside, runner.inside("wide")).unwrap();
    loop {
        let event = listener.next().await;
        if event.kind == K::Reset {
            let reason = event.reason.unwrap_or_default();
            assert!(reason.contains("more came at once"), "{reason}");
            break;
        }
    }
    mark(&runner, "wide/another");
    listener.until("wide/another").await;
}

//! Walks, copies, modes and versions of the real runner, through the daemon's own client.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod live_runner;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::time::Duration;

use live_runner::{CANARY, LiveRunner, wait_for};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use sandbank_channel::{ChannelError, RecordStream, RunnerClient, TreeOptions, full_body};
use sandbank_protocol::{
    ChmodRequest, CopyRequest, FaultCode, FileKind, TreeEnd, TreeEntry, TreeLimit, TreeRecord,
    WorkloadIdentity,
};
use sandbank_test_support::Swapper;

const ALL: TreeOptions = TreeOptions {
    depth: u64::MAX,
    nodes: u64::MAX,
    time_ms: 30_000,
    stat: false,
    hidden: true,
    sort: false,
};

async fn collected(mut records: RecordStream<TreeRecord>) -> (Vec<TreeEntry>, TreeEnd) {
    let mut entries = Vec::new();
    let mut end = None;
    while let Some(records) = records.next().await.unwrap() {
        for record in records.records {
            assert!(end.is_none(), "the end is the last line");
            match record {
                TreeRecord::Entry(entry) => entries.push(entry),
                TreeRecord::End(ended) => end = Some(ended),
            }
        }
    }
    (entries, end.expect("a whole answer has an end"))
}

async fn tree(
    client: &RunnerClient,
    path: &str,
    options: TreeOptions,
) -> (Vec<TreeEntry>, TreeEnd) {
    collected(client.tree(path, options).await.unwrap()).await
}

fn code<T>(answer: Result<T, ChannelError>) -> FaultCode {
    match answer {
        Err(ChannelError::Refused(fault)) => fault.code,
        Err(other) => panic!("expected a refusal, not {other:?}"),
        Ok(_) => panic!("expected a refusal"),
    }
}

fn copy_of(from: &str, to: &str) -> CopyRequest {
    CopyRequest { from: from.into(), to: to.into(), overwrite: false }
}

#[tokio::test]
async fn a_walk_tells_everything_once_and_how_it_ended() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir_all(runner.inside("a/b")).unwrap();
    fs::write(runner.inside("a/b/f"), "12345").unwrap();
    fs::write(runner.inside("a/.hidden"), "").unwrap();
    symlink("b/f", runner.inside("a/link")).unwrap();
    symlink(".", runner.inside("a/loop")).unwrap();
    symlink(runner.canary(), runner.inside("a/out")).unwrap();
    let options = TreeOptions { sort: true, stat: true, ..ALL };
    let (entries, end) = tree(&client, "a", options).await;
    let paths: Vec<_> = entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["a/.hidden", "a/b", "a/link", "a/loop", "a/out", "a/b/f"]);
    let file = entries.last().unwrap();
    assert_eq!((file.kind, file.size, file.mode), (FileKind::File, Some(5), Some(0o644)));
    assert_eq!((entries[2].kind, entries[2].target.as_deref()), (FileKind::Symlink, Some("b/f")));
    assert_eq!((end.truncated, end.reason, end.visited, end.unreadable), (false, None, 6, 0));
    let (entries, _) = tree(&client, ".", TreeOptions { hidden: false, ..ALL }).await;
    assert!(entries.iter().all(|entry| entry.path != "a/.hidden" && entry.size.is_none()));
    assert_eq!(entries.len(), 6);
    for (path, expected) in [
        ("a/b/f", FaultCode::WrongKind),
        ("none", FaultCode::NotFound),
        ("a/out", FaultCode::OutsideWorkspace),
        ("../x", FaultCode::OutsideWorkspace),
        ("/etc", FaultCode::OutsideWorkspace),
    ] {
        assert_eq!(code(client.tree(path, ALL).await), expected, "{path}");
    }
}

#[tokio::test]
async fn every_limit_of_a_walk_ends_it_and_is_named() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for directory in 0..20 {
        fs::create_dir_all(runner.inside(&format!("{directory}/x/y"))).unwrap();
        fs::write(runner.inside(&format!("{directory}/x/y/f")), "").unwrap();
    }
    let (entries, end) = tree(&client, ".", ALL).await;
    assert_eq!((entries.len(), end.truncated), (80, false));
    let (entries, end) = tree(&client, ".", TreeOptions { nodes: 33, ..ALL }).await;
    assert_eq!((entries.len(), end.reason), (33, Some(TreeLimit::Nodes)));
    let (entries, end) = tree(&client, ".", TreeOptions { nodes: 80, ..ALL }).await;
    assert_eq!((entries.len(), end.truncated), (80, false), "just as many as there are");
    let (entries, end) = tree(&client, ".", TreeOptions { depth: 2, ..ALL }).await;
    assert_eq!((entries.len(), end.truncated, end.reason), (40, true, Some(TreeLimit::Depth)));
    let (_, end) = tree(&client, ".", TreeOptions { time_ms: 0, ..ALL }).await;
    assert_eq!((end.truncated, end.reason), (true, Some(TreeLimit::Time)));
    for zero in [TreeOptions { nodes: 0, ..ALL }, TreeOptions { depth: 0, ..ALL }] {
        assert_eq!(code(client.tree(".", zero).await), FaultCode::Invalid);
    }
}

#[tokio::test]
async fn names_of_any_bytes_are_told_exactly() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let odd: [&[u8]; 5] =
        [b"-\xff\xfe", b"new\nline\"\\", b"-rf", "ü\u{2028}".as_bytes(), &[b'x'; 255]];
    fs::create_dir(runner.inside("").join(OsStr::from_bytes(b"d\xff"))).unwrap();
    for name in odd {
        fs::write(runner.inside("").join(OsStr::from_bytes(name)), "").unwrap();
        let below = [b"d\xff/" as &[u8], name].concat();
        fs::write(runner.inside("").join(OsStr::from_bytes(&below)), "").unwrap();
    }
    let (entries, end) = tree(&client, ".", ALL).await;
    assert_eq!((entries.len(), end.unreadable), (11, 0));
    let exact = |entry: &TreeEntry| match &entry.path_hex {
        None => entry.path.clone().into_bytes(),
        Some(hex) => {
            assert!(entry.path.contains('\u{fffd}'));
            (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                .collect()
        }
    };
    let told: Vec<Vec<u8>> = entries.iter().map(exact).collect();
    for name in odd {
        assert!(told.contains(&name.to_vec()));
        assert!(told.contains(&[b"d\xff/" as &[u8], name].concat()));
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_counted_and_named_and_the_rest_is_told() {
    let runner = LiveRunner::start_with(|config| {
        config.workload = Some(WorkloadIdentity { uid: 1234, gid: 1234 });
    });
    chown(runner.inside(""), Some(1234), Some(1234)).unwrap();
    let client = runner.client().await;
    for directory in 0..30 {
        fs::create_dir(runner.inside(&format!("closed{directory}"))).unwrap();
        fs::set_permissions(
            runner.inside(&format!("closed{directory}")),
            fs::Permissions::from_mode(0o700),
        )
        .unwrap();
    }
    fs::create_dir(runner.inside("open")).unwrap();
    fs::write(runner.inside("open/f"), "").unwrap();
    let (entries, end) = tree(&client, ".", ALL).await;
    if end.unreadable == 0 {
        println!("skipped: the runner reads everything here");
        return;
    }
    assert!(entries.iter().any(|entry| entry.path == "open/f"));
    assert_eq!((end.unreadable, end.unreadable_paths.len(), end.truncated), (30, 20, false));
    assert!(end.unreadable_paths.iter().all(|path| path.starts_with("closed")));
}

#[tokio::test]
async fn trees_of_thousands_of_levels_and_entries_end_in_time_and_others_are_answered_meanwhile() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut dir = openat(CWD, runner.inside(""), flags, Mode::empty()).unwrap();
    for _ in 0..5_000 {
        mkdirat(&dir, "d", Mode::RWXU).unwrap();
        dir = openat(&dir, "d", flags, Mode::empty()).unwrap();
    }
    fs::create_dir(runner.inside("wide")).unwrap();
    for file in 0..20_000 {
        fs::write(runner.inside(&format!("wide/{file}")), "").unwrap();
    }
    let (entries, end) = tree(&client, ".", ALL).await;
    assert_eq!((entries.len(), end.reason), (20_000 + 1 + 256, Some(TreeLimit::Depth)));
    // A reader that never reads holds up only its own walk.
    let unread = client.tree(".", ALL).await.unwrap();
    assert!(
        tokio::time::timeout(Duration::from_secs(20), client.stat("wide")).await.unwrap().is_ok()
    );
    drop(unread);
    client.remove("d", true).await.unwrap();
}

#[tokio::test]
async fn copies_are_whole_or_not_there() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir_all(runner.inside("tree/dir")).unwrap();
    fs::write(runner.inside("tree/dir/f"), "content").unwrap();
    symlink(runner.canary(), runner.inside("tree/out")).unwrap();
    let stat = client.copy(&copy_of("tree", "/workspace/copy")).await.unwrap();
    assert_eq!(stat.kind, FileKind::Directory);
    assert_eq!(fs::read(runner.inside("copy/dir/f")).unwrap(), b"content");
    assert_eq!(fs::read_link(runner.inside("copy/out")).unwrap(), runner.canary());
    for (from, to, expected) in [
        ("tree", "copy", FaultCode::Conflict),
        ("tree", "tree/dir/x", FaultCode::Invalid),
        ("none", "x", FaultCode::NotFound),
        ("tree", "none/x", FaultCode::NotFound),
        ("tree/dir/f", "../x", FaultCode::OutsideWorkspace),
        ("/etc/passwd", "x", FaultCode::OutsideWorkspace),
        ("tree/out/x", "x", FaultCode::OutsideWorkspace),
        (".", "x", FaultCode::Invalid),
    ] {
        assert_eq!(code(client.copy(&copy_of(from, to)).await), expected, "{from} to {to}");
    }
    let _socket = std::os::unix::net::UnixListener::bind(runner.inside("tree/dir/socket")).unwrap();
    let special = client.copy(&copy_of("tree", "other")).await;
    let Err(ChannelError::Refused(fault)) = special else { panic!("a socket was copied") };
    assert_eq!(fault.code, FaultCode::WrongKind);
    assert!(fault.message.contains("tree/dir/socket"), "{}", fault.message);
    assert_eq!(runner.names(""), ["copy", "tree"]);
    assert_eq!(fs::read(runner.canary()).unwrap(), CANARY);
}

#[tokio::test]
async fn a_copy_goes_on_beside_others_and_ends_with_its_caller() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir(runner.inside("tree")).unwrap();
    for file in 0..5_000 {
        fs::write(runner.inside(&format!("tree/{file}")), "x").unwrap();
    }
    let copying = {
        let client = client.clone();
        tokio::spawn(async move { client.copy(&copy_of("tree", "copy")).await })
    };
    wait_for("the copy has begun", async || runner.names("").len() > 1).await;
    copying.abort();
    wait_for("nothing is left of it, or all", async || {
        let names = runner.names("");
        names == ["tree"] || names == ["copy", "tree"]
    })
    .await;
    assert!(client.stat("tree").await.is_ok());
}

#[tokio::test]
async fn modes_are_set_by_name_and_for_a_whole_tree() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir_all(runner.inside("tree/dir")).unwrap();
    fs::write(runner.inside("tree/dir/f"), "").unwrap();
    symlink(runner.canary(), runner.inside("tree/out")).unwrap();
    let before = fs::metadata(runner.canary()).unwrap().permissions();
    let chmod = |path: &str, mode, recursive| ChmodRequest { path: path.into(), mode, recursive };
    let stat = client.chmod(&chmod("tree/dir/f", 0o751, false)).await.unwrap();
    assert_eq!(stat.mode, 0o751);
    assert_eq!(client.chmod(&chmod("tree", 0o700, true)).await.unwrap().mode, 0o700);
    assert_eq!(client.stat("tree/dir/f").await.unwrap().mode, 0o700);
    for (path, mode, expected) in [
        ("tree/out", 0o777, FaultCode::WrongKind),
        ("tree/dir/f", 0o4755, FaultCode::Invalid),
        ("none", 0o700, FaultCode::NotFound),
        ("../canary", 0o777, FaultCode::OutsideWorkspace),
    ] {
        assert_eq!(code(client.chmod(&chmod(path, mode, false)).await), expected, "{path}");
    }
    assert_eq!(fs::metadata(runner.canary()).unwrap().permissions(), before);
}

#[tokio::test]
async fn a_change_of_another_version_than_expected_is_refused_and_changes_nothing() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let write = async |condition: &str, content: &'static str| {
        client.write_file_if("f", None, Some(condition), full_body(content)).await
    };
    assert_eq!(code(write("any", "x").await), FaultCode::PreconditionFailed);
    let first = write("none", "first").await.unwrap().tag.unwrap().to_string();
    assert_eq!(code(write("none", "x").await), FaultCode::PreconditionFailed);
    let second = write(&first, "other").await.unwrap().tag.unwrap().to_string();
    assert_ne!(first, second);
    assert_eq!(code(write(&first, "x").await), FaultCode::PreconditionFailed);
    let at = client.write_file_at_if("f", 0, Some(&first), full_body("x")).await;
    assert_eq!(code(at), FaultCode::PreconditionFailed);
    let removed = client.remove_if("f", false, Some(&first)).await;
    assert_eq!(code(removed), FaultCode::PreconditionFailed);
    assert_eq!(fs::read(runner.inside("f")).unwrap(), b"other");
    assert_eq!(client.stat("f").await.unwrap().tag.unwrap().to_string(), second);
    // Twenty writers that have all seen the same version: one of them wins.
    let both = format!("{first},{second}");
    let writers = (0..20).map(|_| write(&both, "won"));
    let results = futures_util::future::join_all(writers).await;
    let won: Vec<_> = results.iter().filter(|result| result.is_ok()).collect();
    assert_eq!(won.len(), 1);
    let third = client.stat("f").await.unwrap().tag.unwrap().to_string();
    let at = client.write_file_at_if("f", 3, Some(&third), full_body("!")).await.unwrap();
    client.remove_if("f", false, Some(&at.tag.unwrap().to_string())).await.unwrap();
    assert_eq!(runner.names(""), [] as [&str; 0]);
    assert_eq!(code(write("nonsense", "x").await), FaultCode::Invalid);
}

/// `dir` ⇄ a link to the outside, and `file` ⇄ a link to the canary, as fast as it goes.
#[tokio::test]
async fn names_that_are_swapped_during_the_work_never_lead_outside() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir_all(runner.inside("tree/dir")).unwrap();
    fs::write(runner.inside("tree/dir/canary"), "inside").unwrap();
    fs::write(runner.inside("tree/file"), "inside").unwrap();
    symlink(runner.canary().parent().unwrap(), runner.inside("tree/dirlink")).unwrap();
    symlink(runner.canary(), runner.inside("tree/filelink")).unwrap();
    let before = fs::metadata(runner.canary()).unwrap().permissions();
    let attacker = Swapper::start(vec![
        (runner.inside("tree/dir"), runner.inside("tree/dirlink")),
        (runner.inside("tree/file"), runner.inside("tree/filelink")),
    ]);
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    for round in 0..150u32 {
        if client.copy(&copy_of("tree", "copy")).await.is_ok() {
            *done.entry("copy").or_default() += 1;
            assert_inside(&runner.inside("copy"));
            client.remove("copy", true).await.unwrap();
        }
        for path in ["tree/file", "tree/dir/canary"] {
            let to = CopyRequest { overwrite: true, ..copy_of(path, "single") };
            if client.copy(&to).await.is_ok() {
                assert_inside(&runner.inside("single"));
            }
        }
        let mode = if round % 2 == 0 { 0o750 } else { 0o700 };
        let chmod = ChmodRequest { path: "tree".into(), mode, recursive: true };
        *done.entry("chmod").or_default() += u32::from(client.chmod(&chmod).await.is_ok());
        let (entries, _) = tree(&client, "tree", TreeOptions { stat: true, ..ALL }).await;
        *done.entry("tree").or_default() += entries.len() as u32;
        assert!(entries.iter().all(|entry| {
            entry.kind != FileKind::File || entry.size != Some(CANARY.len() as u64)
        }));
    }
    assert!(attacker.swaps() > 0);
    drop(attacker);
    assert!(done.values().all(|count| *count > 0) && done.len() == 3, "the control: {done:?}");
    assert_eq!(fs::metadata(runner.canary()).unwrap().permissions(), before);
    assert_eq!(fs::read(runner.canary()).unwrap(), CANARY);
}

/// No file of the tree has the canary's content.
fn assert_inside(path: &Path) {
    let kind = fs::symlink_metadata(path).unwrap().file_type();
    if kind.is_file() {
        assert_ne!(fs::read(path).unwrap(), CANARY, "{path:?} is from outside");
    } else if kind.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            assert_inside(&entry.unwrap().path());
        }
    }
}

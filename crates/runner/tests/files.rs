//! The file routes of the real runner, through the daemon's own client.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod live_runner;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use live_runner::{CANARY, LiveRunner, wait_for};
use sandbank_channel::{ByteRange, ChannelError, FileDownload, full_body, stream_body};
use sandbank_protocol::file_batch::{FileHeader, encode_header};
use sandbank_protocol::{
    FaultCode, FileKind, MkdirRequest, MoveRequest, WorkloadIdentity, Written,
};

const MB: usize = 1 << 20;

async fn content(mut download: FileDownload) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(chunk) = download.chunk().await.unwrap() {
        content.extend_from_slice(&chunk);
    }
    content
}

fn code<T: std::fmt::Debug>(answer: Result<T, ChannelError>) -> FaultCode {
    match answer {
        Err(ChannelError::Refused(fault)) => fault.code,
        other => panic!("expected a refusal, not {other:?}"),
    }
}

fn range(offset: u64, length: u64) -> ByteRange {
    ByteRange { offset, length: Some(length) }
}

/// One record of a `write-many` body.
fn record(path: &str, content: &[u8]) -> Vec<u8> {
    let header = FileHeader { path: path.into(), size: content.len() as u64, mode: 0o644 };
    let mut record = encode_header(&serde_json::to_vec(&header).unwrap()).to_vec();
    record.extend_from_slice(content);
    record
}

#[tokio::test]
async fn sixty_four_megabytes_make_the_round_trip() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let piece = |index: usize| {
        Bytes::from((0..MB).map(|at| (at.wrapping_mul(31) ^ index) as u8).collect::<Vec<u8>>())
    };
    let body = stream_body(stream::iter((0..64).map(move |index| Ok(piece(index)))));
    let stat = client.write_file("/workspace/big/file", Some(0o600), body).await.unwrap();
    assert_eq!((stat.size, stat.mode, stat.kind), (64 * MB as u64, 0o600, FileKind::File));
    let download = client.read_file("big/file", ByteRange::default()).await.unwrap();
    assert_eq!(download.stat, stat);
    let back = content(download).await;
    assert_eq!(back.len(), 64 * MB);
    for (index, chunk) in back.chunks(MB).enumerate() {
        assert!(chunk == piece(index), "megabyte {index} differs");
    }
    assert_eq!(runner.names("big"), ["file"]);
}

#[tokio::test]
async fn ranges_deliver_exactly_what_was_asked_for() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let whole: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    client.write_file("f", None, full_body(whole.clone())).await.unwrap();
    let cases = [(0, 0), (0, 1), (5, 200_000), (299_999, 10), (300_000, 5), (400_000, 5)];
    for (offset, length) in cases {
        let download = client.read_file("f", range(offset, length)).await.unwrap();
        assert_eq!(download.stat.size, 300_000);
        let start = (offset as usize).min(whole.len());
        let end = (offset + length).min(300_000) as usize;
        assert_eq!(content(download).await, &whole[start..end.max(start)], "{offset}+{length}");
    }
    let rest = client.read_file("f", ByteRange { offset: 299_990, length: None }).await.unwrap();
    assert_eq!(content(rest).await.len(), 10);
}

#[tokio::test]
async fn a_growing_file_ends_where_it_ended_when_it_was_opened() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::write(runner.inside("log"), vec![b'a'; 4 * MB]).unwrap();
    let download = client.read_file("log", ByteRange::default()).await.unwrap();
    let mut log = fs::OpenOptions::new().append(true).open(runner.inside("log")).unwrap();
    std::io::Write::write_all(&mut log, &vec![b'b'; MB]).unwrap();
    let seen = content(download).await;
    assert_eq!(seen.len(), 4 * MB);
    assert!(seen.iter().all(|byte| *byte == b'a'));
}

#[tokio::test]
async fn a_file_that_shrinks_while_it_is_read_is_an_error_not_a_short_file() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::write(runner.inside("f"), vec![b'a'; 64 * MB]).unwrap();
    let mut download = client.read_file("f", ByteRange::default()).await.unwrap();
    fs::OpenOptions::new().write(true).open(runner.inside("f")).unwrap().set_len(10).unwrap();
    let ending = loop {
        match download.chunk().await {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert!(ending.is_err(), "the file passed for whole");
}

#[tokio::test]
async fn fifty_concurrent_writers_leave_one_complete_version() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let writers = (0..50u8).map(|writer| {
        let client = client.clone();
        let pieces = (0..8).map(move |_| Ok(Bytes::from(vec![writer; 40_000])));
        async move { client.write_file("same", None, stream_body(stream::iter(pieces))).await }
    });
    let reader = {
        let client = client.clone();
        async move {
            for _ in 0..50 {
                match client.read_file("same", ByteRange::default()).await {
                    Ok(download) => assert_complete(&content(download).await),
                    Err(error) => assert_eq!(code::<()>(Err(error)), FaultCode::NotFound),
                }
            }
        }
    };
    let (results, ()) = tokio::join!(futures_util::future::join_all(writers), reader);
    assert!(results.into_iter().all(|result| result.is_ok_and(|stat| stat.size == 320_000)));
    assert_complete(&fs::read(runner.inside("same")).unwrap());
    assert_eq!(runner.names(""), ["same"]);
}

fn assert_complete(version: &[u8]) {
    assert_eq!(version.len(), 320_000);
    assert!(version.iter().all(|byte| *byte == version[0]), "a mix of two versions");
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_the_old_version_and_no_litter() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.write_file("f", None, full_body("old")).await.unwrap();
    let broken = stream::iter([Ok(Bytes::from(vec![1; MB])), Err(std::io::Error::other("cut"))]);
    assert!(client.write_file("f", None, stream_body(broken)).await.is_err());
    wait_for("the temporary file is gone", async || runner.names("") == ["f"]).await;
    assert_eq!(fs::read(runner.inside("f")).unwrap(), b"old");
    // A whole connection that goes away during an upload.
    let other = runner.client().await;
    let stalled = stream::iter([Ok(Bytes::from(vec![2; MB]))]).chain(stream::pending());
    let upload =
        tokio::spawn(async move { other.write_file("f", None, stream_body(stalled)).await });
    wait_for("the upload has begun", async || runner.names("").len() == 2).await;
    upload.abort();
    wait_for("the temporary file is gone", async || runner.names("") == ["f"]).await;
    assert_eq!(fs::read(runner.inside("f")).unwrap(), b"old");
}

#[tokio::test]
async fn a_refused_upload_says_why_however_long_its_body() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir(runner.inside("dir")).unwrap();
    let long = || stream_body(stream::iter((0..64).map(|_| Ok(Bytes::from(vec![0; MB])))));
    assert_eq!(code(client.write_file("dir", None, long()).await), FaultCode::WrongKind);
    let outside = client.write_file("../canary", None, long()).await;
    assert_eq!(code(outside), FaultCode::OutsideWorkspace);
    assert_eq!(fs::read(runner.canary()).unwrap(), CANARY);
    assert!(client.stat("dir").await.is_ok(), "the connection survives");
}

#[tokio::test]
async fn writing_in_place_needs_a_file_and_leaves_no_gap() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let missing = client.write_file_at("f", 0, full_body("x")).await;
    assert_eq!(code(missing), FaultCode::NotFound);
    client.write_file("f", None, full_body("aaaa")).await.unwrap();
    let stat = client.write_file_at("f", 2, full_body("BBBB")).await.unwrap();
    assert_eq!(stat.size, 6);
    assert_eq!(fs::read(runner.inside("f")).unwrap(), b"aaBBBB");
    let gap = client.write_file_at("f", 7, full_body("x")).await;
    assert_eq!(code(gap), FaultCode::Conflict);
}

#[tokio::test]
async fn write_many_writes_all_files_in_any_chunking() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut body = record("a", b"first");
    body.extend(record("/workspace/d/empty", b""));
    body.extend(record("d/b", &vec![7; 200_000]));
    for size in [1usize, 3, 7, 50_000, body.len()] {
        let size = size.max(body.len() / 2_000);
        let chunks: Vec<_> =
            body.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        let written = client.write_many(stream_body(stream::iter(chunks))).await.unwrap();
        assert_eq!(written, Written { files: 3, bytes: 200_005 });
        assert_eq!(fs::read(runner.inside("a")).unwrap(), b"first");
        assert_eq!(fs::read(runner.inside("d/b")).unwrap(), vec![7; 200_000]);
        assert_eq!(runner.names("d"), ["b", "empty"]);
        fs::remove_dir_all(runner.inside("d")).unwrap();
    }
    let none = client.write_many(full_body("")).await.unwrap();
    assert_eq!(none, Written { files: 0, bytes: 0 });
}

#[tokio::test]
async fn write_many_writes_nothing_when_anything_is_wrong() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.write_file("old", None, full_body("old")).await.unwrap();
    fs::create_dir(runner.inside("directory")).unwrap();
    let good = [record("old", b"new"), record("fresh", b"new")].concat();
    let with = |bad: &[u8]| [good.as_slice(), bad].concat();
    let cases = [
        ("a path outside", with(&record("../canary", b"x")), FaultCode::OutsideWorkspace),
        ("a directory", with(&record("directory", b"x")), FaultCode::WrongKind),
        ("a cut header", with(&[0, 0]), FaultCode::Invalid),
        ("a cut content", with(&record("c", b"long")[..12]), FaultCode::Invalid),
        ("a huge header", with(&[0xff; 8]), FaultCode::Invalid),
        ("no JSON", with(b"\0\0\0\x02{]"), FaultCode::Invalid),
        ("an empty path", with(&record("", b"x")), FaultCode::Invalid),
    ];
    for (what, body, expected) in cases {
        assert_eq!(code(client.write_many(full_body(body)).await), expected, "{what}");
        assert_eq!(runner.names(""), ["directory", "old"], "{what}");
        assert_eq!(fs::read(runner.inside("old")).unwrap(), b"old", "{what}");
    }
    assert_eq!(fs::read(runner.canary()).unwrap(), CANARY);
}

#[tokio::test]
async fn the_traversal_corpus_is_refused_on_every_route() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let canary = runner.canary();
    std::os::unix::fs::symlink(&canary, runner.inside("absolute")).unwrap();
    std::os::unix::fs::symlink("../canary", runner.inside("relative")).unwrap();
    std::os::unix::fs::symlink("..", runner.inside("up")).unwrap();
    client.write_file("mine", None, full_body("mine")).await.unwrap();
    let outside = [
        "../canary",
        "a/../../canary",
        "/etc/passwd",
        "/workspace/../canary",
        "/workspaces/x",
        "//workspace/x",
        "/proc/self/root",
        "up/canary",
        canary.to_str().unwrap(),
    ];
    for path in outside {
        let refused = FaultCode::OutsideWorkspace;
        assert_eq!(code(client.read_file(path, ByteRange::default()).await.map(drop)), refused);
        assert_eq!(code(client.write_file(path, None, full_body("x")).await), refused, "{path}");
        assert_eq!(code(client.write_file_at(path, 0, full_body("x")).await), refused, "{path}");
        assert_eq!(code(client.stat(path).await), refused, "{path}");
        assert_eq!(code(client.list(path).await), refused, "{path}");
        assert_eq!(code(client.remove(path, true).await), refused, "{path}");
        let mkdir = MkdirRequest { path: path.into(), parents: true };
        assert_eq!(code(client.mkdir(&mkdir).await), refused, "{path}");
        let out = MoveRequest { from: "mine".into(), to: path.into(), overwrite: true };
        assert_eq!(code(client.rename(&out).await), refused, "{path}");
        let into = MoveRequest { from: path.into(), to: "stolen".into(), overwrite: true };
        assert_eq!(code(client.rename(&into).await), refused, "{path}");
    }
    for link in ["absolute", "relative"] {
        let read = client.read_file(link, ByteRange::default()).await.map(drop);
        assert_eq!(code(read), FaultCode::OutsideWorkspace);
        let write = client.write_file_at(link, 0, full_body("x")).await;
        assert_eq!(code(write), FaultCode::OutsideWorkspace);
    }
    for path in ["", "a\0b", &"x".repeat(300), &"x/".repeat(2100)] {
        assert_eq!(code(client.stat(path).await), FaultCode::Invalid, "{path:?}");
    }
    // Encoded twice, it is a name; and names that only look odd are fine.
    assert_eq!(code(client.stat("%2e%2e/canary").await), FaultCode::NotFound);
    client.write_file("a..b", None, full_body("x")).await.unwrap();
    assert_eq!(fs::read(&canary).unwrap(), CANARY);
}

#[tokio::test]
async fn listing_shows_kinds_links_and_names_that_are_no_text() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir(runner.inside("d")).unwrap();
    fs::write(runner.inside("d/b"), b"12345").unwrap();
    std::os::unix::fs::symlink("b", runner.inside("d/a")).unwrap();
    fs::create_dir(runner.inside("d/c")).unwrap();
    let odd = runner.inside("d").join(std::ffi::OsStr::from_bytes(b"z\xff\n"));
    fs::write(odd, b"").unwrap();
    let listing = client.list("/workspace/d").await.unwrap();
    assert!(!listing.truncated);
    let seen: Vec<_> =
        listing.entries.iter().map(|entry| (entry.name.as_str(), entry.stat.kind)).collect();
    assert_eq!(
        seen,
        [
            ("a", FileKind::Symlink),
            ("b", FileKind::File),
            ("c", FileKind::Directory),
            ("z\u{fffd}\n", FileKind::File),
        ]
    );
    assert_eq!(listing.entries[0].target.as_deref(), Some("b"));
    assert_eq!(listing.entries[1].stat.size, 5);
    assert_eq!(listing.entries[3].name_hex.as_deref(), Some("7aff0a"));
    assert_eq!(code(client.list("d/b").await), FaultCode::WrongKind);
    assert_eq!(code(client.list("nope").await), FaultCode::NotFound);
}

#[tokio::test]
async fn a_listing_is_bounded_and_says_so() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for index in 0..10_050 {
        fs::write(runner.inside(&format!("{index:05}")), b"").unwrap();
    }
    let listing = client.list(".").await.unwrap();
    assert_eq!((listing.entries.len(), listing.truncated), (10_000, true));
    assert!(listing.entries.is_sorted_by(|a, b| a.name < b.name));
}

#[tokio::test]
async fn directories_are_made_moved_and_removed() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mkdir = |path: &str, parents| MkdirRequest { path: path.into(), parents };
    assert_eq!(code(client.mkdir(&mkdir("a/b/c", false)).await), FaultCode::NotFound);
    assert_eq!(client.mkdir(&mkdir("a/b/c", true)).await.unwrap().kind, FileKind::Directory);
    assert_eq!(code(client.mkdir(&mkdir("a/b/c", false)).await), FaultCode::Conflict);
    client.write_file("a/b/c/f", None, full_body("x")).await.unwrap();
    client.write_file("taken", None, full_body("y")).await.unwrap();
    let mut rename = MoveRequest { from: "a/b".into(), to: "moved".into(), overwrite: false };
    client.rename(&rename).await.unwrap();
    assert_eq!(fs::read(runner.inside("moved/c/f")).unwrap(), b"x");
    assert_eq!(code(client.rename(&rename).await), FaultCode::NotFound);
    rename = MoveRequest { from: "moved/c/f".into(), to: "taken".into(), overwrite: false };
    assert_eq!(code(client.rename(&rename).await), FaultCode::Conflict);
    rename.overwrite = true;
    client.rename(&rename).await.unwrap();
    assert_eq!(fs::read(runner.inside("taken")).unwrap(), b"x");
    assert_eq!(code(client.remove("moved", false).await), FaultCode::Conflict);
    client.remove("moved", true).await.unwrap();
    assert_eq!(code(client.remove("moved", true).await), FaultCode::NotFound);
    client.remove("taken", false).await.unwrap();
    assert_eq!(code(client.remove("/workspace", true).await), FaultCode::Invalid);
}

#[tokio::test]
async fn special_files_are_refused_without_a_hang() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let pipe = runner.inside("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(runner.inside("socket")).unwrap();
    for path in ["pipe", "socket", "."] {
        let wrong = FaultCode::WrongKind;
        let read = client.read_file(path, ByteRange::default()).await.map(drop);
        assert_eq!(code(read), wrong, "{path}");
        assert_eq!(code(client.write_file_at(path, 0, full_body("x")).await), wrong, "{path}");
        let expected = if path == "." { FaultCode::Invalid } else { wrong };
        assert_eq!(code(client.write_file(path, None, full_body("x")).await), expected, "{path}");
    }
    assert_eq!(client.stat("pipe").await.unwrap().kind, FileKind::Other);
}

#[tokio::test]
async fn file_operations_have_exactly_the_rights_of_the_workload() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can give commands another identity");
    }
    let runner = LiveRunner::start_with(|config| {
        let workspace = std::path::Path::new(&config.workspace);
        let reachable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(workspace.parent().unwrap(), reachable).unwrap();
        chown(workspace, Some(1000), Some(1000)).unwrap();
        config.workload = Some(WorkloadIdentity { uid: 1000, gid: 1000 });
    });
    let client = runner.client().await;
    client.write_file("new/file", None, full_body("mine")).await.unwrap();
    for path in ["new", "new/file"] {
        let owner = fs::metadata(runner.inside(path)).unwrap();
        assert_eq!((owner.uid(), owner.gid()), (1000, 1000), "{path}");
    }
    fs::create_dir(runner.inside("roots")).unwrap();
    fs::write(runner.inside("roots/secret"), CANARY).unwrap();
    fs::set_permissions(runner.inside("roots/secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let denied = FaultCode::PermissionDenied;
    let read = client.read_file("roots/secret", ByteRange::default()).await.map(drop);
    assert_eq!(code(read), denied);
    assert_eq!(code(client.write_file_at("roots/secret", 0, full_body("x")).await), denied);
    assert_eq!(code(client.write_file("roots/secret", None, full_body("x")).await), denied);
    assert_eq!(code(client.remove("roots", true).await), denied);
    assert_eq!(fs::read(runner.inside("roots/secret")).unwrap(), CANARY);
}

#[tokio::test]
async fn small_requests_are_served_while_a_large_copy_runs() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let file = fs::File::create(runner.inside("sparse")).unwrap();
    file.set_len(10 << 30).unwrap();
    let mut download = client.read_file("sparse", ByteRange::default()).await.unwrap();
    let mut seen = 0;
    for _ in 0..100 {
        let chunk = download.chunk().await.unwrap();
        seen += chunk.map_or(0, |chunk| chunk.len());
        client.stat("sparse").await.unwrap();
    }
    assert!(seen > 0);
    drop(download);
    let tail = range((10 << 30) - 5, 100);
    assert_eq!(content(client.read_file("sparse", tail).await.unwrap()).await, [0; 5]);
}

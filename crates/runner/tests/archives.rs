//! Archives out of and into the real runner: whole, honest about what they lack, and confined.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod live_runner;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

use futures_util::StreamExt as _;
use live_runner::{CANARY, LiveRunner, wait_for};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sandbank_channel::{ChannelError, RunnerClient, full_body, stream_body};
use sandbank_protocol::{ArchiveReport, Fault, FaultCode, Unpacked};
use sandbank_test_support::{Meanwhile, Swapper, literal_entry, literal_tar};
use tar::EntryType;

async fn packed(client: &RunnerClient, path: &str) -> Vec<u8> {
    let mut archive = client.archive(path).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(chunk) = archive.chunk().await.unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

/// What the comment at the end says.
fn report(archive: &[u8]) -> ArchiveReport {
    let start = b"comment={";
    let at = archive.windows(start.len()).rposition(|window| window == start).unwrap();
    let rest = &archive[at + start.len() - 1..];
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
    serde_json::from_slice(&rest[..end]).unwrap()
}

/// Names, link targets and contents, as the `tar` crate reads them.
fn entries(archive: &[u8]) -> BTreeMap<Vec<u8>, (EntryType, Vec<u8>, Vec<u8>)> {
    let mut archive = tar::Archive::new(archive);
    let read = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path_bytes().into_owned();
        let link = entry.link_name_bytes().map(|link| link.into_owned()).unwrap_or_default();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        (name, (entry.header().entry_type(), link, content))
    });
    read.filter(|(_, (kind, ..))| *kind != EntryType::XGlobalHeader).collect()
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, ChannelError>) -> Fault {
    match answer {
        Err(ChannelError::Refused(fault)) => fault,
        other => panic!("expected a refusal, not {other:?}"),
    }
}

#[tokio::test]
async fn a_tree_makes_the_round_trip_with_odd_names_links_and_modes() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let long = "x".repeat(200);
    fs::create_dir_all(runner.inside(&format!("src/{long}/{long}"))).unwrap();
    fs::write(runner.inside(&format!("src/{long}/{long}/deep")), "deep").unwrap();
    let odd: [&[u8]; 4] = [b"-\xff\xfe", b"new\nline", b"-rf", &[0xfe; 255]];
    for name in odd {
        fs::write(runner.inside("src").join(OsStr::from_bytes(name)), name).unwrap();
    }
    let content: Vec<u8> = (0..1_000_000u32).map(|at| (at % 251) as u8).collect();
    fs::write(runner.inside("src/big"), &content).unwrap();
    fs::set_permissions(runner.inside("src/big"), fs::Permissions::from_mode(0o4750)).unwrap();
    fs::set_permissions(runner.inside(&format!("src/{long}")), fs::Permissions::from_mode(0o500))
        .unwrap();
    fs::write(runner.inside("src/empty"), "").unwrap();
    symlink("/nowhere/at/all", runner.inside("src/out")).unwrap();
    symlink(format!("{long}/{long}"), runner.inside("src/in")).unwrap();
    let archive = packed(&client, "src").await;
    let found = report(&archive);
    assert_eq!((found.entries, found.skipped.count, found.unreadable.count), (11, 0, 0));
    assert_eq!(entries(&archive).len(), 11);
    let done = client.unpack("made/copy", full_body(archive.clone())).await.unwrap();
    assert_eq!(done, Unpacked { entries: 11, bytes: 1_000_000 + 4 + 3 + 8 + 3 + 255 });
    let mut same = Command::new("diff");
    same.args(["-r", "--no-dereference"]).arg(runner.inside("src")).arg(runner.inside("made/copy"));
    assert!(same.status().unwrap().success(), "the trees differ");
    let mode = |path: &str| fs::metadata(runner.inside(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode("made/copy/big"), mode(&format!("made/copy/{long}"))), (0o750, 0o500));
    let modified = |path: &str| fs::metadata(runner.inside(path)).unwrap().mtime();
    assert_eq!(modified("src/big"), modified("made/copy/big"));
    // What others' programs make of it, and the reverse.
    let other = tempfile::tempdir().unwrap();
    let mut tar = Command::new("tar");
    tar.args(["-x", "-C"]).arg(other.path()).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut tar = tar.spawn().unwrap();
    tar.stdin.take().unwrap().write_all(&archive).unwrap();
    let ended = tar.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(fs::read(other.path().join("big")).unwrap(), content);
    for flags in ["-c", "-cz"] {
        let made =
            Command::new("tar").arg(flags).arg("-C").arg(other.path()).arg(".").output().unwrap();
        let path = format!("again{flags}");
        let done = client.unpack(&path, full_body(made.stdout)).await.unwrap();
        assert_eq!(done.entries, 12, "with the directory itself");
        assert_eq!(fs::read(runner.inside(&path).join("big")).unwrap(), content);
    }
    let single = packed(&client, "src/big").await;
    assert_eq!(entries(&single).keys().collect::<Vec<_>>(), [&b"big".to_vec()]);
    client.remove("made", true).await.unwrap();
}

#[tokio::test]
async fn what_an_archive_lacks_is_said_at_its_end() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir(runner.inside("src")).unwrap();
    mknodat(CWD, runner.inside("src/pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(runner.inside("src/socket")).unwrap();
    symlink(".", runner.inside("src/loop")).unwrap();
    fs::write(runner.inside("src/f"), "f").unwrap();
    let archive = packed(&client, "src").await;
    let found = report(&archive);
    assert_eq!((found.entries, found.skipped.count), (2, 2));
    assert!(found.skipped.paths.contains(&"src/pipe".to_owned()));
    assert_eq!(entries(&archive).len(), 2);
    for (path, expected) in [
        ("src/pipe", FaultCode::WrongKind),
        ("none", FaultCode::NotFound),
        ("../canary", FaultCode::OutsideWorkspace),
    ] {
        let refused = client.archive(path).await.map(drop);
        assert_eq!(refusal(refused).code, expected, "{path}");
    }
}

#[tokio::test]
async fn files_that_grow_and_shrink_meanwhile_never_shift_what_follows() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir(runner.inside("src")).unwrap();
    let files: Vec<_> = (0..8).map(|n| runner.inside(&format!("src/{n}"))).collect();
    for file in &files {
        fs::write(file, vec![b'a'; 3_000_000]).unwrap();
    }
    let mut round = 0usize;
    let _changes = Meanwhile::repeat(move || {
        let file = fs::File::options().write(true).open(&files[round % 8]).unwrap();
        let length = if round.is_multiple_of(3) { 10 } else { 3_000_000 + round as u64 % 1000 };
        file.set_len(length).unwrap();
        file.write_all_at(&[b'a'; 10], 0).unwrap();
        round += 1;
    });
    for _ in 0..20 {
        let archive = packed(&client, "src").await;
        let all = entries(&archive);
        assert_eq!(all.len(), 8);
        assert!(
            all.values().all(|(.., content)| content.iter().all(|byte| matches!(byte, b'a' | 0)))
        );
        assert_eq!(report(&archive).entries, 8);
    }
}

#[tokio::test]
async fn hostile_entries_are_refused_by_name_and_change_nothing_outside() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir(runner.inside("p")).unwrap();
    fs::write(runner.inside("beside"), "beside").unwrap();
    let file = |path: &str| literal_entry(EntryType::Regular, path, "", b"evil");
    let link = |path: &str, to: &str| literal_entry(EntryType::Symlink, path, to, b"");
    let hard = |path: &str, to: &str| literal_entry(EntryType::Link, path, to, b"");
    let canary = runner.canary().to_str().unwrap().to_owned();
    let above = runner.canary().parent().unwrap().to_str().unwrap().to_owned();
    let cases: Vec<(&str, Vec<Vec<u8>>, FaultCode)> = vec![
        ("absolute", vec![file("/workspace/evil")], FaultCode::OutsideWorkspace),
        ("..", vec![file("a/../../evil")], FaultCode::OutsideWorkspace),
        (
            "through a link out",
            vec![link("l", &above), file("l/canary")],
            FaultCode::OutsideWorkspace,
        ),
        ("through a link up", vec![link("u", ".."), file("u/beside")], FaultCode::OutsideWorkspace),
        ("hard link out", vec![hard("h", &canary)], FaultCode::OutsideWorkspace),
        ("hard link up", vec![hard("h", "../beside")], FaultCode::OutsideWorkspace),
        ("hard link to a link", vec![link("c", &canary), hard("h", "c")], FaultCode::WrongKind),
        (
            "hard link through a link",
            vec![link("v", ".."), hard("h", "v/beside")],
            FaultCode::OutsideWorkspace,
        ),
        ("device", vec![literal_entry(EntryType::Char, "dev", "", b"")], FaultCode::WrongKind),
        ("pipe", vec![literal_entry(EntryType::Fifo, "fifo", "", b"")], FaultCode::WrongKind),
        (
            "file over a directory",
            vec![literal_entry(EntryType::Directory, "d/", "", b""), file("d")],
            FaultCode::WrongKind,
        ),
        ("below a file", vec![file("x"), file("x/y")], FaultCode::WrongKind),
        ("nothing", vec![literal_entry(EntryType::Regular, "", "", b"")], FaultCode::Invalid),
        (
            "content of a link",
            vec![literal_entry(EntryType::Symlink, "s", "t", b"evil")],
            FaultCode::Invalid,
        ),
        (
            "too deep",
            vec![
                literal_entry(EntryType::XHeader, "p", "", &pax("path", &"/d".repeat(300)[1..])),
                file("z"),
            ],
            FaultCode::LimitReached,
        ),
        (
            "two sizes",
            vec![literal_entry(EntryType::XHeader, "p", "", &pax("size", "1024")), file("z")],
            FaultCode::Invalid,
        ),
    ];
    for (what, entries, expected) in cases {
        let fault = refusal(client.unpack("p", full_body(literal_tar(&entries))).await);
        assert_eq!(fault.code, expected, "{what}: {}", fault.message);
        assert!(fault.message.contains("entr"), "{what}: {}", fault.message);
    }
    for (what, bytes) in [
        ("cut", literal_tar(&[file("f")])[..600].to_vec()),
        ("no end", file("f")),
        ("nothing at all", Vec::new()),
        ("noise", vec![b'x'; 10_000]),
        ("half a gzip", vec![0x1f, 0x8b, 8, 0]),
    ] {
        assert_eq!(
            refusal(client.unpack("p", full_body(bytes)).await).code,
            FaultCode::Invalid,
            "{what}"
        );
    }
    assert_eq!(fs::read(runner.canary()).unwrap(), CANARY);
    assert_eq!(fs::metadata(runner.canary()).unwrap().nlink(), 1);
    assert_eq!(fs::read(runner.inside("beside")).unwrap(), b"beside");
    assert_eq!(runner.names(""), ["beside", "p"]);
    assert!(runner.names("p").iter().all(|name| !name.starts_with(".sandbank")));
}

/// One PAX record.
fn pax(key: &str, value: &str) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let digits = if rest + 2 < 100 { 2 } else { 3 };
    format!("{} {key}={value}\n", rest + digits).into_bytes()
}

#[tokio::test]
async fn links_and_special_bits_of_an_archive_are_harmless() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut suid = literal_entry(EntryType::Regular, "suid", "", b"x");
    let mut header = tar::Header::from_byte_slice(&suid[..512]).clone();
    header.set_mode(0o6755);
    header.set_cksum();
    suid[..512].copy_from_slice(header.as_bytes());
    let above = runner.canary().parent().unwrap().to_str().unwrap().to_owned();
    let before = fs::metadata(runner.canary().parent().unwrap()).unwrap().mode();
    let entries = [
        suid,
        literal_entry(EntryType::Regular, "twice", "", b"first"),
        literal_entry(EntryType::Regular, "twice", "", b"second"),
        literal_entry(EntryType::Symlink, "name", "target", b""),
        literal_entry(EntryType::Regular, "name", "", b"no longer a link"),
        literal_entry(EntryType::Regular, "file", "", b"shared"),
        literal_entry(EntryType::Link, "hard", "file", b""),
        // A directory that becomes a link before its mode is set.
        literal_entry(EntryType::Directory, "dir/", "", b""),
        literal_entry(EntryType::Symlink, "out", &above, b""),
    ];
    let done = client.unpack("p", full_body(literal_tar(&entries))).await.unwrap();
    assert_eq!(done.entries, 9);
    let meta = |path: &str| fs::symlink_metadata(runner.inside(path)).unwrap();
    assert_eq!(meta("p/suid").mode() & 0o7777, 0o755);
    assert_eq!(fs::read(runner.inside("p/twice")).unwrap(), b"second");
    assert!(meta("p/name").is_file());
    assert_eq!(meta("p/hard").ino(), meta("p/file").ino());
    assert!(meta("p/out").is_symlink());
    assert_eq!(fs::metadata(runner.canary().parent().unwrap()).unwrap().mode(), before);
    // A second archive writes over what the first one left, links included.
    let over = [
        literal_entry(EntryType::Regular, "out", "", b"a file now"),
        literal_entry(EntryType::Regular, "hard", "", b"alone"),
    ];
    client.unpack("p", full_body(literal_tar(&over))).await.unwrap();
    assert_eq!(fs::read(runner.inside("p/out")).unwrap(), b"a file now");
    assert_eq!(fs::read(runner.inside("p/file")).unwrap(), b"shared");
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_no_half_file_and_others_are_answered() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let whole = literal_entry(EntryType::Regular, "whole", "", b"whole");
    let half = literal_entry(EntryType::Regular, "half", "", &[b'x'; 100_000])[..50_000].to_vec();
    let begin = futures_util::stream::iter([Ok(whole.into()), Ok(half.into())]);
    let stalled = stream_body(begin.chain(futures_util::stream::pending()));
    let other = client.clone();
    let upload = tokio::spawn(async move { other.unpack("p", stalled).await });
    let names = || fs::read_dir(runner.inside("p")).map_or(0, |entries| entries.count());
    wait_for("the second file has begun", async || names() == 2).await;
    assert!(client.stat("p").await.is_ok());
    upload.abort();
    wait_for("only whole files are there", async || runner.names("p") == ["whole"]).await;
    assert!(client.stat("p").await.is_ok());
    // A refusal is told however much of the body is still to come.
    let evil = literal_entry(EntryType::Regular, "/evil", "", b"x");
    let rest = (0..200).map(|_| Ok(bytes::Bytes::from(vec![0; 1 << 20])));
    let chunks = futures_util::stream::iter(std::iter::once(Ok(evil.into())).chain(rest));
    let fault = refusal(client.unpack("p", stream_body(chunks)).await);
    assert_eq!(fault.code, FaultCode::OutsideWorkspace);
    assert!(fault.message.contains("entry 1, \"/evil\""), "{}", fault.message);
}

#[tokio::test]
async fn names_that_are_swapped_while_archives_are_made_and_unpacked_never_lead_outside() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir_all(runner.inside("tree/dir")).unwrap();
    fs::write(runner.inside("tree/dir/canary"), "inside").unwrap();
    fs::write(runner.inside("tree/file"), "inside").unwrap();
    symlink(runner.canary().parent().unwrap(), runner.inside("tree/dirlink")).unwrap();
    symlink(runner.canary(), runner.inside("tree/filelink")).unwrap();
    let attacker = Swapper::start(vec![
        (runner.inside("tree/dir"), runner.inside("tree/dirlink")),
        (runner.inside("tree/file"), runner.inside("tree/filelink")),
    ]);
    let evil = literal_tar(&[
        literal_entry(EntryType::Regular, "dir/canary", "", b"inside"),
        literal_entry(EntryType::Regular, "file", "", b"inside"),
        literal_entry(EntryType::Directory, "dir/", "", b""),
    ]);
    let (mut files, mut unpacked) = (0, 0);
    for _ in 0..150 {
        for (kind, _, content) in entries(&packed(&client, "tree").await).values() {
            assert_ne!(content, CANARY);
            files += u32::from(*kind == EntryType::Regular);
        }
        unpacked += u32::from(client.unpack("tree", full_body(evil.clone())).await.is_ok());
    }
    assert!(attacker.swaps() > 0);
    drop(attacker);
    assert!(files > 0 && unpacked > 0, "the control: {files} {unpacked}");
    assert_eq!(fs::read(runner.canary()).unwrap(), CANARY);
    let beside = runner.canary().parent().unwrap().to_owned();
    let names = fs::read_dir(beside).unwrap().count();
    assert_eq!(names, 3, "the workspace, the canary and the runner's socket");
}

/// As `literal_entry`, with a mode.
fn directory_entry(name: &str, mode: u32) -> Vec<u8> {
    let mut entry = literal_entry(EntryType::Directory, name, "", b"");
    let mut header = tar::Header::from_byte_slice(&entry[..512]).clone();
    header.set_mode(mode);
    header.set_cksum();
    entry[..512].copy_from_slice(header.as_bytes());
    entry
}

fn mode_of(runner: &LiveRunner, path: &str) -> u32 {
    fs::metadata(runner.inside(path)).unwrap().mode() & 0o777
}

#[tokio::test]
async fn the_last_mode_of_a_directory_counts_in_whatever_order_they_come() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let made = [
        directory_entry("a/b/", 0o511),
        directory_entry("a/", 0o500),
        directory_entry("a/c/", 0o700),
        directory_entry("a/b/", 0o750),
        directory_entry("a/d/", 0o700),
        directory_entry("a/d/", 0o755),
        literal_entry(EntryType::Regular, "a/b/file", "", b"x"),
    ];
    client.unpack("p", full_body(literal_tar(&made))).await.unwrap();
    let modes = ["p/a", "p/a/b", "p/a/c", "p/a/d"].map(|path| mode_of(&runner, path));
    assert_eq!(modes, [0o500, 0o750, 0o700, 0o755]);
}

#[tokio::test]
async fn directories_have_their_modes_though_a_later_entry_was_refused() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let made =
        [directory_entry("private/", 0o700), literal_entry(EntryType::Regular, "../out", "", b"x")];
    let refused = refusal(client.unpack("p", full_body(literal_tar(&made))).await);
    assert_eq!(refused.code, FaultCode::OutsideWorkspace);
    assert_eq!(mode_of(&runner, "p/private"), 0o700);
}

#[tokio::test]
async fn a_compressed_archive_whose_checksum_is_wrong_is_damaged() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let plain = literal_tar(&[literal_entry(EntryType::Regular, "file", "", b"content")]);
    let mut gzip =
        Command::new("gzip").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    gzip.stdin.take().unwrap().write_all(&plain).unwrap();
    let mut bytes = gzip.wait_with_output().unwrap().stdout;
    let whole = client.unpack("whole", full_body(bytes.clone())).await.unwrap();
    assert_eq!(whole.entries, 1);
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;
    let damaged = refusal(client.unpack("wrong", full_body(bytes.clone())).await);
    bytes.truncate(checksum);
    let short = refusal(client.unpack("short", full_body(bytes)).await);
    assert_eq!((damaged.code, short.code), (FaultCode::Invalid, FaultCode::Invalid));
}

#[tokio::test]
async fn a_file_that_is_more_than_an_archive_holds_is_left_out_and_told() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir(runner.inside("src")).unwrap();
    fs::write(runner.inside("src/small"), "x").unwrap();
    // All of it is a hole.
    let huge = fs::File::create(runner.inside("src/huge")).unwrap();
    huge.set_len(65 << 30).unwrap();
    let archive = packed(&client, "src").await;
    let found = report(&archive);
    assert_eq!((found.entries, found.skipped.paths), (1, vec!["src/huge".to_owned()]));
    assert!(entries(&archive).contains_key(&b"small"[..]));
}

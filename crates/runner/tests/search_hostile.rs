//! Searches of trees, and with patterns and readers, that mean no good.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;
mod searching;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use commanding::shell;
use live_runner::{LiveRunner, wait_for};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_protocol::{
    FaultCode, FileKind, NameSearch, SearchCut, SearchOrder, TextRecord, TextSearch,
};
use sandbank_test_support::{Meanwhile, Swapper};
use searching::{find, names, refused, search, text};

/// A number from the runner's own status, in KiB where it is memory.
fn status(runner: &LiveRunner, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", runner.pid())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

async fn is_alone(runner: &LiveRunner) {
    wait_for("the threads are gone", async || status(runner, "Threads") == 1).await;
}

async fn answers(client: &RunnerClient, name: &str) {
    let spec = shell(name, "true");
    let started = client.start_and_wait(&spec, Duration::from_secs(20)).await.unwrap();
    assert!(started.status.ending().is_some(), "{name} did not end in time");
}

#[tokio::test]
async fn links_lead_no_search_outside() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::create_dir(runner.inside("d")).unwrap();
    fs::write(runner.inside("d/f"), "the canary sings inside").unwrap();
    symlink(runner.canary(), runner.inside("file")).unwrap();
    symlink(runner.canary().parent().unwrap(), runner.inside("directory")).unwrap();
    symlink("/proc/1/root", runner.inside("magic")).unwrap();
    symlink(runner.canary(), runner.inside(".gitignore")).unwrap();
    symlink(".", runner.inside("d/loop")).unwrap();
    let wanted = TextSearch { hidden: true, ignored: true, ..text("canary") };
    let found = search(&client, &wanted).await;
    assert_eq!(found.lines(), ["d/f:1:the canary sings inside"]);
    assert_eq!(found.end.skipped.links, 5);
    let (found, _) = find(&client, &NameSearch { hidden: true, ..names("i") }).await;
    assert!(found.iter().all(|(_, kind)| *kind == FileKind::Symlink), "{found:?}");
    assert_eq!(found.len(), 4);
    for path in ["file", "directory", "directory/canary", "magic/etc"] {
        let wanted = TextSearch { path: path.into(), ..text("canary") };
        let code = refused(client.search_text(&wanted).await).code;
        assert_eq!(code, FaultCode::OutsideWorkspace, "{path}");
    }
}

#[tokio::test]
async fn a_tree_that_is_swapped_for_links_shows_nothing_from_outside() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for directory in ["real/deep", "other/deep"] {
        fs::create_dir_all(runner.inside(directory)).unwrap();
        fs::write(runner.inside(directory).join("canary"), "a canary inside").unwrap();
    }
    symlink(runner.canary().parent().unwrap(), runner.inside("link")).unwrap();
    symlink(runner.canary(), runner.inside("other/link")).unwrap();
    let swaps = Swapper::start(vec![
        (runner.inside("real"), runner.inside("link")),
        (runner.inside("other/deep/canary"), runner.inside("other/link")),
    ]);
    let mut inside = 0;
    for turn in 0..400 {
        let sort = if turn % 2 == 0 { SearchOrder::Found } else { SearchOrder::Path };
        let found = search(&client, &TextSearch { sort, ..text("canary") }).await;
        for line in found.matches() {
            assert_eq!(line.text, "a canary inside", "{line:?}");
            inside += 1;
        }
        // Where a search begins may be a link to somewhere inside, never to somewhere outside.
        let there = TextSearch { path: "real".into(), ..text("canary") };
        match client.search_text(&there).await {
            Ok(stream) => {
                let found = searching::read(stream).await;
                assert!(found.matches().all(|line| line.text == "a canary inside"));
            }
            Err(ChannelError::Refused(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    drop(swaps);
    assert!(inside > 0, "nothing was ever found");
}

#[tokio::test]
async fn pipes_sockets_and_devices_are_not_opened() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::write(runner.inside("f"), "needle").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(runner.inside("socket")).unwrap();
    mknodat(CWD, runner.inside("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let device = rustix::fs::makedev(1, 5);
    let made = mknodat(CWD, runner.inside("zero"), FileType::CharacterDevice, Mode::RWXU, device);
    let special = if made.is_ok() { 3 } else { 2 };
    let found = search(&client, &text("needle")).await;
    assert_eq!((found.end.matches, found.end.skipped.special), (1, special));
    let wanted = TextSearch { path: "pipe".into(), ..text("needle") };
    assert_eq!(refused(client.search_text(&wanted).await).code, FaultCode::WrongKind);
}

#[tokio::test]
async fn a_file_that_grows_as_it_is_read_has_an_end() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let path = runner.inside("log");
    fs::write(&path, "needle\n".repeat(20_000)).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let growth = Meanwhile::repeat(move || {
        if file.metadata().unwrap().len() < 64 << 20 {
            file.write_all(&b"needle\n".repeat(10_000)).unwrap();
        }
    });
    let wanted =
        TextSearch { max_file_bytes: Some(1 << 20), limit: Some(1_000_000), ..text("none") };
    for _ in 0..20 {
        let end = search(&client, &wanted).await.end;
        assert_eq!(end.files_searched + end.skipped.too_large, 1, "{end:?}");
        assert!(end.bytes < 8 << 20, "{end:?}");
    }
    drop(growth);
}

#[tokio::test]
async fn any_name_is_found_with_its_exact_bytes() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let long = [b'x'; 255];
    let odd: [&[u8]; 6] = [b"x\nline", b"-rf x", b"\xff\xfex", b"x\x1b[31m", b"\"x\\", &long];
    for name in odd {
        fs::write(runner.inside("").join(OsStr::from_bytes(name)), "needle").unwrap();
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut expected: Vec<String> = odd
        .iter()
        .map(|name| String::from_utf8(name.to_vec()).unwrap_or_else(|_| hex(name)))
        .collect();
    expected.sort();
    let (found, _) = find(&client, &names("x")).await;
    let mut found: Vec<String> = found.into_iter().map(|(path, _)| path).collect();
    found.sort();
    assert_eq!(found, expected);
    let lines = search(&client, &text("needle")).await;
    let mut found: Vec<String> = lines
        .matches()
        .map(|line| line.path_hex.clone().unwrap_or_else(|| line.path.to_string()))
        .collect();
    found.sort();
    assert_eq!(found, expected);
}

/// Files of a tree two levels deep.
fn plant(root: &Path, directories: usize, files: usize, content: &[u8]) {
    for directory in 0..directories {
        let directory = root.join(format!("d{}", directory % 20)).join(format!("e{directory}"));
        fs::create_dir_all(&directory).unwrap();
        for file in 0..files {
            fs::write(directory.join(format!("file-{file}.txt")), content).unwrap();
        }
    }
}

#[tokio::test]
async fn two_hundred_thousand_files_stay_within_bounds() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    plant(&runner.inside(""), 200, 1_000, b"");
    fs::write(runner.inside("d0/e0/file-7.txt"), "needle").unwrap();
    let found = search(&client, &TextSearch { time_ms: Some(300_000), ..text("needle") }).await;
    assert_eq!((found.end.matches, found.end.files_searched), (1, 200_000));
    assert_eq!((found.end.nodes, found.end.reason), (200_220, None));
    let all = NameSearch { sort: SearchOrder::Found, ..names("file") };
    let (found, end) = find(&client, &all).await;
    assert_eq!((found.len(), end.matches), (10_000, 10_000));
    assert_eq!((end.truncated, end.reason), (true, Some(SearchCut::Limit)));
    let (found, end) = find(&client, &NameSearch { limit: Some(1_000_000), ..all.clone() }).await;
    assert_eq!((found.len(), end.matches, end.reason), (200_000, 200_000, None));
    let (_, end) = find(&client, &NameSearch { time_ms: Some(1), ..all }).await;
    assert_eq!((end.truncated, end.reason), (true, Some(SearchCut::Time)));
    let peak = status(&runner, "VmHWM");
    assert!(peak < 64 << 10, "the runner took {peak} KiB");
    is_alone(&runner).await;
}

#[tokio::test]
async fn a_reader_that_stops_or_leaves_costs_little() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    plant(&runner.inside(""), 20, 10, &b"a line with a needle in it\n".repeat(5_000));
    let wanted = TextSearch { limit: Some(1_000_000), ..text("needle") };
    let mut stream = client.search_text(&wanted).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    for turn in 0..20 {
        answers(&client, &format!("c{turn}")).await;
    }
    let resting = status(&runner, "VmHWM");
    assert!(resting < 64 << 10, "the runner took {resting} KiB for a reader that stopped");
    drop(stream);
    is_alone(&runner).await;
    let found = search(&client, &TextSearch { limit: Some(1), ..wanted }).await;
    assert_eq!(found.end.matches, 1);
}

#[tokio::test]
async fn ten_searches_at_once_hold_no_command_up() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    plant(&runner.inside(""), 20, 10, &b"a line with no nail in it, only hay\n".repeat(5_000));
    let wanted = TextSearch { time_ms: Some(300_000), ..text("(?i)(NEEDLE|pin).*(nail|hay)$") };
    let searches: Vec<_> = (0..10)
        .map(|_| {
            let (client, wanted) = (client.clone(), wanted.clone());
            tokio::spawn(async move {
                match client.search_text(&wanted).await {
                    Ok(stream) => Ok(searching::read(stream).await.end),
                    Err(error) => Err(refused::<()>(Err(error)).code),
                }
            })
        })
        .collect();
    for turn in 0..30 {
        answers(&client, &format!("c{turn}")).await;
    }
    let mut whole = 0;
    for search in searches {
        match search.await.unwrap() {
            Ok(end) => {
                assert_eq!((end.files_searched, end.reason), (200, None));
                whole += 1;
            }
            Err(code) => assert_eq!(code, FaultCode::LimitReached),
        }
    }
    assert!(whole >= 8, "only {whole} searches were done");
    is_alone(&runner).await;
}

#[tokio::test]
async fn a_pattern_that_takes_the_square_of_a_line_is_cut_in_time() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::write(runner.inside("f"), "a".repeat(2 << 20)).unwrap();
    for multiline in [false, true] {
        let wanted = TextSearch { multiline, time_ms: Some(500), ..text(".*x|a") };
        let end = search(&client, &wanted).await.end;
        assert_eq!((end.truncated, end.reason), (true, Some(SearchCut::Time)));
    }
    is_alone(&runner).await;
}

#[tokio::test]
async fn a_very_deep_tree_is_searched_to_its_end_in_either_order() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    // As deep as one path can name it, and one directory beyond.
    let levels = 1_500;
    let mut path = vec!["d"; levels].join("/");
    let build = format!("mkdir -p {path} && cd {path} && echo needle > f");
    let spec = shell("deep", &build);
    let started = client.start_and_wait(&spec, Duration::from_secs(20)).await.unwrap();
    assert_eq!(started.status.ending().and_then(|ending| ending.exit_code()), Some(0));
    path.push_str("/f");
    for sort in [SearchOrder::Found, SearchOrder::Path] {
        let found = search(&client, &TextSearch { sort, ..text("needle") }).await;
        let records = found.matches().collect::<Vec<_>>();
        let [line] = records[..] else { panic!("{:?}", found.end) };
        assert_eq!((line.path.as_ref(), found.end.skipped.unreadable), (path.as_str(), 0));
    }
    client.remove("d", true).await.unwrap();
}

#[tokio::test]
async fn ignore_files_that_are_too_large_are_counted_and_not_heeded() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::write(runner.inside("f"), "needle").unwrap();
    fs::write(runner.inside(".ignore"), "f\n").unwrap();
    assert_eq!(search(&client, &text("needle")).await.end.matches, 0);
    fs::write(runner.inside(".ignore"), "f\n".repeat(100_000)).unwrap();
    let end = search(&client, &text("needle")).await.end;
    assert_eq!((end.matches, end.unheeded), (1, 1));
    let hostile = "a*b*c*d*[!e]*{f,g}*h**\n".repeat(5_000);
    fs::write(runner.inside(".ignore"), hostile).unwrap();
    let end = search(&client, &text("needle")).await.end;
    assert_eq!((end.matches, end.reason), (1, None));
    let peak = status(&runner, "VmHWM");
    assert!(peak < 256 << 10, "the runner took {peak} KiB");
}

#[tokio::test]
async fn what_a_search_says_has_one_end_and_it_is_last() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    fs::write(runner.inside("f"), "{\"end\":{}}\n{\"match\":{}}\n").unwrap();
    let mut stream = client.search_text(&text("end|match")).await.unwrap();
    let mut kinds = Vec::new();
    while let Some(some) = stream.next().await.unwrap() {
        kinds.extend(some.records.iter().map(|record| matches!(record, TextRecord::End(_))));
    }
    assert_eq!(kinds, [false, false, true]);
}

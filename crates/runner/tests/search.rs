//! The search routes of the real runner: what they find, how they say it, and what they refuse.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod live_runner;
mod searching;

use std::fs;
use std::os::unix::ffi::OsStrExt;

use live_runner::LiveRunner;
use sandbank_protocol::{
    FaultCode, FileKind, NamePattern, NameSearch, SearchCase, SearchCut, SearchOrder, TextRecord,
    TextSearch,
};
use searching::{find, found_paths, names, refused, search, text};

/// Writes files, making their directories.
fn plant(runner: &LiveRunner, files: &[(&str, &[u8])]) {
    for (path, content) in files {
        let path = runner.inside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[tokio::test]
async fn names_are_found_by_text_glob_and_regex() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    plant(&runner, &[("src/main.rs", b""), ("src/Main.java", b""), ("doc/main/a.txt", b"")]);
    for (kind, case, pattern, expected) in [
        (NamePattern::Text, SearchCase::Sensitive, "main", &["doc/main", "src/main.rs"] as &[&str]),
        (
            NamePattern::Text,
            SearchCase::Smart,
            "main",
            &["doc/main", "src/Main.java", "src/main.rs"],
        ),
        (NamePattern::Text, SearchCase::Smart, "Main", &["src/Main.java"]),
        (NamePattern::Text, SearchCase::Insensitive, "MAIN.", &["src/Main.java", "src/main.rs"]),
        (NamePattern::Glob, SearchCase::Sensitive, "*.rs", &["src/main.rs"]),
        (NamePattern::Glob, SearchCase::Sensitive, "main", &["doc/main"]),
        (NamePattern::Glob, SearchCase::Sensitive, "doc/**", &["doc/main", "doc/main/a.txt"]),
        (NamePattern::Regex, SearchCase::Sensitive, "^[a-z]+$", &["doc", "doc/main", "src"]),
    ] {
        let search = NameSearch { kind, case, ..names(pattern) };
        assert_eq!(found_paths(&client, &search).await, expected, "{kind:?} {case:?} {pattern}");
    }
    let below = NameSearch { path: "/workspace/doc".into(), ..names("a") };
    assert_eq!(found_paths(&client, &below).await, ["doc/main", "doc/main/a.txt"]);
    let shallow = NameSearch { depth: Some(2), ..names("a") };
    let expected = ["doc/main", "src/Main.java", "src/main.rs"];
    assert_eq!(found_paths(&client, &shallow).await, expected);
    let few = NameSearch { limit: Some(2), ..names("a") };
    let (found, end) = find(&client, &few).await;
    assert_eq!(
        found,
        [("doc/main".into(), FileKind::Directory), ("doc/main/a.txt".into(), FileKind::File)]
    );
    assert_eq!((end.matches, end.truncated, end.reason), (2, true, Some(SearchCut::Limit)));
    let exact = NameSearch { limit: Some(4), ..names("a") };
    let (found, end) = find(&client, &exact).await;
    assert_eq!((found.len(), end.matches, end.truncated, end.reason), (4, 4, false, None));
}

#[tokio::test]
async fn hidden_and_ignored_names_are_found_only_when_asked_for() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    plant(
        &runner,
        &[
            (".git/config", b""),
            (".gitignore", b"target/\n*.log\n!keep.log\n"),
            (".ignore", b"private\n"),
            ("target/x", b""),
            ("a/x.log", b""),
            ("a/keep.log", b""),
            ("a/.x", b""),
            ("private/x", b""),
            ("a/nested/.git/HEAD", b""),
            ("a/nested/x.log", b""),
        ],
    );
    let all = NameSearch { kind: NamePattern::Glob, ..names("*") };
    let plain = ["a", "a/keep.log", "a/nested", "a/nested/x.log"];
    assert_eq!(found_paths(&client, &all).await, plain);
    let hidden = NameSearch { hidden: true, ..names("x") };
    let found = found_paths(&client, &hidden).await;
    assert_eq!(found, ["a/.x", "a/nested/x.log"]);
    let ignored = NameSearch { ignored: true, ..names("x") };
    let found = found_paths(&client, &ignored).await;
    assert_eq!(found, ["a/nested/x.log", "a/x.log", "private/x", "target/x"]);
    // The files above count, too, when the search begins further down.
    let below = NameSearch { path: "a".into(), ..names("log") };
    assert_eq!(found_paths(&client, &below).await, ["a/keep.log", "a/nested/x.log"]);
}

#[tokio::test]
async fn found_lines_have_their_places_and_their_context() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    plant(&runner, &[("a/f.txt", "one\nzwölf zwölf\nthree\nfour\n".as_bytes())]);
    let wanted = TextSearch { before: 1, after: 1, ..text("wölf") };
    let found = search(&client, &wanted).await;
    let [TextRecord::Context(before), TextRecord::Match(line), TextRecord::Context(after)] =
        &found.records[..]
    else {
        panic!("{:?}", found.records)
    };
    assert_eq!((before.line, before.offset, before.text.as_ref()), (1, 0, "one"));
    assert_eq!((line.line, line.offset, line.text.as_ref()), (2, 4, "zwölf zwölf"));
    assert_eq!(line.ranges, [(1, 6), (8, 13)]);
    assert_eq!((after.line, after.offset, after.text.as_ref()), (3, 18, "three"));
    assert_eq!(line.path, "a/f.txt");
    let end = found.end;
    assert_eq!((end.matches, end.files_searched, end.files_matched, end.bytes), (1, 1, 1, 29));
    assert_eq!((end.truncated, end.reason), (false, None));
}

#[tokio::test]
async fn bytes_that_are_no_text_are_shown_as_such_with_exact_places() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    plant(&runner, &[("f", b"ab\n\xff\xfe needle \xff\n")]);
    let odd = runner.inside("").join(std::ffi::OsStr::from_bytes(b"odd\xff\nname"));
    fs::write(odd, "needle").unwrap();
    let found = search(&client, &text("needle")).await;
    let mut lines: Vec<_> = found.matches().collect();
    lines.sort_by_key(|line| line.path_hex.is_some());
    let [plain, odd] = lines[..] else { panic!("{lines:?}") };
    assert_eq!((plain.line, plain.offset, plain.lossy), (2, 3, true));
    assert_eq!(
        (plain.text.as_ref(), &plain.ranges[..]),
        ("\u{fffd}\u{fffd} needle \u{fffd}", &[(3, 9)][..])
    );
    assert_eq!(odd.path_hex.as_deref(), Some("6f6464ff0a6e616d65"));
    let (found, _) = find(&client, &names("name")).await;
    assert_eq!(found, [("6f6464ff0a6e616d65".to_owned(), FileKind::File)]);
}

#[tokio::test]
async fn long_lines_are_cut_around_their_match_and_marked() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let line = format!("{}needle{}\nneedle\n", "x".repeat(300_000), "y".repeat(300_000));
    plant(&runner, &[("f", line.as_bytes())]);
    let wanted = TextSearch { max_line_bytes: Some(100), ..text("needle") };
    let found = search(&client, &wanted).await;
    let [long, short] = found.matches().collect::<Vec<_>>()[..] else { panic!("two lines") };
    assert_eq!((long.cut, long.text.len(), long.text_at), (Some(600_006), 100, 299_975));
    assert!(long.text.contains("xneedley"), "{}", long.text);
    assert_eq!(long.ranges, [(300_000, 300_006)]);
    assert_eq!((short.offset, short.cut, short.text.as_ref()), (600_007, None, "needle"));
    let many = "ab".repeat(100_000);
    plant(&runner, &[("f", many.as_bytes())]);
    let found = search(&client, &text("a")).await;
    let line = found.matches().next().unwrap();
    assert!(line.more_ranges && line.ranges.len() == 1_000, "{}", line.ranges.len());
}

#[tokio::test]
async fn what_is_skipped_is_counted() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let late = [&b"needle\n".repeat(20_000)[..], b"\0", &b"needle\n".repeat(20_000)].concat();
    let endless = [&b"needle\n"[..], &b"x".repeat(9 << 20), b"needle"].concat();
    plant(
        &runner,
        &[
            ("text", b"needle"),
            ("binary", b"needle\n\0"),
            ("late", &late),
            ("large", &b"needle\n".repeat(300_000)),
            ("endless", &endless),
        ],
    );
    std::os::unix::fs::symlink("text", runner.inside("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(runner.inside("socket")).unwrap();
    let wanted =
        TextSearch { limit: Some(1_000_000), max_file_bytes: Some(10 << 20), ..text("needle") };
    let found = search(&client, &wanted).await;
    let skipped = found.end.skipped;
    assert_eq!((skipped.binary, skipped.too_large), (2, 1), "{skipped:?}");
    assert_eq!((skipped.links, skipped.special), (1, 1), "{skipped:?}");
    let of = |path: &str| found.matches().filter(|line| line.path == path).count();
    assert_eq!((of("text"), of("binary"), of("large"), of("endless")), (1, 0, 300_000, 1));
    assert!((1..20_000).contains(&of("late")), "{}", of("late"));
    let small = TextSearch { max_file_bytes: Some(100), ..text("needle") };
    let found = search(&client, &small).await;
    assert_eq!((found.end.files_searched, found.end.skipped.too_large), (1, 3));
}

#[tokio::test]
async fn limits_of_a_request_cut_and_say_so() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for number in 0..50 {
        plant(&runner, &[(&format!("d{number}/f"), &b"needle\n".repeat(100))]);
    }
    let some = TextSearch { limit: Some(77), ..text("needle") };
    let found = search(&client, &some).await;
    assert_eq!((found.matches().count(), found.end.matches), (77, 77));
    assert_eq!((found.end.truncated, found.end.reason), (true, Some(SearchCut::Limit)));
    let each = TextSearch { max_per_file: Some(3), ..text("needle") };
    let found = search(&client, &each).await;
    assert_eq!((found.matches().count(), found.end.reason), (150, None));
    let none = TextSearch { time_ms: Some(0), ..text("needle") };
    let found = search(&client, &none).await;
    assert_eq!((found.end.truncated, found.end.reason), (true, Some(SearchCut::Time)));
    let sorted = TextSearch { sort: SearchOrder::Path, ..text("needle") };
    let found = search(&client, &sorted).await;
    let mut runs = found.runs();
    assert_eq!(runs.len(), 50);
    assert!(runs.is_sorted());
    let found = search(&client, &text("needle")).await;
    assert_eq!(found.end.files_matched, 50);
    runs = found.runs();
    runs.sort();
    runs.dedup();
    assert_eq!((found.runs().len(), runs.len()), (50, 50), "a file's lines are not together");
}

#[tokio::test]
async fn a_file_or_a_directory_can_be_named() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    plant(&runner, &[(".hidden/f", b"needle"), ("g", b"needle"), ("d/h", b"needle")]);
    for (path, expected) in [
        (".hidden/f", &[".hidden/f:1:needle"] as &[&str]),
        (".hidden", &[".hidden/f:1:needle"]),
        ("/workspace/d", &["d/h:1:needle"]),
        ("", &["d/h:1:needle", "g:1:needle"]),
    ] {
        let wanted = TextSearch { path: path.into(), ..text("needle") };
        assert_eq!(search(&client, &wanted).await.lines(), expected, "{path}");
    }
    for (path, code) in [
        ("none", FaultCode::NotFound),
        ("../canary", FaultCode::OutsideWorkspace),
        ("/etc", FaultCode::OutsideWorkspace),
        ("g/x", FaultCode::WrongKind),
    ] {
        let wanted = TextSearch { path: path.into(), ..text("needle") };
        assert_eq!(refused(client.search_text(&wanted).await).code, code, "{path}");
        let wanted = NameSearch { path: path.into(), ..names("needle") };
        assert_eq!(refused(client.search_names(&wanted).await).code, code, "{path}");
    }
}

#[tokio::test]
async fn what_is_not_understood_is_refused_before_the_answer_begins() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    plant(&runner, &[("f", b"needle")]);
    let deep = "(".repeat(10_000);
    for (search, word) in [
        (text("ab(c"), "at byte 2"),
        (text(""), "empty"),
        (text("a\nb"), "multiline"),
        (text("((a{1000}){1000}){1000}"), "size limit"),
        (text(&deep), "at byte"),
        (TextSearch { globs: vec!["[".into()], ..text("a") }, "number 1"),
        (TextSearch { types: vec!["klingon".into()], ..text("a") }, "klingon"),
        (TextSearch { before: 1_000_000, ..text("a") }, "context"),
    ] {
        let fault = refused(client.search_text(&search).await);
        assert_eq!(fault.code, FaultCode::Invalid, "{fault:?}");
        assert!(fault.message.contains(word), "{word}: {}", fault.message);
    }
    for search in [
        NameSearch { kind: NamePattern::Glob, ..names("[a") },
        NameSearch { kind: NamePattern::Regex, ..names("(a") },
        names(""),
    ] {
        assert_eq!(refused(client.search_names(&search).await).code, FaultCode::Invalid);
    }
    assert_eq!(search(&client, &text("needle")).await.end.matches, 1);
}

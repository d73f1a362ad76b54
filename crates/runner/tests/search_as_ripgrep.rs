//! The same searches by the runner and by the real ripgrep, in trees that are made at random.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod live_runner;
mod searching;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use live_runner::LiveRunner;
use sandbank_protocol::{FoundLine, SearchCase, SearchOrder, TextRecord, TextSearch};
use sandbank_test_support::Seeded;
use searching::{ripgrep, search, text};
use serde_json::Value;

const TREES: u64 = 10;
const SEARCHES: usize = 10;

const DIRECTORIES: [&str; 9] = ["src", "a", "b", "docs", "target", ".hid", "build", "gen", "sub"];
const NAMES: [&[u8]; 14] = [
    b"main.rs",
    b"lib.rs",
    b"x.py",
    b"keep.log",
    b"other.log",
    b"a.txt",
    b"b.txt",
    b"README.md",
    b".hidden",
    b"with space",
    b"odd\xff.rs",
    b"new\nline",
    b"-dash",
    b"foo.tmp",
];
const RULES: [&str; 26] = [
    "target",
    "/build",
    "*.log",
    "!keep.log",
    "docs/**",
    "a/b",
    "**/gen",
    "sub/",
    "*.tmp",
    "!*.rs",
    "[ab].txt",
    "\\#x",
    "# comment",
    "",
    "trail ",
    "/a/*/c",
    "src/**/a",
    ".hid",
    "!.hid",
    "!.hidden",
    "*.md\r",
    "!/src/main.rs",
    "/*",
    "!/src",
    "with space",
    "[",
];
const WORDS: [&str; 17] = [
    "foo", "Foo", "FOO", "foobar", "bar", "baz", "x", "a.b(", "ü", "Ünder", "zwölf", "foo_bar",
    "  ", "\t", "日本", "foo-bar", "",
];
const PATTERNS: [&str; 16] = [
    "foo",
    "Foo",
    "fo+",
    r"\bbar\b",
    "ba[rz]$",
    r"^\s*x",
    "ü",
    r"\w+\s\w+",
    "a.b",
    "(?i)FOO",
    "foo|bar",
    r"(?-u)\xFF",
    "o$",
    r"\p{Lu}",
    "日",
    r"[^a-z\s]+",
];

fn pick<'a, T: ?Sized>(random: &mut Seeded, from: &[&'a T]) -> &'a T {
    from[random.below(from.len() as u64) as usize]
}

fn content(random: &mut Seeded) -> Vec<u8> {
    let mut content = Vec::new();
    let line_end: &[u8] = if random.below(4) == 0 { b"\r\n" } else { b"\n" };
    let lines = [0, 1, 5, 5, 30, 30, 30, 3_000][random.below(8) as usize];
    for _ in 0..random.below(lines + 1) {
        for _ in 0..random.below(6) {
            content.extend_from_slice(pick(random, &WORDS).as_bytes());
            content.extend_from_slice(if random.below(3) == 0 { b"" } else { b" " });
        }
        match random.below(60) {
            0 => content.extend_from_slice(b"foo\xff\xfe bar \xc3"),
            1 => content.extend_from_slice(&b"foo ".repeat(random.below(5_000) as usize)),
            _ => {}
        }
        content.extend_from_slice(line_end);
    }
    if random.below(3) == 0 {
        content.extend_from_slice(b"foo bar");
    }
    match random.below(25) {
        0 if !content.is_empty() => {
            let place = random.below(content.len() as u64) as usize;
            content[place] = 0;
        }
        1 => {
            let text = String::from_utf8_lossy(&content).into_owned();
            content = vec![0xFF, 0xFE];
            content.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        }
        2 => content.splice(0..0, *b"\xef\xbb\xbf").for_each(drop),
        _ => {}
    }
    content
}

fn plant(random: &mut Seeded, directory: &Path, depth: u64) {
    fs::create_dir_all(directory).unwrap();
    for _ in 0..random.below(6) {
        let name = std::ffi::OsStr::from_bytes(pick(random, &NAMES));
        fs::write(directory.join(name), content(random)).unwrap();
    }
    for file in [".gitignore", ".ignore"] {
        if random.below(3) == 0 {
            let rules: Vec<&str> = (0..random.below(5)).map(|_| pick(random, &RULES)).collect();
            fs::write(directory.join(file), rules.join("\n")).unwrap();
        }
    }
    if random.below(if depth == 0 { 2 } else { 8 }) == 0 {
        fs::create_dir_all(directory.join(".git/info")).unwrap();
        fs::write(directory.join(".git/config"), "foo").unwrap();
        fs::write(directory.join(".git/info/exclude"), pick(random, &RULES)).unwrap();
    }
    if depth < 4 {
        for _ in 0..random.below(4) {
            let below = directory.join(pick(random, &DIRECTORIES));
            plant(random, &below, depth + 1);
        }
    }
}

/// A search, and the options of ripgrep that ask for the same.
fn any_search(random: &mut Seeded) -> (TextSearch, Vec<String>) {
    let mut options: Vec<String> = Vec::new();
    let mut chance = |random: &mut Seeded, option: &str| {
        let chosen = random.below(4) == 0;
        if chosen {
            options.push(option.into());
        }
        chosen
    };
    let mut wanted = TextSearch {
        literal: chance(random, "--fixed-strings"),
        word: chance(random, "--word-regexp"),
        multiline: chance(random, "--multiline"),
        hidden: chance(random, "--hidden"),
        ignored: chance(random, "--no-ignore"),
        max_line_bytes: Some(64 << 10),
        limit: Some(1_000_000),
        ..text(pick(random, &PATTERNS))
    };
    match random.below(5) {
        0 => (wanted.case, _) = (SearchCase::Insensitive, options.push("--ignore-case".into())),
        1 => (wanted.case, _) = (SearchCase::Smart, options.push("--smart-case".into())),
        _ => {}
    }
    if random.below(3) == 0 {
        (wanted.before, wanted.after) = (random.below(3), random.below(3));
        options.extend([format!("-B{}", wanted.before), format!("-A{}", wanted.after)]);
    }
    for glob in ["*.rs", "!*.log", "src/**", "!a", "**/b/*"] {
        if random.below(10) == 0 {
            wanted.globs.push(glob.into());
            options.push(format!("--glob={glob}"));
        }
    }
    if random.below(8) == 0 {
        wanted.types.push("rust".into());
        options.push("--type=rust".into());
    }
    if random.below(8) == 0 {
        wanted.types.push("!py".into());
        options.push("--type-not=py".into());
    }
    if random.below(6) == 0 && !wanted.multiline {
        wanted.max_per_file = Some(2);
        options.push("--max-count=2".into());
    }
    if random.below(4) == 0 {
        wanted.sort = SearchOrder::Path;
    }
    (wanted, options)
}

/// One line of an answer: path, kind, line, offset, text and places.
type Said = (Vec<u8>, bool, u64, u64, String, Vec<(u64, u64)>);

fn bytes_of(value: &Value) -> Vec<u8> {
    match value["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => STANDARD.decode(value["bytes"].as_str().unwrap()).unwrap(),
    }
}

fn said_by_ripgrep(
    rg: &Path,
    workspace: &Path,
    wanted: &TextSearch,
    options: &[String],
) -> BTreeSet<Said> {
    let output = Command::new(rg)
        .args(["--no-config", "--json", "--no-ignore-global", "--no-messages"])
        .args(options)
        .args(["-e", &wanted.pattern, "./"])
        .current_dir(workspace)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.filter_map(|line| said(&serde_json::from_slice(line).unwrap())).collect()
}

fn said(line: &Value) -> Option<Said> {
    let is_match = line["type"] == "match";
    if !is_match && line["type"] != "context" {
        return None;
    }
    let data = &line["data"];
    let path = bytes_of(&data["path"]).strip_prefix(b"./").unwrap().to_vec();
    let bytes = bytes_of(&data["lines"]);
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let place = |value: &Value| value.as_u64().unwrap().min(bytes.len() as u64);
    let submatches = data["submatches"].as_array().unwrap();
    let ranges = submatches.iter().map(|one| (place(&one["start"]), place(&one["end"])));
    let number = |name: &str| data[name].as_u64().unwrap();
    let text = String::from_utf8_lossy(bytes).into_owned();
    let ranges = if is_match { ranges.take(1_000).collect() } else { Vec::new() };
    Some((path, is_match, number("line_number"), number("absolute_offset"), text, ranges))
}

fn without_places(all: BTreeSet<Said>) -> BTreeSet<Said> {
    let without =
        |(path, kind, line, offset, text, _)| (path, kind, line, offset, text, Vec::new());
    all.into_iter().map(without).collect()
}

fn said_by_us(record: &TextRecord<'_>) -> Said {
    let said = |line: &FoundLine<'_>, is_match| {
        let path = match &line.path_hex {
            None => line.path.as_bytes().to_vec(),
            Some(hex) => (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                .collect(),
        };
        (path, is_match, line.line, line.offset, line.text.to_string(), line.ranges.clone())
    };
    match record {
        TextRecord::Match(line) => said(line, true),
        TextRecord::Context(line) => said(line, false),
        TextRecord::End(_) => panic!("there is one end"),
    }
}

#[tokio::test]
async fn the_same_is_found_as_by_ripgrep() {
    let Some(rg) = ripgrep() else { return };
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut random = Seeded::announce("search");
    let mut found_lines = 0;
    for tree in 0..TREES {
        let workspace = runner.inside("");
        // Ripgrep takes the directory it is in for the whole, as the runner does the workspace.
        plant(&mut random, &workspace, 0);
        for _ in 0..SEARCHES {
            let (wanted, options) = any_search(&mut random);
            let mut theirs = said_by_ripgrep(&rg, &workspace, &wanted, &options);
            let found = search(&client, &wanted).await;
            let mut ours: BTreeSet<Said> = found.records.iter().map(said_by_us).collect();
            if wanted.word || wanted.multiline {
                // Ripgrep 13 looks for the places again in a part of the text, and so finds the
                // beginnings of words and lines where none are.
                (theirs, ours) = (without_places(theirs), without_places(ours));
            }
            assert_eq!(ours.len(), found.records.len(), "something was said twice");
            let missing: Vec<_> = theirs.difference(&ours).take(3).collect();
            let added: Vec<_> = ours.difference(&theirs).take(3).collect();
            assert!(
                missing.is_empty() && added.is_empty(),
                "tree {tree}: {wanted:?} {options:?}\nonly ripgrep: {missing:?}\nonly we: {added:?}"
            );
            found_lines += ours.len();
        }
        for entry in fs::read_dir(&workspace).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
    }
    assert!(found_lines > 1_000, "only {found_lines} lines were compared");
}

//! The architecture's invariants that a compiler does not check.
//!
//! Reads manifests and sources of the whole workspace; runs nothing. Each message names the file
//! and what to do, because whoever meets it has probably never read this test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Which crates of ours each crate may use. Engines never see HTTP, handlers never see an engine's
/// inside, the runner knows neither: a new arrow is a decision, made here.
const MAY_USE: [(&str, &[&str]); 24] = [
    ("protocol", &[]),
    ("rooted-fs", &["protocol"]),
    ("terminal", &[]),
    ("runner", &["channel", "protocol", "rooted-fs", "tar-stream", "terminal"]),
    ("runner-binary", &[]),
    ("channel", &["protocol"]),
    ("engine", &["protocol"]),
    ("fault-points", &[]),
    ("image-archive", &["engine", "tar-stream"]),
    ("registry", &[]),
    ("seccomp", &[]),
    ("tar-stream", &[]),
    (
        "engine-native",
        &[
            "engine",
            "fault-points",
            "image-archive",
            "protocol",
            "registry",
            "runner-binary",
            "seccomp",
        ],
    ),
    (
        "engine-docker",
        &[
            "channel",
            "engine",
            "fault-points",
            "image-archive",
            "protocol",
            "runner-binary",
            "seccomp",
        ],
    ),
    ("store", &["engine"]),
    ("orchestrator", &["channel", "engine", "fault-points", "protocol", "store"]),
    ("tools", &["channel", "engine", "orchestrator", "protocol", "rooted-fs", "store"]),
    ("chat", &["tools"]),
    (
        "server",
        &["channel", "chat", "engine", "orchestrator", "protocol", "store", "tools", "workspace"],
    ),
    (
        "cli",
        &[
            "bench",
            "engine",
            "engine-docker",
            "engine-native",
            "fault-points",
            "orchestrator",
            "protocol",
            "registry",
            "server",
            "store",
            "traces",
            "workspace",
        ],
    ),
    ("traces", &["channel", "protocol"]),
    ("workspace", &["channel", "protocol", "runner-binary"]),
    ("test-support", &["channel", "engine", "protocol"]),
    ("bench", &["channel", "protocol", "workspace"]),
];

/// Tests may also start and talk to a real runner, and share the test crate.
const TESTS_MAY_ALSO_USE: [&str; 5] =
    ["channel", "fault-points", "runner-binary", "test-support", "traces"];

const UNSAFE_CRATES: [&str; 3] = ["engine-native", "rooted-fs", "runner"];

const MAX_LINES: usize = 800;

const EMPTY_NAMES: [&str; 8] =
    ["common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"];

/// Docker follows links of a running container where it copies files in or out, on its host and as
/// its root: what runs there moves through the runner. These look into containers that never start.
const MAY_COPY: [(&str, &str); 3] = [
    (
        "src/runner_volume.rs",
        "fills the runner's volume, and reads it again, in a helper of its own",
    ),
    ("src/places.rs", "asks what is in an image where something is to be mounted"),
    ("src/lifecycle/emptiness.rs", "asks whether a volume has anything in it"),
];

/// What Docker's client calls the copying of files into a container and out of it.
const COPIES: [&str; 4] = [
    "upload_to_container",
    "download_from_container",
    "get_container_archive_info",
    "upload_to_container_streaming",
];

struct Crate {
    name: String,
    dir: PathBuf,
    manifest: toml::Table,
}

fn crates() -> Vec<Crate> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(dir.join("Cargo.toml")) else { continue };
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        found.push(Crate { name, dir, manifest: text.parse().unwrap() });
    }
    assert!(found.len() >= MAY_USE.len(), "only {} crates found in {dir:?}", found.len());
    found
}

fn sources(dir: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

fn all_sources() -> Vec<(PathBuf, String)> {
    crates().iter().flat_map(|each| sources(&each.dir)).collect()
}

/// Our own crates that a manifest section names, without the `sandbank-` prefix.
fn own_dependencies(manifest: &toml::Table, section: &str) -> Vec<String> {
    let Some(table) = manifest.get(section).and_then(toml::Value::as_table) else {
        return Vec::new();
    };
    table.keys().filter_map(|key| key.strip_prefix("sandbank-")).map(str::to_owned).collect()
}

/// Code without line comments and without string literals, as far as a line shows.
fn code(line: &str) -> String {
    let mut out = String::new();
    let mut in_string = false;
    let line = line.replace("'\"'", "''");
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' if in_string => {
                chars.next();
            }
            '"' => in_string = !in_string,
            '/' if !in_string && chars.peek() == Some(&'/') => break,
            _ if !in_string => out.push(char),
            _ => {}
        }
    }
    out
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

fn lines_with(crates: &[Crate], wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in crates.iter().flat_map(|each| sources(&each.dir)) {
        for (number, line) in text.lines().enumerate() {
            if wrong(&code(line)) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    found
}

fn report(rule: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

#[test]
fn crate_dependencies_point_one_way() {
    let allowed: BTreeMap<_, _> = MAY_USE.into_iter().collect();
    let mut found = Vec::new();
    for each in crates() {
        let Some(may_use) = allowed.get(each.name.as_str()) else {
            found.push(format!("{} has no row in MAY_USE", each.name));
            continue;
        };
        for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
            for used in own_dependencies(&each.manifest, section) {
                let in_tests =
                    section == "dev-dependencies" && TESTS_MAY_ALSO_USE.contains(&used.as_str());
                if !may_use.contains(&used.as_str()) && !in_tests {
                    found.push(format!("{} must not use {used} ({section})", each.name));
                }
            }
        }
    }
    report("a dependency points the wrong way, or the map in this test is out of date", found);
}

/// The runner is built by a script that cargo runs again only for the directories it names.
#[test]
fn the_runner_is_built_again_when_any_crate_in_it_changes() {
    let all = crates();
    let mut used = vec!["runner".to_owned()];
    let mut at = 0;
    while let Some(name) = used.get(at).cloned() {
        at += 1;
        let found = all.iter().find(|found| found.name == name).unwrap();
        for dependency in own_dependencies(&found.manifest, "dependencies") {
            if !used.contains(&dependency) {
                used.push(dependency);
            }
        }
    }
    let script = {
        let binary = all.iter().find(|found| found.name == "runner-binary").unwrap();
        fs::read_to_string(binary.dir.join("build.rs")).unwrap()
    };
    let missing = used.into_iter().filter(|name| !script.contains(&format!("{name:?}"))).collect();
    report("runner-binary/build.rs must name every crate that is in the runner", missing);
}

#[test]
fn the_map_of_dependencies_has_no_cycle() {
    let mut placed: Vec<&str> = Vec::new();
    while placed.len() < MAY_USE.len() {
        let next = MAY_USE.iter().find(|(name, uses)| {
            !placed.contains(name) && uses.iter().all(|used| placed.contains(used))
        });
        let (name, _) = next.expect("MAY_USE has a cycle");
        placed.push(name);
    }
}

#[test]
fn only_the_named_crates_contain_unsafe_code() {
    let mut others = crates();
    others.retain(|each| !UNSAFE_CRATES.contains(&each.name.as_str()));
    let found =
        lines_with(&others, |code| has_word(code, "unsafe") || code.contains("allow(unsafe_code"));
    report("unsafe code outside engine-native, rooted-fs and runner", found);
}

#[test]
fn only_the_named_files_use_docker_s_archive_endpoints() {
    let docker = crates().into_iter().find(|each| each.name == "engine-docker").unwrap();
    let copies = |text: &str| {
        text.lines().any(|line| COPIES.iter().any(|word| has_word(&code(line), word)))
            // A path of the API, for whoever asks without the client.
            || text.lines().any(|line| line.contains("/archive") && line.contains("/containers"))
    };
    let mut using: Vec<_> = sources(&docker.dir.join("src"))
        .into_iter()
        .filter(|(_, text)| copies(text))
        .map(|(path, _)| path.strip_prefix(&docker.dir).unwrap().to_str().unwrap().to_owned())
        .collect();
    using.sort();
    let mut may: Vec<_> = MAY_COPY.iter().map(|(file, _)| (*file).to_owned()).collect();
    may.sort();
    assert_eq!(
        using, may,
        "files of engine-docker that copy into or out of containers: no running one may be touched \
         so; a new place is a decision, made in MAY_COPY with its reason"
    );
}

#[test]
fn no_source_file_is_too_long_to_read() {
    let too_long = |(path, text): (PathBuf, String)| {
        let lines = text.lines().count();
        (lines > MAX_LINES).then(|| format!("{} has {lines} lines", path.display()))
    };
    report("split these files", all_sources().into_iter().filter_map(too_long).collect());
}

#[test]
fn no_module_has_a_name_that_says_nothing() {
    let mut found = Vec::new();
    for each in crates() {
        for (path, _) in sources(&each.dir) {
            let inner = path.strip_prefix(&each.dir).unwrap().with_extension("");
            let says_nothing = |part: std::path::Component<'_>| {
                EMPTY_NAMES.iter().any(|name| part.as_os_str() == *name)
            };
            if inner.components().any(says_nothing) {
                found.push(path.display().to_string());
            }
        }
        if EMPTY_NAMES.contains(&each.name.as_str()) {
            found.push(each.name);
        }
    }
    report("name these after what they hold", found);
}

#[test]
fn nothing_is_left_unfinished_or_silenced() {
    // In two parts, so that whoever looks for them finds none here.
    let unfinished = [("to", "do!("), ("unimple", "mented!("), ("#[ig", "nore"), ("db", "g!(")];
    let unfinished = unfinished.map(|(begin, end)| format!("{begin}{end}"));
    let found =
        lines_with(&crates(), |code| unfinished.iter().any(|mark| code.contains(mark.as_str())));
    report("finish these, or take them out", found);
}

/// The fuzz targets are a workspace of their own, with a lock file of its own.
#[test]
fn the_fuzz_targets_lock_every_dependency() {
    let lock =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/Cargo.lock"))
            .unwrap();
    let lock: toml::Table = lock.parse().unwrap();
    let locked = |name: &str| {
        let packages = lock["package"].as_array().unwrap();
        let package = packages.iter().find(|package| package["name"].as_str() == Some(name))?;
        let listed = package.get("dependencies").and_then(toml::Value::as_array);
        let names = listed.into_iter().flatten().filter_map(toml::Value::as_str);
        Some(names.filter_map(|name| name.split(' ').next()).map(str::to_owned).collect::<Vec<_>>())
    };
    let mut found = Vec::new();
    for each in crates() {
        let package = format!("sandbank-{}", each.name);
        let Some(locked) = locked(&package) else { continue };
        let wanted = each.manifest.get("dependencies").and_then(toml::Value::as_table);
        for name in wanted.into_iter().flatten().map(|(name, _)| name) {
            if !locked.contains(name) {
                found.push(format!("{package}: {name}"));
            }
        }
    }
    report("run `cargo metadata --manifest-path fuzz/Cargo.toml` to lock these", found);
}

#[test]
fn every_source_file_says_what_it_owns() {
    let headless = |(path, text): (PathBuf, String)| {
        (!text.starts_with("//!")).then(|| path.display().to_string())
    };
    let found = all_sources().into_iter().filter_map(headless).collect();
    report("begin these with a `//!` comment: what it owns, what it never does", found);
}

#[test]
fn every_crate_inherits_the_lints_and_the_package_facts() {
    let mut found = Vec::new();
    for each in crates() {
        let inherits = |section: &str, key: &str| {
            let value = each.manifest.get(section).and_then(|table| match key {
                "" => table.get("workspace"),
                key => table.get(key)?.get("workspace"),
            });
            value.and_then(toml::Value::as_bool) == Some(true)
        };
        if !inherits("lints", "") {
            found.push(format!("{}: [lints] workspace = true", each.name));
        }
        for key in ["version", "edition", "rust-version", "license", "publish"] {
            if !inherits("package", key) {
                found.push(format!("{}: {key}.workspace = true", each.name));
            }
        }
    }
    report("these manifests must inherit from the workspace", found);
}

#[test]
fn the_scanner_sees_code_and_not_comments_or_strings() {
    assert_eq!(code("let x = \"unsafe\"; // unsafe").trim(), "let x = ;");
    assert!(has_word(&code("    unsafe { call() }"), "unsafe"));
    assert!(!has_word(&code("#![deny(unsafe_code)]"), "unsafe"));
}

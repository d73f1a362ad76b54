//! The posture of a live sandbox equals the committed table of its engine in `posture/`.
//!
//! Run with `SANDBANK_BLESS=1` to write the table after a deliberate change.

use std::path::Path;

use sandbank_test_support::{TestDaemon, is_over_docker, skip_unless_root};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const TABLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/posture");

/// Prints one `name: value` per line. Runs inside as the workload.
const PROBE: &str = include_str!("posture/probe.py");

#[tokio::test(flavor = "multi_thread")]
async fn a_live_sandbox_stands_as_the_table_says() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("posture").await?;
    api.write(&id, "/vercel/sandbox/workspace/probe.py", PROBE.as_bytes()).await?;
    let (code, seen, errors) = api.run(&id, "exec python3 probe.py").await?;
    assert_eq!((code, errors.as_str()), (0, ""));

    let namespaces = namespaces_apart(&api.run(&id, "ls -l /proc/self/ns").await?.1);
    let seen = format!("{seen}namespaces apart from the host: {namespaces}\n");
    let engine = if is_over_docker() { "docker" } else { "native" };
    let path = Path::new(TABLES).join(format!("{engine}.txt"));
    if std::env::var_os("SANDBANK_BLESS").is_some() {
        let table = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, blessed(&seen, &table))?;
    }
    let table = std::fs::read_to_string(&path)?;
    let expected: Vec<&str> = table.lines().filter(|line| !may_be_missing(line)).collect();
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected, "the posture changed; see the head");
    daemon.finish().await
}

/// Which kernel files there are to mask, and what an image of this host needs of it, differs from
/// host to host. What is not there needs no mount; whatever is mounted must be in the table.
fn may_be_missing(line: &str) -> bool {
    let Some((kind, rest)) = line.split_once(' ') else { return false };
    let path = rest.split(':').next().unwrap_or_default();
    let found = std::fs::symlink_metadata(path);
    match kind {
        "mask" => found.is_err(),
        // Of versioned names, whether one is there.
        "bind" if path.ends_with('*') => !any_with_prefix(path.trim_end_matches('*')),
        // Links are made anew, and files are copied.
        "bind" => !OWN_ETC.contains(&path) && !found.is_ok_and(|found| found.is_dir()),
        _ => false,
    }
}

/// Mounted in every sandbox, whatever the host has.
const OWN_ETC: [&str; 3] = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];

fn any_with_prefix(prefix: &str) -> bool {
    let (directory, name) = prefix.rsplit_once('/').expect("a path has a slash");
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .any(|entry| entry.file_name().to_string_lossy().starts_with(name))
}

/// What was seen, with the lines of the old table that this host has nothing for.
fn blessed(seen: &str, table: &str) -> String {
    let mut lines: Vec<&str> = seen.lines().collect();
    let kept = table.lines().filter(|line| may_be_missing(line) && !lines.contains(line));
    let kept: Vec<&str> = kept.collect();
    let conditional = |line: &&str| line.starts_with("mask ") || line.starts_with("bind ");
    let place = lines.iter().position(conditional).unwrap_or(lines.len());
    let end = lines.iter().rposition(conditional).map_or(place, |last| last + 1);
    let mut section: Vec<&str> = lines.drain(place..end).chain(kept).collect();
    section.sort_unstable();
    lines.splice(place..place, section);
    lines.join("\n") + "\n"
}

/// Names of the namespaces whose inode differs from this process's.
fn namespaces_apart(listing: &str) -> String {
    let names = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];
    let apart = names.into_iter().filter(|name| {
        let host =
            std::fs::read_link(format!("/proc/self/ns/{name}")).expect("the host has it too");
        let inside = listing.split_whitespace().find(|word| word.starts_with(&format!("{name}:[")));
        inside.is_some_and(|inside| inside != host.to_string_lossy())
    });
    apart.collect::<Vec<_>>().join(" ")
}

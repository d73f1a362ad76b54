//! The posture of a live sandbox equals the committed table of its engine in `posture/`: of a plain
//! command without network first, then how a terminal, a background child, a sandbox with network
//! and the runner differ from that. Each difference has its reason here.
//!
//! Run with `SANDBANK_BLESS=1` to write the table after a deliberate change.

mod kinds;
mod runner;
mod table;

use std::path::Path;

use sandbank_test_support::{TestDaemon, is_over_docker, skip_unless_root};
use serde_json::json;

use kinds::Seen;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const TABLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/posture");

/// Kind, how the line that differs begins, and why it may.
const EXPLAINED: &[(&str, &str, &str)] = &[
    ("terminal", "standard streams: ", "it was asked for"),
    ("background child", "standard streams: ", "its own script has put them elsewhere"),
    (
        "runner",
        "CapPrm: ",
        "it starts commands as the workload, and ends them: SETUID, SETGID, KILL",
    ),
    ("runner", "CapEff: ", "the same"),
    ("runner", "Uid: ", "it is root in its machine, but as for files, where it is the workload"),
    ("runner", "Gid: ", "the same"),
    ("runner", "descriptors: ", "its channel, the workspace's root, the cgroups of its commands"),
    (
        "runner",
        "environment: ",
        "Docker gives every container these; callers' variables are not there",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_live_sandbox_stands_as_the_table_says() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let none = json!({ "sessionKey": "alone", "network": { "mode": "none" } });
    let alone = Seen::in_sandbox(&daemon, &api.create_with(none).await?).await?;
    let default = json!({ "sessionKey": "online", "network": { "mode": "default" } });
    let online = Seen::in_sandbox(&daemon, &api.create_with(default).await?).await?;

    let mut seen = alone.command.clone();
    for (kind, alone_differs, online_differs) in [
        ("terminal", alone.differences(&alone.terminal), online.differences(&online.terminal)),
        ("background child", alone.differences(&alone.child), online.differences(&online.child)),
    ] {
        assert_eq!(
            alone_differs, online_differs,
            "with and without network, a {kind} differs in the same way"
        );
        seen.extend(told(kind, alone_differs));
    }
    seen.extend(told("with network", alone.differences(&online.command)));
    let usual = |line: &String| alone.command.contains(line);
    let (same, other) = alone.runner.iter().cloned().partition(usual);
    seen.extend(told("runner", other));
    seen.extend(noted("runner", same));
    seen.extend(told("runner with network", kinds::differences(&alone.runner, &online.runner)));

    let engine = if is_over_docker() { "docker" } else { "native" };
    let path = Path::new(TABLES).join(format!("{engine}.txt"));
    if std::env::var_os("SANDBANK_BLESS").is_some() {
        let table = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, table::blessed(&seen, &table))?;
    }
    let table = std::fs::read_to_string(&path)?;
    let expected: Vec<&str> = table.lines().filter(|line| !table::may_be_missing(line)).collect();
    assert_eq!(seen, expected, "the posture changed; see the head");
    daemon.finish().await
}

/// What is different for a kind. What nobody has explained is not blessed either.
fn told(kind: &str, lines: Vec<String>) -> Vec<String> {
    let explained = |line: &String| {
        let line = line.strip_prefix("not ").unwrap_or(line);
        let mut reasons = EXPLAINED.iter().filter(|(of, ..)| *of == kind);
        reasons.any(|(_, beginning, _)| line.starts_with(beginning))
    };
    let unexplained: Vec<_> = lines.iter().filter(|line| !explained(line)).collect();
    assert!(unexplained.is_empty(), "a difference of the kind {kind}: {unexplained:#?}");
    noted(kind, lines)
}

fn noted(kind: &str, lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| format!("{kind} | {line}")).collect()
}

/// Of most kernels some are missing, so a table that was written on one may lack others.
#[test]
fn every_mask_is_in_the_table_of_each_engine() -> anyhow::Result<()> {
    let (hidden, fixed) = sandbank_engine::kernel_files::masks();
    for engine in ["docker", "native"] {
        let table = std::fs::read_to_string(Path::new(TABLES).join(format!("{engine}.txt")))?;
        // This one is a mount of its own.
        for path in hidden.iter().chain(&fixed).filter(|path| *path != "/sys") {
            let mask = format!("mask {path}: ");
            assert!(table.lines().any(|line| line.starts_with(&mask)), "{engine}: no {mask}");
        }
    }
    Ok(())
}

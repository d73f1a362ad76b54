//! The posture of a live sandbox equals the committed table in `posture/native.txt`.
//!
//! Run with `SANDBANK_BLESS=1` to write the table after a deliberate change.

use sandbank_test_support::{TestDaemon, skip_unless_root};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/posture/native.txt");

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
    if std::env::var_os("SANDBANK_BLESS").is_some() {
        std::fs::write(TABLE, &seen)?;
    }
    let expected = std::fs::read_to_string(TABLE)?;
    assert_eq!(seen, expected, "the posture changed; see the head of this file");
    daemon.finish().await
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

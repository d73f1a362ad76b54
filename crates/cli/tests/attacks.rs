//! Attacks that go through the API: on the daemon's own surfaces, and on the disk.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sandbank_test_support::{TestDaemon, skip_over_docker, skip_unless_root};
use serde_json::json;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const NO_QUOTA: &str = "a volume has no quota";

#[tokio::test(flavor = "multi_thread")]
async fn no_surface_that_controls_the_host_is_within_reach() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("SANDBANK_TEST_SECRET", "canary-in-the-daemons-environment")];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let (api, token) = (daemon.api()?, daemon.token()?);
    let port = daemon.url().rsplit(':').next().unwrap().to_owned();
    let id = api.create("surfaces").await?;
    let reach = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
    assert_eq!(api.run(&id, &reach).await?.1, "", "the daemon answers inside");
    let own = "(perl -MIO::Socket -e 'print \"up\\n\" if IO::Socket::INET->new(Listen => 1, \
               LocalAddr => \"127.0.0.1\", LocalPort => 4000)')";
    let (_, up, _) = api.run(&id, &format!("command -v perl > /dev/null && {own}")).await?;
    assert!(up == "up\n" || up.is_empty(), "{up}");
    let everything = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; \
                      cat /proc/net/unix";
    let (_, seen, _) = api.run(&id, everything).await?;
    assert!(seen.contains("SANDBANK_COMMAND="), "its own environment is there: {seen}");
    for secret in [token.as_str(), settings[0].1, daemon.data_dir().to_str().unwrap()] {
        assert!(!seen.contains(secret), "{secret} is there");
    }
    let search = "find / -xdev \\( -name docker.sock -o -name containerd.sock -o -name runner.sock \
                  -o -name sandbank.db -o -path '*serviceaccount/token' \\) 2>/dev/null";
    assert_eq!(api.run(&id, search).await?.1, "");
    assert_eq!(api.sandboxes().await?.len(), 1, "with the token, from outside, it answers");
    daemon.finish().await
}

/// Bytes on disk of everything below, sparse files counted by what they take.
fn on_disk(path: &Path) -> u64 {
    let Ok(found) = std::fs::symlink_metadata(path) else { return 0 };
    let own = found.blocks() * 512;
    if !found.is_dir() {
        return own;
    }
    // Mounted below it is what the pool file holds, which would count twice.
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let same = |entry: &std::fs::DirEntry| entry.metadata().is_ok_and(|e| e.dev() == found.dev());
    own + entries.filter(same).map(|entry| on_disk(&entry.path())).sum::<u64>()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_quota_is_told_apart_and_the_host_keeps_its_space() -> anyhow::Result<()> {
    if skip_unless_root() || skip_over_docker(NO_QUOTA) {
        return Ok(());
    }
    const QUOTA_MB: u64 = 16;
    let settings = [("SANDBANK_DEFAULT_DISK_MB", "16"), ("SANDBANK_STORAGE_POOL_MB", "1024")];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    if api.call("GET", "/v1/doctor", None).await?["capabilities"]["diskQuota"] != json!(true) {
        println!("skipped: this host has no btrfs, so nothing can enforce a quota");
        return daemon.finish().await;
    }
    let id = api.create("filler").await?;
    let before = on_disk(daemon.data_dir());
    api.write(&id, "/vercel/sandbox/workspace/small", b"fits").await?;
    let (code, _, errors) = api.run(&id, "head -c 200000000 /dev/urandom > fill; sync").await?;
    assert!(errors.contains("quota") || errors.contains("space"), "{code}: {errors}");
    let route = format!("/v1/sandboxes/{id}/files?path=/vercel/sandbox/workspace/more");
    // No more than a socket holds: the answer comes before the body is read.
    let sent = api.request("PUT", &route).body(vec![0x5a; 256 << 10]).send().await?;
    let (status, answer) = (sent.status().as_u16(), sent.json::<serde_json::Value>().await?);
    assert_eq!((status, &answer["code"]), (507, &json!("storage_full")), "{answer}");
    // The pool allocates in large pieces; what it may never do is to follow the writer.
    let grown = (on_disk(daemon.data_dir()).saturating_sub(before)) >> 20;
    assert!(grown <= QUOTA_MB + 32, "{grown} MiB for a quota of {QUOTA_MB} MiB");
    let freed = api.run(&id, "rm fill && sync && echo x > again && cat again small").await?;
    assert_eq!(freed.1, "x\nfits", "what was freed can be used again: {}", freed.2);
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn files_without_end_stop_at_the_quota_and_can_be_deleted() -> anyhow::Result<()> {
    if skip_unless_root() || skip_over_docker(NO_QUOTA) {
        return Ok(());
    }
    const MOST: u64 = 100_000;
    let settings = [("SANDBANK_DEFAULT_DISK_MB", "2"), ("SANDBANK_STORAGE_POOL_MB", "1024")];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    if api.call("GET", "/v1/doctor", None).await?["capabilities"]["diskQuota"] != json!(true) {
        println!("skipped: this host has no btrfs, so nothing can enforce a quota");
        return daemon.finish().await;
    }
    let (id, other) = (api.create("inodes").await?, api.create("other").await?);
    // The shell itself ends at the first file that it cannot make.
    let many = format!("i=0; while [ $i -lt {MOST} ]; do : > f$i; i=$((i+1)); done; echo all");
    let (_, seen, errors) = api.run(&id, &format!("sh -c '{many}'; ls -U | wc -l")).await?;
    assert!(errors.contains("quota"), "{seen} {errors}");
    let made: u64 = seen.trim().parse()?;
    assert!((10..MOST).contains(&made), "{made} files in 2 MiB");
    assert_eq!(api.run(&other, "echo x > f && cat f").await?.1, "x\n", "another has its own");
    api.stop(&id).await?;
    daemon.finish().await
}

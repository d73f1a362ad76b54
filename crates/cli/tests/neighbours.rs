//! Several daemons on one host: what they must not share, and what one clears up after another.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use sandbank_test_support::{TestDaemon, eventually, skip_unless_root};
use std::time::Duration;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const SOON: Duration = Duration::from_secs(10);

fn instance(daemon: &TestDaemon) -> String {
    std::fs::read_to_string(daemon.data_dir().join("instance")).unwrap().trim().to_owned()
}

/// The instance's directories in every hierarchy.
fn cgroups(instance: &str) -> Vec<PathBuf> {
    let top = PathBuf::from("/sys/fs/cgroup");
    let hierarchies = std::fs::read_dir(&top).into_iter().flatten().flatten();
    let places = hierarchies.map(|entry| entry.path()).chain([top]);
    places.map(|place| place.join("sandbank").join(instance)).filter(|dir| dir.is_dir()).collect()
}

/// Ranges of user ids that the instance has claimed on this host.
fn ranges(instance: &str) -> BTreeSet<PathBuf> {
    let claims = std::fs::read_dir("/run/sandbank").into_iter().flatten().flatten();
    let own =
        |path: &PathBuf| std::fs::read_link(path).is_ok_and(|owner| owner.as_os_str() == instance);
    claims.map(|entry| entry.path()).filter(own).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_daemon_kept_ready_goes_when_another_starts() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut killed = TestDaemon::start(SANDBANK).await?;
    let dead = instance(&killed);
    eventually("a stock is kept ready", SOON, || async {
        (!ranges(&dead).is_empty()).then_some(())
    })
    .await?;
    assert!(!cgroups(&dead).is_empty());
    killed.kill_9()?;
    let living = TestDaemon::start(SANDBANK).await?;
    let own = instance(&living);
    assert_eq!(cgroups(&dead), Vec::<PathBuf>::new());
    assert_eq!(ranges(&dead), BTreeSet::new());
    eventually("the other keeps its own", SOON, || async {
        (!cgroups(&own).is_empty() && !ranges(&own).is_empty()).then_some(())
    })
    .await?;
    living.finish().await?;
    killed.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_outlives_its_daemon_keeps_its_cgroup_and_its_ids() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut killed = TestDaemon::start(SANDBANK).await?;
    let id = killed.api()?.create("outlives").await?;
    let dead = instance(&killed);
    killed.kill_9()?;
    let other = TestDaemon::start(SANDBANK).await?;
    assert!(!cgroups(&dead).is_empty());
    // Those that were only ready stay too: one of them may be that of a machine being made.
    assert!(!ranges(&dead).is_empty());
    killed.launch().await?;
    assert_eq!(killed.api()?.run(&id, "echo alive").await?.1, "alive\n");
    other.finish().await?;
    killed.finish().await
}

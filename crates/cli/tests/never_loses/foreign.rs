//! Things on the host that look like ours and are not: they survive our start, our reconciliation,
//! our deletes and our shutdown.

mod in_docker;
mod on_host;

use anyhow::ensure;
use sandbank_test_support::{TestDaemon, skip_unless_root};

use crate::SANDBANK;
use crate::objects::agree;

/// Of an instance that nobody runs, but whose objects may be somebody's.
const STRANGER: &str = "izzzzzzz7";
const LOOK_ALIKE: &str = "sbaaaaaaaaaaaaaaaa";

/// Removed again when dropped.
trait Planted {
    fn check(&self) -> anyhow::Result<()>;
}

fn plant(daemon: &TestDaemon) -> anyhow::Result<Box<dyn Planted>> {
    Ok(match daemon.docker() {
        Some(_) => Box::new(in_docker::Foreign::plant(daemon)?),
        None => Box::new(on_host::Foreign::plant(daemon)?),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn look_alikes_and_another_instances_sandboxes_are_left_alone() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("SANDBANK_POOL_SIZE", "1")];
    let neighbour = TestDaemon::start_with(SANDBANK, &settings).await?;
    let theirs = neighbour.api()?.create("same key").await?;
    neighbour.api()?.write(&theirs, "/workspace/kept", b"theirs").await?;

    let mut daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    let ours = api.create("same key").await?;
    daemon.kill_9()?;
    let foreign = plant(&daemon)?;
    daemon.launch().await?;
    ensure!(agree(&daemon, &api).await?.into_iter().eq([ours.clone()]), "not what was there");
    api.stop(&ours).await?;
    ensure!(agree(&daemon, &api).await?.is_empty());
    ensure!(daemon.terminate().await? == Some(0), "it did not leave in peace");

    foreign.check()?;
    let (code, out, _) = neighbour.api()?.run(&theirs, "cat kept").await?;
    ensure!((code, out.as_str()) == (0, "theirs"), "the neighbour's sandbox: {code} {out}");
    drop(foreign);
    daemon.finish().await?;
    neighbour.finish().await
}

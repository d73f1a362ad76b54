//! Downloads that break off, stop, or are no longer wanted.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::ensure;
use rustix::process::{Pid, Signal, kill_process};
use sandbank_test_support::wait_for;
use serde_json::json;

use crate::layers::Layer;
use crate::place::{Place, Said};
use crate::weak_link::{Fault, WeakLink};

const SIZE: usize = 6 << 20;
const PART: usize = 2 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_that_breaks_off_goes_on_where_it_was() -> anyhow::Result<()> {
    let Some(place) = Place::make().await? else { return Ok(()) };
    let layer = Layer::noise("large", SIZE, 11);
    place.registry.push("app:1", std::slice::from_ref(&layer)).await?;
    let link = WeakLink::before(place.registry.port, layer.digest(), Fault::Cut, PART, 2).await?;
    place.pull_ok(&format!("127.0.0.1:{}/app:1", link.port), "app").await?;
    ensure!(link.faults.load(Ordering::SeqCst) == 0, "it was never cut");
    ensure!(place.registry.times_sent(&layer) == 3, "{}", place.registry.log());
    let passed = link.passed.load(Ordering::SeqCst) as usize;
    ensure!(passed < layer.blob.len() + (64 << 10), "{passed} bytes for {}", layer.blob.len());
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_hangs_is_given_up_and_one_that_only_hung_once_is_not() -> anyhow::Result<()>
{
    let Some(place) = Place::make().await? else { return Ok(()) };
    let layer = Layer::noise("large", SIZE, 12);
    place.registry.push("app:1", std::slice::from_ref(&layer)).await?;
    let (port, digest) = (place.registry.port, layer.digest());
    let dead = WeakLink::before(port, digest.clone(), Fault::Hang, 1000, usize::MAX).await?;
    let words = ["sent nothing for 1.5 s", "pull it again"];
    place.refused(&format!("127.0.0.1:{}/app:1", dead.port), &words).await?;
    let slow = WeakLink::before(port, digest, Fault::Hang, PART, 1).await?;
    place.pull_ok(&format!("127.0.0.1:{}/app:1", slow.port), "app").await?;
    ensure!(slow.faults.load(Ordering::SeqCst) == 0, "it never hung");
    place.daemon.finish().await
}

/// What `/greeting` of an image says.
async fn greeting(place: &Place) -> anyhow::Result<String> {
    let mut command = place.daemon.cli();
    let words = ["run", "--network", "none", "--image", "app", "--", "/usr/bin/cat", "/greeting"];
    command.args(words);
    let said = Said::from(tokio::task::spawn_blocking(move || command.output()).await??);
    ensure!(said.code == Some(0), "{said:?}");
    Ok(said.out)
}

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_are_made_of_the_old_image_while_the_new_one_is_on_its_way() -> anyhow::Result<()>
{
    let Some(mut place) = Place::make().await? else { return Ok(()) };
    place.daemon.terminate().await?;
    place.daemon.set("SANDBANK_IMAGE_STALL_TIMEOUT_MS", None);
    place.daemon.launch().await?;
    let (cat, large) = (Layer::cat(), Layer::noise("large", SIZE, 14));
    let (old, new) = (Layer::text("greeting", "old\n"), Layer::text("greeting", "new\n"));
    place.registry.push("app:1", &[cat.clone(), old]).await?;
    place.pull_ok(&place.registry.reference("app:1"), "app").await?;
    place.registry.push("app:1", &[cat, large.clone(), new]).await?;
    let link = WeakLink::before(place.registry.port, large.digest(), Fault::Wait, PART, 1).await?;
    let mut pull =
        place.image(&["pull", &format!("127.0.0.1:{}/app:1", link.port), "--name", "app"]);
    let pulling = tokio::task::spawn_blocking(move || pull.output());
    wait_for("the layer to wait", Duration::from_secs(20), || {
        let passed = link.passed.clone();
        async move { passed.load(Ordering::SeqCst) as usize >= PART }
    })
    .await?;
    ensure!(greeting(&place).await? == "old\n");
    ensure!(!pulling.is_finished(), "the pull did not wait: this tests nothing");
    link.released.notify_one();
    let said = Said::from(pulling.await??);
    ensure!(said.code == Some(0), "{said:?}");
    ensure!(greeting(&place).await? == "new\n");
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_only_dribbles_is_given_up_and_leaves_nothing() -> anyhow::Result<()> {
    let Some(place) = Place::make().await? else { return Ok(()) };
    let layer = Layer::noise("large", SIZE, 15);
    place.registry.push("app:1", std::slice::from_ref(&layer)).await?;
    let (port, digest) = (place.registry.port, layer.digest());
    let link = WeakLink::before(port, digest, Fault::Dribble, 1000, usize::MAX).await?;
    let words = ["sent only", "pull it again"];
    place.refused(&format!("127.0.0.1:{}/app:1", link.port), &words).await?;
    place.pull_ok(&place.registry.reference("app:1"), "app").await?;
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_pull_leaves_nothing() -> anyhow::Result<()> {
    let Some(mut place) = Place::make().await? else { return Ok(()) };
    place.daemon.terminate().await?;
    place.daemon.set("SANDBANK_IMAGE_STALL_TIMEOUT_MS", None);
    place.daemon.launch().await?;
    let layer = Layer::noise("large", SIZE, 13);
    place.registry.push("app:1", &[Layer::text("small", "small"), layer.clone()]).await?;
    let (port, digest) = (place.registry.port, layer.digest());
    let link = WeakLink::before(port, digest, Fault::Hang, PART, usize::MAX).await?;
    let reference = format!("127.0.0.1:{}/app:1", link.port);
    let before = place.store();
    let arrived = |bytes: usize| {
        let passed = link.passed.clone();
        async move { passed.load(Ordering::SeqCst) as usize >= bytes }
    };

    // A person presses Ctrl-C.
    let mut child =
        place.image(&["pull", &reference]).stderr(std::process::Stdio::null()).spawn()?;
    wait_for("the layer to hang", Duration::from_secs(20), || arrived(PART)).await?;
    kill_process(Pid::from_child(&child), Signal::INT)?;
    let status = tokio::task::spawn_blocking(move || child.wait()).await??;
    ensure!(status.code() == Some(130), "{status:?}");
    place.unchanged(&before).await?;

    // A client goes away.
    let api = place.daemon.api()?;
    let request = api.request("POST", "/v1/images:pull").json(&json!({ "reference": reference }));
    let asking = tokio::spawn(request.send());
    wait_for("the layer to hang again", Duration::from_secs(20), || arrived(2 * PART)).await?;
    asking.abort();
    drop(asking.await);
    place.unchanged(&before).await?;

    // The daemon is killed.
    let request = api.request("POST", "/v1/images:pull").json(&json!({ "reference": reference }));
    let asking = tokio::spawn(request.send());
    wait_for("the layer to hang once more", Duration::from_secs(20), || arrived(3 * PART)).await?;
    place.daemon.kill_9()?;
    drop(asking.await);
    place.daemon.launch().await?;
    place.unchanged(&before).await?;
    place.pull_ok(&place.registry.reference("app:1"), "app").await?;
    place.daemon.finish().await
}

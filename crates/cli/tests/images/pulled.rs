//! Pulls that work.

use anyhow::ensure;
use serde_json::json;

use crate::layers::{Layer, machine};
use crate::place::{Place, Said};

#[tokio::test(flavor = "multi_thread")]
async fn a_pulled_image_runs_and_shared_layers_come_once() -> anyhow::Result<()> {
    let Some(place) = Place::make().await? else { return Ok(()) };
    let (cat, one, two) =
        (Layer::cat(), Layer::text("greeting", "one\n"), Layer::text("greeting", "two\n"));
    place.registry.push("team/first:1", &[cat.clone(), one.clone()]).await?;
    place.registry.push("team/second:1", &[cat.clone(), two.clone()]).await?;
    let second = place.registry.reference("team/second:1");
    place.pull_ok(&place.registry.reference("team/first:1"), "first").await?;
    place.pull_ok(&second, "second").await?;
    ensure!(place.registry.times_sent(&cat) == 1, "{}", place.registry.log());
    ensure!(place.registry.times_sent(&two) == 1);
    ensure!(place.store().layers.len() == 3, "{:?}", place.store());
    for (image, text) in [("first", "one\n"), ("second", "two\n")] {
        let mut command = place.daemon.cli();
        command.args([
            "run",
            "--network",
            "none",
            "--image",
            image,
            "--",
            "/usr/bin/cat",
            "/greeting",
        ]);
        let said = Said::from(tokio::task::spawn_blocking(move || command.output()).await??);
        ensure!((said.code, said.out.as_str()) == (Some(0), text), "{said:?}");
    }

    // A name that is as it was written, the second time under another: nothing comes again.
    let said = Said::from(place.image(&["pull", &second]).output()?);
    ensure!(said.out.contains(&format!("--image {second} ")), "{said:?}");
    ensure!(place.registry.times_sent(&cat) + place.registry.times_sent(&two) == 2);
    let listed = Said::from(place.image(&["ls"]).output()?);
    ensure!(listed.out.contains(&second), "{listed:?}");
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_platforms_this_one_is_taken_and_a_digest_pins_it() -> anyhow::Result<()> {
    let Some(place) = Place::make().await? else { return Ok(()) };
    let registry = &place.registry;
    let here = registry.push("many:here", &[Layer::text("who", "here")]).await?;
    let there = registry.push_for("many:there", "s390x", &[Layer::text("who", "there")]).await?;
    let entry = |digest: &str, architecture: &str| {
        json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest,
            "size": 100, "platform": { "os": "linux", "architecture": architecture } })
    };
    let index = json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry(&there, "s390x"), entry(&here, machine())] });
    let index = registry.push_manifest("many", "all", &index).await?;
    place.pull_ok(&registry.reference("many:all"), "by-tag").await?;
    place.pull_ok(&registry.reference(&format!("many@{index}")), "by-digest").await?;
    ensure!(place.store().layers.len() == 1, "both are the same: {:?}", place.store());

    // The control: the other platform's alone, and an index that has nothing else.
    let only = json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry(&there, "s390x")] });
    registry.push_manifest("many", "only", &only).await?;
    let wanted = format!("linux/{}", machine());
    place.refused(&registry.reference("many:only"), &[&wanted, "only for linux/s390x"]).await?;
    place.refused(&registry.reference("many:there"), &["linux/s390x", &wanted]).await?;
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_is_asked_first_and_the_registry_when_it_has_nothing() -> anyhow::Result<()> {
    let Some(mut place) = Place::make().await? else { return Ok(()) };
    place.daemon.terminate().await?;
    let dead = sandbank_test_support::free_port()?;
    let mirrors = format!(
        "nowhere.invalid=127.0.0.1:{port},127.0.0.1:{port}=127.0.0.1:{dead}",
        port = place.registry.port
    );
    place.daemon.set("SANDBANK_IMAGE_MIRRORS", Some(&mirrors));
    place.daemon.launch().await?;
    place.registry.push("team/app:1", &[Layer::text("who", "the mirror")]).await?;
    // A registry that does not exist, whose mirror has it; one that has it, whose mirror is down.
    place.pull_ok("nowhere.invalid/team/app:1", "mirrored").await?;
    place.pull_ok(&place.registry.reference("team/app:1"), "direct").await?;
    place.daemon.finish().await
}

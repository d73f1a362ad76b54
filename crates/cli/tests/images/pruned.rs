//! Layers that nothing is made of any more go, and no others.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::layers::Layer;
use crate::place::{Place, Said};

fn cleared(said: &Said) -> anyhow::Result<(u64, u64)> {
    ensure!(said.code == Some(0), "{said:?}");
    let answer: Value = serde_json::from_str(&said.out)?;
    let number = |name: &str| answer[name].as_u64().unwrap_or(u64::MAX);
    Ok((number("freedLayers"), number("freedBytes")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_image_frees_what_no_other_has_and_says_how_much() -> anyhow::Result<()> {
    let Some(place) = Place::make().await? else { return Ok(()) };
    let (shared, own) = (Layer::noise("shared", 400_000, 1), Layer::noise("own", 900_000, 2));
    place.registry.push("one:1", std::slice::from_ref(&shared)).await?;
    place.registry.push("two:1", &[shared, own]).await?;
    place.pull_ok(&place.registry.reference("one:1"), "one").await?;
    place.pull_ok(&place.registry.reference("two:1"), "two").await?;
    let run = |words: &[&str]| anyhow::Ok(Said::from(place.image(words).output()?));
    ensure!(cleared(&run(&["prune", "--json"])?)? == (0, 0), "everything is needed");
    let (layers, bytes) = cleared(&run(&["rm", "two", "--json"])?)?;
    ensure!(layers == 1 && (900_000..1_100_000).contains(&bytes), "{layers} {bytes}");
    ensure!(place.store().layers.len() == 1, "{:?}", place.store());
    let (layers, _) = cleared(&run(&["rm", "one", "--json"])?)?;
    ensure!(layers == 1 && place.store().layers.is_empty(), "{:?}", place.store());
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_images_layers_stay_while_a_sandbox_may_use_them() -> anyhow::Result<()> {
    let Some(place) = Place::make().await? else { return Ok(()) };
    let (old, new) = (Layer::text("greeting", "old\n"), Layer::text("greeting", "new\n"));
    place.registry.push("app:1", &[Layer::cat(), old]).await?;
    let reference = place.registry.reference("app:1");
    place.pull_ok(&reference, "app").await?;
    let api = place.daemon.api()?;
    let body = json!({ "sessionKey": "user", "network": { "mode": "none" }, "image": "app" });
    let id = api.create_with(body).await?;
    place.registry.push("app:1", &[Layer::cat(), new]).await?;
    place.pull_ok(&reference, "app").await?;
    ensure!(place.store().layers.len() == 3, "{:?}", place.store());
    let prune = || anyhow::Ok(Said::from(place.image(&["prune", "--json"]).output()?));
    ensure!(cleared(&prune()?)?.0 == 0, "a sandbox is made of them");
    let argv = json!({ "argv": ["/usr/bin/cat", "/greeting"] });
    let command = api.start(&id, argv).await?;
    ensure!(api.wait(&id, &command).await? == 0);
    let refused = Said::from(place.image(&["rm", "app"]).output()?);
    ensure!(refused.code == Some(1) && refused.err.contains("in use"), "{refused:?}");
    api.stop(&id).await?;
    ensure!(cleared(&prune()?)?.0 == 1, "nobody is made of the old one");
    ensure!(place.store().layers.len() == 2, "{:?}", place.store());
    place.daemon.finish().await
}

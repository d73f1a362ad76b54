//! What is refused, with a next step, leaving nothing.

use anyhow::ensure;
use sandbank_test_support::{TestDaemon, free_port, literal_entry, literal_tar, skip_unless_root};
use serde_json::json;

use crate::layers::{Layer, configuration, digest, machine, manifest, put, saved};
use crate::place::{Place, SANDBANK, Said, Store};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_said_to_be_not_there() -> anyhow::Result<()> {
    let Some(place) = Place::make().await? else { return Ok(()) };
    place.registry.push("app:1", &[Layer::text("a", "a")]).await?;
    let missing = ["there is no 127.0.0.1:", "check the name and the tag"];
    place.refused(&place.registry.reference("app:2"), &missing).await?;
    place.refused(&place.registry.reference("other:1"), &missing).await?;
    let zeros = format!("app@sha256:{}", "0".repeat(64));
    place.refused(&place.registry.reference(&zeros), &missing).await?;
    let nobody = format!("127.0.0.1:{}/app:1", free_port()?);
    place.refused(&nobody, &["cannot be reached", "refused", "check the name"]).await?;
    place.pull_ok(&place.registry.reference("app:1"), "app").await?;
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_layers_manifests_and_configurations_are_refused() -> anyhow::Result<()> {
    let Some(place) = Place::make().await? else { return Ok(()) };
    let registry = &place.registry;
    let good = Layer::text("good", "good");
    let bad = Layer::noise("bad", 300_000, 7);
    let pinned = registry.push("app:1", &[good.clone(), bad.clone()]).await?;
    registry.push("control:1", std::slice::from_ref(&good)).await?;
    let reference = registry.reference("app:1");
    let damaged = ["not sha256:", "do not use it"];

    let spoil = |digest: &str, at: usize| -> anyhow::Result<Vec<u8>> {
        let (file, content) =
            (registry.blob_file(digest), std::fs::read(registry.blob_file(digest))?);
        let mut spoilt = content.clone();
        spoilt[at] ^= 1;
        std::fs::write(file, spoilt)?;
        Ok(content)
    };
    let whole = spoil(&bad.digest(), 150_000)?;
    place.refused(&reference, &damaged).await?;
    std::fs::write(registry.blob_file(&bad.digest()), &whole[..100_000])?;
    place.refused(&reference, &["100000", "not"]).await?;
    std::fs::write(registry.blob_file(&bad.digest()), [whole.as_slice(), b"more"].concat())?;
    place.refused(&reference, &["more bytes, not"]).await?;
    std::fs::write(registry.blob_file(&bad.digest()), &whole)?;

    let config = configuration(machine(), &[good.clone(), bad.clone()]);
    let whole = spoil(&digest(&config), 20)?;
    place.refused(&reference, &["the configuration is sha256:", damaged[1]]).await?;
    std::fs::write(registry.blob_file(&digest(&config)), &whole)?;
    let whole = spoil(&pinned, 20)?;
    place.refused(&registry.reference(&format!("app@{pinned}")), &["hint"]).await?;
    std::fs::write(registry.blob_file(&pinned), &whole)?;

    // One that is what its manifest says and not what its configuration says.
    let lying = configuration(machine(), &[good.clone(), Layer::text("other", "layer")]);
    registry.push_blob("app", &lying).await?;
    registry.push_manifest("app", "lying", &manifest(&lying, &[good, bad])).await?;
    place.refused(&registry.reference("app:lying"), &["a layer is", "as its image says"]).await?;

    place.pull_ok(&reference, "app").await?;
    place.pull_ok(&registry.reference("control:1"), "control").await?;
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn layers_that_reach_outside_are_refused_and_touch_nothing() -> anyhow::Result<()> {
    let Some(place) = Place::make().await? else { return Ok(()) };
    let outside = tempfile::tempdir()?;
    let canary = outside.path().join("canary");
    std::fs::write(&canary, "untouched")?;
    let target = canary.to_str().unwrap();
    use tar::EntryType::{Link, Regular, Symlink};
    let up = format!("{}{target}", "../".repeat(20));
    let cases = [
        ("up", vec![literal_entry(Regular, &up, "", b"spoilt")], "leads out"),
        (
            "through",
            vec![
                literal_entry(Symlink, "way", outside.path().to_str().unwrap(), b""),
                literal_entry(Regular, "way/canary", "", b"spoilt"),
            ],
            "leads through",
        ),
        (
            "hard",
            vec![
                literal_entry(Link, "mine", target, b""),
                literal_entry(Regular, "mine", "", b"spoilt"),
            ],
            "hard link",
        ),
        // Of the directory above.
        ("whiteout", vec![literal_entry(Regular, "way/.wh...", "", b"")], "a whiteout has no name"),
    ];
    for (name, entries, word) in cases {
        place.registry.push(&format!("{name}:1"), &[Layer::of(literal_tar(&entries))]).await?;
        let reference = place.registry.reference(&format!("{name}:1"));
        place.refused(&reference, &["not usable", word]).await?;
        ensure!(std::fs::read_to_string(&canary)? == "untouched", "{name}");
    }
    let honest = Layer::new(|tar| put(tar, "way/canary", b"inside", 0o644));
    place.registry.push("honest:1", &[honest]).await?;
    place.pull_ok(&place.registry.reference("honest:1"), "honest").await?;
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_image_or_has_no_usable_name_is_refused() -> anyhow::Result<()> {
    let Some(place) = Place::make().await? else { return Ok(()) };
    let layer = Layer::text("a", "a");
    place.registry.push("app:1", std::slice::from_ref(&layer)).await?;
    let config = configuration(machine(), std::slice::from_ref(&layer));
    let mut chart = manifest(&config, &[layer]);
    chart["config"]["mediaType"] = "application/vnd.cncf.helm.config.v1+json".into();
    place.registry.push_manifest("app", "chart", &chart).await?;
    place
        .refused(&place.registry.reference("app:chart"), &["no container image", "choose another"])
        .await?;

    // Over HTTP, as no command line would write it.
    let api = place.daemon.api()?;
    let good = place.registry.reference("app:1");
    let before = place.store();
    for (body, code) in [
        (json!({ "reference": "a b", "name": "x" }), "not_pulled"),
        (json!({ "reference": "http://127.0.0.1/a", "name": "x" }), "not_pulled"),
        (json!({ "reference": "../a", "name": "x" }), "not_pulled"),
        (json!({ "reference": good, "name": "host" }), "bad_image"),
        (json!({ "reference": good, "name": "../x" }), "invalid_image"),
        (json!({ "reference": good, "username": "me" }), "invalid_credentials"),
    ] {
        let (status, answer) = api.try_call("POST", "/v1/images:pull", Some(body.clone())).await?;
        ensure!(status >= 400 && answer["code"] == code, "{body}: {status} {answer}");
    }
    place.unchanged(&before).await?;
    place.pull_ok(&good, "app").await?;
    place.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_room_is_noticed_before_the_first_layer() -> anyhow::Result<()> {
    let Some(mut place) = Place::make().await? else { return Ok(()) };
    let layer = Layer::noise("a", 200_000, 3);
    place.registry.push("app:1", std::slice::from_ref(&layer)).await?;
    place.daemon.terminate().await?;
    let images = place.daemon.data_dir().join("images");
    let small = SmallDisk::over(&images)?;
    place.daemon.launch().await?;
    place
        .refused(&place.registry.reference("app:1"), &["no storage left", "free some space"])
        .await?;
    ensure!(place.registry.times_sent(&layer) == 0, "it was downloaded all the same");
    place.daemon.terminate().await?;
    drop(small);
    place.daemon.launch().await?;
    place.pull_ok(&place.registry.reference("app:1"), "app").await?;
    place.daemon.finish().await
}

/// A file system in memory, smaller than the room that imports leave free.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn over(path: &std::path::Path) -> anyhow::Result<Self> {
        let mut mount = std::process::Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(path).status()?;
        ensure!(mounted.success());
        Ok(Self(path.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_for_another_machine_is_refused_with_where_it_belongs() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let place = tempfile::tempdir()?;
    let path = place.path().join("archive.tar");
    let import =
        || anyhow::Ok(Said::from(daemon.cli().args(["image", "import", "a"]).arg(&path).output()?));
    let layer = Layer::text("usr/small", "x");
    let other = if machine() == "amd64" { "arm64" } else { "amd64" };
    let before = Store::of(&daemon);
    std::fs::write(&path, saved(other, &layer))?;
    let said = import()?;
    ensure!(said.code.is_some_and(|code| code != 0 && code != 101), "{said:?}");
    let why = format!("it is for linux/{other}, not for linux/{}: import it on such a", machine());
    ensure!(said.err.contains(&why) && said.err.contains("hint: "), "{said:?}");
    ensure!(Store::of(&daemon) == before, "{:?}", Store::of(&daemon));
    std::fs::write(&path, saved(machine(), &layer))?;
    let said = import()?;
    ensure!(said.code == Some(0), "{said:?}\n{}", daemon.log_tail());
    daemon.finish().await
}

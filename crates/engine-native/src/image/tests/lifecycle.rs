//! Sharing, removing, replacing, crashing.

use sandbank_engine::{EngineError, ImageName};

use super::archives::{Saved, Tar, sha256, small_root};
use super::{Fixture, ImageStore, image};

fn layer(name: &str) -> Vec<u8> {
    Tar::new().file(&format!("usr/{name}"), name.as_bytes()).finish()
}

const FREE: &dyn Fn(&ImageName) -> bool = &|_| false;

#[test]
fn layers_are_shared_and_freed_with_their_last_image() {
    let fixture = Fixture::new();
    let (base, one, two) = (layer("base"), layer("one"), layer("two"));
    fixture.import("one", Saved::of(&[&base, &one]).docker()).unwrap();
    fixture.import("two:v1", Saved::of(&[&base, &two]).oci()).unwrap();
    assert_eq!(fixture.names_in("layers").len(), 3);
    let names: Vec<String> =
        fixture.store.list().iter().map(|info| info.name.to_string()).collect();
    assert_eq!(names, ["host", "one", "two:v1"]);

    fixture.store.remove(&image("one"), FREE).unwrap();
    let mut left = vec![sha256(&base), sha256(&two)];
    left.sort();
    assert_eq!(fixture.names_in("layers"), left);
    assert_eq!(fixture.resolve("two:v1").lower.len(), 3);
    fixture.store.remove(&image("two:v1"), FREE).unwrap();
    fixture.assert_clean("all removed");
    let error = fixture.store.remove(&image("one"), FREE);
    assert!(matches!(error, Err(EngineError::ImageNotFound(_))), "{error:?}");
    let error = fixture.store.resolve(&image("one"));
    assert!(matches!(error, Err(EngineError::ImageNotFound(_))), "{error:?}");
}

#[test]
fn an_image_in_use_and_the_host_stay() {
    let fixture = Fixture::new();
    fixture.import("used", small_root()).unwrap();
    let error = fixture.store.remove(&image("used"), &|name| *name == image("used"));
    assert!(matches!(error, Err(EngineError::ImageInUse(_))), "{error:?}");
    assert_eq!(fixture.resolve("used").lower.len(), 2);
    let error = fixture.store.remove(&ImageName::host(), FREE);
    assert!(matches!(error, Err(EngineError::ImageInUse(_))), "{error:?}");
    let error = fixture.import("host", small_root());
    assert!(matches!(error, Err(EngineError::BadImage(_))), "{error:?}");
}

/// Machines run from the old layers on; they go with the name, or with the next boot.
#[test]
fn a_replaced_image_keeps_its_layers_until_the_name_is_free() {
    let fixture = Fixture::new();
    let (old, new) = (layer("old"), layer("new"));
    fixture.import("name", Saved::of(&[&old]).docker()).unwrap();
    let before = fixture.resolve("name");
    fixture.import("name", Saved::of(&[&new]).docker()).unwrap();
    assert_ne!(fixture.resolve("name").lower, before.lower);
    assert!(before.lower.iter().all(|path| path.is_dir()));

    let dir = fixture.dir.path().join("images");
    let reopened = ImageStore::open(&dir).unwrap();
    assert!(before.lower.iter().all(|path| path.is_dir()), "a restart is no reboot");
    drop(reopened);
    std::fs::write(dir.join("boot"), "another boot").unwrap();
    let store = ImageStore::open(&dir).unwrap();
    assert_eq!(fixture.names_in("layers"), [sha256(&new)]);
    assert!(store.resolve(&image("name")).unwrap().lower.iter().all(|path| path.is_dir()));
    store.remove(&image("name"), FREE).unwrap();
    fixture.assert_clean("removed");
}

#[test]
fn importing_the_same_again_changes_nothing_on_disk() {
    let fixture = Fixture::new();
    fixture.import("same", small_root()).unwrap();
    let before = fixture.names_in("layers");
    fixture.import("same", small_root()).unwrap();
    assert_eq!(fixture.names_in("layers"), before);
    assert_eq!(fixture.names_in("replaced"), [""; 0]);
}

#[test]
fn what_a_crash_left_goes_at_the_next_open() {
    let fixture = Fixture::new();
    fixture.import("kept", small_root()).unwrap();
    let dir = fixture.dir.path().join("images");
    for leftover in ["work/sbaaaaaaaaaaaaaaaa/0/usr", "layers/0000/usr", "skeletons/0000/etc"] {
        std::fs::create_dir_all(dir.join(leftover)).unwrap();
    }
    std::fs::write(dir.join("names/.kept.json.new"), "half a rec").unwrap();
    // Half of a layer, in the very place where the next import puts it.
    let other = layer("other");
    std::fs::create_dir_all(dir.join("layers").join(sha256(&other)).join("usr/half")).unwrap();
    let store = ImageStore::open(&dir).unwrap();
    assert_eq!(fixture.names_in("work"), [""; 0]);
    assert_eq!(fixture.names_in("layers").len(), 1);
    assert!(store.resolve(&image("kept")).unwrap().lower.iter().all(|path| path.is_dir()));
}

#[test]
fn a_second_opener_leaves_an_import_in_progress_alone() {
    let fixture = Fixture::new();
    let archive = fixture.dir.path().join("large.tar");
    let large = small_root().file("usr/large", &vec![7; 4 << 20]).finish();
    std::fs::write(&archive, super::archives::gzip(&large)).unwrap();
    let dir = fixture.dir.path().join("images");
    let opened = std::cell::Cell::new(0);
    let progress = |_| {
        ImageStore::open(&dir).unwrap();
        opened.set(opened.get() + 1);
    };
    fixture.store.import(&image("large"), &archive, &progress).unwrap();
    assert!(opened.get() >= 2);
    let lower = fixture.resolve("large").lower;
    assert_eq!(std::fs::metadata(lower[1].join("usr/large")).unwrap().len(), 4 << 20);
    ImageStore::open(&dir).unwrap();
    assert!(lower[1].join("usr/large").exists());
}

#[test]
fn a_failed_import_keeps_the_image_that_had_the_name() {
    let fixture = Fixture::new();
    fixture.import("name", Saved::of(&[&layer("good")]).docker()).unwrap();
    let before = fixture.resolve("name");
    let mut bad = Saved::of(&[&layer("new"), &layer("bad")]);
    bad.diff_ids[1] = format!("sha256:{:064}", 1);
    assert!(fixture.import("name", bad.docker()).is_err());
    assert_eq!(fixture.resolve("name"), before);
    assert_eq!(fixture.names_in("layers").len(), 1);
    assert_eq!(fixture.names_in("work"), [""; 0]);
}

#[test]
fn a_damaged_record_stops_the_store_from_freeing_its_layers() {
    let fixture = Fixture::new();
    fixture.import("kept", small_root()).unwrap();
    let dir = fixture.dir.path().join("images");
    std::fs::write(dir.join("names/kept.json"), "{").unwrap();
    let error = ImageStore::open(&dir).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("kept.json"), "{error}");
    assert_eq!(fixture.names_in("layers").len(), 1);
}

#[test]
fn names_with_paths_and_tags_do_not_meet() {
    let fixture = Fixture::new();
    for name in ["a/b", "a.b", "a:b", "a/b:c"] {
        fixture.import(name, Saved::of(&[&layer(name)]).docker()).unwrap();
    }
    assert_eq!(fixture.store.list().len(), 5);
    for name in ["a/b", "a.b", "a:b", "a/b:c"] {
        let lower = fixture.resolve(name).lower;
        assert!(lower[1].join("usr").join(name).exists(), "{name}");
    }
}

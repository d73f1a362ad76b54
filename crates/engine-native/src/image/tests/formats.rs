//! What can be imported, and what comes out.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use sandbank_engine::EngineError;
use tar::EntryType;

use super::archives::{Saved, Tar, gzip, sha256, small_root, zstd};
use super::{Fixture, in_root};

#[test]
fn a_root_file_system_is_one_layer_however_it_is_compressed() {
    let fixture = Fixture::new();
    let plain = small_root().finish();
    let stored = [("plain", plain.clone()), ("gzip", gzip(&plain)), ("zstd", zstd(&plain))];
    for (name, archive) in stored {
        let info = fixture.import_bytes(name, &archive).unwrap();
        assert_eq!(info.digest, Some(format!("sha256:{}", sha256(&plain))), "{name}");
        assert_eq!(info.layers, 1);
    }
    assert_eq!(fixture.names_in("layers"), [sha256(&plain)]);
    in_root(&fixture.resolve("gzip"), |root| {
        assert_eq!(root.read("bin/tool"), "#!/bin/sh\n");
        let mode = std::fs::metadata(root.path("bin/tool")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        let passwd = root.read("etc/passwd");
        assert!(
            passwd.contains("user:x:1000:1000:") && passwd.contains("node:x:1000:"),
            "{passwd}"
        );
    });
}

#[test]
fn owners_modes_times_and_links_are_kept() {
    let fixture = Fixture::new();
    let tar = Tar::new()
        .changed(EntryType::Regular, "usr/data", b"abc", |header| {
            header.set_uid(33);
            header.set_gid(44);
            header.set_mode(0o640);
        })
        .hardlink("usr/same", "usr/data")
        .link("usr/link", "/etc/passwd")
        .changed(EntryType::Regular, "usr/foreign", b"", |header| header.set_uid(1 << 20))
        .changed(EntryType::Directory, "usr/sticky", b"", |header| header.set_mode(0o1777));
    fixture.import("kept", tar).unwrap();
    in_root(&fixture.resolve("kept"), |root| {
        let stat = std::fs::metadata(root.path("usr/data")).unwrap();
        assert_eq!((stat.uid(), stat.gid(), stat.mode() & 0o7777), (33, 44, 0o640));
        assert_eq!(stat.mtime(), 1_700_000_000);
        assert_eq!(stat.nlink(), 2);
        assert_eq!(root.read("usr/same"), "abc");
        let target = std::fs::read_link(root.path("usr/link")).unwrap();
        assert_eq!(target, std::path::Path::new("/etc/passwd"));
        assert_eq!(std::fs::metadata(root.path("usr/foreign")).unwrap().uid(), 65534);
        let sticky = std::fs::metadata(root.path("usr/sticky")).unwrap();
        assert_eq!(sticky.mode() & 0o7777, 0o1777);
    });
}

#[test]
fn long_names_work_in_both_spellings() {
    let fixture = Fixture::new();
    let deep = format!("usr/{}", "d/".repeat(60));
    let (gnu, pax) = (format!("{deep}gnu"), format!("{deep}pax"));
    let mut long = super::archives::header(EntryType::GNULongName, b"x", gnu.len() as u64 + 1);
    long.set_cksum();
    let tar = Tar::new()
        .raw(&long, format!("{gnu}\0").as_bytes())
        .file("cut", b"gnu")
        .pax(&[("path", &pax), ("mtime", "1700000001.5"), ("comment", "two\nlines")])
        .file("cut", b"pax");
    fixture.import("long", tar).unwrap();
    in_root(&fixture.resolve("long"), |root| {
        assert_eq!((root.read(&gnu), root.read(&pax)), ("gnu".to_owned(), "pax".to_owned()));
        assert_eq!(std::fs::metadata(root.path(&pax)).unwrap().mtime(), 1_700_000_001);
        assert!(!root.path("cut").exists());
    });
}

fn layered() -> (Vec<u8>, Vec<u8>) {
    let bottom = Tar::new()
        .dir("usr")
        .dir("usr/gone")
        .file("usr/gone/file", b"old")
        .dir("usr/fresh")
        .file("usr/fresh/old", b"old")
        .dir("usr/remade")
        .file("usr/remade/old", b"old")
        .file("usr/removed", b"old")
        .file("usr/kept", b"old")
        .file("usr/changed", b"old")
        .finish();
    let top = Tar::new()
        .dir("usr")
        .file("usr/.wh.gone", b"")
        .file("usr/.wh.removed", b"")
        .file("usr/.wh.remade", b"")
        .dir("usr/remade")
        .file("usr/remade/new", b"new")
        .dir("usr/fresh")
        .file("usr/fresh/new", b"new")
        .file("usr/fresh/.wh..wh..opq", b"")
        .file("usr/.wh..wh.aufs", b"")
        .file("usr/changed", b"new")
        .finish();
    (bottom, top)
}

fn assert_layered(fixture: &Fixture, name: &str) {
    in_root(&fixture.resolve(name), |root| {
        assert_eq!(root.read("usr/kept"), "old");
        assert_eq!(root.read("usr/changed"), "new");
        assert_eq!(root.read("usr/fresh/new"), "new");
        assert_eq!(root.read("usr/remade/new"), "new");
        for gone in ["usr/gone", "usr/removed", "usr/fresh/old", "usr/remade/old"] {
            assert!(!root.path(gone).exists(), "{gone} is still there");
        }
        let names: Vec<_> = std::fs::read_dir(root.path("usr"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(!names.iter().any(|name| name.starts_with(".wh.")), "{names:?}");
    });
}

#[test]
fn a_docker_save_archive_keeps_its_whiteouts_and_environment() {
    let fixture = Fixture::new();
    let (bottom, top) = layered();
    // The same layer twice, as empty layers are; also the whole archive compressed.
    let saved = Saved::of(&[&bottom, &top, &bottom, &top]).docker().finish();
    for (name, archive) in [("plain", saved.clone()), ("small", gzip(&saved))] {
        let info = fixture.import_bytes(name, &archive).unwrap();
        assert_eq!(info.layers, 4);
        assert_layered(&fixture, name);
    }
    let resolved = fixture.resolve("plain");
    assert_eq!(resolved.lower.len(), 3, "a layer is stacked once");
    assert_eq!(resolved.env["PATH"], "/opt/bin:/usr/bin:/bin");
    assert_eq!(resolved.env.len(), 2, "{:?}", resolved.env);
}

#[test]
fn an_oci_layout_with_several_platforms_gives_ours() {
    let fixture = Fixture::new();
    let (bottom, top) = layered();
    let mut saved = Saved::of(&[&bottom, &top]);
    saved.layers = vec![gzip(&bottom), zstd(&top)];
    let info = fixture.import("oci", saved.oci()).unwrap();
    assert_eq!(info.layers, 2);
    assert_layered(&fixture, "oci");
}

#[test]
fn progress_ends_at_its_total() {
    let fixture = Fixture::new();
    let archive = fixture.outside().join("../large.tar");
    let large = small_root().file("usr/large", &vec![7; 5 << 20]).finish();
    std::fs::write(&archive, gzip(&large)).unwrap();
    let seen = std::cell::RefCell::new(Vec::new());
    fixture.store.import(&super::image("p"), &archive, &|p| seen.borrow_mut().push(p)).unwrap();
    let seen = seen.into_inner();
    assert!(seen.is_sorted_by_key(|progress| progress.bytes_done), "{seen:?}");
    let last = seen.last().unwrap();
    assert_eq!(last.bytes_done, last.bytes_total);
}

#[test]
fn archives_that_are_none_are_refused_and_leave_nothing() {
    let fixture = Fixture::new();
    let root = small_root().finish();
    let packed = gzip(&root);
    let mut flipped = packed.clone();
    let middle = flipped.len() - 6;
    flipped[middle] ^= 0xff;
    let zstd_packed = zstd(&root);
    let cases: [(&str, &[u8]); 13] = [
        ("empty", b""),
        ("text", b"this is not an archive"),
        ("zeroes", &[0; 4096]),
        ("without end", &small_root().unfinished()),
        ("cut in a header", &root[..700]),
        ("cut in a file", &root[..root.len() - 1024 - 512]),
        ("cut gzip", &packed[..packed.len() / 2]),
        ("damaged gzip", &flipped),
        ("empty gzip", &gzip(b"")),
        ("cut zstd", &zstd_packed[..zstd_packed.len() / 2]),
        ("xz", b"\xfd7zXZ\0more"),
        ("bzip2", b"BZh9more"),
        ("only a header of gzip", &packed[..5]),
    ];
    for (what, archive) in cases {
        fixture.assert_refused(what, archive);
    }
    let missing = fixture.outside().join("nothing-here");
    let error = fixture.store.import(&super::image("x"), &missing, &|_| {});
    assert!(matches!(error, Err(EngineError::BadImage(_))), "{error:?}");
    let directory = fixture.outside();
    let error = fixture.store.import(&super::image("x"), &directory, &|_| {});
    assert!(matches!(error, Err(EngineError::BadImage(_))), "{error:?}");
    fixture.assert_clean("missing archives");
}

#[test]
fn images_that_contradict_themselves_are_refused() {
    let fixture = Fixture::new();
    let (bottom, top) = layered();
    let mut swapped = Saved::of(&[&bottom, &top]);
    swapped.diff_ids.swap(0, 1);
    let mut fewer = Saved::of(&[&bottom, &top]);
    fewer.diff_ids.pop();
    let mut cut = Saved::of(&[&bottom]);
    cut.layers[0].truncate(1024);
    let mut none = Saved::of(&[]);
    none.layers.clear();
    for (what, saved) in [("swapped", &swapped), ("fewer", &fewer), ("cut", &cut), ("none", &none)]
    {
        fixture.assert_refused(what, &saved.docker().finish());
        fixture.assert_refused(what, &saved.oci().finish());
    }
    let gone = Tar::new()
        .file("manifest.json", br#"[{"Config":"missing.json","Layers":["../../etc/passwd"]}]"#);
    fixture.assert_refused("missing configuration", &gone.finish());
    let two = br#"[{"Config":"a","Layers":[]},{"Config":"b","Layers":[]}]"#;
    let reason =
        fixture.assert_refused("two images", &Tar::new().file("manifest.json", two).finish());
    assert!(reason.contains("2 images"), "{reason}");
    fixture.assert_refused("no JSON", &Tar::new().file("manifest.json", b"{").finish());
}

#[test]
fn images_for_another_machine_are_refused() {
    let fixture = Fixture::new();
    let (bottom, _) = layered();
    let mut saved = Saved::of(&[&bottom]);
    saved.architecture = "s390x";
    let reason = fixture.assert_refused("docker", &saved.docker().finish());
    assert!(reason.contains("s390x"), "{reason}");
    let reason = fixture.assert_refused("oci", &saved.oci().finish());
    assert!(reason.contains("no image for linux/"), "{reason}");

    let mut program = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x16\0more".to_vec();
    let shell = |program: &[u8]| {
        Tar::new()
            .link("bin", "usr/bin")
            .program("usr/bin/dash", program)
            .link("usr/bin/sh", "dash")
    };
    let reason = fixture.assert_refused("elf", &shell(&program).finish());
    assert!(reason.contains("s390x"), "{reason}");
    program[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    fixture.import("own", shell(&program)).unwrap();
}

#[test]
fn an_owner_that_is_left_blank_is_root() {
    let fixture = Fixture::new();
    let mut blank = super::archives::header(EntryType::Regular, b"usr/file", 0);
    blank.as_mut_bytes()[108..124].fill(0);
    blank.set_cksum();
    let mut archive = blank.as_bytes().to_vec();
    archive.resize(archive.len() + 1024, 0);
    let image = fixture.import_bytes("blank", &archive).unwrap();
    assert_eq!(image.layers, 1);
    let layer = fixture.store.dir.join("layers").join(sha256(&archive)).join("usr/file");
    let file = std::fs::metadata(layer).unwrap();
    assert_eq!((file.uid(), file.gid()), (0, 0));
}

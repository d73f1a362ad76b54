//! Archives that try to get out, to confuse, or to fill the disk. Each has an honest twin among
//! the formats.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use tar::EntryType;

use super::archives::{Saved, Tar, gzip, header, sha256, zstd};
use super::{Fixture, ImportLimits, in_root, is_link};

#[test]
fn names_that_lead_out_are_refused() {
    let fixture = Fixture::new();
    let outside = fixture.outside();
    let up = format!("{}{}/canary", "../".repeat(40), outside.display());
    for path in ["../canary", "usr/../../outside/canary", "..", "usr/..", &up] {
        let archive = Tar::new().pax(&[("path", path)]).file("x", b"x").finish();
        let reason = fixture.assert_refused(path, &archive);
        assert!(reason.contains("out of the image"), "{path}: {reason}");
    }
}

#[test]
fn absolute_names_stay_inside() {
    let fixture = Fixture::new();
    let path = fixture.outside().join("canary");
    fixture.import("absolute", Tar::new().file(path.to_str().unwrap(), b"overwritten")).unwrap();
    fixture.assert_canary("absolute");
    let inside = fixture.resolve("absolute").lower[1].join(path.strip_prefix("/").unwrap());
    assert_eq!(std::fs::read_to_string(inside).unwrap(), "overwritten");
}

#[test]
fn no_entry_goes_through_a_link() {
    let fixture = Fixture::new();
    let outside = fixture.outside();
    let target = outside.to_str().unwrap();
    let cases = [
        ("file", Tar::new().link("usr", target).file("usr/canary", b"overwritten")),
        ("deep", Tar::new().link("usr", target).file("usr/a/b", b"x")),
        ("dir", Tar::new().link("usr", target).dir("usr/new")),
        ("link", Tar::new().link("usr", target).link("usr/new", "/")),
        ("chain", Tar::new().link("a", target).link("usr", "a").file("usr/canary", b"x")),
        ("inside", Tar::new().dir("bin").link("usr", "bin").file("usr/x", b"x")),
        ("whiteout", Tar::new().link("usr", target).file("usr/.wh.canary", b"")),
        ("opaque", Tar::new().link("usr", target).file("usr/.wh..wh..opq", b"")),
        ("hardlink from", Tar::new().link("usr", target).hardlink("copy", "usr/canary")),
        ("hardlink out", Tar::new().hardlink("copy", &format!("../../../{target}/canary"))),
        ("hardlink nowhere", Tar::new().hardlink("copy", target)),
        ("hardlink to itself", Tar::new().file("a", b"x").hardlink("a", "a")),
        ("hardlink into what it replaces", Tar::new().file("a/b", b"x").hardlink("a", "a/b")),
        ("hardlink to a directory", Tar::new().dir("usr").hardlink("copy", "usr")),
        ("through a file", Tar::new().file("usr", b"x").file("usr/x", b"x")),
    ];
    for (what, tar) in cases {
        fixture.assert_refused(what, &tar.finish());
    }
}

/// A later entry takes the place of the link itself, never of what the link points to.
#[test]
fn entries_in_place_of_a_link_replace_the_link() {
    let fixture = Fixture::new();
    let outside = fixture.outside();
    let target = outside.to_str().unwrap();
    let canary = format!("{target}/canary");
    let setuid = |header: &mut tar::Header| header.set_mode(0o6777);
    let tar = Tar::new()
        .link("usr/dir", target)
        .changed(EntryType::Directory, "usr/dir", b"", |header| header.set_mode(0o777))
        .file("usr/dir/new", b"x")
        .link("usr/file", &canary)
        .changed(EntryType::Regular, "usr/file", b"own", setuid)
        .link("usr/linked", &canary)
        .hardlink("usr/second", "usr/linked")
        .changed(EntryType::Regular, "usr/second", b"own", setuid)
        .file("usr/tree/of/files", b"x")
        .link("usr/tree", target);
    fixture.import("replaced", tar).unwrap();
    fixture.assert_canary("replaced");
    in_root(&fixture.resolve("replaced"), |root| {
        assert!(!is_link(&root.path("usr/dir")) && root.path("usr/dir/new").exists());
        assert_eq!(root.read("usr/file"), "own");
        assert_eq!(root.read("usr/second"), "own");
        assert!(is_link(&root.path("usr/linked")) && is_link(&root.path("usr/tree")));
    });
}

#[test]
fn set_id_bits_devices_pipes_and_attributes_do_not_come_in() {
    let fixture = Fixture::new();
    let device = |kind: EntryType, path: &'static str| {
        move |tar: Tar| {
            tar.changed(kind, path, b"", |header| {
                header.set_device_major(1).unwrap();
                header.set_device_minor(5).unwrap();
            })
        }
    };
    let tar = Tar::new()
        .changed(EntryType::Regular, "usr/suid", b"x", |header| header.set_mode(0o6755))
        .changed(EntryType::Directory, "usr/sgid", b"", |header| header.set_mode(0o6755))
        .pax(&[("SCHILY.xattr.trusted.overlay.opaque", "y"), ("SCHILY.xattr.user.a", "b")])
        .dir("usr/marked")
        .pax(&[("SCHILY.xattr.trusted.overlay.redirect", "/etc")])
        .dir("usr/redirected");
    let tar = device(EntryType::Block, "usr/block")(device(EntryType::Char, "usr/char")(tar));
    let tar = device(EntryType::Fifo, "usr/fifo")(tar);
    // A device 0:0 would be a whiteout.
    let tar = tar.changed(EntryType::Char, "usr/suid-gone", b"", |header| {
        header.set_device_major(0).unwrap();
        header.set_device_minor(0).unwrap();
    });
    fixture.import("bits", tar).unwrap();
    in_root(&fixture.resolve("bits"), |root| {
        for path in ["usr/suid", "usr/sgid"] {
            let mode = std::fs::metadata(root.path(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o755, "{path}");
        }
        for entry in std::fs::read_dir(root.path("usr")).unwrap() {
            let kind = entry.unwrap().file_type().unwrap();
            assert!(!kind.is_char_device() && !kind.is_block_device() && !kind.is_fifo());
        }
    });
    let layer = &fixture.resolve("bits").lower[1];
    for dir in ["usr/marked", "usr/redirected"] {
        let mut list = [0; 256];
        let fd = std::fs::File::open(layer.join(dir)).unwrap();
        let length = rustix::fs::flistxattr(&fd, &mut list[..]).unwrap();
        assert_eq!(length, 0, "{dir} has attributes");
    }
}

#[test]
fn two_readers_cannot_see_two_archives() {
    let fixture = Fixture::new();
    let inner = Tar::new().file("usr/smuggled", b"x").finish();
    let sized = |pax: &str, ustar: u64, content: &[u8]| {
        Tar::new()
            .pax(&[("size", pax)])
            .raw(&header(EntryType::Regular, b"usr/file", ustar), content)
            .finish()
    };
    let broken_length = header(EntryType::XHeader, b"pax", 12);
    let cases = [
        ("smaller in PAX", sized("0", inner.len() as u64, &inner)),
        ("larger in PAX", sized(&inner.len().to_string(), 0, &inner)),
        ("no number", sized("12x", 12, b"hello worldx")),
        ("negative", sized("-1", 0, b"")),
        ("two sizes", Tar::new().pax(&[("size", "0"), ("size", "1")]).file("usr/x", b"").finish()),
        ("two names", Tar::new().pax(&[("path", "a"), ("path", "b")]).file("usr/x", b"").finish()),
        (
            "two PAX headers",
            Tar::new().pax(&[("path", "a")]).pax(&[("path", "b")]).file("x", b"").finish(),
        ),
        (
            "wrong record length",
            Tar::new().raw(&broken_length, b"99 path=a/b\n").file("usr/x", b"").finish(),
        ),
        (
            "a directory with content",
            Tar::new().raw(&header(EntryType::Directory, b"usr", 512), &[1; 512]).finish(),
        ),
        (
            "a link with content",
            Tar::new().raw(&header(EntryType::Link, b"usr/x", 1024), &inner[..1024]).finish(),
        ),
        ("an unknown type", Tar::new().raw(&header(EntryType::new(b'D'), b"usr", 0), b"").finish()),
        ("a sparse file", Tar::new().raw(&header(EntryType::GNUSparse, b"usr/x", 0), b"").finish()),
        (
            "a PAX sparse file",
            Tar::new().pax(&[("GNU.sparse.major", "1")]).file("usr/x", b"").finish(),
        ),
        ("a name for nothing", Tar::new().file("usr/x", b"").pax(&[("path", "b")]).finish()),
        ("a NUL in a name", Tar::new().pax(&[("path", "usr/a\0b")]).file("x", b"").finish()),
        ("a wrong checksum", {
            let mut archive = Tar::new().file("usr/x", b"").finish();
            archive[0] ^= 1;
            archive
        }),
    ];
    for (what, archive) in cases {
        fixture.assert_refused(what, &archive);
    }
    // The honest twins.
    fixture.import_bytes("honest", &sized("5", 5, b"hello")).unwrap();
}

#[test]
fn the_last_of_two_entries_with_one_name_wins() {
    let fixture = Fixture::new();
    let tar = Tar::new()
        .file("usr/a", b"first")
        .file("./usr//a", b"second")
        .file("usr/b", b"file")
        .dir("usr/b")
        .file("usr/b/c", b"in a directory");
    fixture.import("twice", tar).unwrap();
    in_root(&fixture.resolve("twice"), |root| {
        assert_eq!(root.read("usr/a"), "second");
        assert_eq!(root.read("usr/b/c"), "in a directory");
    });
}

#[test]
fn depth_and_names_are_limited() {
    let fixture = Fixture::new();
    let named = |path: &str| Tar::new().pax(&[("path", path)]).file("x", b"").finish();
    fixture.assert_refused("5000 deep", &named(&"d/".repeat(5000)));
    fixture.assert_refused("300 deep", &named(&"d/".repeat(300)));
    fixture.assert_refused("a long name", &named(&format!("usr/{}", "n".repeat(256))));
    fixture.assert_refused("a long path", &named(&"name/".repeat(900)));
    let large = header(EntryType::XHeader, b"pax", 2 << 20);
    let archive = Tar::new().raw(&large, &vec![b'x'; 2 << 20]).file("usr/x", b"").finish();
    let reason = fixture.assert_refused("a large extension", &archive);
    assert!(reason.contains("extension"), "{reason}");
    let claimed = header(EntryType::GNULongName, b"x", 1 << 40);
    fixture.assert_refused("a claimed extension", &Tar::new().raw(&claimed, b"").finish());
    let bare = format!("usr/{}", ".wh.");
    for whiteout in [bare.clone(), format!("{bare}."), format!("{bare}..")] {
        fixture.assert_refused(&whiteout, &Tar::new().file(&whiteout, b"").finish());
    }
}

#[test]
fn entries_and_bytes_are_limited_in_every_format() {
    let limits = ImportLimits { entries: 200, bytes: 1 << 20, layers: 3 };
    let fixture = Fixture::with_limits(limits);
    let many = (0..300).fold(Tar::new(), |tar, n| tar.file(&format!("usr/{n}"), b"")).finish();
    let same = (0..300).fold(Tar::new(), |tar, _| tar.file("usr/same", b"")).finish();
    let deep =
        (0..10).fold(Tar::new(), |tar, n| tar.file(&format!("usr/{n}/{}x", "d/".repeat(30)), b""));
    let large = Tar::new().file("usr/zeroes", &vec![0; 2 << 20]).finish();
    let behind = {
        let mut archive = Tar::new().file("usr/x", b"").finish();
        archive.resize(8 << 20, 0);
        archive
    };
    for (what, layer) in [("many", &many), ("same", &same), ("large", &large)] {
        fixture.assert_refused(what, layer);
        fixture.assert_refused(what, &gzip(layer));
        fixture.assert_refused(what, &zstd(layer));
        fixture.assert_refused(what, &Saved::of(&[layer]).docker().finish());
        let mut packed = Saved::of(&[layer]);
        packed.layers = vec![gzip(layer)];
        fixture.assert_refused(what, &packed.oci().finish());
    }
    fixture.assert_refused("parents made on the way", &deep.finish());
    let mut packed = Saved::of(&[&behind]);
    packed.layers = vec![zstd(&behind)];
    fixture.assert_refused("behind the end mark", &packed.docker().finish());
    let half = Tar::new().file("usr/half", &vec![1; 600 << 10]).finish();
    let other = Tar::new().file("usr/other", &vec![2; 600 << 10]).finish();
    fixture.assert_refused("together", &Saved::of(&[&half, &other]).docker().finish());
    let tiny = Tar::new().file("usr/x", b"").finish();
    fixture.assert_refused("layers", &Saved::of(&[&tiny, &half, &tiny, &tiny]).docker().finish());
    let claimed = Tar::new().raw(&header(EntryType::Regular, b"usr/x", 1 << 50), b"").finish();
    fixture.assert_refused("a claimed size", &claimed);
}

/// Ten gigabytes out of ten megabytes: stopped at the limit, not at the end.
#[test]
fn a_bomb_is_stopped_at_the_limit() {
    let fixture = Fixture::with_limits(ImportLimits { bytes: 4 << 20, ..ImportLimits::default() });
    let bomb = Tar::new().file("usr/zeroes", &vec![0; 64 << 20]).finish();
    let packed = zstd(&bomb);
    assert!(packed.len() < 64 << 10);
    let reason = fixture.assert_refused("bomb", &packed);
    assert!(reason.contains("more than"), "{reason}");
    // A bomb in a bomb is one file of one layer: nothing unpacks it twice.
    let nested = Tar::new().file("usr/bomb.tar.zst", &packed).finish();
    fixture.import_bytes("nested", &zstd(&nested)).unwrap();
}

/// T08: whatever an image has in the places the engine relies on, the skeleton is on top.
#[test]
fn links_in_place_of_our_directories_are_covered() {
    let fixture = Fixture::new();
    let outside = fixture.outside();
    let outside = outside.to_str().unwrap();
    let canary = format!("{outside}/canary");
    let places = ["dev", "proc", "sys", "tmp", "run", "etc", "workspace", "home", "vercel", "var"];
    for target in [outside, "../../..", "/proc/self/root", "proc", "dev", "/"] {
        let links = places.iter().fold(Tar::new(), |tar, place| tar.link(place, target));
        let saved = Saved::of(&[&links.finish()]).docker().finish();
        fixture.import_bytes("links", &saved).unwrap();
        in_root(&fixture.resolve("links"), assert_own_places);
    }
    let inner = Tar::new()
        .link("dev/null", &canary)
        .link("dev/pts", outside)
        .link("etc/passwd", &canary)
        .link("etc/group", "/etc/shadow")
        .link("etc/resolv.conf", &canary)
        .link("etc/hosts", &canary)
        .link("vercel/sandbox", outside)
        .link("var/tmp", outside)
        .link("home/user", outside)
        .file("usr/x", b"");
    fixture.import("inner", inner).unwrap();
    in_root(&fixture.resolve("inner"), |root| {
        assert_own_places(root);
        assert_eq!(std::fs::read_dir(root.path("dev")).unwrap().count(), 0);
    });
    let files = places.iter().fold(Tar::new(), |tar, place| tar.file(place, b"x"));
    fixture.import_bytes("files", &Saved::of(&[&files.finish()]).docker().finish()).unwrap();
    in_root(&fixture.resolve("files"), assert_own_places);
    fixture.assert_canary("places");
}

fn assert_own_places(root: &super::Root) {
    let workspace = "vercel/sandbox/workspace";
    for dir in ["dev", "proc", "sys", "tmp", "run", "etc", "home", "var/tmp", workspace] {
        let metadata = std::fs::symlink_metadata(root.path(dir)).unwrap();
        assert!(metadata.is_dir(), "{dir} is no directory");
    }
    for file in ["passwd", "group", "hosts", "hostname", "resolv.conf"] {
        let path = root.path(&format!("etc/{file}"));
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file(), "{file} is no file");
    }
    for link in ["workspace", "home/user"] {
        let target = std::fs::read_link(root.path(link)).unwrap();
        assert_eq!(target, std::path::Path::new("/vercel/sandbox/workspace"));
    }
    let passwd = root.read("etc/passwd");
    assert!(
        passwd.starts_with("root:x:0:0:") && passwd.contains("\nuser:x:1000:1000:"),
        "{passwd}"
    );
    assert!(!passwd.contains(super::CANARY));
}

#[test]
fn accounts_are_read_from_the_topmost_layer_that_has_them() {
    let fixture = Fixture::new();
    let line = |name: &str, id: u32| format!("{name}:x:{id}:{id}::/:/bin/sh\n").into_bytes();
    let bottom = Tar::new().file("etc/passwd", &line("lower", 7)).file("etc/group", b"low:x:7:\n");
    let bottom = bottom.program("usr/bin/bash", b"").finish();
    let cases: [(&str, Tar, bool, bool); 6] = [
        ("nothing", Tar::new().file("usr/x", b""), true, false),
        ("its own", Tar::new().file("etc/passwd", &line("upper", 8)), false, true),
        ("whiteout", Tar::new().file("etc/.wh.passwd", b""), false, false),
        ("opaque", Tar::new().dir("etc").file("etc/.wh..wh..opq", b""), false, false),
        ("no etc", Tar::new().file(".wh.etc", b""), false, false),
        ("a link", Tar::new().link("etc/passwd", "group"), false, false),
    ];
    for (what, top, lower, upper) in cases {
        let top = top.finish();
        fixture.import_bytes("stacked", &Saved::of(&[&bottom, &top]).docker().finish()).unwrap();
        in_root(&fixture.resolve("stacked"), |root| {
            let passwd = root.read("etc/passwd");
            assert_eq!(passwd.contains("lower:x:7"), lower, "{what}: {passwd}");
            assert_eq!(passwd.contains("upper:x:8"), upper, "{what}: {passwd}");
            assert!(passwd.contains("workspace:/bin/bash"), "{what}: {passwd}");
        });
    }
    assert!(fixture.names_in("layers").contains(&sha256(&bottom)));
}

//! The storage on real file systems: a btrfs pool in a loop file, and plain directories.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use sandbank_engine::{Control, EngineError, SandboxId};
use tempfile::TempDir;

use super::{Storage, StorageKind, open, remove_tree};

const POOL_BYTES: u64 = 512 << 20;
const QUOTA: u64 = 24 << 20;

/// A data directory that leaves no mount and no loop device behind, whatever the test did.
struct DataDir(TempDir);

impl DataDir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn mounts(&self) -> usize {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        table.matches(self.path().to_str().unwrap()).count()
    }

    fn loop_devices(&self) -> usize {
        let devices = std::fs::read_dir("/sys/block").unwrap();
        devices
            .filter_map(|entry| {
                let file = entry.ok()?.path().join("loop/backing_file");
                std::fs::read_to_string(file).ok()
            })
            .filter(|file| file.starts_with(self.path().to_str().unwrap()))
            .count()
    }

    /// The kernel clears a loop device shortly after its last user is gone.
    fn wait_for_no_residue(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while (self.mounts(), self.loop_devices()) != (0, 0) {
            assert!(Instant::now() < deadline, "a mount or a loop device stays");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// None, with the reason printed, where this machine cannot make a pool.
    fn pool(&self) -> Option<Box<dyn Storage>> {
        match open(self.path(), StorageKind::Btrfs, POOL_BYTES) {
            Ok(storage) => Some(storage),
            Err(error) => {
                println!("skipped: {error}");
                None
            }
        }
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        let pool = self.path().join("pool");
        let _ = rustix::mount::unmount(&pool, rustix::mount::UnmountFlags::DETACH);
    }
}

fn fill(path: &Path, bytes: u64) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    let block: Vec<u8> =
        (0..1u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for _ in 0..bytes >> 20 {
        file.write_all(&block)?;
    }
    file.sync_all()
}

fn errno(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or_default()
}

#[test]
fn a_workspace_belongs_to_the_canonical_user() {
    let data = DataDir::new();
    let plain = open(data.path(), StorageKind::Plain, 0).unwrap();
    for storage in [Some(plain), data.pool()].into_iter().flatten() {
        let id = SandboxId::random();
        let path = storage.create(&id, None).unwrap();
        assert_eq!(path, storage.path(&id));
        let stat = std::fs::metadata(&path).unwrap();
        assert_eq!((stat.uid(), stat.gid(), stat.mode() & 0o7777), (1000, 1000, 0o755));
        assert_eq!(storage.list().unwrap(), std::slice::from_ref(&id));
        storage.delete(&id).unwrap();
        storage.close(false);
    }
    data.wait_for_no_residue();
}

#[test]
fn a_second_create_of_the_same_id_fails_and_keeps_the_first() {
    let data = DataDir::new();
    let plain = open(data.path(), StorageKind::Plain, 0).unwrap();
    for storage in [Some(plain), data.pool()].into_iter().flatten() {
        let id = SandboxId::random();
        let path = storage.create(&id, None).unwrap();
        std::fs::write(path.join("kept"), "x").unwrap();
        assert!(storage.create(&id, None).is_err());
        assert!(path.join("kept").exists());
        storage.delete(&id).unwrap();
        storage.close(false);
    }
}

#[test]
fn delete_is_idempotent_and_leaves_nothing() {
    let data = DataDir::new();
    let plain = open(data.path(), StorageKind::Plain, 0).unwrap();
    for storage in [Some(plain), data.pool()].into_iter().flatten() {
        let id = SandboxId::random();
        let path = storage.create(&id, None).unwrap();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::fs::write(path.join("a/b/file"), "x").unwrap();
        storage.delete(&id).unwrap();
        assert!(!path.exists());
        storage.delete(&id).unwrap();
        storage.delete(&SandboxId::random()).unwrap();
        assert_eq!(storage.list().unwrap(), []);
        assert!(matches!(storage.usage(&id), Err(EngineError::NotFound(_))));
        storage.close(false);
    }
}

#[test]
fn the_quota_is_enforced_and_room_comes_back() {
    let data = DataDir::new();
    let Some(storage) = data.pool() else { return };
    assert!(storage.enforces_quota());
    let id = SandboxId::random();
    let path = storage.create(&id, Some(QUOTA)).unwrap();
    fill(&path.join("fits"), QUOTA / 2).unwrap();
    let error = fill(&path.join("too-much"), QUOTA).unwrap_err();
    assert_eq!(errno(&error), libc::EDQUOT, "{error}");
    let taken = storage.usage(&id).unwrap();
    assert!((QUOTA / 2..=QUOTA).contains(&taken), "{taken} bytes taken of {QUOTA}");

    std::fs::remove_file(path.join("too-much")).unwrap();
    rustix::fs::syncfs(std::fs::File::open(&path).unwrap()).unwrap();
    fill(&path.join("again"), QUOTA / 4).unwrap();

    let unlimited = storage.create(&SandboxId::random(), None).unwrap();
    fill(&unlimited.join("large"), 2 * QUOTA).unwrap();
    for id in storage.list().unwrap() {
        storage.delete(&id).unwrap();
    }
    storage.close(false);
}

#[test]
fn many_tiny_files_meet_the_quota_too() {
    let data = DataDir::new();
    let Some(storage) = data.pool() else { return };
    let id = SandboxId::random();
    let path = storage.create(&id, Some(4 << 20)).unwrap();
    let hit = (0..200_000).find_map(|n| {
        if n % 500 == 0 {
            rustix::fs::syncfs(std::fs::File::open(&path).unwrap()).unwrap();
        }
        std::fs::write(path.join(n.to_string()), [0u8; 600]).err()
    });
    assert_eq!(hit.as_ref().map(errno), Some(libc::EDQUOT));
    storage.delete(&id).unwrap();
    storage.close(false);
}

#[test]
fn usage_follows_what_is_written() {
    let data = DataDir::new();
    let plain = open(data.path(), StorageKind::Plain, 0).unwrap();
    for storage in [Some(plain), data.pool()].into_iter().flatten() {
        let id = SandboxId::random();
        let path = storage.create(&id, None).unwrap();
        let before = storage.usage(&id).unwrap();
        std::fs::create_dir(path.join("dir")).unwrap();
        fill(&path.join("dir/file"), 8 << 20).unwrap();
        let grown = storage.usage(&id).unwrap() - before;
        assert!((8 << 20..9 << 20).contains(&grown), "{}: {grown}", storage.kind());
        storage.delete(&id).unwrap();
        storage.close(false);
    }
}

#[test]
fn a_snapshot_is_apart_from_its_source_and_takes_no_room_of_its_own() {
    let data = DataDir::new();
    let Some(storage) = data.pool() else { return };
    let (source, copy) = (SandboxId::random(), SandboxId::random());
    let path = storage.create(&source, Some(QUOTA)).unwrap();
    fill(&path.join("large"), QUOTA / 2).unwrap();
    std::fs::write(path.join("state"), "before").unwrap();
    let free = || rustix::fs::statvfs(&path).unwrap().f_bfree;
    rustix::fs::syncfs(std::fs::File::open(&path).unwrap()).unwrap();
    let before = free();
    let copied = storage.snapshot(&source, &copy).unwrap();
    rustix::fs::syncfs(std::fs::File::open(&path).unwrap()).unwrap();
    assert!(before - free() < 256, "the snapshot took {} blocks", before - free());

    std::fs::write(path.join("state"), "after").unwrap();
    assert_eq!(std::fs::read_to_string(copied.join("state")).unwrap(), "before");
    assert_eq!(std::fs::metadata(&copied).unwrap().uid(), 1000);
    let error = fill(&copied.join("too-much"), 2 * QUOTA).unwrap_err();
    assert_eq!(errno(&error), libc::EDQUOT, "a snapshot keeps the quota");

    storage.delete(&source).unwrap();
    assert_eq!(std::fs::read_to_string(copied.join("state")).unwrap(), "before");
    assert!(matches!(
        storage.snapshot(&source, &SandboxId::random()),
        Err(EngineError::NotFound(_))
    ));
    storage.delete(&copy).unwrap();
    storage.close(false);
}

#[test]
fn a_pool_survives_a_daemon_that_died_and_one_that_closed() {
    let data = DataDir::new();
    let Some(storage) = data.pool() else { return };
    let id = SandboxId::random();
    let path = storage.create(&id, Some(QUOTA)).unwrap();
    std::fs::write(path.join("kept"), "x").unwrap();
    storage.close(false);
    assert_eq!(data.mounts(), 1, "a pool with workspaces stays mounted");
    drop(storage);

    let storage = open(data.path(), StorageKind::Auto, POOL_BYTES).unwrap();
    assert_eq!((storage.kind(), data.mounts(), data.loop_devices()), ("btrfs", 1, 1));
    assert!(storage.path(&id).join("kept").exists());
    drop(storage);

    // As a reboot does.
    rustix::mount::unmount(data.path().join("pool"), rustix::mount::UnmountFlags::empty()).unwrap();
    let storage = open(data.path(), StorageKind::Auto, POOL_BYTES).unwrap();
    assert_eq!(storage.list().unwrap(), std::slice::from_ref(&id));
    let error = fill(&storage.path(&id).join("too-much"), 2 * QUOTA).unwrap_err();
    assert_eq!(errno(&error), libc::EDQUOT, "the quota is still in force");
    storage.delete(&id).unwrap();
    storage.close(false);
    data.wait_for_no_residue();
}

/// Kernels before 6.7 have no other quotas.
#[test]
fn full_quotas_that_are_already_on_are_used() {
    let data = DataDir::new();
    let opened = super::btrfs::open_with_full_quotas(data.path(), POOL_BYTES);
    let storage = match opened {
        Ok(storage) => storage,
        Err(error) => return println!("skipped: {error}"),
    };
    let (source, copy) = (SandboxId::random(), SandboxId::random());
    let path = storage.create(&source, Some(QUOTA)).unwrap();
    fill(&path.join("fits"), QUOTA / 2).unwrap();
    let copied = storage.snapshot(&source, &copy).unwrap();
    for path in [path, copied] {
        let error = fill(&path.join("too-much"), QUOTA).unwrap_err();
        assert_eq!(errno(&error), libc::EDQUOT, "{error}");
    }
    assert!(storage.usage(&source).unwrap() <= QUOTA);
    storage.delete(&source).unwrap();
    storage.delete(&copy).unwrap();
    storage.close(false);
}

#[test]
fn a_data_directory_on_btrfs_with_quotas_needs_no_pool() {
    let outer = DataDir::new();
    let Some(pool) = outer.pool() else { return };
    let data_dir = outer.path().join("pool/data");
    let storage = open(&data_dir, StorageKind::Auto, POOL_BYTES).unwrap();
    assert_eq!(storage.kind(), "btrfs");
    assert!(!data_dir.join("pool.img").exists());
    let id = SandboxId::random();
    let path = storage.create(&id, Some(QUOTA)).unwrap();
    assert!(path.starts_with(&data_dir));
    let error = fill(&path.join("too-much"), 2 * QUOTA).unwrap_err();
    assert_eq!(errno(&error), libc::EDQUOT);
    drop(storage);
    let storage = open(&data_dir, StorageKind::Auto, POOL_BYTES).unwrap();
    assert_eq!(storage.list().unwrap(), std::slice::from_ref(&id));
    storage.delete(&id).unwrap();
    storage.close(false);
    drop(storage);
    remove_tree(&data_dir).unwrap();
    pool.close(false);
    outer.wait_for_no_residue();
}

#[test]
fn two_instances_have_pools_of_their_own() {
    let (one, two) = (DataDir::new(), DataDir::new());
    let (Some(first), Some(second)) = (one.pool(), two.pool()) else { return };
    let id = SandboxId::random();
    first.create(&id, None).unwrap();
    assert_eq!(second.list().unwrap(), []);
    second.create(&id, None).unwrap();
    second.delete(&id).unwrap();
    second.close(false);
    assert!(first.path(&id).exists());
    first.delete(&id).unwrap();
    first.close(false);
}

#[test]
fn a_pool_grows_with_its_configuration() {
    let data = DataDir::new();
    let Some(storage) = data.pool() else { return };
    let size = || {
        let stat = rustix::fs::statvfs(data.path().join("pool")).unwrap();
        stat.f_blocks * stat.f_frsize
    };
    assert_eq!(size(), POOL_BYTES);
    let larger = open(data.path(), StorageKind::Btrfs, 2 * POOL_BYTES).unwrap();
    assert_eq!(size(), 2 * POOL_BYTES);
    let smaller = open(data.path(), StorageKind::Btrfs, POOL_BYTES).unwrap();
    assert_eq!(size(), 2 * POOL_BYTES);
    drop((storage, larger));
    smaller.close(false);
}

#[test]
fn a_mount_of_another_file_is_not_taken_for_the_pool() {
    let data = DataDir::new();
    let Some(storage) = data.pool() else { return };
    std::fs::rename(data.path().join("pool.img"), data.path().join("moved.img")).unwrap();
    std::fs::write(data.path().join("pool.img"), "").unwrap();
    let error = open(data.path(), StorageKind::Auto, 0).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("unmount it"), "{error}");
    storage.close(false);
}

#[test]
fn half_a_pool_is_made_again_and_a_half_made_workspace_is_listed() {
    let data = DataDir::new();
    std::fs::write(data.path().join("pool.img.new"), "half a file system").unwrap();
    let Some(storage) = data.pool() else { return };
    assert!(!data.path().join("pool.img.new").exists());
    // A crash between the subvolume and its owner leaves it like this.
    let id = SandboxId::random();
    let path = storage.create(&id, None).unwrap();
    std::os::unix::fs::chown(&path, Some(0), Some(0)).unwrap();
    assert_eq!(storage.list().unwrap(), std::slice::from_ref(&id));
    storage.delete(&id).unwrap();
    storage.close(false);
}

#[test]
fn nested_subvolumes_do_not_keep_a_workspace_alive() {
    let data = DataDir::new();
    let Some(storage) = data.pool() else { return };
    let id = SandboxId::random();
    let path = storage.create(&id, None).unwrap();
    let made = std::process::Command::new("btrfs")
        .args(["--quiet", "subvolume", "create"])
        .arg(path.join("nested"))
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: the btrfs tool does not answer");
    } else {
        std::fs::create_dir(path.join("nested/dir")).unwrap();
        std::fs::write(path.join("nested/dir/file"), "x").unwrap();
    }
    storage.delete(&id).unwrap();
    assert!(!path.exists());
    storage.close(false);
}

#[test]
fn plain_storage_refuses_a_quota_by_the_control_s_name() {
    let data = DataDir::new();
    let storage = open(data.path(), StorageKind::Plain, 0).unwrap();
    assert!(!storage.enforces_quota());
    let id = SandboxId::random();
    match storage.create(&id, Some(QUOTA)) {
        Err(EngineError::ControlUnavailable { control: Control::DiskQuota, reason }) => {
            assert!(reason.contains("btrfs"), "{reason}");
        }
        other => panic!("a quota was not refused: {other:?}"),
    }
    assert_eq!(storage.list().unwrap(), []);
    storage.create(&id, None).unwrap();
    assert!(storage.snapshot(&id, &SandboxId::random()).is_err());
}

#[test]
fn auto_keeps_what_the_data_directory_has() {
    let data = DataDir::new();
    let plain = open(data.path(), StorageKind::Plain, 0).unwrap();
    let id = SandboxId::random();
    plain.create(&id, None).unwrap();
    let auto = open(data.path(), StorageKind::Auto, POOL_BYTES).unwrap();
    assert_eq!((auto.kind(), auto.list().unwrap()), ("plain", vec![id]));
    assert_eq!(data.mounts(), 0);
}

#[test]
fn a_pool_that_cannot_be_had_is_plain_in_auto_and_an_error_when_asked_for() {
    let data = DataDir::new();
    let error = open(data.path(), StorageKind::Btrfs, 1 << 20).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("too small"), "{error}");
    assert!(!data.path().join("pool.img").exists());
    assert_eq!(open(data.path(), StorageKind::Auto, 1 << 20).unwrap().kind(), "plain");
}

#[test]
fn a_full_pool_says_storage_full() {
    let data = DataDir::new();
    let Ok(storage) = open(data.path(), StorageKind::Btrfs, 256 << 20) else {
        println!("skipped: no pool can be made here");
        return;
    };
    let path = storage.create(&SandboxId::random(), None).unwrap();
    let error = fill(&path.join("all"), 300 << 20).unwrap_err();
    assert_eq!(errno(&error), libc::ENOSPC);
    let mapped = EngineError::io("write a file")(error);
    assert!(matches!(mapped, EngineError::StorageFull(_)), "{mapped}");
    // Even then a workspace can be deleted, which makes room again.
    for id in storage.list().unwrap() {
        storage.delete(&id).unwrap();
    }
    storage.close(false);
    data.wait_for_no_residue();
}

#[test]
fn a_tree_deeper_than_any_path_is_removed_without_touching_link_targets() {
    let data = DataDir::new();
    let outside = data.path().join("canary");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "x").unwrap();
    let root = data.path().join("tree");
    std::fs::create_dir(&root).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
    let mut here = std::fs::File::open(&root).unwrap();
    for depth in 0..5000 {
        rustix::fs::mkdirat(&here, "d", rustix::fs::Mode::RWXU).unwrap();
        if depth % 500 == 0 {
            rustix::fs::mkdirat(&here, ".hoisted-1", rustix::fs::Mode::RWXU).unwrap();
            rustix::fs::symlinkat(&outside, &here, "link-too").unwrap();
        }
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        here = rustix::fs::openat(&here, "d", flags, rustix::fs::Mode::empty()).unwrap().into();
    }
    drop(here);
    for name in 0..3000 {
        std::fs::write(root.join(name.to_string()), "").unwrap();
    }
    remove_tree(&root).unwrap();
    assert!(!root.exists());
    assert!(outside.join("kept").exists());
    remove_tree(&root).unwrap();
    remove_tree(&outside.join("kept")).unwrap();
    assert!(!outside.join("kept").exists());
}

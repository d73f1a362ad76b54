//! Kept workspaces on plain directories and, where it can be had, in a pool.

use std::path::Path;

use sandbank_engine::{EngineError, SandboxId, WorkspaceId};

use super::{Kept, Storage, StorageKind, open};

const POOL_BYTES: u64 = 512 << 20;

struct DataDir(tempfile::TempDir);

impl Drop for DataDir {
    fn drop(&mut self) {
        let pool = self.0.path().join("pool");
        let _ = rustix::mount::unmount(&pool, rustix::mount::UnmountFlags::DETACH);
    }
}

/// Each storage in a directory of its own; the pool only where this machine can make one.
fn storages() -> Vec<(DataDir, Box<dyn Storage>)> {
    let kinds = [StorageKind::Plain, StorageKind::Btrfs].map(|kind| {
        let data = DataDir(tempfile::tempdir().unwrap());
        match open(data.0.path(), kind, POOL_BYTES) {
            Ok(storage) => Some((data, storage)),
            Err(error) => {
                println!("skipped: {kind:?}: {error}");
                None
            }
        }
    });
    kinds.into_iter().flatten().collect()
}

fn id(name: &str) -> WorkspaceId {
    name.parse().unwrap()
}

fn names(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn one_is_made_once_and_found_again_until_it_is_removed() {
    for (_data, storage) in storages() {
        let kept = Kept::open(&*storage).unwrap();
        let project = id("project");
        let (path, made) = kept.provide(&*storage, &project, || None).unwrap();
        assert!(made);
        std::fs::write(path.join("file"), "x").unwrap();
        assert_eq!(kept.provide(&*storage, &project, || None).unwrap(), (path.clone(), false));
        assert!(path.join("file").exists());
        assert_eq!(kept.list().unwrap(), std::slice::from_ref(&project));
        assert_eq!(storage.list().unwrap(), [], "it is no machine's own");
        assert!(kept.remove(&*storage, &project, Vec::new).unwrap());
        assert!(!kept.remove(&*storage, &project, Vec::new).unwrap());
        assert!(!path.exists());
        assert_eq!(names(storage.kept_root()), Vec::<String>::new());
    }
}

#[test]
fn one_that_is_used_is_not_removed() {
    for (_data, storage) in storages() {
        let kept = Kept::open(&*storage).unwrap();
        let (project, user) = (id("project"), SandboxId::random());
        let (path, _) = kept.provide(&*storage, &project, || None).unwrap();
        let error = kept.remove(&*storage, &project, || vec![user.clone()]).unwrap_err();
        let EngineError::WorkspaceInUse { by, .. } = error else { panic!("{error}") };
        assert_eq!(by, [user]);
        assert!(path.is_dir());
        kept.remove(&*storage, &project, Vec::new).unwrap();
    }
}

#[test]
fn what_a_crash_left_goes_at_the_next_open_and_nothing_else() {
    for (_data, storage) in storages() {
        let kept = Kept::open(&*storage).unwrap();
        let project = id("project");
        let (path, _) = kept.provide(&*storage, &project, || None).unwrap();
        std::fs::write(path.join("file"), "x").unwrap();
        let draft = storage.create_in(storage.kept_root(), ".sbleftover", None).unwrap();
        std::fs::write(draft.join("file"), "x").unwrap();
        drop(kept);
        let kept = Kept::open(&*storage).unwrap();
        assert_eq!(names(storage.kept_root()), ["project"]);
        assert!(path.join("file").exists());
        kept.remove(&*storage, &project, Vec::new).unwrap();
    }
}

#[test]
fn a_link_in_its_place_is_refused_and_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    for (_data, storage) in storages() {
        let kept = Kept::open(&*storage).unwrap();
        let link = kept.path(&id("link"));
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        assert!(kept.provide(&*storage, &id("link"), || None).is_err());
        std::fs::remove_file(link).unwrap();
        assert!(kept.provide(&*storage, &id("link"), || None).unwrap().1, "without it, it is made");
        kept.remove(&*storage, &id("link"), Vec::new).unwrap();
    }
}

#[test]
fn its_quota_follows_whoever_asks() {
    for (_data, storage) in storages().into_iter().filter(|(_, s)| s.enforces_quota()) {
        let kept = Kept::open(&*storage).unwrap();
        let project = id("project");
        let quota = |bytes: Option<u64>| {
            let (path, _) = kept.provide(&*storage, &project, || bytes).unwrap();
            storage.quota_of(&path).unwrap()
        };
        for bytes in [Some(8 << 20), Some(4 << 20), None, Some(16 << 20), Some(16 << 20)] {
            assert_eq!(quota(bytes), bytes);
        }
        let file = kept.path(&project).join("file");
        assert_eq!(quota(Some(4 << 20)), Some(4 << 20));
        let full = std::fs::write(&file, vec![7; 8 << 20])
            .and_then(|()| std::fs::File::open(&file).and_then(|file| file.sync_all()));
        assert_eq!(full.unwrap_err().raw_os_error(), Some(libc::EDQUOT));
        kept.remove(&*storage, &project, Vec::new).unwrap();
    }
}

#[test]
fn a_data_directory_with_only_kept_plain_ones_stays_plain() {
    let data = DataDir(tempfile::tempdir().unwrap());
    let storage = open(data.0.path(), StorageKind::Plain, 0).unwrap();
    Kept::open(&*storage).unwrap().provide(&*storage, &id("project"), || None).unwrap();
    let again = open(data.0.path(), StorageKind::Auto, POOL_BYTES).unwrap();
    assert_eq!(again.kind(), "plain");
    assert_eq!(Kept::open(&*again).unwrap().list().unwrap(), [id("project")]);
}

#[test]
fn a_pool_is_unmounted_with_kept_ones_in_it_but_not_while_a_machine_has_one() {
    for (data, storage) in storages().into_iter().filter(|(_, s)| s.kind() == "btrfs") {
        let mounted = || {
            let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
            table.contains(data.0.path().to_str().unwrap())
        };
        if !mounted() {
            println!("skipped: the data directory is on btrfs itself");
            continue;
        }
        let kept = Kept::open(&*storage).unwrap();
        let (path, _) = kept.provide(&*storage, &id("project"), || None).unwrap();
        std::fs::write(path.join("file"), "x").unwrap();
        storage.close(true);
        assert!(mounted());
        storage.close(false);
        assert!(!mounted());
        let storage = open(data.0.path(), StorageKind::Auto, POOL_BYTES).unwrap();
        assert!(path.join("file").exists(), "it is there again");
        storage.close(false);
    }
}

#[test]
fn only_an_empty_one_that_nobody_has_is_removed_as_such() {
    for (_data, storage) in storages() {
        let kept = Kept::open(&*storage).unwrap();
        let project = id("project");
        let (path, _) = kept.provide(&*storage, &project, || None).unwrap();
        assert!(!kept.remove_empty(&*storage, &project, || true).unwrap(), "somebody has it");
        std::fs::write(path.join("file"), "x").unwrap();
        assert!(!kept.remove_empty(&*storage, &project, || false).unwrap(), "there is a file");
        assert!(path.join("file").exists());
        std::fs::remove_file(path.join("file")).unwrap();
        assert!(kept.remove_empty(&*storage, &project, || false).unwrap());
        assert!(!kept.remove_empty(&*storage, &project, || false).unwrap(), "there is none");
        assert_eq!(names(storage.kept_root()), Vec::<String>::new());
    }
}

//! A file system without space, played by a 1 MB tmpfs in a mount namespace of the test's thread.

#![allow(unsafe_code, reason = "a mount namespace of one's own needs unshare")]
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod playground;

use playground::Playground;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use sandbank_rooted_fs::{Root, RootedError};

/// Goes away with the calling thread.
fn small_file_system(play: &Playground) -> Result<Root, rustix::io::Errno> {
    // SAFETY: only the mount namespace is left; no descriptor or memory is affected.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("tmpfs", play.inside(""), "tmpfs", MountFlags::empty(), c"size=1m")?;
    Ok(Root::open(play.inside(""), ["/workspace"]).unwrap())
}

#[test]
fn running_out_of_space_is_its_own_error_and_leaves_the_old_version() {
    let test = std::thread::spawn(|| {
        let mut play = Playground::new();
        match small_file_system(&play) {
            Ok(root) => play.root = root,
            Err(errno) => return println!("skipped: no mount namespace of one's own: {errno}"),
        }
        play.write("file", b"old");
        let path = play.path("file");
        let mut file = play.root.create(&path, None).unwrap();
        assert_eq!(file.write_all(&[7; 2 << 20]), Err(RootedError::StorageFull(path)));
        drop(file);
        assert_eq!(play.read("file"), b"old");
        assert_eq!(play.names(""), ["file"]);
        play.write("other", &[1; 512 << 10]);
    });
    test.join().unwrap();
}

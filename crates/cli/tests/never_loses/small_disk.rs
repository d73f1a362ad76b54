//! Small file systems to fill and to break, each unmounted when dropped. They need root.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// A small tmpfs.
pub(crate) struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    pub(crate) fn mount() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        run(
            "mount",
            &["-t", "tmpfs", "-o", "size=8m,mode=0700", "sandbank-test"],
            directory.path(),
        )?;
        Ok(Self(directory))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// To the last page.
    pub(crate) fn fill(&self) -> anyhow::Result<()> {
        let mut ballast = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.0.path().join("ballast"))?;
        for size in [64 << 10, 4 << 10] {
            while ballast.write_all(&vec![1; size]).is_ok() {}
        }
        Ok(())
    }

    pub(crate) fn free(&self) -> anyhow::Result<()> {
        Ok(std::fs::remove_file(self.0.path().join("ballast"))?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = run("umount", &["--lazy"], self.0.path());
    }
}

/// A small ext4 in a file, which turns read-only when its file system finds an error.
pub(crate) struct FragileDisk {
    directory: tempfile::TempDir,
    device: String,
}

impl FragileDisk {
    pub(crate) fn mount() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let image = directory.path().join("image");
        std::fs::File::create(&image)?.set_len(16 << 20)?;
        run("mkfs.ext4", &["-q", "-O", "^has_journal"], &image)?;
        std::fs::create_dir(directory.path().join("disk"))?;
        let mut disk = Self { directory, device: String::new() };
        disk.attach()?;
        Ok(disk)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("disk")
    }

    /// As by an error that the kernel found: open files cannot be written any more, either.
    pub(crate) fn break_down(&self) -> anyhow::Result<()> {
        // What was written before the error is on the disk; this is not about losing power.
        run("sync", &["--file-system"], &self.path())?;
        let name = Path::new(&self.device).file_name().context("a device has a name")?;
        let trigger = Path::new("/sys/fs/ext4").join(name).join("trigger_fs_error");
        std::fs::write(&trigger, "1").with_context(|| trigger.display().to_string())?;
        ensure!(std::fs::write(self.path().join("probe"), "x").is_err(), "it can still be written");
        Ok(())
    }

    /// Nobody may use it meanwhile.
    pub(crate) fn repair(&mut self) -> anyhow::Result<()> {
        self.detach()?;
        // 1: errors were corrected.
        let checked = Command::new("e2fsck").arg("-fp").arg(self.image()).output()?;
        ensure!(matches!(checked.status.code(), Some(0 | 1)), "{checked:?}");
        self.attach()
    }

    fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    fn attach(&mut self) -> anyhow::Result<()> {
        let attached =
            Command::new("losetup").args(["--find", "--show"]).arg(self.image()).output()?;
        ensure!(attached.status.success(), "{attached:?}");
        self.device = String::from_utf8(attached.stdout)?.trim().to_owned();
        run("mount", &["-o", "errors=remount-ro", &self.device], &self.path())
    }

    fn detach(&mut self) -> anyhow::Result<()> {
        run("umount", &[], &self.path())?;
        run("losetup", &["--detach"], Path::new(&self.device))
    }
}

impl Drop for FragileDisk {
    fn drop(&mut self) {
        let _ = run("umount", &["--lazy"], &self.path());
        let _ = run("losetup", &["--detach"], Path::new(&self.device));
    }
}

pub(crate) fn run(program: &str, arguments: &[&str], path: &Path) -> anyhow::Result<()> {
    let output = Command::new(program).args(arguments).arg(path).output()?;
    ensure!(output.status.success(), "{program} {arguments:?} {}: {output:?}", path.display());
    Ok(())
}

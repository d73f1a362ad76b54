//! The topmost layer of every root: directories to mount on, the workspace's names, accounts.
//!
//! It is made of real directories and files only where an image could have put links, so that
//! nothing the engine mounts or binds is ever led elsewhere by an image.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sandbank_engine::EngineError;
use sandbank_protocol::{WORKSPACE, WORKSPACE_ALIASES};

use super::limits::ACCOUNTS_BYTES;
use super::unpack::make_opaque;
use super::{accounts, layers};

/// Raised when what is built here changes, so that skeletons of older versions are not reused.
pub(super) const VERSION: u32 = 1;

const HOSTS: &str = "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n";
/// Until the engine binds the sandbox's own over it.
const RESOLV_CONF: &str = "# this sandbox has no resolver\n";

/// A directory tree under construction.
pub(super) struct Builder {
    root: PathBuf,
}

impl Builder {
    /// `root` is an empty directory that nobody else writes to.
    pub(super) fn new(root: &Path) -> Result<Self, EngineError> {
        let builder = Self { root: root.to_owned() };
        builder.mode("", 0o755)?;
        Ok(builder)
    }

    fn mode(&self, path: &str, mode: u32) -> Result<(), EngineError> {
        // Set apart from creation: the daemon's umask must not decide.
        std::fs::set_permissions(self.root.join(path), Permissions::from_mode(mode))
            .map_err(EngineError::io("set a mode in the skeleton"))
    }

    /// A directory and what is missing above it.
    pub(super) fn directory(&self, path: &str, mode: u32) -> Result<(), EngineError> {
        let mut here = String::new();
        for name in path.split('/') {
            here = if here.is_empty() { name.to_owned() } else { format!("{here}/{name}") };
            match DirBuilder::new().mode(0o755).create(self.root.join(&here)) {
                Ok(()) => self.mode(&here, 0o755)?,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(EngineError::io("create a skeleton directory")(error)),
            }
        }
        self.mode(path, mode)
    }

    pub(super) fn file(&self, path: &str, content: &[u8]) -> Result<(), EngineError> {
        if let Some((dir, _)) = path.rsplit_once('/') {
            self.directory(dir, 0o755)?;
        }
        std::fs::write(self.root.join(path), content)
            .map_err(EngineError::io("write a skeleton file"))?;
        self.mode(path, 0o644)
    }

    pub(super) fn link(&self, path: &str, target: &Path) -> Result<(), EngineError> {
        if let Some((dir, _)) = path.rsplit_once('/') {
            self.directory(dir, 0o755)?;
        }
        symlink(target, self.root.join(path)).map_err(EngineError::io("make a skeleton link"))
    }

    /// Hides what lower layers have in a directory.
    fn opaque(&self, path: &str) -> Result<(), EngineError> {
        let dir = std::fs::File::open(self.root.join(path))
            .map_err(EngineError::io("open a skeleton directory"))?;
        make_opaque(dir)
    }

    /// What every root has.
    pub(super) fn base(&self, passwd: &str, group: &str) -> Result<(), EngineError> {
        let directories =
            [("proc", 0o555), ("sys", 0o555), ("dev", 0o755), ("run", 0o755), ("tmp", 0o1777)];
        for (path, mode) in directories {
            self.directory(path, mode)?;
        }
        self.directory("var", 0o755)?;
        self.directory("var/tmp", 0o1777)?;
        let workspace = WORKSPACE.trim_start_matches('/');
        self.directory(workspace, 0o755)?;
        // Only a mount point: without root it stays the daemon's.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(self.root.join(workspace), Some(1000), Some(1000))
                .map_err(EngineError::io("give the workspace to its user"))?;
        }
        for alias in WORKSPACE_ALIASES {
            self.link(alias.trim_start_matches('/'), Path::new(WORKSPACE))?;
        }
        self.file("etc/hosts", HOSTS.as_bytes())?;
        self.file("etc/hostname", b"sandbox\n")?;
        self.file("etc/resolv.conf", RESOLV_CONF.as_bytes())?;
        self.file("etc/passwd", passwd.as_bytes())?;
        self.file("etc/group", group.as_bytes())
    }
}

/// Builds the skeleton of an image whose layers are given topmost first.
pub(super) fn build_for_layers(root: &Path, stack: &[PathBuf]) -> Result<(), EngineError> {
    let own = |name| layers::read_text(stack, "etc", name, ACCOUNTS_BYTES).unwrap_or_default();
    let has_bash =
        ["bin", "usr/bin"].iter().any(|dir| layers::open_file(stack, dir, "bash").is_some());
    let shell = if has_bash { "/bin/bash" } else { "/bin/sh" };
    let builder = Builder::new(root)?;
    builder.base(&accounts::passwd(&own("passwd"), shell), &accounts::group(&own("group")))?;
    // The engine mounts on these; whatever an image has there is never to be seen.
    ["proc", "sys", "dev", "run", "tmp"].iter().try_for_each(|path| builder.opaque(path))
}

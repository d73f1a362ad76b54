//! What lies around a workspace, must not be read and must not change.

use anyhow::ensure;

use super::{Inside, Workspace};

pub(super) const CANARY: &str = "canary-7f3a-contents";

const MAKE: &str = "rm -rf \"$1\"; mkdir -p \"$1/deeper\"; \
    printf %s \"$2\" > \"$1/secret\"; printf %s \"$2\" > \"$1/deeper/secret\"";

/// Every name and all contents, and what an attack could have left beside the workspace.
const LOOK: &str = "(cd \"$1\" && find . | sort && cat secret deeper/secret); \
    ! test -e ../beside || echo something is beside it; ";

/// A directory that whoever works in the workspace may change.
pub(super) struct Outside<'a> {
    workspace: &'a Workspace,
    pub(super) path: String,
    before: String,
}

impl<'a> Outside<'a> {
    pub(super) async fn make(workspace: &'a Workspace) -> anyhow::Result<Self> {
        let path = match &workspace.inside {
            Inside::Directory(directory) => directory.with_file_name("outside"),
            Inside::Sandbox(_) => "/tmp/outside".into(),
        };
        let path = path.display().to_string();
        workspace.sh(MAKE, &[&path, CANARY]).await?;
        let before = workspace.sh(LOOK, &[&path]).await?;
        ensure!(before.matches(CANARY).count() == 2, "the look sees nothing: {before}");
        Ok(Self { workspace, path, before })
    }

    /// Then runs `next`, whose `$1` is the directory: one program less for each attack.
    pub(super) async fn is_untouched(&self, about: &str, next: &str) -> anyhow::Result<()> {
        let seen = self.workspace.sh(&format!("{LOOK}{next}"), &[&self.path]).await?;
        let mode = self.workspace.mode;
        ensure!(seen == self.before, "{about} in mode {mode} changed what is outside: {seen}");
        Ok(())
    }
}

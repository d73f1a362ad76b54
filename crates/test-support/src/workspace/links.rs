//! Links that lead outside, of every kind and in every part of a path (T50).

use anyhow::ensure;

use super::Workspace;
use super::outside::Outside;
use super::routes::{ROUTES, changes_files};

const RESTORE: &str = "set -e; \
    rm -f to-file to-directory to-root to-link up round inside renamed secret file passwd x; \
    rm -rf deeper; \
    ln -s \"$1/secret\" to-file; ln -s \"$1\" to-directory; ln -s /proc/1/root to-root; \
    ln -s to-directory to-link; ln -s ../.. up; ln -s round round; ln -s kept inside; \
    printf safe > safe; printf kept > kept";

const BELOW: [&str; 12] = [
    "to-file",
    "to-directory",
    "to-directory/secret",
    "to-directory/deeper",
    "to-directory/new/file",
    "to-root/etc/passwd",
    "to-link/secret",
    "to-link/deeper/secret",
    "up",
    "up/etc/passwd",
    "round",
    "round/x",
];

pub async fn links_lead_nowhere(workspace: &Workspace) -> anyhow::Result<()> {
    workspace.clear().await?;
    let outside = Outside::make(workspace).await?;
    outside.is_untouched("nothing", RESTORE).await?;
    for path in BELOW {
        for route in ROUTES {
            let (status, body) = workspace.attacked(route, path).await?;
            if matches!(route, "read" | "tree")
                && path.contains('/')
                && path != "to-directory/new/file"
            {
                let empty = body["entries"].as_array().is_some_and(Vec::is_empty);
                ensure!(
                    status == 400 || status == 404 || empty,
                    "{route} {path} in mode {}: {status} {body}",
                    workspace.mode
                );
            }
            if changes_files(route) {
                outside.is_untouched(&format!("{route} with {path}"), RESTORE).await?;
            }
        }
    }
    let (status, read) = workspace.attacked("read", "inside").await?;
    ensure!(read["content"] == "kept", "a link to the inside: {status} {read}");
    Ok(())
}

//! What is no file: it is refused, and nobody waits for it (T52).

use anyhow::ensure;
use serde_json::json;

use super::Workspace;
use super::routes::{ROUTES, changes_files};

const MAKE: &str = "set -e; rm -rf \"$1\" renamed; printf safe > safe; case $1 in \
    fifo) mkfifo fifo ;; \
    socket) python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")' ;; \
    zero) mknod zero c 1 5 ;; \
    esac";

pub async fn special_files_are_refused(workspace: &Workspace) -> anyhow::Result<()> {
    workspace.clear().await?;
    let mut names = vec!["fifo", "socket"];
    match workspace.sh(MAKE, &["zero"]).await {
        Ok(_) => names.push("zero"),
        Err(_) => println!("skipped: in mode {} nobody can make a device", workspace.mode),
    }
    for name in names {
        workspace.sh(MAKE, &[name]).await?;
        for route in ROUTES {
            let (status, body) = workspace.attacked(route, name).await?;
            if route == "read" {
                let detail = json!({ "detail": format!("Not a regular file: {name}") });
                ensure!(
                    (status, &body) == (400, &detail),
                    "{name} in mode {}: {status} {body}",
                    workspace.mode
                );
            }
            if changes_files(route) {
                workspace.sh(MAKE, &[name]).await?;
            }
        }
        let (_, tree) = workspace.attacked("tree", ".").await?;
        let entry = json!({ "name": name, "path": name, "is_dir": false });
        let entries = tree["entries"].as_array();
        ensure!(entries.is_some_and(|entries| entries.contains(&entry)), "{tree}");
        workspace.sh("rm \"$1\"", &[name]).await?;
    }
    Ok(())
}

//! Paths that lead outside (T49).

use anyhow::ensure;

use super::Workspace;
use super::outside::Outside;
use super::routes::{ROUTES, changes_files, takes_other_names};

const RESTORE: &str = "rm -f renamed; printf safe > safe";

/// The second is whether it leads outside for certain; others are odd names.
const CORPUS: [(&str, bool); 21] = [
    ("..", true),
    ("../beside", true),
    ("safe/../../beside", true),
    ("./../beside", true),
    ("../../../../../../../../etc/passwd", true),
    ("/etc/passwd", true),
    ("//etc/passwd", true),
    ("/", true),
    ("/proc/self/environ", true),
    ("/proc/1/root/etc/passwd", true),
    ("a\0b", true),
    ("", false),
    ("%2e%2e/beside", false),
    ("..%2fbeside", false),
    ("%252e%252e%252fbeside", false),
    ("..\\beside", false),
    ("\u{ff0e}\u{ff0e}/beside", false),
    ("\u{2025}/beside", false),
    (".../beside", false),
    ("~/beside", false),
    ("file:///etc/passwd", false),
];

pub async fn paths_lead_nowhere(workspace: &Workspace) -> anyhow::Result<()> {
    workspace.clear().await?;
    let outside = Outside::make(workspace).await?;
    let secret = format!("{}/secret", outside.path);
    let long = "x/".repeat(3_000);
    for (path, leads_out) in CORPUS.into_iter().chain([(&*secret, true), (&*long, true)]) {
        for route in ROUTES {
            let (status, body) = workspace.attacked(route, path).await?;
            if leads_out && !takes_other_names(route) {
                let detail = body["detail"].as_str().unwrap_or_default();
                ensure!(
                    status == 400 && detail.starts_with("Path traversal detected: "),
                    "{route} with {path:?} in mode {}: {status} {body}",
                    workspace.mode
                );
            }
            if changes_files(route) {
                outside.is_untouched(&format!("{route} with {path:?}"), RESTORE).await?;
            }
        }
    }
    // What is inside is had on the same routes.
    for (route, path) in [("tree", "."), ("read", "safe"), ("search", "."), ("delete", "safe")] {
        ensure!(workspace.attacked(route, path).await?.0 == 200, "{route}");
    }
    Ok(())
}

//! Odd names are nothing but names (T57).

use anyhow::ensure;
use serde_json::Value;

use super::Workspace;

const NAMES: [&str; 8] = ["new\nline", "-rf", "--help", " ", "a\\b", "\u{202e}txt", "*", "%2e"];

/// Where it was renamed from there is nothing; it is put back.
const PUT_BACK: &str = "! test -e \"./$1\" && mv renamed \"./$1\"";

pub async fn names_go_round(workspace: &Workspace) -> anyhow::Result<()> {
    workspace.clear().await?;
    workspace.run(&["git", "init", "-q"]).await?;
    let longest = "n".repeat(255);
    for name in NAMES.into_iter().chain([&*longest]) {
        let about = format!("{name:?} in mode {}", workspace.mode);
        ensure!(workspace.attacked("write", name).await?.0 == 200, "{about}");
        let written = workspace.sh("cat \"./$1\"", &[name]).await?;
        ensure!(written == "overwritten", "{about}: {written}");
        let (_, read) = workspace.attacked("read", name).await?;
        ensure!(read["content"] == "overwritten", "{about}: {read}");
        let named = |entry: &Value| entry["name"] == name && entry["path"] == name;
        is_listed(workspace, named).await?;
        let (_, status) = workspace.get("/api/git/status").await?;
        ensure!(status["files"][name] == "U", "{about}: {status}");
        let (_, diff) = workspace.attacked("diff", name).await?;
        ensure!(diff["diff"] == "", "{about}: {diff}");
        ensure!(workspace.attacked("rename from", name).await?.0 == 200, "{about}");
        workspace.sh(PUT_BACK, &[name]).await?;
        ensure!(workspace.attacked("delete", name).await?.0 == 200, "{about}");
        workspace.sh("! test -e \"./$1\"", &[name]).await?;
    }
    let too_long = "n".repeat(256);
    let (status, body) = workspace.attacked("write", &too_long).await?;
    ensure!((400..500).contains(&status), "{status} {body}");
    // One that is no text.
    workspace.sh("printf odd > \"$(printf 'odd-\\377')\"", &[]).await?;
    let is_odd = |entry: &Value| entry["name"].as_str().is_some_and(|n| n.starts_with("odd-"));
    is_listed(workspace, is_odd).await?;
    ensure!(workspace.get("/api/git/status").await?.0 == 200);
    ensure!(workspace.sh("cat odd-*", &[]).await? == "odd");
    Ok(())
}

/// By the tree and by a search.
async fn is_listed(workspace: &Workspace, named: impl Fn(&Value) -> bool) -> anyhow::Result<()> {
    for (route, list) in [("tree", "entries"), ("search", "results")] {
        let (status, found) = workspace.attacked(route, ".").await?;
        let is_there = found[list].as_array().is_some_and(|list| list.iter().any(&named));
        ensure!(status == 200 && is_there, "{route} in mode {}: {found}", workspace.mode);
    }
    Ok(())
}

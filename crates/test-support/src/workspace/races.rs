//! Paths that become others and files that grow while they are looked at (T51, T52), and writers
//! that meet (T56).

use anyhow::ensure;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::Workspace;
use super::outside::Outside;
use super::routes::{ROUTES, changes_files, takes_other_names};

/// At least, and at most until both of what may happen has.
const ROUNDS: usize = 4;
const MAX_ROUNDS: usize = 60;

const WRITERS: usize = 100;
const WRITTEN_BYTES: usize = 100_000;

/// A little less than may be read: what grows crosses it again and again.
const LARGE: &str = "head -c 10484760 /dev/zero | tr '\\0' x > fresh && mv fresh growing";
const MOST_READ_BYTES: usize = 10 << 20;

/// Exchanges the directory it is in with the link beside it, and makes again what was taken out of
/// it: what an attacker does who hopes that a path is looked at twice.
const SWAP: &str = r#"
    my $renameat2 = `uname -m` =~ /aarch64/ ? 276 : 316;
    my ($one, $other) = ("../swapped", "../other");
    chdir "swapped" or die;
    while (1) {
        mkdir "deeper";
        for my $name ("secret", "deeper/secret") {
            next if -e $name or not open(my $file, ">", "fresh");
            print $file "inside";
            close $file;
            rename "fresh", $name;
        }
        syscall($renameat2, -100, $one, -100, $other, 2);
    }
"#;

pub async fn swapped_paths_lead_nowhere(workspace: &Workspace) -> anyhow::Result<()> {
    workspace.clear().await?;
    let outside = Outside::make(workspace).await?;
    outside.is_untouched("nothing", "mkdir swapped && ln -s \"$1\" other").await?;
    let swapping = workspace.meanwhile(&["perl", "-e", SWAP]).await?;
    let (mut had, mut refused) = (0, 0);
    for round in 0..MAX_ROUNDS {
        if round >= ROUNDS && had > 0 && refused > 0 {
            break;
        }
        for path in ["swapped/secret", "swapped/deeper/secret", "swapped/deeper"] {
            for route in ROUTES.into_iter().filter(|route| !takes_other_names(route)) {
                let (status, body) = workspace.attacked(route, path).await?;
                if route == "read" && path == "swapped/secret" {
                    match status {
                        200 => had += usize::from(body["content"] == "inside"),
                        _ => refused += 1,
                    }
                }
                if changes_files(route) {
                    let restore = "rm -rf renamed secret deeper; printf safe > safe";
                    outside.is_untouched(&format!("{route} with {path}"), restore).await?;
                }
            }
        }
    }
    swapping.end().await?;
    ensure!(had > 0 && refused > 0, "in mode {}: {had} had, {refused} refused", workspace.mode);
    Ok(())
}

pub async fn a_file_that_grows_ends(workspace: &Workspace) -> anyhow::Result<()> {
    workspace.clear().await?;
    let grow = "while :; do printf xxxxxxxxxx >> growing; done";
    let growing = workspace.meanwhile(&["sh", "-c", grow]).await?;
    for _ in 0..10 {
        workspace.sh(LARGE, &[]).await?;
        let (status, body) = workspace.attacked("read", "growing").await?;
        let length = body["content"].as_str().map_or(0, str::len);
        ensure!(matches!(status, 200 | 413), "in mode {}: {status}", workspace.mode);
        ensure!(length <= MOST_READ_BYTES, "in mode {}: {length} bytes", workspace.mode);
    }
    growing.end().await?;
    ensure!(workspace.attacked("read", "safe").await?.0 == 200);
    Ok(())
}

pub async fn one_writer_wrote_all(workspace: &Workspace) -> anyhow::Result<()> {
    workspace.clear().await?;
    let api = &workspace.api;
    let write = |n: usize| async move {
        let content = char::from(b'a' + (n % 26) as u8).to_string().repeat(WRITTEN_BYTES);
        let body = json!({ "content": content });
        api.call("PUT", "/api/file?path=contended", Some(body)).await
    };
    write(0).await?;
    let reading = async {
        for _ in 0..50 {
            let (status, read) = workspace.get("/api/file?path=contended").await?;
            ensure!(status == 200 && is_whole(&read), "in mode {}: {status}", workspace.mode);
        }
        anyhow::Ok(())
    };
    let (written, read) = tokio::join!(join_all((0..WRITERS).map(write)), reading);
    read?;
    written.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (_, tree) = workspace.attacked("tree", ".").await?;
    let entries = tree["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<_> = entries.iter().map(|entry| &entry["name"]).collect();
    ensure!(names == ["contended", "safe"], "in mode {}: {tree}", workspace.mode);
    Ok(())
}

fn is_whole(read: &Value) -> bool {
    let content = read["content"].as_str().unwrap_or_default();
    let first = content.chars().next();
    content.len() == WRITTEN_BYTES && content.chars().all(|c| Some(c) == first)
}

//! A page of a real dev server, Vite, which listens on 127.0.0.1 inside a sandbox without a network:
//! a real browser shows it by the URL of its port, and an edit through the files API changes it in
//! place, by the hot-reload WebSocket.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chromium;
mod listener;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sandbank_test_support::{Api, TestDaemon, skip_unless_root, wait_for};
use serde_json::{Value, json};

use chromium::Chromium;
use listener::Listener;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/project");
const FILES: [&str; 4] = ["index.html", "main.js", "message.js", "vite.config.js"];
const WORKSPACE: &str = "/vercel/sandbox/workspace";
const PORT: u16 = 5173;

/// Neither an address nor `localhost`, both of which Vite lets pass unasked.
const HOST: &str = "preview.test";
const SOON: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_secs(3);

/// What runs it: node's own libraries may be missing in an image.
const SERVE: &str = "LD_LIBRARY_PATH=$PWD/lib exec bin/node node_modules/vite/bin/vite.js";

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_shows_a_dev_server_and_edits_appear_without_a_reload() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let Some(program) = chromium::program() else { return Ok(()) };
    let Some(installed) = installed()? else { return Ok(()) };
    let daemon = TestDaemon::start_with(SANDBANK, &[("SANDBOXD_PUBLIC_HOST", HOST)]).await?;
    let api = daemon.api()?;
    let body = json!({ "sessionKey": "web", "network": { "mode": "none" }, "ports": [PORT] });
    let id = api.create_with(body).await?;
    upload(&api, &id, &installed).await?;
    let server = api.bash_within(&id, SERVE, Duration::from_secs(300)).await?;
    let published = api.call("GET", &format!("/v1/sandboxes/{id}/ports/{PORT}"), None).await?;
    let url = published["url"].as_str().context("no url")?.to_owned();
    ensure!(url.starts_with(&format!("http://{HOST}:")), "{url}");
    let host_port = published["hostPort"].as_u64().context("no hostPort")?;

    let served = wait_for("the dev server", SOON, || async {
        status(host_port, HOST).await.is_ok_and(|status| status == 200)
    });
    if let Err(error) = served.await {
        anyhow::bail!("{error}: {:?}", api.logs(&id, &server).await?);
    }
    assert_eq!(status(host_port, "other.test").await?, 403, "the dev server itself is strict");

    let mut listener = Listener::start().await?;
    let browser = Chromium::open(&program, &format!("{url}/#{}", listener.url()), HOST)?;
    let first = listener.next(SOON).await?;
    assert_eq!((&first["shown"], &first["how"]), (&json!("first"), &json!("loaded")));
    for word in ["second", "third"] {
        let next = edited(&api, &id, word, &mut listener).await?;
        assert_eq!(next["how"], "hot", "{next}");
        assert_eq!(next["load"], first["load"], "the page was loaded again");
    }
    // A change that no module accepts loads the page again: that is told apart.
    let page =
        String::from_utf8(api.read(&id, &format!("{WORKSPACE}/index.html")).await?.unwrap())?;
    let page = page.replace("A project", "Another project");
    api.write(&id, &format!("{WORKSPACE}/index.html"), page.as_bytes()).await?;
    let mut last = listener.next(SOON).await?;
    while last["how"] == "hot" {
        last = listener.next(SOON).await?;
    }
    assert_eq!((&last["shown"], &last["how"]), (&json!("third"), &json!("loaded")));
    assert_ne!(last["load"], first["load"]);
    drop(browser);
    daemon.finish().await
}

/// What the page says once it shows the word. It is written again until then: a page may be shown
/// before it listens for changes.
async fn edited(api: &Api, id: &str, word: &str, listener: &mut Listener) -> anyhow::Result<Value> {
    let deadline = Instant::now() + SOON;
    for attempt in 1.. {
        let module = format!("export const message = \"{word}\"; // {attempt}\n");
        api.write(id, &format!("{WORKSPACE}/message.js"), module.as_bytes()).await?;
        match listener.next(AGAIN).await {
            Ok(said) if said["shown"] == word => return Ok(said),
            Err(error) if Instant::now() > deadline => return Err(error),
            _ => {}
        }
    }
    unreachable!("it ends by its deadline")
}

/// Of the page, by a name for the host.
async fn status(host_port: u64, host: &str) -> anyhow::Result<u16> {
    let request = reqwest::Client::new().get(format!("http://127.0.0.1:{host_port}/"));
    Ok(request.header("host", format!("{host}:{host_port}")).send().await?.status().as_u16())
}

/// Where Vite and a node for it are. None, with a counted reason, where they cannot be had.
fn installed() -> anyhow::Result<Option<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let output = Command::new(root.join("scripts/vite.sh")).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("skipped: Vite could not be installed: {}", said.trim());
        return Ok(None);
    }
    Ok(Some(PathBuf::from(String::from_utf8(output.stdout)?.trim())))
}

/// The project with all it needs, as one archive.
async fn upload(api: &Api, id: &str, installed: &Path) -> anyhow::Result<()> {
    let mut archive = tar::Builder::new(Vec::new());
    archive.follow_symlinks(false);
    for name in FILES {
        archive.append_path_with_name(Path::new(PROJECT).join(name), name)?;
    }
    let mut binaries = Vec::new();
    let modules = installed.join("node_modules");
    for entry in std::fs::read_dir(&modules)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("node-linux-") {
            let node = entry.path().join("bin/node");
            archive.append_path_with_name(&node, "bin/node")?;
            binaries.push(node);
        } else if entry.path().is_dir() {
            archive.append_dir_all(Path::new("node_modules").join(name), entry.path())?;
            binaries.extend(native_modules(&entry.path())?);
        }
    }
    for (name, library) in libraries(&binaries)? {
        archive.append_path_with_name(library, Path::new("lib").join(name))?;
    }
    let route = format!("/v1/sandboxes/{id}/files?path={WORKSPACE}/project.tar");
    let answer = api.request("PUT", &route).body(archive.into_inner()?).send().await?;
    ensure!(answer.status().is_success(), "{}", answer.text().await?);
    let (code, _, errors) =
        api.run(id, "tar --extract --file project.tar && rm project.tar").await?;
    ensure!(code == 0, "{errors}");
    Ok(())
}

fn native_modules(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(native_modules(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "node") {
            found.push(path);
        }
    }
    Ok(found)
}

/// By name. The C library itself is every image's own, and here always this machine's.
fn libraries(programs: &[PathBuf]) -> anyhow::Result<BTreeMap<OsString, PathBuf>> {
    let said = String::from_utf8(Command::new("ldd").args(programs).output()?.stdout)?;
    let words = said.lines().filter_map(|line| line.split_once(" => ")?.1.split(' ').next());
    let others = words.filter(|path| path.starts_with('/') && !path.contains("/libc.so"));
    others.map(|path| Ok((name_of(path)?, std::fs::canonicalize(path)?))).collect()
}

fn name_of(path: &str) -> anyhow::Result<OsString> {
    Ok(Path::new(path).file_name().context("a library is a file")?.to_owned())
}

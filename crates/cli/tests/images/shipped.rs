//! The images of `images/`, as `make images` made them: in a sandbox of each engine every tool answers
//! what `images/versions.txt` says.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use sandbank_test_support::{PrivateDocker, TestDaemon, skip_unless_root};
use serde_json::json;

use crate::place::{SANDBANK, Said};

const IMAGES: [&str; 2] = ["node24", "python3.13"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Those that are there; of the others the reason is printed.
fn archives() -> Vec<(&'static str, PathBuf)> {
    let archive = |image| (image, root().join(format!(".build/images/{image}.tar.zst")));
    let (there, missing): (Vec<_>, Vec<_>) =
        IMAGES.map(archive).into_iter().partition(|(_, path)| path.exists());
    for (image, _) in missing {
        println!("skipped: {image} was not made here; `make images` makes it");
    }
    there
}

fn lines(file: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("images").join(file)).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Commands with the beginning of what they answer.
fn expected() -> Vec<(String, String)> {
    let versions = lines("downloads.txt");
    let filled = |text: &str| {
        versions.iter().fold(text.to_owned(), |text, line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            text.replace(&format!("{{{}}}", words[1]), words[2])
        })
    };
    let rows = lines("versions.txt").into_iter().map(|line| {
        let (_part, rest) = line.split_once(' ').unwrap();
        let (answer, command) = rest.trim_start().split_once("  ").unwrap();
        (command.trim_start().to_owned(), filled(answer))
    });
    rows.collect()
}

/// The native engine has users of its own, whatever the image calls them.
const NATIVE_USER: &str = "uid=1000(user)";

async fn answer_as_defined(
    daemon: &TestDaemon,
    image: &str,
    archive: &Path,
    user: Option<&str>,
) -> anyhow::Result<()> {
    let mut import = daemon.cli();
    import.args(["image", "import", image]).arg(archive);
    let said = Said::from(tokio::task::spawn_blocking(move || import.output()).await??);
    ensure!(said.code == Some(0), "{said:?}\n{}", daemon.log_tail());
    let api = daemon.api()?;
    let body = json!({ "sessionKey": image, "image": image, "network": { "mode": "none" } });
    let id = api.create_with(body).await?;
    for (command, mut expected) in expected() {
        if let (Some(user), "id") = (user, &*command) {
            expected = user.to_owned();
        }
        let (code, answer, _) = api.run(&id, &format!("{command} 2>&1")).await?;
        let first = answer.lines().next().context("it says nothing")?;
        ensure!(first.starts_with(&expected), "{image}: `{command}` ended {code}: {answer}");
    }
    let (code, directory, _) = api.run(&id, "touch here && pwd && ! command -v sudo").await?;
    ensure!((code, &*directory) == (0, "/vercel/sandbox/workspace\n"), "{code}: {directory}");
    api.stop(&id).await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_native_sandbox_the_shipped_images_answer_as_they_are_defined() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let archives = archives();
    if archives.is_empty() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    for (image, archive) in &archives {
        answer_as_defined(&daemon, image, archive, Some(NATIVE_USER)).await?;
    }
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_docker_sandbox_the_shipped_images_answer_as_they_are_defined() -> anyhow::Result<()> {
    let archives = archives();
    if archives.is_empty() {
        return Ok(());
    }
    let Some(docker) = PrivateDocker::start(false)? else { return Ok(()) };
    let socket = docker.socket().to_string_lossy().into_owned();
    let settings = [("SANDBANK_ENGINE", "docker"), ("SANDBANK_DOCKER_HOST", &*socket)];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    for (image, archive) in &archives {
        answer_as_defined(&daemon, image, archive, None).await?;
    }
    daemon.finish().await
}

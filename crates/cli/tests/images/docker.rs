//! Images where Docker makes the sandboxes: what is refused, with a next step that helps there.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::ensure;
use sandbank_test_support::{PrivateDocker, TestDaemon};
use serde_json::json;

use crate::layers::{Layer, put, saved};
use crate::place::{SANDBANK, Said};

const IMAGE: &str = "sandbank-test";

#[tokio::test(flavor = "multi_thread")]
async fn over_docker_an_image_that_cannot_be_had_is_told_with_a_step_that_helps_there()
-> anyhow::Result<()> {
    let Some(docker) = PrivateDocker::with_busybox(false, IMAGE)? else { return Ok(()) };
    let socket = docker.socket().to_str().unwrap().to_owned();
    let settings = [
        ("SANDBANK_ENGINE", "docker"),
        ("SANDBANK_DOCKER_HOST", &*socket),
        ("SANDBANK_DOCKER_IMAGE", IMAGE),
    ];
    let mut daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let images = || {
        docker.said(&[
            "images",
            "--all",
            "--no-trunc",
            "--format",
            "{{.Repository}}:{{.Tag}} {{.ID}}",
        ])
    };
    let before = images()?;

    // Missing.
    let body = json!({ "sessionKey": "a", "runtime": "x", "image": "no/such:1",
        "network": { "mode": "none" } });
    let (status, answer) = daemon.api()?.try_call("POST", "/v1/sandboxes", Some(body)).await?;
    ensure!(status >= 400 && answer["code"] == "image_not_found", "{status} {answer}");
    ensure!(
        answer["hint"].as_str().is_some_and(|h| h.contains("`docker pull no/such:1`")),
        "{answer}"
    );
    // One that no registry has.
    let body = json!({ "sessionKey": "a", "image": "node24", "network": { "mode": "none" } });
    let (status, answer) = daemon.api()?.try_call("POST", "/v1/sandboxes", Some(body)).await?;
    ensure!(status >= 400 && answer["code"] == "image_not_found", "{status} {answer}");
    ensure!(
        answer["hint"].as_str().is_some_and(|hint| hint.contains("`make images ARGS=node24`")),
        "{answer}"
    );
    let run = |words: &[&str]| -> anyhow::Result<Said> {
        let mut command = daemon.cli();
        Ok(Said::from(command.args(words).output()?))
    };
    let said = run(&["image", "pull", "no.invalid/such:1"])?;
    ensure!(said.code != Some(0) && said.err.contains("docker pull no.invalid/such:1"), "{said:?}");

    // Another machine's, a damaged layer, and one that leads out.
    let honest = Layer::new(|tar| put(tar, "etc/motd", b"hello", 0o644));
    let mut damaged = Layer::text("etc/motd", "hello");
    damaged.tar = b"another".to_vec();
    let mut outside = Layer::text("etc/xxxx", "spoilt");
    outside.tar[..8].copy_from_slice(b"../xxxxx");
    let sum: u32 =
        outside.tar[..148].iter().chain(&outside.tar[156..512]).map(|b| u32::from(*b)).sum();
    outside.tar[148..156].copy_from_slice(format!("{:06o}\0 ", sum + 8 * 32).as_bytes());
    let outside = Layer::of(outside.tar);
    let place = tempfile::tempdir()?;
    let path = place.path().join("archive.tar");
    let here = crate::layers::machine();
    for (content, word) in [
        (saved("s390x", &honest), "for linux/s390x"),
        (saved(here, &damaged), "as its image says"),
        (saved(here, &outside), "leads out"),
    ] {
        std::fs::write(&path, content)?;
        let said = run(&["image", "import", "new", path.to_str().unwrap()])?;
        ensure!(said.code.is_some_and(|code| code != 0 && code != 101), "{said:?}");
        ensure!(said.err.contains(word) && said.err.contains("hint: "), "{said:?}");
        ensure!(images()? == before, "{word}: {}", images()?);
    }

    // Without a shell: it is made, tested and used, and what is not in it is said to be missing.
    std::fs::File::create(&path)?.write_all(&saved(here, &honest))?;
    let said = run(&["image", "import", "bare", path.to_str().unwrap()])?;
    ensure!(said.code == Some(0), "{said:?}\n{}", daemon.log_tail());
    let said = run(&["run", "--network", "none", "--image", "bare", "--", "sh", "-c", "true"])?;
    ensure!(said.code == Some(127), "{said:?}");
    let said = run(&["image", "rm", "bare"])?;
    ensure!(said.code == Some(0), "{said:?}");
    ensure!(images()? == before, "{}", images()?);
    daemon.terminate().await?;
    daemon.set("SANDBANK_ENGINE", Some("native"));
    daemon.finish().await
}

#[test]
fn a_docker_socket_that_is_not_for_us_is_named_with_the_next_step() -> anyhow::Result<()> {
    if sandbank_test_support::skip_unless_root() {
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755))?;
    let socket = place.path().join("docker.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket)?;
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
    let data = place.path().join("data");
    std::fs::create_dir(&data)?;
    std::os::unix::fs::chown(&data, Some(65_534), Some(65_534))?;
    // Where the build is need not be for everybody.
    let program = place.path().join("sandbank");
    std::fs::copy(SANDBANK, &program)?;
    let ended = Command::new(&program)
        .arg("serve")
        .env("SANDBANK_DATA_DIR", data.join("own"))
        .env("SANDBANK_PORT", "0")
        .env("SANDBANK_ENGINE", "docker")
        .env("SANDBANK_DOCKER_HOST", &socket)
        .env("HOME", &data)
        .current_dir(&data)
        .uid(65_534)
        .gid(65_534)
        .output()?;
    let said = Said::from(ended);
    ensure!(said.code == Some(75), "{said:?}");
    ensure!(said.err.contains(socket.to_str().unwrap()), "{said:?}");
    ensure!(said.err.contains("add it to the group docker"), "{said:?}");
    Ok(())
}

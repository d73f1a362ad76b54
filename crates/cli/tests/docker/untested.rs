//! Nothing is made over Docker before something was attacked there, whichever way images come.

use std::process::{Command, Stdio};

use sandbank_test_support::{PrivateDocker, TestDaemon, busybox_root, eventually, free_port};
use serde_json::{Value, json};

use crate::{IMAGE, LIMIT, SANDBANK, residue, sh};

/// Of a busybox, for Docker or for us to import.
fn archive(docker: &PrivateDocker) -> anyhow::Result<Option<String>> {
    let archive = docker.dir().join("root.tar");
    let made = busybox_root(&archive)?;
    Ok(made.map(|()| archive.to_str().unwrap().to_owned()))
}

fn settings(docker: &PrivateDocker, image: &str) -> [(&'static str, String); 3] {
    let socket = docker.socket().to_str().unwrap().to_owned();
    [
        ("SANDBANK_ENGINE", "docker".to_owned()),
        ("SANDBANK_DOCKER_HOST", socket),
        ("SANDBANK_DOCKER_IMAGE", image.to_owned()),
    ]
}

async fn daemon(docker: &PrivateDocker, image: &str) -> anyhow::Result<TestDaemon> {
    let settings = settings(docker, image);
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    TestDaemon::start_with(SANDBANK, &settings).await
}

async fn leave(mut daemon: TestDaemon, docker: &PrivateDocker) -> anyhow::Result<()> {
    daemon.api()?.delete_all().await?;
    daemon.terminate().await?;
    assert_eq!(residue(docker, &daemon)?, Vec::<String>::new());
    daemon.set("SANDBANK_ENGINE", Some("native"));
    daemon.finish().await
}

/// The images that attacks were withstood with.
fn tested(daemon: &TestDaemon) -> anyhow::Result<Vec<String>> {
    let Ok(bytes) = std::fs::read(daemon.data_dir().join("containment.json")) else {
        return Ok(Vec::new());
    };
    let record: Value = serde_json::from_slice(&bytes)?;
    let held = record["held"].as_array().unwrap().iter();
    let image = |held: &Value| {
        let key = held["key"].as_str()?.split("; image ").nth(1)?;
        key.split(' ').next().map(str::to_owned)
    };
    Ok(held.filter_map(image).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_docker_without_an_image_nothing_is_made_before_one_came_and_was_attacked()
-> anyhow::Result<()> {
    let Some(docker) = PrivateDocker::start(false)? else { return Ok(()) };
    let Some(archive) = archive(&docker)? else { return Ok(()) };
    for by_docker in [true, false] {
        let daemon = daemon(&docker, IMAGE).await?;
        let api = daemon.api()?;
        let early = Some(crate::create("early"));
        let (status, refused) = api.try_call("POST", "/v1/sandboxes", early).await?;
        assert_eq!((status, &refused["code"]), (503, &json!("containment_untested")), "{refused}");
        assert_eq!(refused["retryable"], true, "{refused}");
        let hint = refused["hint"].as_str().unwrap();
        assert!(hint.contains("make images") && hint.contains("docker pull"), "{hint}");
        assert_eq!(tested(&daemon)?, Vec::<String>::new());

        let sandbox = if by_docker {
            docker.said(&["import", &archive, IMAGE])?;
            let made = || async { api.create("early").await.ok() };
            eventually("the image to be tested", LIMIT, made).await?
        } else {
            let imported = daemon.cli().args(["image", "import", IMAGE, &archive]).output()?;
            let said = String::from_utf8_lossy(&imported.stderr).into_owned();
            assert!(imported.status.success(), "{said}");
            // It was tested by then.
            api.create("early").await?
        };
        assert_eq!(tested(&daemon)?, [IMAGE], "it was attacked before");
        assert_eq!(sh(&api, &sandbox, "echo made").await?, "made\n");
        leave(daemon, &docker).await?;
        docker.said(&["rmi", "--force", IMAGE])?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_refused_is_passed_over_for_one_that_can_be_attacked() -> anyhow::Result<()>
{
    let Some(docker) = PrivateDocker::start(false)? else { return Ok(()) };
    let Some(archive) = archive(&docker)? else { return Ok(()) };
    let refused = docker.dir().join("refused.tar");
    let mut tar = tar::Builder::new(std::fs::File::create(&refused)?);
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "tmp", "/etc")?;
    tar.finish()?;
    // By its name it comes first, and there is no default one.
    docker.said(&["import", refused.to_str().unwrap(), "a-refused"])?;

    let daemon = daemon(&docker, "not-here").await?;
    let api = daemon.api()?;
    let asks =
        |image: &str| json!({ "sessionKey": image, "image": image, "network": { "mode": "none" } });
    let alone = Some(asks("a-refused"));
    let (status, said) = api.try_call("POST", "/v1/sandboxes", alone).await?;
    assert_eq!((status, &said["code"]), (503, &json!("containment_untested")), "{said}");
    assert!(said.to_string().contains("a-refused"), "{said}");

    docker.said(&["import", &archive, IMAGE])?;
    let made = || async { api.create_with(asks(IMAGE)).await.ok() };
    let sandbox = eventually("the other image to be tested", LIMIT, made).await?;
    assert_eq!(sh(&api, &sandbox, "echo made").await?, "made\n");
    assert_eq!(tested(&daemon)?, [IMAGE]);
    let (status, said) = api.try_call("POST", "/v1/sandboxes", Some(asks("a-refused"))).await?;
    assert_eq!((status, &said["code"]), (400, &json!("bad_image")), "{said}");
    leave(daemon, &docker).await
}

#[test]
fn a_run_on_a_temporary_directory_over_docker_attacks_before_it_runs() -> anyhow::Result<()> {
    let Some(docker) = PrivateDocker::with_busybox(false, IMAGE)? else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let run = |script: &str| -> anyhow::Result<Command> {
        let mut command = Command::new(SANDBANK);
        command
            .args(["run", "--network", "none", "--", "sh", "-c", script])
            .env("SANDBANK_DATA_DIR", dir.path().join("data"))
            .env("TMPDIR", dir.path())
            .env("SANDBANK_PORT", free_port()?.to_string())
            .envs(settings(&docker, IMAGE))
            .env_remove("SANDBANK_URL")
            .env_remove("SANDBANK_TOKEN")
            .stdin(Stdio::null());
        Ok(command)
    };
    let mut first = run("echo ready; cat")?;
    let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut ready = [0; 6];
    std::io::Read::read_exact(first.stdout.as_mut().unwrap(), &mut ready)?;
    let second = run("echo second")?.env("SANDBANK_LOG", "info").output()?;
    drop(first.stdin.take());
    assert!(first.wait()?.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(second.status.success() && said.contains("temporary"), "{said}");
    assert!(said.contains("containment tested"), "{said}");
    assert_eq!(String::from_utf8_lossy(&second.stdout), "second\n");
    Ok(())
}

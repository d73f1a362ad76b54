//! One daemon with two engines: a create says which makes its sandbox, and what becomes of one
//! engine is nothing to the other's sandboxes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use sandbank_test_support::{Api, PrivateDocker, TestDaemon, eventually};
use serde_json::{Value, json};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const IMAGE: &str = "sandbank-test";
const NOTE: &str = "/vercel/sandbox/workspace/note";
const PORT: u16 = 5000;
const LIMIT: Duration = Duration::from_secs(60);

fn asks(engine: &str, key: &str) -> Value {
    json!({ "sessionKey": key, "engine": engine, "network": { "mode": "none" }, "ports": [PORT] })
}

/// Status and code of a create that is refused, and all that was said.
async fn refused(api: &Api, body: Value) -> anyhow::Result<(u16, String, String)> {
    let (status, said) = api.try_call("POST", "/v1/sandboxes", Some(body)).await?;
    Ok((status, said["code"].as_str().unwrap_or_default().to_owned(), said.to_string()))
}

/// What a script prints.
async fn sh(api: &Api, sandbox: &str, script: &str) -> anyhow::Result<String> {
    let command = api.start(sandbox, json!({ "argv": ["sh", "-c", script] })).await?;
    api.wait(sandbox, &command).await?;
    let records = api.logs(sandbox, &command).await?;
    Ok(records.into_iter().filter(|r| r.stream == "stdout").map(|r| r.data).collect())
}

/// The engine and the state of a sandbox, as it is described.
async fn described(api: &Api, sandbox: &str) -> anyhow::Result<(String, String)> {
    let all = api.call("GET", &format!("/v1/sandboxes/{sandbox}"), None).await?;
    let text = |name: &str| all[name].as_str().unwrap_or_default().to_owned();
    Ok((text("engine"), text("state")))
}

/// Commands, files and ports, as on any engine.
async fn works(api: &Api, sandbox: &str, word: &str) -> anyhow::Result<()> {
    api.write(sandbox, NOTE, word.as_bytes()).await?;
    assert_eq!(sh(api, sandbox, "cat note; id -u").await?, format!("{word}1000\n"));
    assert_eq!(api.read(sandbox, NOTE).await?.as_deref(), Some(word.as_bytes()));
    let serve = json!({ "argv": ["busybox", "httpd", "-f", "-p", PORT.to_string(), "-h", "."] });
    api.start(sandbox, serve).await?;
    answers(api, sandbox, word).await
}

async fn answers(api: &Api, sandbox: &str, word: &str) -> anyhow::Result<()> {
    let path = format!("/v1/sandboxes/{sandbox}/ports/{PORT}");
    let url = api.call("GET", &path, None).await?["url"].as_str().unwrap().to_owned();
    let note = format!("{}/note", url.trim_end_matches('/'));
    eventually("the server in the sandbox to answer", LIMIT, || async {
        let text = reqwest::get(&note).await.ok()?.text().await.ok()?;
        (text == word).then_some(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_two_engines_keeps_its_sandboxes_through_whatever_becomes_of_the_other()
-> anyhow::Result<()> {
    let Some(mut docker) = PrivateDocker::with_busybox(true, IMAGE)? else { return Ok(()) };
    let socket = docker.socket().to_str().unwrap().to_owned();
    let mut daemon = TestDaemon::start_with(
        SANDBANK,
        &[
            ("SANDBANK_ENGINE", "native"),
            ("SANDBANK_ENGINES", "native,docker"),
            ("SANDBANK_DOCKER_HOST", &socket),
            ("SANDBANK_DOCKER_IMAGE", IMAGE),
        ],
    )
    .await?;
    let api = daemon.api()?;
    let health = api.call("GET", "/v1/health", None).await?;
    assert_eq!(
        (&health["engine"], &health["engines"]),
        (&json!("native"), &json!(["native", "docker"]))
    );

    let native = api
        .create_with(
            json!({ "sessionKey": "usual", "network": { "mode": "none" }, "ports": [PORT] }),
        )
        .await?;
    tested(&api).await?;
    let contained = api.create_with(asks("docker", "contained")).await?;
    let states = |engine: &str| (engine.to_owned(), "running".to_owned());
    assert_eq!(described(&api, &native).await?, states("native"));
    assert_eq!(described(&api, &contained).await?, states("docker"));
    works(&api, &native, "here").await?;
    works(&api, &contained, "there").await?;
    for sandbox in [&native, &contained] {
        let path = format!("/v1/sandboxes/{sandbox}/containment");
        let report = api.call("GET", &path, None).await?;
        assert_eq!(report["contained"], true, "{report}");
    }

    // What is not configured, or contradicts what is there, is refused in words.
    let (status, code, said) = refused(&api, asks("podman", "other")).await?;
    assert_eq!((status, code.as_str()), (400, "engine_not_configured"), "{said}");
    assert!(said.contains("native, docker"), "{said}");
    let (status, code, said) = refused(&api, asks("native", "contained")).await?;
    assert_eq!((status, code.as_str()), (409, "conflict"), "{said}");
    assert!(said.contains("docker"), "{said}");
    let keeping = |engine: &str, key: &str| {
        let mut body = asks(engine, key);
        body["workspace"] = json!("notes");
        body
    };
    let keeper = api.create_with(keeping("docker", "keeper")).await?;
    api.stop(&keeper).await?;
    let (status, code, said) = refused(&api, keeping("native", "thief")).await?;
    assert_eq!((status, code.as_str()), (409, "workspace_elsewhere"), "{said}");
    let kept = api.call("GET", "/v1/workspaces", None).await?;
    assert_eq!(kept["workspaces"][0]["engine"], "docker", "{kept}");
    api.call("DELETE", "/v1/workspaces/notes", None).await?;

    told_apart(&api, &daemon, &native, &contained).await?;

    // The next daemon goes on where this one was killed.
    daemon.kill_9()?;
    daemon.launch().await?;
    for (sandbox, engine, word) in [(&native, "native", "here"), (&contained, "docker", "there")] {
        assert_eq!(described(&api, sandbox).await?, states(engine));
        assert_eq!(sh(&api, sandbox, "cat note").await?, word);
        answers(&api, sandbox, word).await?;
    }

    tested(&api).await?;
    // Docker goes, and what is not Docker's goes on: in this daemon and in the next.
    docker.stop_daemon()?;
    for start in ["this daemon", "the next daemon"] {
        let (status, code, said) = refused(&api, asks("docker", "late")).await?;
        assert_eq!((status, code.as_str()), (503, "engine_unavailable"), "{start}: {said}");
        assert!(start == "this daemon" || said.contains(&socket), "{start}: {said}");
        let beside = api.create_with(asks("native", start)).await?;
        assert_eq!(sh(&api, &beside, "echo on").await?, "on\n", "{start}");
        assert_eq!(sh(&api, &native, "cat note").await?, "here", "{start}");
        assert_eq!(described(&api, &contained).await?, states("docker"), "{start}");
        let listed = daemon.cli().args(["image", "ls"]).output()?;
        let text = String::from_utf8_lossy(&listed.stderr).into_owned();
        assert!(listed.status.success() && text.contains("docker does not answer"), "{text}");
        if start == "this daemon" {
            daemon.terminate().await?;
            refuses_to_forget(&daemon, &socket)?;
            daemon.launch().await?;
        }
    }
    docker.start_daemon()?;
    let late = eventually("Docker to be used again", LIMIT, || async {
        api.create_with(asks("docker", "late")).await.ok()
    })
    .await?;
    assert_eq!(sh(&api, &late, "echo back").await?, "back\n");
    // It was never Docker's daemon that it lived in.
    assert_eq!(sh(&api, &contained, "cat note").await?, "there");

    api.delete_all().await?;
    daemon.terminate().await?;
    let instance = std::fs::read_to_string(daemon.data_dir().join("instance"))?;
    assert_eq!(docker.objects_of(instance.trim())?, Vec::<String>::new());
    daemon.set("SANDBANK_ENGINES", None);
    daemon.finish().await
}

/// The daemon serves before the engine beside the default one was attacked.
async fn tested(api: &Api) -> anyhow::Result<()> {
    eventually("the other engine to be tested", LIMIT, || async {
        let doctor = api.call("GET", "/v1/doctor", None).await.ok()?;
        doctor["otherEngines"][0]["unavailable"].is_null().then_some(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_leaks_makes_nothing_and_says_so_while_the_default_one_goes_on()
-> anyhow::Result<()> {
    if !cfg!(debug_assertions) {
        println!("skipped: only a build for development can leave a control out");
        return Ok(());
    }
    let Some(docker) = PrivateDocker::with_busybox(true, IMAGE)? else { return Ok(()) };
    let socket = docker.socket().to_str().unwrap().to_owned();
    let daemon = TestDaemon::start_with(
        SANDBANK,
        &[
            ("SANDBANK_ENGINE", "docker"),
            ("SANDBANK_ENGINES", "docker,native"),
            ("SANDBANK_DOCKER_HOST", &socket),
            ("SANDBANK_DOCKER_IMAGE", IMAGE),
            ("SANDBANK_TEST_LEAVE_OUT", "seccomp"),
        ],
    )
    .await?;
    let api = daemon.api()?;
    let answer = eventually("the leak to be found", LIMIT, || async {
        let asked = Some(asks("native", "leaking"));
        let (status, said) = api.try_call("POST", "/v1/sandboxes", asked).await.ok()?;
        assert_eq!(status, 503, "{said}");
        (said["code"] != "containment_untested").then_some(said)
    })
    .await?;
    assert_eq!(
        (&answer["code"], &answer["retryable"]),
        (&json!("not_contained"), &json!(false)),
        "{answer}"
    );
    assert!(answer.to_string().contains("doctor --engine native --attack"), "{answer}");
    let doctor = api.call("GET", "/v1/doctor", None).await?;
    let native = &doctor["otherEngines"][0];
    assert_eq!((&native["engine"], &native["healthy"]), (&json!("native"), &json!(false)));
    assert!(native["unavailable"].to_string().contains("seccomp"), "{doctor}");
    let held = api.create_with(asks("docker", "held")).await?;
    assert_eq!(sh(&api, &held, "echo on").await?, "on\n");
    api.delete_all().await?;
    daemon.finish().await
}

/// In lists, by the doctor and on the command line.
async fn told_apart(
    api: &Api,
    daemon: &TestDaemon,
    native: &str,
    contained: &str,
) -> anyhow::Result<()> {
    let images = api.call("GET", "/v1/images", None).await?;
    let mut pairs: Vec<_> = images["images"].as_array().unwrap().iter().collect();
    pairs.retain(|image| image["name"] == "host" || image["name"].to_string().contains(IMAGE));
    let engines: Vec<_> = pairs.iter().map(|image| &image["engine"]).collect();
    assert_eq!(engines, ["native", "docker"], "{images}");
    let doctor = api.call("GET", "/v1/doctor", None).await?;
    assert_eq!(doctor["engine"], "native", "{doctor}");
    let other = &doctor["otherEngines"][0];
    assert_eq!((&other["engine"], &other["unavailable"]), (&json!("docker"), &Value::Null));
    assert!(other["controls"].as_array().is_some_and(|rows| !rows.is_empty()), "{doctor}");

    let listed = daemon.cli().arg("ps").output()?;
    let text = String::from_utf8(listed.stdout)?;
    for (sandbox, engine) in [(native, "native"), (contained, "docker")] {
        let line = text.lines().find(|line| line.contains(sandbox)).unwrap_or_default();
        assert!(line.split('\t').any(|cell| cell == engine), "{text}");
    }
    // Docker puts this file into each of its containers.
    let script = "test -e /.dockerenv && echo a container || echo no container";
    for (engine, expected) in [("docker", "a container\n"), ("native", "no container\n")] {
        let run = ["run", "--engine", engine, "--network", "none", "--", "sh", "-c", script];
        let ran = daemon.cli().args(run).output()?;
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(String::from_utf8(ran.stdout)?, expected, "{engine}");
    }
    for engine in ["native", "docker"] {
        let listed = daemon.cli().args(["image", "ls", "--engine", engine]).output()?;
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        assert_eq!(String::from_utf8(listed.stdout)?.contains(IMAGE), engine == "docker");
    }
    let slip = daemon.cli().args(["image", "ls", "--engine", "dokcer"]).output()?;
    let text = String::from_utf8_lossy(&slip.stderr).into_owned();
    assert_eq!(slip.status.code(), Some(64), "{text}");
    assert!(text.contains("native, docker"), "{text}");
    let stranger = daemon.cli().args(["run", "--engine", "podman", "--", "true"]).output()?;
    let text = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert!(!stranger.status.success() && text.contains("native, docker"), "{text}");
    Ok(())
}

/// A daemon without Docker among its engines does not start over Docker's sandboxes.
fn refuses_to_forget(daemon: &TestDaemon, socket: &str) -> anyhow::Result<()> {
    let ended = std::process::Command::new("timeout")
        .args(["--kill-after=5", "60", SANDBANK, "serve"])
        .env("SANDBANK_DATA_DIR", daemon.data_dir())
        .env("SANDBANK_PORT", "0")
        .env("SANDBANK_ENGINE", "native")
        .env("SANDBANK_DOCKER_HOST", socket)
        .output()?;
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(64), "{text}");
    assert!(text.contains("of the engine docker, which is not configured"), "{text}");
    assert!(text.contains("SANDBANK_ENGINES"), "{text}");
    Ok(())
}

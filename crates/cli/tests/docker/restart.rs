//! Docker is restarted in the middle of work: a stream is open, somebody waits, a port is in use and
//! a sandbox is paused. Where its containers live on, so does all of that; where they end with it,
//! everybody is told.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, ensure};
use sandbank_test_support::{Api, PrivateDocker, TestDaemon, eventually, wait_for};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{IMAGE, LIMIT, SANDBANK, create, residue, sh};

const PORT: u16 = 5000;

/// Says numbered lines until it is told to end, and then how many there were.
const TALK: &str = "i=0; until [ -e go ]; do i=$((i+1)); echo line $i; sleep 0.02; done; \
                    echo $i in all; exit 29";

/// How following a command came to its end.
#[derive(Debug)]
enum End {
    Code(Option<i64>, String),
    /// Neither it nor its sandbox is there any more.
    Gone,
}

/// Of a client that comes back after each break, as it should.
#[derive(Debug)]
struct Followed {
    text: String,
    breaks: u32,
    end: End,
}

struct Work {
    // It goes before the Docker that its sandboxes are in.
    daemon: TestDaemon,
    docker: PrivateDocker,
    api: Api,
    busy: String,
    paused: String,
    command: String,
    reading: JoinHandle<anyhow::Result<Followed>>,
    waiting: JoinHandle<anyhow::Result<End>>,
    /// Through the published port, to a server that repeats what it hears.
    connection: TcpStream,
    address: String,
}

impl Work {
    async fn begin(live_restore: bool) -> anyhow::Result<Option<Self>> {
        let Some(docker) = PrivateDocker::with_busybox(live_restore, IMAGE)? else {
            return Ok(None);
        };
        let socket = docker.socket().to_string_lossy().into_owned();
        let settings = [
            ("SANDBANK_ENGINE", "docker"),
            ("SANDBOXD_DOCKER_SOCKET", &*socket),
            ("SANDBANK_DOCKER_IMAGE", IMAGE),
        ];
        let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
        let api = daemon.api()?;
        let mut body = create("busy");
        body["ports"] = json!([PORT]);
        let busy = api.create_with(body).await?;
        let echo = ["nc", "-ll", "-p", &PORT.to_string(), "-e", "cat"];
        api.start(&busy, json!({ "argv": echo })).await?;
        let route = format!("/v1/sandboxes/{busy}/ports/{PORT}");
        let url =
            api.call("GET", &route, None).await?["url"].as_str().context("no url")?.to_owned();
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let connection =
            eventually("the port to be served", LIMIT, || async { echoed(&address).ok() }).await?;

        let paused = api.create("paused").await?;
        let beat = "while :; do echo x >> beats; sleep 0.02; done";
        api.start(&paused, json!({ "argv": ["sh", "-c", beat] })).await?;
        wait_for("a beat", LIMIT, || async { beats(&api, &paused).await.is_ok_and(|n| n > 0) })
            .await?;
        api.call("POST", &format!("/v1/sandboxes/{paused}:pause"), None).await?;

        let command = api.start(&busy, json!({ "argv": ["sh", "-c", TALK] })).await?;
        let route = format!("/v1/sandboxes/{busy}/commands/{command}");
        let reading = tokio::spawn(follow(api.clone(), route.clone()));
        let waiting = tokio::spawn(wait(api.clone(), route.clone()));
        wait_for("some lines", LIMIT, || async {
            let status = api.call("GET", &route, None).await;
            status.is_ok_and(|status| status["lastSeq"].as_u64() > Some(20))
        })
        .await?;
        Ok(Some(Self {
            docker,
            daemon,
            api,
            busy,
            paused,
            command,
            reading,
            waiting,
            connection,
            address,
        }))
    }

    /// New calls, while there is no Docker: each is answered, at once and with the advice to come
    /// back.
    async fn refused(&self) -> anyhow::Result<()> {
        let (busy, paused) = (&self.busy, &self.paused);
        let start = json!({ "argv": ["true"] });
        let calls = [
            ("POST", "/v1/sandboxes".to_owned(), Some(create("new"))),
            ("POST", format!("/v1/sandboxes/{busy}/commands"), Some(start)),
            ("GET", format!("/v1/sandboxes/{busy}/files:read?path=go"), None),
            ("GET", format!("/v1/sandboxes/{busy}/stats"), None),
            ("POST", format!("/v1/sandboxes/{paused}:resume"), None),
        ];
        for (method, route, body) in calls {
            let mut request = self.api.request(method, &route).timeout(LIMIT);
            if let Some(body) = body {
                request = request.json(&body);
            }
            let answer = request.send().await.with_context(|| route.clone())?;
            let (status, advice) = (answer.status().as_u16(), retry_after(&answer));
            let said: Value = answer.json().await?;
            ensure!(status == 503 && advice.is_some(), "{method} {route}: {status} {said}");
            ensure!(said["code"] == "engine_unavailable", "{method} {route}: {said}");
        }
        Ok(())
    }

    /// Whatever was in use has ended, and nobody who comes meanwhile is kept.
    fn port_is_closed(&mut self) -> anyhow::Result<()> {
        self.connection.set_read_timeout(Some(LIMIT))?;
        let heard = self.connection.read(&mut [0; 16]);
        let timed_out =
            |kind| matches!(kind, std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
        ensure!(!heard.as_ref().is_err_and(|error| timed_out(error.kind())), "it hangs");
        ensure!(heard.as_ref().map_or(0, |bytes| *bytes) == 0, "{heard:?}");
        ensure!(echoed(&self.address).is_err(), "without Docker nobody repeats anything");
        Ok(())
    }

    async fn state(&self, sandbox: &str) -> anyhow::Result<Value> {
        let route = format!("/v1/sandboxes/{sandbox}");
        Ok(self.api.call("GET", &route, None).await?["state"].clone())
    }

    async fn finish(mut self) -> anyhow::Result<()> {
        self.api.delete_all().await?;
        self.daemon.terminate().await?;
        let left = residue(&self.docker, &self.daemon)?;
        ensure!(left.is_empty(), "left in Docker: {left:?}");
        self.daemon.set("SANDBANK_ENGINE", Some("native"));
        self.daemon.finish().await
    }
}

/// A connection over which a word has come back.
fn echoed(address: &str) -> anyhow::Result<TcpStream> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(LIMIT))?;
    connection.write_all(b"word")?;
    let mut heard = [0; 4];
    connection.read_exact(&mut heard)?;
    ensure!(&heard == b"word", "{heard:?}");
    Ok(connection)
}

async fn beats(api: &Api, sandbox: &str) -> anyhow::Result<u64> {
    Ok(sh(api, sandbox, "wc -l < beats").await?.trim().parse()?)
}

fn retry_after(answer: &reqwest::Response) -> Option<u64> {
    answer.headers().get("retry-after")?.to_str().ok()?.parse().ok()
}

/// How long a client that was told to come back waits. The advice is in whole seconds.
async fn come_back(advice: Option<u64>) {
    tokio::time::sleep(Duration::from_secs(advice.unwrap_or(0)).min(Duration::from_secs(1))).await;
}

async fn follow(api: Api, command: String) -> anyhow::Result<Followed> {
    let (mut text, mut seq, mut breaks) = (String::new(), 0, 0);
    loop {
        let answer = api.request("GET", &format!("{command}/logs?after={seq}")).send().await?;
        let (status, advice) = (answer.status().as_u16(), retry_after(&answer));
        match status {
            200 => {}
            404 | 410 => return Ok(Followed { text, breaks, end: End::Gone }),
            503 if advice.is_some() => {
                come_back(advice).await;
                continue;
            }
            _ => anyhow::bail!("{status}: {}", answer.text().await?),
        }
        if let Some(end) = read(answer, &mut text, &mut seq).await? {
            return Ok(Followed { text, breaks, end });
        }
        breaks += 1;
    }
}

/// The ending, unless the stream broke off before.
async fn read(
    mut stream: reqwest::Response,
    text: &mut String,
    seq: &mut u64,
) -> anyhow::Result<Option<End>> {
    let mut partial = Vec::new();
    while let Ok(Some(chunk)) = stream.chunk().await {
        partial.extend_from_slice(&chunk);
        while let Some(end) = partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = partial.drain(..=end).collect();
            let record: Value = serde_json::from_slice(&line)?;
            match (record["stream"].as_str(), record["type"].as_str()) {
                (Some("control"), Some("heartbeat")) => {}
                (Some("control"), Some("ending")) => {
                    let kind = record["ending"]["kind"].as_str().unwrap_or_default().to_owned();
                    return Ok(Some(End::Code(record["exitCode"].as_i64(), kind)));
                }
                _ => {
                    ensure!(record["seq"] == json!(*seq + 1), "after {seq}: {record}");
                    *seq += 1;
                    text.push_str(record["data"].as_str().unwrap_or_default());
                }
            }
        }
    }
    Ok(None)
}

async fn wait(api: Api, command: String) -> anyhow::Result<End> {
    loop {
        let answer = api.request("GET", &format!("{command}/wait")).send().await?;
        let (status, advice) = (answer.status().as_u16(), retry_after(&answer));
        let said: Value = answer.json().await?;
        match status {
            200 => {
                let kind = said["ending"]["kind"].as_str().unwrap_or_default().to_owned();
                return Ok(End::Code(said["exitCode"].as_i64(), kind));
            }
            404 | 410 => return Ok(End::Gone),
            503 if advice.is_some() => come_back(advice).await,
            _ => anyhow::bail!("{status}: {said}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_on_over_a_restart_of_docker_that_its_containers_outlive() -> anyhow::Result<()> {
    let Some(mut work) = Work::begin(true).await? else { return Ok(()) };
    work.docker.stop_daemon()?;
    work.refused().await?;
    work.port_is_closed()?;
    assert_eq!(work.state(&work.busy).await?, "running");
    assert_eq!(work.state(&work.paused).await?, "paused");
    work.docker.start_daemon()?;
    eventually("the sandbox to be reached again", LIMIT, || async {
        sh(&work.api, &work.busy, "touch go; echo on").await.ok().filter(|said| said == "on\n")
    })
    .await?;

    let followed = tokio::time::timeout(LIMIT, &mut work.reading).await???;
    let count = followed.text.lines().count() - 1;
    let said: String = (1..=count).map(|number| format!("line {number}\n")).collect();
    assert_eq!(followed.text, format!("{said}{count} in all\n"), "{:?}", followed.end);
    assert!(matches!(followed.end, End::Code(Some(29), _)), "{:?}", followed.end);
    println!("the stream broke {} times", followed.breaks);
    let waited = tokio::time::timeout(LIMIT, &mut work.waiting).await???;
    assert!(matches!(waited, End::Code(Some(29), _)), "{waited:?}");

    eventually("the port to be served again", LIMIT, || async { echoed(&work.address).ok() })
        .await?;
    assert_eq!(work.state(&work.paused).await?, "paused");
    let name = format!("sandbank-{}", work.paused);
    assert_eq!(work.docker.said(&["inspect", "--format", "{{.State.Paused}}", &name])?, "true");
    work.api.call("POST", &format!("/v1/sandboxes/{}:resume", work.paused), None).await?;
    let before = beats(&work.api, &work.paused).await?;
    wait_for("the paused one to go on", LIMIT, || async {
        beats(&work.api, &work.paused).await.is_ok_and(|now| now > before)
    })
    .await?;
    work.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_ends_with_docker_is_lost_and_everybody_is_told() -> anyhow::Result<()> {
    let Some(mut work) = Work::begin(false).await? else { return Ok(()) };
    work.docker.stop_daemon()?;
    work.port_is_closed()?;
    work.docker.start_daemon()?;
    let lost = |end: &End| match end {
        // Whoever waits for a code is told 1 where nobody knows one.
        End::Code(code, kind) => kind == "lost" && code.is_none_or(|code| code == 1),
        End::Gone => true,
    };
    let followed = tokio::time::timeout(LIMIT, &mut work.reading).await???;
    assert!(lost(&followed.end), "{:?}", followed.end);
    let waited = tokio::time::timeout(LIMIT, &mut work.waiting).await???;
    assert!(lost(&waited), "{waited:?}");
    for sandbox in [&work.busy, &work.paused] {
        let route = format!("/v1/sandboxes/{sandbox}/post-mortem");
        let told = eventually("a post-mortem", LIMIT, || async {
            let (status, body) = work.api.try_call("GET", &route, None).await.ok()?;
            (status == 200).then_some(body)
        })
        .await?;
        assert!(told["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{told}");
        assert_eq!(work.state(sandbox).await?, "failed", "{told}");
    }
    let logs = format!("/v1/sandboxes/{}/commands/{}/logs", work.busy, work.command);
    let (status, late) = work.api.try_call("GET", &logs, None).await?;
    assert!([404, 410].contains(&status), "{status}: {late}");
    work.finish().await
}

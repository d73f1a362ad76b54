//! Special files, and many writers of one file (T52, T56).

use std::time::Duration;

use sandbank_test_support::{TestDaemon, skip_unless_root, wait_for};

use crate::SANDBANK;
use crate::wire::envelope;

/// Long enough for a slow machine; a request that waits for a pipe's other end never ends.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_file_is_refused_at_once_and_stays_as_it_was() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("special").await?;
    let script = "mkdir dir; mkfifo fifo; echo x > file; ln -s fifo to-fifo; ln -s /dev/null null; \
        ln -s /proc/kmsg kmsg; ln -s /proc/self/mem mem; ln -s /dev/zero zero; ln -s loop loop; \
        ln -s /etc/passwd passwd; ln -s file to-file; \
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'";
    let (code, _, err) = api.run(&id, script).await?;
    assert_eq!(code, 0, "{err}");
    let special =
        ["dir", "fifo", "socket", "to-fifo", "null", "kmsg", "mem", "zero", "loop", "passwd"];
    let send = async |method: &str, route: &str, body: Option<&'static str>| {
        let request = api.request(method, &format!("/v1/sandboxes/{id}/{route}"));
        let request = match body {
            Some(body) => request.body(body),
            None => request,
        };
        let answer = tokio::time::timeout(PATIENCE, request.send()).await;
        answer.unwrap_or_else(|_| panic!("{method} {route} hangs")).unwrap()
    };
    for name in special {
        for (method, route, body) in [
            ("GET", format!("files?path={name}"), None),
            ("HEAD", format!("files?path={name}"), None),
            ("GET", format!("files:read?path=/workspace/{name}"), None),
            ("PUT", format!("files?path={name}&offset=0"), Some("overwritten")),
        ] {
            let answer = send(method, &route, body).await;
            let status = answer.status().as_u16();
            assert!((400..500).contains(&status), "{method} {route}: {status}");
            if method != "HEAD" {
                envelope(&answer.text().await?);
            }
        }
    }
    for name in ["dir", "fifo", "socket"] {
        let answer = send("PUT", &format!("files?path={name}"), Some("overwritten")).await;
        assert_eq!(answer.status(), 409, "a file in place of {name}");
    }
    // The same requests on a file, and through a link to it.
    for name in ["file", "to-file"] {
        assert_eq!(send("GET", &format!("files?path={name}"), None).await.text().await?, "x\n");
        assert_eq!(
            send("PUT", &format!("files?path={name}&offset=0"), Some("x")).await.status(),
            200
        );
    }
    let (_, kinds, _) = api.run(&id, "stat -c '%n %F' * | sort").await?;
    assert!(kinds.contains("fifo fifo\n") && kinds.contains("socket socket\n"), "{kinds}");
    assert!(kinds.contains("null symbolic link\n"), "{kinds}");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_grows_while_it_is_read_ends() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("grows").await?;
    let command =
        api.bash(&id, "while :; do head -c 65536 /dev/zero; done | head -c 300M > grows").await?;
    wait_for("the file to grow", PATIENCE, || async {
        let route = format!("/v1/sandboxes/{id}/files:stat?path=grows");
        api.call("GET", &route, None).await.is_ok_and(|stat| stat["size"].as_u64() > Some(1 << 20))
    })
    .await?;
    let answer = api.request("GET", &format!("/v1/sandboxes/{id}/files?path=grows")).send().await?;
    let stated: usize = answer.headers()["content-length"].to_str()?.parse()?;
    let content = tokio::time::timeout(PATIENCE, answer.bytes()).await.expect("it ends")?;
    assert_eq!(content.len(), stated, "as long as it was when it was opened");
    api.call("POST", &format!("/v1/sandboxes/{id}/commands/{command}:kill"), None).await?;
    daemon.finish().await
}

/// One version of the file, told by its first byte and as long as that says.
fn version(writer: u8) -> Vec<u8> {
    vec![b'a' + writer % 26; 100_000 + usize::from(writer) * 1000]
}

fn is_one_version(content: &[u8]) -> bool {
    (0..100).any(|writer| content == version(writer))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_writers_of_one_file_leave_one_whole_version() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("writers").await?;
    let path = format!("/v1/sandboxes/{id}/files?path=f");
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..100 {
        let (api, path) = (api.clone(), path.clone());
        writers.spawn(async move {
            api.request("PUT", &path).body(version(writer)).send().await.unwrap().status()
        });
    }
    let mut seen = 0;
    while let Some(status) = writers.join_next().await {
        assert_eq!(status?, 200);
        if seen % 10 == 0 {
            let content = api.request("GET", &path).send().await?.bytes().await?;
            assert!(is_one_version(&content), "a mix of {} bytes", content.len());
        }
        seen += 1;
    }
    // Killed in the middle of further writes, the daemon leaves a whole version, too.
    let before = api.request("GET", &path).send().await?.bytes().await?;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..20 {
        let (api, path) = (api.clone(), path.clone());
        writers.spawn(async move {
            let half = version(writer)[..50_000].to_vec();
            let start = futures_util::stream::iter([Ok::<_, std::io::Error>(half)]);
            let never = futures_util::StreamExt::chain(start, futures_util::stream::pending());
            let request = api.request("PUT", &path).body(reqwest::Body::wrap_stream(never));
            request.send().await.is_err()
        });
    }
    wait_for("the uploads to begin", PATIENCE, || async {
        api.run(&id, "ls -A").await.is_ok_and(|(_, names, _)| names.lines().count() >= 10)
    })
    .await?;
    daemon.kill_9()?;
    writers.join_all().await;
    daemon.launch().await?;
    let after = api.request("GET", &path).send().await?.bytes().await?;
    assert!(after == before, "half an upload changed the file");
    wait_for("the drafts to go", PATIENCE, || async {
        api.run(&id, "ls -A").await.is_ok_and(|(_, names, _)| names == "f\n")
    })
    .await?;
    daemon.finish().await
}

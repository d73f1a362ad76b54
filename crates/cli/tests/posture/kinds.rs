//! What processes of each kind find themselves to be, in one sandbox.

use sandbank_test_support::{Api, TestDaemon};
use serde_json::json;

use crate::runner;

/// Prints one `name: value` per line. Runs inside as the workload.
const PROBE: &str = include_str!("probe.py");

pub(crate) struct Seen {
    pub(crate) command: Vec<String>,
    pub(crate) terminal: Vec<String>,
    /// Of a command that has ended.
    pub(crate) child: Vec<String>,
    /// As the host sees it.
    pub(crate) runner: Vec<String>,
}

impl Seen {
    pub(crate) async fn in_sandbox(daemon: &TestDaemon, sandbox: &str) -> anyhow::Result<Self> {
        let api = daemon.api()?;
        api.write(sandbox, "/vercel/sandbox/workspace/probe.py", PROBE.as_bytes()).await?;
        let host = runner::host_namespaces(daemon)?;
        let lines = |text: String| with_namespaces(&text, &host);
        Ok(Self {
            command: lines(command(&api, sandbox).await?),
            terminal: lines(terminal(&api, sandbox).await?),
            child: lines(background_child(&api, sandbox).await?),
            runner: runner::posture(daemon, sandbox, &host)?,
        })
    }

    /// How others differ from a plain command of the same sandbox.
    pub(crate) fn differences(&self, other: &[String]) -> Vec<String> {
        differences(&self.command, other)
    }
}

/// What the other has, and what it has not.
pub(crate) fn differences(usual: &[String], other: &[String]) -> Vec<String> {
    let more = other.iter().filter(|line| !usual.contains(line)).cloned();
    let less = usual.iter().filter(|line| !other.contains(line));
    more.chain(less.map(|line| format!("not {line}"))).collect()
}

async fn command(api: &Api, sandbox: &str) -> anyhow::Result<String> {
    let (code, seen, errors) = api.run(sandbox, "exec python3 probe.py").await?;
    anyhow::ensure!((code, errors.as_str()) == (0, ""), "{code}: {errors}");
    Ok(seen)
}

async fn terminal(api: &Api, sandbox: &str) -> anyhow::Result<String> {
    let argv = ["bash", "-lc", "exec python3 probe.py"];
    let body = json!({ "argv": argv, "pty": { "rows": 24, "cols": 200 } });
    let command = api.start(sandbox, body).await?;
    let records = api.logs(sandbox, &command).await?;
    let seen: String = records.into_iter().map(|record| record.data).collect();
    anyhow::ensure!(api.wait(sandbox, &command).await? == 0, "{seen}");
    Ok(seen.replace("\r\n", "\n"))
}

/// It looks at itself when the command that began it has ended.
async fn background_child(api: &Api, sandbox: &str) -> anyhow::Result<String> {
    let child = "until [ -e go ]; do sleep 0.02; done; python3 probe.py >seen 2>&1; touch done";
    let begin = format!("setsid sh -c '{child}' </dev/null >/dev/null 2>&1 & exit 0");
    anyhow::ensure!(api.run(sandbox, &begin).await?.0 == 0, "it cannot be begun");
    let look = "touch go; until [ -e done ]; do sleep 0.02; done; cat seen; rm go done seen";
    let (code, seen, errors) = api.run(sandbox, look).await?;
    anyhow::ensure!((code, errors.as_str()) == (0, ""), "{code}: {errors}");
    Ok(seen)
}

/// Inodes of namespaces differ from run to run; whether they are the host's does not.
fn with_namespaces(text: &str, host: &[String]) -> Vec<String> {
    let is_namespace = |line: &&str| line.starts_with("namespace ");
    let (namespaces, mut lines): (Vec<&str>, Vec<&str>) = text.lines().partition(is_namespace);
    lines.retain(|line| !line.is_empty());
    let own = namespaces.iter().filter_map(|line| line.strip_prefix("namespace "));
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    lines.push(runner::apart("the host", own, host));
    lines
}

//! A server of repositories at a public address, as far as sandboxes can tell: in a network namespace that only this
//! machine reaches, or in that of the Docker that they are in.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sandbank_test_support::{GIT_SERVER, TestDaemon};

/// Of the first; servers of one Docker share its network.
const FIRST_PORT: u16 = 8418;
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

pub(crate) struct Outside {
    server: Child,
    address: String,
    port: u16,
}

impl Outside {
    /// Of the repositories in a directory.
    pub(crate) fn start(daemon: &TestDaemon, directory: &Path) -> anyhow::Result<Self> {
        // Of a block that is for examples; another test, also of another process on this machine, has
        // another part.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let started = STARTED.fetch_add(1, Ordering::Relaxed);
        let part = 4 * ((std::process::id() + started * 7) % 64);
        let port = FIRST_PORT + u16::try_from(started)?;
        let address = format!("198.51.100.{}", part + 2);
        let mut command = match daemon.docker() {
            Some(docker) => {
                run(docker.enter("ip")?.args([
                    "address",
                    "add",
                    &format!("{address}/32"),
                    "dev",
                    "lo",
                ]))?;
                docker.enter("python3")?
            }
            None => {
                let mut command = Command::new("unshare");
                command.args(["--net", "python3"]);
                command
            }
        };
        command.args(["-c", GIT_SERVER]).arg(directory).args(["0.0.0.0", &port.to_string(), ""]);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = quiet.spawn()?;
        let outside = Self { server, address, port };
        if daemon.docker().is_none() {
            outside.link(part)?;
        }
        outside.listens(daemon)?;
        Ok(outside)
    }

    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }

    /// Between this machine and the namespace of the server; it goes with the server.
    fn link(&self, part: u32) -> anyhow::Result<()> {
        let (pid, own) = (self.server.id().to_string(), std::fs::read_link("/proc/self/ns/net")?);
        let there = format!("/proc/{pid}/ns/net");
        until("the server has a namespace", || {
            std::fs::read_link(&there).is_ok_and(|it| it != own)
        })?;
        let (here, peer) = (format!("sbseed{part}"), format!("sbseed{part}p"));
        let ip = |line: &str| run(Command::new("ip").args(line.split(' ')));
        ip(&format!("link add {here} type veth peer name {peer}"))?;
        ip(&format!("link set {peer} netns {pid}"))?;
        ip(&format!("address add 198.51.100.{}/30 dev {here}", part + 1))?;
        ip(&format!("link set {here} up"))?;
        // Answers come in by it, for sandboxes.
        std::fs::write(format!("/proc/sys/net/ipv4/conf/{here}/forwarding"), "1")?;
        let inside = |line: &str| {
            let enter = ["--target", &pid, "--net", "ip"];
            run(Command::new("nsenter").args(enter).args(line.split(' ')))
        };
        inside(&format!("address add {}/30 dev {peer}", self.address))?;
        inside(&format!("link set {peer} up"))?;
        inside(&format!("route add default via 198.51.100.{}", part + 1))
    }

    fn listens(&self, daemon: &TestDaemon) -> anyhow::Result<()> {
        let url = format!("http://{}/", self.address());
        until("the server listens", || {
            let ask = match daemon.docker() {
                Some(docker) => docker.enter("curl"),
                None => Ok(Command::new("curl")),
            };
            let asked = ask.map(|mut ask| {
                ask.args(["--silent", "--max-time", "2", "--output", "/dev/null", &url]).status()
            });
            asked.is_ok_and(|asked| asked.is_ok_and(|status| status.success()))
        })
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn until(what: &str, mut holds: impl FnMut() -> bool) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        ensure!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(POLL);
    }
    Ok(())
}

//! A server at a public address, as far as sandboxes can tell: in a network namespace that only this
//! machine reaches, or in that of the Docker that they are in.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sandbank_test_support::TestDaemon;

const PORT: u16 = 8418;
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

pub(crate) struct Outside {
    server: Child,
    address: String,
}

impl Outside {
    /// `program` is Python, and is told a directory and the port.
    pub(crate) fn start(
        daemon: &TestDaemon,
        program: &str,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        // Of a block that is for examples; another test process on this machine has another part.
        let part = 4 * (std::process::id() % 64);
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
        command.args(["-c", program]).arg(directory).arg(PORT.to_string());
        let server = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let outside = Self { server, address };
        if daemon.docker().is_none() {
            outside.link(part)?;
        }
        outside.listens(daemon)?;
        Ok(outside)
    }

    pub(crate) fn address(&self) -> String {
        format!("{}:{PORT}", self.address)
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

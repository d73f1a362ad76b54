//! A server of ssh where a private Docker is, with keys of its own, and what its users are
//! configured with.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sandbank_test_support::{Cable, PrivateDocker, find_program};
use tempfile::TempDir;

use crate::support::wait_for;

/// Nobody else listens where the private Docker is.
pub(crate) const PORT: u16 = 22;

/// Its user's home has the key that is let in; Docker's socket is where the CLI looks for it.
const SERVE: &str = r#"
mount -t tmpfs -o mode=0700 tmpfs ~root
mkdir -m 700 ~root/.ssh
(umask 077 && cp "$0/known.pub" ~root/.ssh/authorized_keys)
ln -sf "$1" /run/docker.sock
exec "$2" -F -E -s -r "$0/host" -P "$0/pid" -p 127.0.0.1:22
"#;

pub(crate) struct Sshd {
    directory: TempDir,
    server: Child,
}

impl Sshd {
    /// None, with a counted reason, where there can be none.
    pub(crate) async fn start(docker: &PrivateDocker, cable: &Cable) -> Option<Self> {
        for program in ["dropbear", "dropbearkey", "ssh", "ssh-keygen"] {
            if find_program(program).is_none() {
                println!("skipped: there is no {program} here; see scripts/setup.sh --test");
                return None;
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["known", "unknown"] {
            let make = ["-q", "-t", "ed25519", "-N", "", "-f"];
            said(Command::new("ssh-keygen").args(make).arg(at(name)));
        }
        let host = ["-t", "ed25519", "-f"];
        let told = said(Command::new("dropbearkey").args(host).arg(at("host")));
        let key = told.lines().find(|line| line.starts_with("ssh-ed25519 ")).unwrap().to_owned();
        let near = cable.near();
        let known = format!("[{}]:{} {key}\n", near.ip(), near.port());
        fs::write(at("known_hosts"), known).unwrap();
        fs::write(at("no_hosts"), "").unwrap();
        for (name, identity, hosts) in [
            ("friend", "known", "known_hosts"),
            ("stranger", "unknown", "known_hosts"),
            ("doubter", "known", "no_hosts"),
        ] {
            let (identity, hosts) = (at(identity), at(hosts));
            fs::create_dir(at(name)).unwrap();
            let config = format!(
                "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\n",
                identity.display(),
                hosts.display()
            );
            fs::write(at(name).join("ssh_config"), config).unwrap();
        }
        let mut server = docker.enter("unshare").unwrap();
        server.args(["--mount", "sh", "-euc", SERVE]).arg(directory.path());
        server.arg(docker.socket()).arg(find_program("dropbear").unwrap());
        let log = fs::File::create(at("log")).unwrap();
        let server = server.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        let started = Self { directory, server };
        wait_for("the server of ssh", async || answers(near)).await;
        Some(started)
    }

    /// In the place of `/etc/ssh`: of a `friend`; of a `stranger`, whose key is unknown there; of a
    /// `doubter`, who does not know the server.
    pub(crate) fn of(&self, whom: &str) -> PathBuf {
        self.path().join(whom)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// It ends with Docker's namespaces; the program that entered them is waited for.
impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn answers(near: SocketAddr) -> bool {
    let mut word = [0; 4];
    let read = TcpStream::connect(near).and_then(|mut stream| stream.read_exact(&mut word));
    read.is_ok() && word == *b"SSH-"
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

//! A machine over whatever way to Docker the environment names. The environment is a process's own,
//! so a test runs itself again in another one.

pub(crate) mod certificates;
pub(crate) mod sshd;

use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use sandbank_channel::RunnerClient;
use sandbank_engine::{DeathCause, Engine, InstanceId, SandboxId};
use sandbank_engine_docker::{DockerEngine, DockerSettings};
use sandbank_protocol::Frame;
use sandbank_test_support::{Cable, PrivateDocker, busybox_root};

use crate::support::{command, image, run, soon, spec};

const INSTANCE: &str = "SANDBANK_TEST_INSTANCE";
const CUTTER: &str = "SANDBANK_TEST_CUTTER";

/// What a process says whose engine was reached, and whose machine lived through everything.
pub(crate) const REACHED: &str = "the engine was reached";
const LIVED: &str = "the machine lived through it";

/// Another process with this test, and the way to Docker that it is told.
pub(crate) struct Elsewhere<'a> {
    pub(crate) test: &'a str,
    pub(crate) env: Vec<(&'a str, String)>,
    /// In the place of `/etc/ssh`, if ssh is to be used.
    pub(crate) ssh: Option<&'a Path>,
}

impl Elsewhere<'_> {
    /// Only looks at the engine. What it says of that.
    pub(crate) fn look(&self) -> String {
        self.run(&InstanceId::random(), None)
    }

    /// Has a machine there, and leaves nothing of it.
    pub(crate) fn live(&self, docker: &PrivateDocker, cable: &Cable) {
        let instance = InstanceId::random();
        let said = self.run(&instance, Some(cable.cutter().to_string()));
        assert!(said.contains(LIVED), "{said}");
        let left = docker.objects_of(instance.as_str()).unwrap();
        assert_eq!(left, Vec::<String>::new());
    }

    fn run(&self, instance: &InstanceId, cutter: Option<String>) -> String {
        let home = tempfile::tempdir().unwrap();
        let this = std::env::current_exe().unwrap();
        let mut command = match self.ssh {
            None => Command::new(this),
            Some(directory) => {
                let mut command = Command::new("unshare");
                let script = "mount --bind \"$0\" /etc/ssh; exec \"$@\"";
                command.args(["--mount", "--propagation", "private", "sh", "-euc", script]);
                command.arg(directory).arg(this);
                command
            }
        };
        command.args([self.test, "--exact", "--nocapture"]);
        for name in ["HOST", "CONTEXT", "CONFIG", "TLS_VERIFY", "CERT_PATH"] {
            command.env_remove(format!("DOCKER_{name}"));
        }
        command.env_remove("XDG_RUNTIME_DIR").env("HOME", home.path());
        command.env(INSTANCE, instance.as_str()).envs(self.env.iter().cloned());
        command.envs(cutter.map(|cutter| (CUTTER, cutter)));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{complaint}");
        said
    }
}

/// True in the other process, when it is done.
pub(crate) async fn was_elsewhere() -> bool {
    let Ok(instance) = std::env::var(INSTANCE) else { return false };
    let mut settings = DockerSettings::new(instance.parse().unwrap());
    settings.default_image = Some(image());
    match DockerEngine::start(settings).await {
        Err(error) => println!("not reached: {error}"),
        Ok(engine) => {
            assert!(engine.list().await.unwrap().is_empty());
            println!("{REACHED}");
            if let Ok(cutter) = std::env::var(CUTTER) {
                live(Arc::new(engine), &cutter).await;
                println!("{LIVED}");
            }
        }
    }
    true
}

async fn live(engine: Arc<DockerEngine>, cutter: &str) {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("root.tar");
    busybox_root(&archive).unwrap().expect("who starts this has looked");
    engine.import_image(&image(), &archive, &|_| {}).await.unwrap();
    let id = engine.create(&spec()).await.unwrap().id;
    let (client, before) = connect(&engine, &id).await;
    let numbers: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let output = run(&client, &["/bin/seq", "100000"]).await;
    assert!(output.stdout == numbers, "{} bytes of {}", output.stdout.len(), numbers.len());

    let death = {
        let (engine, id) = (Arc::clone(&engine), id.clone());
        tokio::spawn(async move { engine.wait_dead(&id).await })
    };
    let script = "seq 300; until [ -e /tmp/go ]; do sleep 0.05; done; seq 301 600";
    let counting = command(&["/bin/sh", "-c", script]);
    client.start(&counting).await.unwrap();
    let mut frames = client.output(&counting.id, 0, true).await.unwrap();
    assert!(soon("the first numbers", frames.next()).await.unwrap().is_some());
    cut(cutter);
    soon("the cut is noticed", client.closed()).await;

    let (client, after) = soon("another link", connect(&engine, &id)).await;
    assert_eq!(after.epoch, before.epoch, "it is the same runner");
    assert_eq!(run(&client, &["/bin/touch", "/tmp/go"]).await.code(), Some(0));
    let mut frames = client.output(&counting.id, 0, true).await.unwrap();
    let mut counted = Vec::new();
    while let Some(frame) = soon("all numbers", frames.next()).await.unwrap() {
        if let Frame::Output { data, .. } = frame {
            counted.extend(data);
        }
    }
    let numbers: String = (1..=600).map(|number| format!("{number}\n")).collect();
    assert_eq!(String::from_utf8(counted).unwrap(), numbers);

    // Docker's own CLI goes the same way, and the feed of events was opened again.
    let killed = Command::new("docker").args(["kill", &format!("sandbank-{id}")]).output().unwrap();
    assert!(killed.status.success(), "{}", String::from_utf8_lossy(&killed.stderr));
    let cause = soon("the death is told", death).await.unwrap().unwrap();
    assert_eq!(cause, DeathCause::ContainerKilled);
    engine.destroy(&id).await.unwrap();
    assert!(engine.list().await.unwrap().is_empty());
    engine.shutdown().await;
}

async fn connect(
    engine: &DockerEngine,
    id: &SandboxId,
) -> (RunnerClient, sandbank_protocol::Hello) {
    let stream = engine.connect(id).await.unwrap();
    RunnerClient::connect(stream).await.unwrap()
}

/// Returns when it is done.
fn cut(cutter: &str) {
    let mut asked = TcpStream::connect(cutter).unwrap();
    assert_eq!(asked.read(&mut [0]).unwrap(), 0);
}

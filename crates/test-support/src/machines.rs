//! Machines of an engine under test, and commands in them through their runners.

use std::sync::Arc;
use std::time::Duration;

use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_engine::{Engine, Machine, MachineSpec, SandboxId};
use sandbank_protocol::{CommandSpec, Ending, Frame, StreamKind};
use tokio::time::Instant;

/// What is waited for takes milliseconds; a loaded machine gets the rest.
const PATIENCE: Duration = Duration::from_secs(20);

/// The part of a test's engine that is the same for every engine.
pub struct Machines {
    engine: Arc<dyn Engine>,
    spec: fn() -> MachineSpec,
}

impl Machines {
    /// `spec` is what machines are made from where a test does not care.
    pub fn new(engine: Arc<dyn Engine>, spec: fn() -> MachineSpec) -> Self {
        Self { engine, spec }
    }

    pub async fn create(&self) -> Machine {
        self.create_with(|_| {}).await
    }

    pub async fn create_with(&self, change: impl FnOnce(&mut MachineSpec)) -> Machine {
        let mut spec = (self.spec)();
        change(&mut spec);
        self.engine.create(&spec).await.expect("a machine")
    }

    pub async fn client(&self, id: &SandboxId) -> RunnerClient {
        let stream = self.engine.connect(id).await.expect("a stream to the runner");
        RunnerClient::connect(stream).await.expect("a runner that answers").0
    }

    /// A script of `sh`, as the workload.
    pub async fn sh(&self, id: &SandboxId, script: &str) -> Output {
        let client = self.client(id).await;
        run(&client, &["/bin/sh", "-c", script]).await
    }

    pub async fn destroy_all(&self) {
        for machine in self.engine.list().await.expect("a list of machines") {
            self.engine.destroy(&machine.id).await.expect("a machine that can be destroyed");
        }
    }
}

pub struct Output {
    pub ending: Ending,
    pub stdout: String,
    /// All that did not come by stdout, so what a terminal shows, too.
    pub stderr: String,
}

impl Output {
    pub fn code(&self) -> Option<i32> {
        self.ending.exit_code()
    }
}

pub fn command(argv: &[&str]) -> CommandSpec {
    CommandSpec {
        timeout_ms: Some(60_000),
        ..CommandSpec::new(
            SandboxId::random().as_str().parse().expect("the same characters"),
            argv.iter().map(|word| (*word).to_owned()).collect(),
        )
    }
}

pub async fn run(client: &RunnerClient, argv: &[&str]) -> Output {
    run_spec(client, &command(argv)).await.expect("a command that is not refused")
}

/// Whatever a client may ask for; an error is the runner's refusal.
pub async fn run_spec(client: &RunnerClient, spec: &CommandSpec) -> Result<Output, ChannelError> {
    client.start(spec).await?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut frames = client.output(&spec.id, 0, true).await?;
    while let Some(frame) = frames.next().await? {
        match frame {
            Frame::Output { stream: StreamKind::Stdout, data, .. } => stdout.extend(data),
            Frame::Output { data, .. } => stderr.extend(data),
            _ => {}
        }
    }
    let status = client.wait(&spec.id).await?;
    Ok(Output {
        ending: status.ending().expect("wait returns ended commands").clone(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

/// Polls until it holds.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

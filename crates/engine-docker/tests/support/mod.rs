//! A real engine on a Docker daemon of the test's own, and commands run through its runners.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "for tests only, and each test file uses a part of it"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use sandbank_channel::RunnerClient;
use sandbank_engine::{
    Engine, ImageName, InstanceId, Limits, Machine, MachineSpec, NetworkMode, SandboxId,
};
use sandbank_engine_docker::{DockerEngine, DockerSettings};
use sandbank_protocol::{CommandSpec, Ending, Frame, StdinMode, StreamKind};
use sandbank_test_support::{PrivateDocker, busybox_root};

pub const IMAGE: &str = "sandbank-test";

/// One daemon for the tests that run at the same time; it goes with the last of them.
pub fn shared_docker() -> Option<Arc<PrivateDocker>> {
    static SHARED: Mutex<Weak<PrivateDocker>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(docker) = shared.upgrade() {
        return Some(docker);
    }
    let docker = Arc::new(PrivateDocker::start(false).unwrap()?);
    *shared = Arc::downgrade(&docker);
    Some(docker)
}

pub fn image() -> ImageName {
    IMAGE.parse().unwrap()
}

pub fn settings(docker: &PrivateDocker) -> DockerSettings {
    let mut settings = DockerSettings::new(InstanceId::random());
    settings.host = Some(docker.socket().to_str().unwrap().to_owned());
    settings.default_image = Some(image());
    settings
}

pub struct TestEngine {
    pub engine: Arc<DockerEngine>,
    pub settings: DockerSettings,
    pub docker: Arc<PrivateDocker>,
}

impl TestEngine {
    /// None where there is no Docker.
    pub async fn start() -> Option<Self> {
        Self::on(shared_docker()?, |_| {}).await
    }

    pub async fn on(
        docker: Arc<PrivateDocker>,
        change: impl FnOnce(&mut DockerSettings),
    ) -> Option<Self> {
        let mut settings = settings(&docker);
        change(&mut settings);
        let engine = Arc::new(DockerEngine::start(settings.clone()).await.unwrap());
        import(&engine, &docker).await?;
        Some(Self { engine, settings, docker })
    }

    /// What a daemon that was killed leaves to the next: nothing is shut down.
    pub async fn restart(self) -> Self {
        let Self { engine, settings, docker } = self;
        drop(engine);
        let engine = Arc::new(DockerEngine::start(settings.clone()).await.unwrap());
        Self { engine, settings, docker }
    }

    pub async fn create(&self) -> Machine {
        self.create_with(|_| {}).await
    }

    pub async fn create_with(&self, change: impl FnOnce(&mut MachineSpec)) -> Machine {
        let mut spec = spec();
        change(&mut spec);
        self.engine.create(&spec).await.unwrap()
    }

    pub async fn client(&self, id: &SandboxId) -> RunnerClient {
        let stream = self.engine.connect(id).await.unwrap();
        RunnerClient::connect(stream).await.unwrap().0
    }

    /// A script of `sh`, as the workload.
    pub async fn sh(&self, id: &SandboxId, script: &str) -> Output {
        let client = self.client(id).await;
        run(&client, &["/bin/sh", "-c", script]).await
    }

    /// Ends everything and checks that Docker has nothing of it left.
    pub async fn finish(self) {
        for machine in self.engine.list().await.unwrap() {
            self.engine.destroy(&machine.id).await.unwrap();
        }
        for workspace in self.engine.workspaces().await.unwrap() {
            assert!(self.engine.remove_workspace(&workspace.id).await.unwrap());
        }
        self.engine.shutdown().await;
        assert_eq!(self.residue(), Vec::<String>::new());
    }

    /// Containers, volumes and networks with our label.
    pub fn residue(&self) -> Vec<String> {
        let label = format!("label=sandbank.instance={}", self.settings.instance);
        let mut left = Vec::new();
        for list in [
            &["ps", "--all", "--quiet"][..],
            &["volume", "ls", "--quiet"],
            &["network", "ls", "--quiet"],
        ] {
            let said = self.docker.said(&[list, &["--filter", &label]].concat()).unwrap();
            left.extend(said.lines().map(|line| format!("{}: {line}", list[0])));
        }
        left
    }

    /// What `docker inspect` says of a machine.
    pub fn inspect(&self, id: &SandboxId) -> serde_json::Value {
        let said = self.docker.said(&["inspect", &format!("sandbank-{id}")]).unwrap();
        serde_json::from_str::<serde_json::Value>(&said).unwrap()[0].clone()
    }
}

/// Through the engine itself; several tests at once import the same thing.
async fn import(engine: &DockerEngine, docker: &PrivateDocker) -> Option<()> {
    static IMPORTING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _alone = IMPORTING.lock().await;
    let there = engine.images().await.unwrap().iter().any(|found| found.name == image());
    if !there {
        let archive = docker.dir().join("root.tar");
        busybox_root(&archive).unwrap()?;
        engine.import_image(&image(), &archive, &|_| {}).await.unwrap();
    }
    Some(())
}

pub fn spec() -> MachineSpec {
    MachineSpec {
        id: SandboxId::random(),
        image: image(),
        limits: Limits {
            cpu_millis: 1000,
            memory_bytes: 128 << 20,
            pids: 64,
            disk_bytes: None,
            tmp_bytes: 8 << 20,
        },
        network: NetworkMode::None,
        env: BTreeMap::new(),
        workspace: None,
    }
}

pub struct Output {
    pub ending: Ending,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    pub fn code(&self) -> Option<i32> {
        self.ending.exit_code()
    }
}

pub fn command(argv: &[&str]) -> CommandSpec {
    CommandSpec {
        id: SandboxId::random().as_str().parse().unwrap(),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: None,
        stdin: StdinMode::Null,
        pty: None,
        timeout_ms: Some(60_000),
        journal_bytes: None,
        shell: None,
    }
}

pub async fn run(client: &RunnerClient, argv: &[&str]) -> Output {
    let spec = command(argv);
    client.start(&spec).await.unwrap();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut frames = client.output(&spec.id, 0, true).await.unwrap();
    while let Some(frame) = frames.next().await.unwrap() {
        match frame {
            Frame::Output { stream: StreamKind::Stdout, data, .. } => stdout.extend(data),
            Frame::Output { data, .. } => stderr.extend(data),
            _ => {}
        }
    }
    let status = client.wait(&spec.id).await.unwrap();
    Output {
        ending: status.ending().expect("wait returns ended commands").clone(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Polls until it holds.
pub async fn wait_for(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Fails when it takes longer than anything here may.
pub async fn soon<T>(what: &str, doing: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(20), doing).await {
        Ok(done) => done,
        Err(_) => panic!("waited in vain: {what}"),
    }
}

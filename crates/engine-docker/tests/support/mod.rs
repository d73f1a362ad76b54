//! A real engine on a Docker daemon of the test's own, and commands run through its runners.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "for tests only, and each test file uses a part of it"
)]

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use sandbank_engine::{Engine, ImageName, InstanceId, Limits, MachineSpec, NetworkMode, SandboxId};
use sandbank_engine_docker::{DockerEngine, DockerSettings};
use sandbank_protocol::containment::{Finding, PROBES, PROGRAM, Probe, WORD};
use sandbank_test_support::machines::Machines;
pub use sandbank_test_support::machines::{command, run, until as wait_for};
use sandbank_test_support::{PrivateDocker, busybox_root};

pub const IMAGE: &str = "sandbank-test";

pub fn shared_docker() -> Option<Arc<PrivateDocker>> {
    PrivateDocker::shared(|_| Ok(())).unwrap()
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
    machines: Machines,
}

impl Deref for TestEngine {
    type Target = Machines;

    fn deref(&self) -> &Machines {
        &self.machines
    }
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
        Some(Self::over(engine, settings, docker))
    }

    fn over(
        engine: Arc<DockerEngine>,
        settings: DockerSettings,
        docker: Arc<PrivateDocker>,
    ) -> Self {
        Self { machines: Machines::new(engine.clone(), spec), engine, settings, docker }
    }

    /// What a daemon that was killed leaves to the next: nothing is shut down.
    pub async fn restart(self) -> Self {
        let Self { engine, settings, docker, machines } = self;
        drop((engine, machines));
        let engine = Arc::new(DockerEngine::start(settings.clone()).await.unwrap());
        Self::over(engine, settings, docker)
    }

    /// Ends everything and checks that Docker has nothing of it left.
    pub async fn finish(self) {
        self.destroy_all().await;
        for workspace in self.engine.workspaces().await.unwrap() {
            assert!(self.engine.remove_workspace(&workspace.id).await.unwrap());
        }
        self.engine.shutdown().await;
        assert_eq!(self.residue(), Vec::<String>::new());
    }

    /// Containers, volumes and networks with our label.
    pub fn residue(&self) -> Vec<String> {
        self.docker.objects_of(self.settings.instance.as_str()).unwrap()
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

/// What a machine withstands: each probe, what came of it, and whether its control is known not to
/// be in force.
pub async fn attack(test: &TestEngine, id: &SandboxId) -> Vec<(&'static Probe, Finding, bool)> {
    let confinement = test.engine.confinement(id).await.unwrap();
    let plan = serde_json::to_string(&confinement.battery_plan(true)).unwrap();
    let client = test.client(id).await;
    let output = run(&client, &[PROGRAM, WORD, &plan]).await;
    let inside: Vec<Finding> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Again: after the attacks it must still be so.
    let confinement = test.engine.confinement(id).await.unwrap();
    let without = |name: &str| confinement.without.iter().any(|(one, _)| one.name() == name);
    let found = |probe: &'static Probe| {
        let finding = confinement.finding(probe, &inside).expect(probe.name);
        (probe, finding, without(probe.control))
    };
    PROBES.iter().map(found).collect()
}

/// Fails when it takes longer than anything here may.
pub async fn soon<T>(what: &str, doing: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(20), doing).await {
        Ok(done) => done,
        Err(_) => panic!("waited in vain: {what}"),
    }
}

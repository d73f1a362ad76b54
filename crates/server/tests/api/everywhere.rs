//! The workspace of `/api` in each of its places: a sandbox, a directory here, and a directory
//! behind a workspace service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use sandbank_test_support::workspace::Workspace;
use sandbank_workspace::service::Service;
use sandbank_workspace::{
    KeyFile, Keys, LocalPlace, LocalSettings, Place, RemotePlace, RemoteSettings,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// A world, and what must not end before it.
pub(crate) struct Everywhere {
    pub(crate) world: World,
    pub(crate) mode: &'static str,
    place: Option<Arc<LocalPlace>>,
    root: tempfile::TempDir,
}

/// One of each.
pub(crate) async fn everywhere(settings: &[(&str, &str)]) -> Vec<Everywhere> {
    vec![sandbox(settings).await, local(settings).await, remote(settings).await]
}

impl Everywhere {
    /// The workspace, as this process sees it. Of a sandbox only once there is one.
    pub(crate) async fn directory(&self) -> PathBuf {
        if self.place.is_some() {
            return self.root.path().join("workspace");
        }
        let sandboxes = self.world.api.sandboxes().await.unwrap();
        let id = sandboxes[0]["id"].as_str().unwrap();
        let (code, out, _) = self.world.api.run(id, "pwd -P").await.unwrap();
        assert_eq!(code, 0);
        PathBuf::from(out.trim_end())
    }

    /// With one file, `safe`.
    pub(crate) async fn workspace(&self) -> Workspace {
        let (api, token) = (self.world.api.clone(), self.world.token.clone());
        let safe = serde_json::json!({ "content": "safe" });
        api.call("PUT", "/api/file?path=safe", Some(safe)).await.unwrap();
        Workspace::of_directory(self.mode, api, token, self.directory().await)
    }

    /// Runs git in the workspace.
    pub(crate) async fn git(&self, arguments: &[&str]) {
        if self.place.is_some() {
            let directory = self.root.path().join("workspace");
            let git =
                std::process::Command::new("git").args(arguments).current_dir(directory).status();
            assert!(git.unwrap().success(), "{arguments:?}");
            return;
        }
        let sandboxes = self.world.api.sandboxes().await.unwrap();
        let id = sandboxes[0]["id"].as_str().unwrap();
        let path = format!("/v1/sandboxes/{id}/commands?wait=true");
        let argv = [&["git"], arguments].concat();
        let body = serde_json::json!({ "argv": argv });
        let ran = self.world.api.request("POST", &path).json(&body).send().await.unwrap();
        let ran: serde_json::Value = ran.json().await.unwrap();
        assert_eq!(ran["exitCode"], 0, "{arguments:?}: {ran}");
    }

    /// What the runner of a directory has written down.
    pub(crate) fn runner_log(&self) -> String {
        std::fs::read_to_string(self.root.path().join("runner/runner.log")).unwrap()
    }

    /// Runners of directories outlive whoever started them.
    pub(crate) async fn end(mut self) {
        if let Some(place) = self.place.take() {
            place.stop().await.unwrap();
        }
    }
}

/// Of a test that failed.
impl Drop for Everywhere {
    fn drop(&mut self) {
        let pid = self.place.as_ref().and_then(|place| place.pid());
        if let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

async fn sandbox(settings: &[(&str, &str)]) -> Everywhere {
    let settings = [&[("workspace.mode", "sandbox")], settings].concat();
    let world = World::with(&settings).await;
    Everywhere { world, mode: "sandbox", place: None, root: tempfile::tempdir().unwrap() }
}

pub(crate) async fn local(settings: &[(&str, &str)]) -> Everywhere {
    let root = tempfile::tempdir().unwrap();
    let place = place(root.path());
    let directory = root.path().join("workspace").to_str().unwrap().to_owned();
    let own = [("workspace.mode", "local"), ("workspace.root", directory.as_str())];
    let settings = [&own, settings].concat();
    let given: Arc<dyn Place> = place.clone();
    let world = World::with_workspace(&settings, given).await;
    Everywhere { world, mode: "local", place: Some(place), root }
}

pub(crate) async fn remote(settings: &[(&str, &str)]) -> Everywhere {
    let root = tempfile::tempdir().unwrap();
    let place = place(root.path());
    let keys = Arc::new(KeyFile::fixed(Keys::parse(&"s".repeat(40)).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = Service::new(place.clone(), keys.clone(), None).unwrap();
    tokio::spawn(async move { service.serve(listener, CancellationToken::new()).await });
    let far = RemotePlace::new(&RemoteSettings::new(&url), keys).unwrap();
    let own = [
        ("workspace.mode", "remote"),
        ("workspace.service_url", url.as_str()),
        ("workspace.service_secret_file", "/nowhere"),
    ];
    let settings = [&own, settings].concat();
    let world = World::with_workspace(&settings, Arc::new(far)).await;
    Everywhere { world, mode: "remote", place: Some(place), root }
}

fn place(root: &Path) -> Arc<LocalPlace> {
    std::fs::create_dir(root.join("workspace")).unwrap();
    let settings = LocalSettings::new(root.join("workspace"), root.join("runner"));
    Arc::new(LocalPlace::open(settings).unwrap())
}

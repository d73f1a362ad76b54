//! A server on a free loopback port with everything behind it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use sandbank_orchestrator::Orchestrator;
use sandbank_server::config::{ConfigFlags, Settings, Sources, load};
use sandbank_server::{App, Shutdown, TokenFile, serve};
use sandbank_store::Store;
use sandbank_test_support::Api;
use sandbank_workspace::Place;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::breakable::Breakable;

pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) engine: Arc<Breakable>,
    pub(crate) shutdown: Shutdown,
    pub(crate) server: JoinHandle<std::io::Result<()>>,
    client: Client,
    pub(crate) data: tempfile::TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// With settings by key.
    pub(crate) async fn with(settings: &[(&str, &str)]) -> Self {
        Self::built(settings, &[], |app| app).await
    }

    /// With environment variables.
    pub(crate) async fn with_env(env: &[(&str, &str)]) -> Self {
        Self::built(&[], env, |app| app).await
    }

    /// Whose `/api` is there.
    pub(crate) async fn with_workspace(settings: &[(&str, &str)], place: Arc<dyn Place>) -> Self {
        Self::built(settings, &[], |app| app.with_workspace(place)).await
    }

    /// Whose waits send their headers at once.
    pub(crate) async fn with_eager_waits() -> Self {
        Self::built(&[], &[], |app| app.with_wait_silence(Duration::ZERO)).await
    }

    async fn built(
        settings: &[(&str, &str)],
        env: &[(&str, &str)],
        adjust: impl FnOnce(App) -> App,
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let flags = ConfigFlags::default().with("data_dir", data.path().to_str().unwrap());
        let flags = flags.with("server.port", "0");
        let flags = settings.iter().fold(flags, |flags, (key, text)| flags.with(key, *text));
        let env = env.iter().map(|(name, text)| (name.into(), text.into())).collect();
        let settings = load(&Sources { flags, env, ..Sources::default() }).unwrap();
        Self::serve(data, settings, adjust).await
    }

    async fn serve(
        data: tempfile::TempDir,
        settings: Settings,
        adjust: impl FnOnce(App) -> App,
    ) -> Self {
        let store = Store::open(&data.path().join("db")).await.unwrap();
        let engine = Breakable::new();
        let lives = sandbank_orchestrator::Settings {
            max_sandboxes: settings.sandboxes.max,
            pool: settings.pool_entries(&[], |_| false),
            publish_address: settings.ports.publish_address,
            listen_address: settings.ports.listen_address,
            port_range: settings.ports.range.clone(),
            ..sandbank_orchestrator::Settings::default()
        };
        let orchestrator = Orchestrator::start(lives, engine.clone(), store.clone()).await.unwrap();
        orchestrator.fill_pool();
        let token = TokenFile::open(data.path()).unwrap().token;
        let listener = TcpListener::bind(settings.server.bind).await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = adjust(App::new(orchestrator, store, settings, &token));
        let shutdown = app.shutdown().clone();
        let token = token.expose().to_owned();
        Self {
            api: Api::new(format!("http://127.0.0.1:{}", address.port()), token.clone()),
            server: tokio::spawn(serve(listener, app)),
            client: Client::new(),
            address,
            token,
            engine,
            shutdown,
            data,
        }
    }

    /// Without a token.
    pub(crate) fn open(&self, method: &str, path: &str) -> RequestBuilder {
        let url = format!("http://127.0.0.1:{}{path}", self.address.port());
        self.client.request(method.parse().unwrap(), url)
    }

    pub(crate) async fn sandbox(&self) -> String {
        self.api.create("test").await.unwrap()
    }

    /// Starts a script in sandboxd's way and gives the path of the command.
    pub(crate) async fn bash(&self, sandbox: &str, script: &str) -> String {
        let id = self.api.bash(sandbox, script).await.unwrap();
        format!("/v1/sandboxes/{sandbox}/commands/{id}")
    }
}

/// Status, code and the whole body of an error.
pub(crate) async fn refusal(response: Response) -> (StatusCode, String, Value) {
    let status = response.status();
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["requestId"], json!(id), "{body}");
    assert!(body["error"].is_string() && body["retryable"].is_boolean(), "{body}");
    (status, body["code"].as_str().unwrap().to_owned(), body)
}

/// Only status and code.
pub(crate) async fn refused(request: RequestBuilder) -> (u16, String) {
    let (status, code, _) = refusal(request.send().await.unwrap()).await;
    (status.as_u16(), code)
}

pub(crate) fn code(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

//! The settings as types, made once at start from the resolved table.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbank_engine::{Control, ImageName, Limits, NetworkMode};

use super::checks::{parse_bind_host, parse_port_range};
use super::engines::{self, EngineKind};
use super::error::ConfigError;
use super::pool::{self, ReadyMachines};
use super::resolve::{Resolved, Sources, resolve};
use super::secret::Secret;
use super::tools;
use super::workspace::{self, WorkspaceSettings};

const MIB: u64 = 1 << 20;
const DEFAULT_DISK_MB: u64 = 8192;
const GOOD_TOKEN_CHARACTERS: usize = 32;

#[derive(Debug, Clone)]
pub struct Settings {
    pub data_dir: PathBuf,
    /// Makes the sandboxes of callers who do not say.
    pub engine: EngineKind,
    /// Further ones that callers may name.
    pub other_engines: Vec<EngineKind>,
    pub docker: DockerSettings,
    pub server: ServerSettings,
    pub auth: AuthSettings,
    pub sandboxes: SandboxSettings,
    pub sessions: SessionSettings,
    pub workspace: WorkspaceSettings,
    /// What a model is given.
    pub tools: sandbank_tools::Config,
    /// Which model chats are with.
    pub chat: Option<sandbank_chat::ModelSettings>,
    pub ports: PortSettings,
    pub storage: StorageSettings,
    pub network: NetworkSettings,
    pub images: ImageSettings,
    /// Controls that may be weaker or missing.
    pub allow_weaker: Vec<Control>,
    pub log: LogSettings,
    /// None: no spans.
    pub traces: Option<TraceSettings>,
    /// Remarks for the log: settings without effect, likely slips, weak choices.
    pub notices: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct DockerSettings {
    pub host: Option<String>,
    pub runtime: Option<String>,
    pub network: Option<String>,
    pub host_addresses: Vec<Ipv4Addr>,
    pub resolvers: Vec<Ipv4Addr>,
    pub default_image: Option<ImageName>,
}

#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub bind: SocketAddr,
    pub max_body_bytes: usize,
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    pub max_connections: usize,
    pub max_streams: usize,
    /// None switches the limit off.
    pub requests_per_second: Option<u32>,
    pub request_burst: u32,
    pub shutdown_grace: Duration,
}

#[derive(Debug, Clone)]
pub struct AuthSettings {
    pub admin_token: Option<Secret>,
    /// Opens the tools' routes and no others.
    pub tools_token: Option<Secret>,
    pub loopback_open: bool,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct SandboxSettings {
    pub max: usize,
    pub evict_idle: bool,
    pub default_idle_ttl: Duration,
    pub max_lifetime: Option<Duration>,
    pub default_image: ImageName,
    pub default_vcpus: u64,
    pub default_memory_mb: u64,
    pub default_disk: DiskQuota,
    pub default_pids: u32,
    pub default_tmp_bytes: u64,
    pub create_deadline: Duration,
    pub stop_deadline: Duration,
    pub sweep_interval: Duration,
    pub concurrent_creates: Option<usize>,
    pub pool: Vec<ReadyMachines>,
    pub keep_post_mortems: usize,
}

impl SandboxSettings {
    /// What a sandbox gets whose caller does not say.
    pub fn default_limits(&self, enforces_quota: bool) -> Limits {
        let mebibytes = |mb: u64| mb.saturating_mul(MIB);
        Limits {
            cpu_millis: u32::try_from(self.default_vcpus * 1000).expect("in range"),
            memory_bytes: mebibytes(self.default_memory_mb),
            pids: self.default_pids,
            disk_bytes: match self.default_disk {
                DiskQuota::Required(bytes) => Some(bytes),
                DiskQuota::WhereEnforced(bytes) => enforces_quota.then_some(bytes),
                DiskQuota::Off => None,
            },
            tmp_bytes: self.default_tmp_bytes,
        }
    }
}

#[derive(Debug, Clone)]
pub struct SessionSettings {
    pub api_key: Option<Secret>,
    pub default_image: String,
    /// Empty means all.
    pub allowed_images: Vec<String>,
    pub ttl: Duration,
    pub max_exec_timeout: Duration,
    pub network: NetworkMode,
    /// Ready machines by the name that sessions have for their image.
    pub pool: Vec<(String, usize)>,
    pub workspaces: bool,
}

/// How much workspace a sandbox gets when its caller does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskQuota {
    /// Asked for by the configuration: enforced, or creating fails.
    Required(u64),
    /// Nobody asked: enforced where the engine can.
    WhereEnforced(u64),
    Off,
}

#[derive(Debug, Clone)]
pub struct PortSettings {
    pub publish_address: IpAddr,
    /// None: the publish address.
    pub listen_address: Option<IpAddr>,
    /// None: any free port.
    pub range: Option<RangeInclusive<u16>>,
    pub public_host: Option<String>,
    pub public_proto: String,
}

#[derive(Debug, Clone)]
pub struct StorageSettings {
    pub kind: StorageKind,
    pub pool_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageKind {
    Auto,
    Btrfs,
    Plain,
}

#[derive(Debug, Clone)]
pub struct NetworkSettings {
    /// Address and prefix, `10.213.0.0/18`.
    pub subnet: String,
    pub pool_size: usize,
}

#[derive(Debug, Clone)]
pub struct ImageSettings {
    /// As `registry=host`.
    pub mirrors: Vec<String>,
    pub insecure_registries: Vec<String>,
    pub stall_timeout: Duration,
}

#[derive(Debug, Clone)]
pub struct LogSettings {
    pub format: LogFormat,
    pub filter: String,
}

/// As OpenTelemetry's variables say it.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    pub endpoint: TraceEndpoint,
    pub headers: Option<Secret>,
    pub service_name: String,
    pub sampler: String,
    pub sampler_arg: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceEndpoint {
    /// A collector, which has a path for them.
    Collector(String),
    /// The address itself.
    Exact(String),
}

impl TraceEndpoint {
    /// The more particular variable counts; none where neither is set.
    pub fn of(collector: Option<String>, exact: Option<String>) -> Option<Self> {
        exact.map(Self::Exact).or_else(|| collector.map(Self::Collector))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Auto,
    Json,
    Pretty,
}

/// Reads every source and checks every value.
pub fn load(sources: &Sources) -> Result<Settings, ConfigError> {
    let mut table = resolve(sources)?;
    let server = server(&table);
    let (engine, other_engines) = engines::read(&table)?;
    let (tools, tools_token, chat) = tools::read(sources, engine, &other_engines)?;
    let auth = AuthSettings { tools_token, ..auth(&table) };
    let mut notices = std::mem::take(&mut table.notices);
    let sessions = sessions(&table);
    let sandboxes = sandboxes(&table, engine, &other_engines)?;
    let workspace = workspace::read(&table)?;
    notices.extend(workspace.notice());
    let tokens = [("admin token", &auth.admin_token), ("API key", &sessions.api_key)];
    notices.extend(tokens.iter().filter_map(|(name, token)| weak_token(&server, name, token)));
    notices.extend(tools.notices.iter().cloned());
    Ok(Settings {
        data_dir: data_dir(&table, sources)?,
        engine,
        other_engines,
        docker: docker(&table),
        ports: ports(&table, server.bind.ip()),
        server,
        auth,
        sandboxes,
        sessions,
        workspace,
        tools,
        chat,
        storage: storage(&table),
        network: NetworkSettings {
            subnet: table.text("network.subnet").expect("has a default").to_owned(),
            pool_size: count(&table, "network.pool_size"),
        },
        images: ImageSettings {
            mirrors: table.list("images.mirrors"),
            insecure_registries: table.list("images.insecure_registries"),
            stall_timeout: millis(&table, "images.stall_timeout_ms"),
        },
        allow_weaker: allow_weaker(&table)?,
        log: log(&table),
        traces: traces(&table),
        notices,
    })
}

pub(super) fn data_dir(table: &Resolved, sources: &Sources) -> Result<PathBuf, ConfigError> {
    if let Some(path) = table.text("data_dir") {
        return Ok(path.into());
    }
    if sources.is_root {
        return Ok("/var/lib/sandbank".into());
    }
    let home = || sources.env("HOME").map(|home| Path::new(&home).join(".local/share"));
    let base = sources.env("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
    base.map(|base| base.join("sandbank")).ok_or(ConfigError::NoHome)
}

fn server(table: &Resolved) -> ServerSettings {
    let host = table.text("server.host").and_then(parse_bind_host);
    let port = u16::try_from(table.number("server.port")).expect("the range is that of a port");
    let rate = u32::try_from(table.number("server.requests_per_second")).expect("in range");
    ServerSettings {
        bind: SocketAddr::new(host.expect("checked by the table"), port),
        max_body_bytes: count(table, "server.max_body_bytes"),
        header_timeout: millis(table, "server.header_timeout_ms"),
        body_timeout: millis(table, "server.body_timeout_ms"),
        max_connections: count(table, "server.max_connections"),
        max_streams: count(table, "server.max_streams"),
        requests_per_second: (rate > 0).then_some(rate),
        request_burst: u32::try_from(table.number("server.request_burst")).expect("in range"),
        shutdown_grace: millis(table, "server.shutdown_grace_ms"),
    }
}

fn auth(table: &Resolved) -> AuthSettings {
    AuthSettings {
        admin_token: table.secret("auth.admin_token"),
        tools_token: None,
        loopback_open: table.switch("auth.loopback_open"),
        allowed_hosts: table.list("auth.allowed_hosts"),
        allowed_origins: table.list("auth.allowed_origins"),
    }
}

fn weak_token(server: &ServerSettings, name: &str, token: &Option<Secret>) -> Option<String> {
    let short = token.as_ref()?.expose().chars().count() < GOOD_TOKEN_CHARACTERS;
    (short && !server.bind.ip().is_loopback()).then(|| {
        format!("the {name} is shorter than {GOOD_TOKEN_CHARACTERS} characters and the bind address is not loopback; use a longer one")
    })
}

fn sandboxes(
    table: &Resolved,
    engine: EngineKind,
    others: &[EngineKind],
) -> Result<SandboxSettings, ConfigError> {
    let lifetime = millis(table, "sandboxes.max_lifetime_ms");
    let creates = count(table, "sandboxes.concurrent_creates");
    let image = table.text("sandboxes.default_image").and_then(|name| name.parse().ok());
    Ok(SandboxSettings {
        max: count(table, "sandboxes.max"),
        evict_idle: table.switch("sandboxes.evict_idle"),
        default_idle_ttl: millis(table, "sandboxes.default_idle_ttl_ms"),
        max_lifetime: (!lifetime.is_zero()).then_some(lifetime),
        default_image: image.expect("checked by the table"),
        default_vcpus: table.number("sandboxes.default_vcpus"),
        default_memory_mb: table.number("sandboxes.default_memory_mb"),
        default_disk: match table.integer("sandboxes.default_disk_mb") {
            None => DiskQuota::WhereEnforced(DEFAULT_DISK_MB * MIB),
            Some(0) => DiskQuota::Off,
            Some(mb) => DiskQuota::Required(mb * MIB),
        },
        default_pids: u32::try_from(table.number("sandboxes.default_pids")).expect("in range"),
        default_tmp_bytes: table.number("sandboxes.default_tmp_mb") * MIB,
        create_deadline: millis(table, "sandboxes.create_deadline_ms"),
        stop_deadline: millis(table, "sandboxes.stop_deadline_ms"),
        sweep_interval: millis(table, "sandboxes.sweep_interval_ms"),
        concurrent_creates: (creates > 0).then_some(creates),
        pool: pool::read(table, engine, others)?,
        keep_post_mortems: count(table, "sandboxes.keep_post_mortems"),
    })
}

fn sessions(table: &Resolved) -> SessionSettings {
    SessionSettings {
        api_key: table.secret("sessions.api_key"),
        default_image: table.text("sessions.default_image").expect("has a default").to_owned(),
        allowed_images: table.list("sessions.allowed_images"),
        ttl: Duration::from_secs(table.number("sessions.ttl_seconds")),
        max_exec_timeout: millis(table, "sessions.max_exec_timeout_ms"),
        network: match table.text("sessions.network") {
            Some("default") => NetworkMode::Default,
            _ => NetworkMode::None,
        },
        pool: pool::for_sessions(table),
        workspaces: table.switch("sessions.workspaces"),
    }
}

fn ports(table: &Resolved, bind: IpAddr) -> PortSettings {
    let local = IpAddr::from([127, 0, 0, 1]);
    let anywhere = IpAddr::from([0, 0, 0, 0]);
    let usual = if bind.is_loopback() { local } else { anywhere };
    PortSettings {
        publish_address: table
            .text("ports.publish_address")
            .and_then(parse_bind_host)
            .unwrap_or(usual),
        listen_address: table.text("ports.listen_address").and_then(parse_bind_host),
        range: table.text("ports.range").and_then(parse_port_range),
        public_host: table.text("ports.public_host").map(str::to_owned),
        public_proto: table.text("ports.public_proto").expect("has a default").to_owned(),
    }
}

fn storage(table: &Resolved) -> StorageSettings {
    let kind = match table.text("storage.kind") {
        Some("btrfs") => StorageKind::Btrfs,
        Some("plain") => StorageKind::Plain,
        _ => StorageKind::Auto,
    };
    StorageSettings { kind, pool_bytes: table.number("storage.pool_mb") * MIB }
}

fn docker(table: &Resolved) -> DockerSettings {
    let text = |key| table.text(key).map(str::to_owned);
    let addresses =
        |key| table.list(key).into_iter().filter_map(|address| address.parse().ok()).collect();
    DockerSettings {
        host: text("docker.host"),
        runtime: text("docker.runtime"),
        network: text("docker.network"),
        host_addresses: addresses("docker.host_addresses"),
        resolvers: addresses("docker.resolvers"),
        default_image: table.text("docker.default_image").and_then(|name| name.parse().ok()),
    }
}

fn allow_weaker(table: &Resolved) -> Result<Vec<Control>, ConfigError> {
    let names = table.list("security.allow_weaker");
    let control = |name: String| {
        let value = serde_json::Value::String(name.clone());
        serde_json::from_value(value).map_err(|error| ConfigError::UnknownControl {
            origin: table.origin("security.allow_weaker"),
            name,
            known: known_variants(&error),
        })
    };
    names.into_iter().map(control).collect()
}

/// serde lists the names in its message; there is no second list to keep in step.
fn known_variants(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split_once("expected one of ").map_or(text.clone(), |(_, names)| names.to_owned())
}

fn traces(table: &Resolved) -> Option<TraceSettings> {
    let text = |key| table.text(key).map(str::to_owned);
    Some(TraceSettings {
        endpoint: TraceEndpoint::of(text("traces.endpoint"), text("traces.url"))?,
        headers: table.secret("traces.headers"),
        service_name: text("traces.service_name").expect("has a default"),
        sampler: text("traces.sampler").expect("has a default"),
        sampler_arg: text("traces.sampler_arg"),
    })
}

fn log(table: &Resolved) -> LogSettings {
    let format = match table.text("log.format") {
        Some("json") => LogFormat::Json,
        Some("pretty") => LogFormat::Pretty,
        _ => LogFormat::Auto,
    };
    LogSettings { format, filter: table.text("log.level").expect("has a default").to_owned() }
}

pub(super) fn millis(table: &Resolved, key: &str) -> Duration {
    Duration::from_millis(table.number(key))
}

pub(super) fn count(table: &Resolved, key: &str) -> usize {
    usize::try_from(table.number(key)).expect("ranges fit a usize")
}

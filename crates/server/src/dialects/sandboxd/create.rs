//! The body of `POST /v1/sandboxes` as a request to the orchestrator.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use sandbank_engine::{ImageName, Limits, NetworkMode, WorkspaceId};
use sandbank_orchestrator::{AcquireSource, CreateRequest, Created, SandboxKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::environment;
use super::number::{Clamp, number};
use crate::app::App;
use crate::config::SandboxSettings;
use crate::dialects::reserved_keys;
use crate::error::{ApiError, ApiResult};
use crate::fields::Known;
use crate::limits::{DISK_MB, MAX_PORTS, MEMORY_MB, PIDS, TMP_MB, VCPUS};

const MIB: u64 = 1 << 20;

/// Only for the documentation: sandboxd's fields are read loosely, number by number.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body; `read` takes it apart")]
pub(super) struct CreateBody {
    /// The caller's name for the sandbox; a live one with this key is found again. Not one that
    /// begins with `session:` or `workspace:`.
    session_key: String,
    /// `node24` or `python3.13`; others become `node24`.
    runtime: Option<String>,
    /// One of the engines that are configured, which `/v1/health` lists; the first of them makes it
    /// when this is absent. A sandbox with the key that is another engine's is a conflict.
    engine: Option<String>,
    /// Image name; by default the one of the runtime's name, where it was imported.
    image: Option<String>,
    /// 10 000 to 21 600 000.
    idle_ttl_ms: Option<u64>,
    /// Ends the sandbox whatever it does.
    max_lifetime_ms: Option<u64>,
    resources: Option<Resources>,
    network: Option<Network>,
    /// At most 4; only these can be published.
    ports: Option<Vec<u16>>,
    /// Base environment of every command.
    env: Option<BTreeMap<String, String>>,
    /// A kept workspace: made when it is not there, shared with other sandboxes that name it, and
    /// still there when the sandbox has ended. Needs a token, on a loopback address too. `diskMb` is then the quota of the workspace; the
    /// smallest one of the sandboxes that have it holds.
    #[schema(min_length = 2, max_length = 64, pattern = "^[a-z0-9][a-z0-9-]*[a-z0-9]$")]
    workspace: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body")]
pub(super) struct Resources {
    /// 1 to 8.
    vcpus: Option<u64>,
    /// 256 to 16 384.
    memory_mb: Option<u64>,
    /// Workspace quota, 1 to 16 777 216; enforced or refused.
    #[schema(minimum = 1, maximum = 16_777_216)]
    disk_mb: Option<u64>,
    /// Processes and threads, 16 to 32 768.
    #[schema(minimum = 16, maximum = 32_768)]
    pids: Option<u32>,
    /// Size of `/tmp`, 1 to 65 536.
    #[schema(minimum = 1, maximum = 65_536)]
    tmp_mb: Option<u64>,
}

/// Who the sandbox may reach; anything else in here is refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "describes the body")]
pub(super) struct Network {
    /// `default` when left out: public addresses only. `none`: nobody.
    #[schema(inline)]
    mode: Option<Mode>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "describes the body")]
pub(super) enum Mode {
    Default,
    None,
}

/// Whatever else is in the body is told of, and has no effect: sandboxd ignores it.
pub(super) const FIELDS: Known = Known(&[
    "sessionKey",
    "runtime",
    "engine",
    "image",
    "idleTtlMs",
    "maxLifetimeMs",
    "resources.vcpus",
    "resources.memoryMb",
    "resources.diskMb",
    "resources.pids",
    "resources.tmpMb",
    "network.mode",
    "ports",
    "env",
    "workspace",
]);

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateReply {
    pub(super) sandbox_id: String,
    /// False when a sandbox with this key was there already.
    pub(super) created: bool,
    /// Only of a new one: `pool` when its machine was ready, `cold` when it was made now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub(super) acquire_source: Option<Source>,
    /// What of the request had no effect, or another one, each with what to do: fields that there are
    /// not, values that were clamped, and what a sandbox that was there already has otherwise. Absent
    /// when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(super) warnings: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    Pool,
    Cold,
}

impl From<Created> for CreateReply {
    fn from(made: Created) -> Self {
        let source = match made.source {
            AcquireSource::Pool => Source::Pool,
            AcquireSource::Cold => Source::Cold,
        };
        let acquire_source = made.created.then_some(source);
        let warnings = Vec::new();
        Self { sandbox_id: made.id.into(), created: made.created, acquire_source, warnings }
    }
}

pub(super) async fn read(app: &App, body: &Map<String, Value>) -> ApiResult<CreateRequest> {
    let settings = &app.settings().sandboxes;
    let key = session_key(body)?;
    let runtime = runtime(body);
    let named = optional::<String>(body, "engine")?;
    let engine = &**app.orchestrator().engine_named(named.as_deref())?;
    let image = match optional::<String>(body, "image")? {
        Some(name) => name
            .parse::<ImageName>()
            .map_err(|error| ApiError::bad_request("invalid_image", error.to_string()))?,
        None => {
            let default = app.settings().default_image(engine.name());
            app.images().for_runtime(engine, runtime, default).await?
        }
    };
    let enforces_quota = engine.capabilities().disk_quota;
    let env: BTreeMap<String, String> = optional(body, "env")?.unwrap_or_default();
    environment::check(&env)?;
    Ok(CreateRequest {
        key,
        engine: named,
        image,
        runtime: runtime.to_owned(),
        idle_ttl: Some(idle_ttl(body, settings)),
        max_lifetime: optional::<u64>(body, "maxLifetimeMs")?.map(Duration::from_millis),
        limits: limits(body, settings, enforces_quota)?,
        network: network(body)?,
        ports: ports(body),
        env,
        workspace: optional::<WorkspaceId>(body, "workspace")?,
    })
}

fn session_key(body: &Map<String, Value>) -> ApiResult<SandboxKey> {
    let text = body.get("sessionKey").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if text.is_empty() {
        return Err(ApiError::bad_request("session_key_required", "sessionKey is required."));
    }
    let key = text
        .parse::<SandboxKey>()
        .map_err(|error| ApiError::bad_request("invalid_session_key", error.to_string()))?;
    if reserved_keys::is_reserved(&key) {
        let message = "a sessionKey does not begin with session: or workspace:, which are the \
                       keys of /v1/sessions and /v1/workspaces";
        return Err(ApiError::bad_request("invalid_session_key", message));
    }
    Ok(key)
}

/// A label; every value but one means node.
fn runtime(body: &Map<String, Value>) -> &'static str {
    match body.get("runtime").and_then(Value::as_str) {
        Some("python3.13") => "python3.13",
        _ => "node24",
    }
}

fn idle_ttl(body: &Map<String, Value>, settings: &SandboxSettings) -> Duration {
    let default = u64::try_from(settings.default_idle_ttl.as_millis()).unwrap_or(u64::MAX);
    let clamp = Clamp { min: 10_000, max: 21_600_000, default };
    Duration::from_millis(clamp.read(body.get("idleTtlMs")))
}

pub(in crate::dialects) fn limits(
    body: &Map<String, Value>,
    settings: &SandboxSettings,
    enforces_quota: bool,
) -> ApiResult<Limits> {
    let empty = Map::new();
    let asked = body.get("resources").and_then(Value::as_object).unwrap_or(&empty);
    let vcpus = Clamp::within(VCPUS, settings.default_vcpus);
    let memory = Clamp::within(MEMORY_MB, settings.default_memory_mb);
    let vcpus = vcpus.read(asked.get("vcpus"));
    let usual = settings.default_limits(enforces_quota);
    let disk = bounded(asked, "diskMb", DISK_MB)?.map(mebibytes);
    let tmp = bounded(asked, "tmpMb", TMP_MB)?.map(mebibytes);
    let pids = bounded(asked, "pids", PIDS)?.and_then(|pids| u32::try_from(pids).ok());
    Ok(Limits {
        cpu_millis: u32::try_from(vcpus * 1000).expect("clamped to 8"),
        memory_bytes: mebibytes(memory.read(asked.get("memoryMb"))),
        pids: pids.unwrap_or(usual.pids),
        disk_bytes: disk.or(usual.disk_bytes),
        tmp_bytes: tmp.unwrap_or(usual.tmp_bytes),
    })
}

/// A limit of ours: what the kernel could not enforce, or would take for no limit, is refused.
fn bounded(
    asked: &Map<String, Value>,
    name: &str,
    range: RangeInclusive<u64>,
) -> ApiResult<Option<u64>> {
    match optional::<u64>(asked, name)? {
        Some(value) if !range.contains(&value) => {
            let (low, high) = range.into_inner();
            let message = format!("the field {name} must be from {low} to {high}");
            Err(ApiError::bad_request("bad_field", message))
        }
        value => Ok(value),
    }
}

fn mebibytes(mb: u64) -> u64 {
    mb.saturating_mul(MIB)
}

/// Strict, unlike sandboxd's other fields: a restriction that is not understood must not become
/// none at all.
fn network(body: &Map<String, Value>) -> ApiResult<NetworkMode> {
    let refused = || {
        ApiError::bad_request("bad_field", "network.mode is \"default\" or \"none\"")
            .with_hint("send \"network\":{\"mode\":\"none\"}, or leave network out for the default")
    };
    let mode = match body.get("network") {
        None | Some(Value::Null) => return Ok(NetworkMode::Default),
        Some(Value::Object(network)) if network.keys().all(|key| key == "mode") => {
            network.get("mode").unwrap_or(&Value::Null)
        }
        Some(_) => return Err(refused()),
    };
    match (mode, mode.as_str()) {
        (Value::Null, _) | (_, Some("default")) => Ok(NetworkMode::Default),
        (_, Some("none")) => Ok(NetworkMode::None),
        _ => Err(refused()),
    }
}

/// Floor, in range, each once, the first four.
fn ports(body: &Map<String, Value>) -> Vec<u16> {
    let asked = body.get("ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut ports = Vec::new();
    for value in asked {
        let port = number(value).floor();
        if !(1.0..=65_535.0).contains(&port) {
            continue;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        let port = port as u16;
        if !ports.contains(&port) && ports.len() < MAX_PORTS {
            ports.push(port);
        }
    }
    ports
}

/// A field of ours: absent or null is none, the wrong type is the caller's error.
pub(super) fn optional<T: DeserializeOwned>(
    body: &Map<String, Value>,
    name: &str,
) -> ApiResult<Option<T>> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => T::deserialize(value).map(Some).map_err(|error| {
            ApiError::bad_request("bad_field", format!("the field {name} is not usable: {error}"))
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{Sources, load};

    fn body(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn settings() -> SandboxSettings {
        load(&Sources { is_root: true, ..Sources::default() }).unwrap().sandboxes
    }

    #[test]
    fn a_session_key_is_required_and_trimmed() {
        for missing in [json!({}), json!({"sessionKey": " "}), json!({"sessionKey": 5})] {
            let error = session_key(&body(missing)).unwrap_err();
            assert_eq!(error.message, "sessionKey is required.");
        }
        let key = session_key(&body(json!({"sessionKey": " chat:1 "}))).unwrap();
        assert_eq!(key.as_str(), "chat:1");
        assert!(session_key(&body(json!({"sessionKey": "a\nb"}))).is_err());
    }

    #[test]
    fn sandboxds_limits_are_clamped() {
        let read =
            |value| limits(&body(json!({ "resources": value })), &settings(), false).unwrap();
        let usual = read(json!(null));
        assert_eq!((usual.cpu_millis, usual.memory_bytes), (2000, 2048 << 20));
        assert_eq!((usual.pids, usual.tmp_bytes, usual.disk_bytes), (512, 128 << 20, None));
        let small = read(json!({"vcpus": null, "memoryMb": ""}));
        assert_eq!((small.cpu_millis, small.memory_bytes), (1000, 256 << 20));
        let large =
            read(json!({"vcpus": 99, "memoryMb": 1e9, "diskMb": 5, "pids": 17, "tmpMb": 1}));
        assert_eq!((large.cpu_millis, large.memory_bytes), (8000, 16_384 << 20));
        assert_eq!((large.disk_bytes, large.pids), (Some(5 << 20), 17));
        for (field, bad) in [
            ("diskMb", json!("x")),
            ("diskMb", json!(0)),
            ("tmpMb", json!(0)),
            ("tmpMb", json!(u64::MAX)),
            ("pids", json!(0)),
            ("pids", json!(u32::MAX)),
        ] {
            let asked = json!({ "resources": { field: bad } });
            assert!(limits(&body(asked), &settings(), true).is_err(), "{field} {bad}");
        }
    }

    #[test]
    fn a_quota_nobody_asked_for_is_set_only_where_it_is_enforced() {
        let quota = |enforced| limits(&Map::new(), &settings(), enforced).unwrap().disk_bytes;
        assert_eq!((quota(true), quota(false)), (Some(8192 << 20), None));
    }

    #[test]
    fn ports_are_floored_filtered_and_the_first_four_kept() {
        let read = |value| ports(&body(json!({ "ports": value })));
        assert_eq!(
            read(json!([3000, "3001", 3000, 3002.9, 0, 70000, -1, "x", null, 1, 2])),
            [3000, 3001, 3002, 1]
        );
        assert!(read(json!("3000")).is_empty());
        assert!(ports(&Map::new()).is_empty());
    }

    #[test]
    fn runtime_labels_fall_back_like_sandboxds() {
        assert_eq!(runtime(&body(json!({"runtime": "python3.13"}))), "python3.13");
        assert_eq!(runtime(&body(json!({"runtime": "deno"}))), "node24");
    }

    #[test]
    fn a_network_that_is_not_understood_is_refused() {
        let read = |value| network(&body(json!({ "network": value })));
        assert_eq!(network(&Map::new()).unwrap(), NetworkMode::Default);
        for default in [json!(null), json!({}), json!({"mode": null}), json!({"mode": "default"})] {
            assert_eq!(read(default.clone()).unwrap(), NetworkMode::Default, "{default}");
        }
        assert_eq!(read(json!({"mode": "none"})).unwrap(), NetworkMode::None);
        for bad in [
            json!("none"),
            json!("nonsense"),
            json!(["none"]),
            json!(false),
            json!({"mode": "nonsense"}),
            json!({"mode": "None"}),
            json!({"mode": ["none"]}),
            json!({"mode": false}),
            json!({"mod": "none"}),
            json!({"mode": "default", "allow": []}),
        ] {
            let error = read(bad.clone()).unwrap_err();
            assert_eq!(error.code, "bad_field", "{bad}");
            assert!(error.message.contains("network.mode is \"default\" or \"none\""), "{bad}");
        }
    }
}

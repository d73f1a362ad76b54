//! What a create asked for that the sandbox with its key has otherwise. Nothing of it is changed,
//! as in sandboxd; but the caller is told.

use sandbank_engine::{Limits, NetworkMode};
use sandbank_orchestrator::{CreateRequest, SandboxInfo};
use serde_json::{Map, Value};

const MIB: u64 = 1 << 20;

/// Only of what the body names: the rest was not asked for.
pub(super) fn warnings(
    body: &Map<String, Value>,
    asked: &CreateRequest,
    has: &SandboxInfo,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut tell = |field: &str, has: String| {
        warnings.push(format!(
            "{field}: this sandbox, which was there already, has {has}; it was not changed"
        ));
    };
    if is_given(body, "network") && asked.network != has.network {
        tell("network", mode(has.network).to_owned());
    }
    if is_given(body, "image") && asked.image != has.image {
        tell("image", has.image.to_string());
    }
    if is_given(body, "runtime") && asked.runtime != has.runtime {
        tell("runtime", has.runtime.clone());
    }
    if let Some(Value::Object(resources)) = body.get("resources") {
        for (name, value) in LIMITS {
            if is_given(resources, name) && value(&asked.limits) != value(&has.limits) {
                let shown = value(&has.limits).map_or("no limit".to_owned(), |n| n.to_string());
                tell(&format!("resources.{name}"), shown);
            }
        }
    }
    warnings
}

type Limit = fn(&Limits) -> Option<u64>;

/// In the units of the body.
const LIMITS: [(&str, Limit); 5] = [
    ("vcpus", |limits| Some(u64::from(limits.cpu_millis) / 1000)),
    ("memoryMb", |limits| Some(limits.memory_bytes / MIB)),
    ("diskMb", |limits| limits.disk_bytes.map(|bytes| bytes / MIB)),
    ("pids", |limits| Some(u64::from(limits.pids))),
    ("tmpMb", |limits| Some(limits.tmp_bytes / MIB)),
];

fn is_given(body: &Map<String, Value>, name: &str) -> bool {
    body.get(name).is_some_and(|value| !value.is_null())
}

fn mode(network: NetworkMode) -> &'static str {
    match network {
        NetworkMode::Default => "default",
        NetworkMode::None => "none",
    }
}

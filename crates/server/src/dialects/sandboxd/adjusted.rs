//! What a create asked for that sandboxd's rules take otherwise: clamped, dropped, or read as
//! something else. They are kept, since clients rely on them; but the caller is told.

use sandbank_orchestrator::CreateRequest;
use serde_json::{Map, Value};

use super::number::number;
use crate::limits::MAX_PORTS;

const MIB: u64 = 1 << 20;

pub(super) fn warnings(body: &Map<String, Value>, asked: &CreateRequest) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut tell = |field: &str, taken: u64| {
        warnings.push(format!("{field}: {taken} was taken, which is what its range allows"));
    };
    let idle_ttl =
        asked.idle_ttl.map_or(0, |ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    if is_other(body.get("idleTtlMs"), idle_ttl) {
        tell("idleTtlMs", idle_ttl);
    }
    if let Some(Value::Object(resources)) = body.get("resources") {
        let vcpus = u64::from(asked.limits.cpu_millis) / 1000;
        for (name, taken) in [("vcpus", vcpus), ("memoryMb", asked.limits.memory_bytes / MIB)] {
            if is_other(resources.get(name), taken) {
                tell(&format!("resources.{name}"), taken);
            }
        }
    }
    if let Some(runtime) = given(body, "runtime")
        && runtime.as_str() != Some(&asked.runtime)
    {
        let taken = &asked.runtime;
        warnings.push(format!("runtime: {taken} was taken, of node24 and python3.13"));
    }
    let dropped = body.get("ports").and_then(Value::as_array).map_or(0, |ports| {
        ports
            .iter()
            .filter(|port| !asked.ports.iter().any(|taken| !is_other(Some(port), (*taken).into())))
            .count()
    });
    if dropped > 0 {
        warnings.push(format!(
            "ports: {dropped} of them cannot be published; a sandbox has at most {MAX_PORTS}, from 1 to 65535"
        ));
    }
    warnings
}

/// Of a sandbox that was made: its runtime is a label, and an image only where there is one of its name.
pub(super) fn missing_image(body: &Map<String, Value>, asked: &CreateRequest) -> Option<String> {
    let CreateRequest { runtime, image, .. } = asked;
    let is_meant = given(body, "runtime")?.as_str() == Some(runtime);
    if !is_meant || given(body, "image").is_some() || image.as_str() == runtime {
        return None;
    }
    Some(format!(
        "runtime: there is no image {runtime}, so this is {image}: `make images` makes it, and \
         `sandbank image import {runtime} FILE` takes one"
    ))
}

fn given<'a>(body: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    body.get(field).filter(|value| !value.is_null())
}

/// Of a value that was given, and fractions aside.
fn is_other(given: Option<&Value>, taken: u64) -> bool {
    given.is_some_and(|value| !value.is_null() && number(value).floor() != taken as f64)
}

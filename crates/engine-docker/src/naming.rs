//! How our objects are called in the engine, and the labels by which they are found again.

use std::collections::HashMap;

use sandbank_engine::{InstanceId, MachineSpec, SandboxId, WorkspaceId};

/// The daemon whose it is. Nothing without this label, or with another's, is ever touched.
pub(crate) const INSTANCE: &str = "sandbank.instance";
pub(crate) const SANDBOX: &str = "sandbank.sandbox";
/// A kept workspace, on its volume and on every container that has it.
pub(crate) const WORKSPACE: &str = "sandbank.workspace";
/// What the machine was made from, as JSON without its variables.
pub(crate) const SPEC: &str = "sandbank.spec";
/// Of Sandbank, when it was made.
pub(crate) const VERSION: &str = "sandbank.version";
/// Of the runner, on the volume that holds it and on every container that runs it.
pub(crate) const RUNNER: &str = "sandbank.runner";

/// The image that a container was made to look into; it never starts.
pub(crate) const LOOKED_AT: &str = "sandbank.looked-at";

pub(crate) fn container(id: &SandboxId) -> String {
    format!("sandbank-{id}")
}

pub(crate) fn own_volume(id: &SandboxId) -> String {
    format!("sandbank-{id}-workspace")
}

/// Two instances may have kept workspaces of one name.
pub(crate) fn kept_volume(instance: &InstanceId, id: &WorkspaceId) -> String {
    format!("sandbank-{instance}-kept-{id}")
}

const RUNNER_VOLUMES: &str = "sandbank-runner-";

pub(crate) fn runner_volume(digest: &str) -> String {
    format!("{RUNNER_VOLUMES}{digest}")
}

/// Of this version or another.
pub(crate) fn is_runner_volume(name: &str) -> bool {
    name.strip_prefix(RUNNER_VOLUMES)
        .is_some_and(|digest| digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

pub(crate) fn network(instance: &InstanceId) -> String {
    format!("sandbank-{instance}")
}

/// Labels of everything that belongs to a machine.
pub(crate) fn machine_labels(instance: &InstanceId, id: &SandboxId) -> HashMap<String, String> {
    HashMap::from([
        (INSTANCE.to_owned(), instance.to_string()),
        (SANDBOX.to_owned(), id.to_string()),
        (VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ])
}

pub(crate) fn kept_labels(instance: &InstanceId, id: &WorkspaceId) -> HashMap<String, String> {
    HashMap::from([
        (INSTANCE.to_owned(), instance.to_string()),
        (WORKSPACE.to_owned(), id.to_string()),
        (VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ])
}

/// Variables may hold secrets, and labels are for everybody who may use the engine.
pub(crate) fn spec_label(spec: &MachineSpec) -> String {
    let shown = MachineSpec { env: Default::default(), ..spec.clone() };
    serde_json::to_string(&shown).expect("a spec is plain data")
}

/// As the engine's lists are filtered.
pub(crate) fn filter(label: &str, value: Option<&str>) -> HashMap<String, Vec<String>> {
    let text = match value {
        Some(value) => format!("{label}={value}"),
        None => label.to_owned(),
    };
    HashMap::from([("label".to_owned(), vec![text])])
}

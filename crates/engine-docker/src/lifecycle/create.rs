//! Making a machine.

use std::sync::Arc;

use bollard::errors::Error;
use bollard::query_parameters::{CreateContainerOptionsBuilder, StartContainerOptions};
use sandbank_channel::RunnerClient;
use sandbank_engine::{Control, EngineError, Machine, MachineSpec, MachineState, NetworkMode};
use sandbank_fault_points::Point;
use tokio::time::timeout;

use super::table::Entry;
use super::{Parts, destroy, images, reach, workspaces};
use crate::connection::{Refusal, SEE_LOG, status_of};
use crate::container::{self, Fences, Recipe, Workspace};
use crate::egress::Egress;
use crate::image::Facts;
use crate::limits::RUNNER_DEADLINE;
use crate::runner_volume::{self, RunnerVolume};
use crate::streams::{self, Complaints};
use crate::{controls, naming};

pub(super) async fn create(parts: &Arc<Parts>, spec: &MachineSpec) -> Result<Machine, EngineError> {
    controls::require(parts, spec)?;
    create_anyway(parts, spec).await
}

/// Without what Docker's host is known to lack: for a machine that nobody but the engine uses.
///
/// In a task of its own: a caller that stops waiting leaves a whole machine or none.
pub(crate) async fn create_anyway(
    parts: &Arc<Parts>,
    spec: &MachineSpec,
) -> Result<Machine, EngineError> {
    let entry = parts.table.reserve(spec)?;
    let (parts, spec) = (Arc::clone(parts), spec.clone());
    let task = tokio::spawn(async move {
        let _busy = entry.busy.lock().await;
        let made = make_or_repair(&parts, &entry, &spec).await;
        if let Err(error) = &made {
            tracing::debug!(id = %spec.id, %error, "a machine was not made");
            match destroy::remove_all(&parts, &spec.id).await {
                Ok(()) => parts.table.remove(&spec.id),
                // `list` still shows it, and `destroy` tries again.
                Err(left) => tracing::warn!(id = %spec.id, error = %left, "leftovers"),
            }
        }
        made
    });
    match task.await {
        Ok(made) => made,
        Err(error) => Err(EngineError::Internal(format!("making a machine failed: {error}"))),
    }
}

/// Why a machine was not made, as far as trying again differently may help.
enum Obstacle {
    /// The runner's volume or the network was removed behind our back.
    Missing(EngineError),
    /// The host allows nobody as many open files.
    OpenFiles(EngineError),
    /// The host's kernel has no IPv6.
    LoopbackV6(EngineError),
    /// The runner cannot put up one of its fences.
    Fence(Control, EngineError),
    Other(EngineError),
}

impl From<EngineError> for Obstacle {
    fn from(error: EngineError) -> Self {
        Self::Other(error)
    }
}

async fn make_or_repair(
    parts: &Arc<Parts>,
    entry: &Arc<Entry>,
    spec: &MachineSpec,
) -> Result<Machine, EngineError> {
    // Once for each thing that can be repaired.
    let (mut repaired, mut without_v6, mut fences) = (false, false, 0);
    loop {
        let error = match make(parts, entry, spec).await {
            Ok(machine) => return Ok(machine),
            Err(Obstacle::Missing(error)) if !repaired => {
                repaired = true;
                parts.runner.forget().await;
                parts.network.forget().await;
                error
            }
            Err(Obstacle::OpenFiles(error)) if parts.halve_open_files() => error,
            Err(Obstacle::LoopbackV6(error)) if !without_v6 => {
                without_v6 = true;
                parts.go_without_loopback_v6();
                error
            }
            Err(Obstacle::Fence(control, error)) if parts.allows_without(control) && fences < 3 => {
                fences += 1;
                parts.learn_lack(control);
                error
            }
            Err(Obstacle::Fence(control, error)) => {
                return Err(EngineError::ControlUnavailable { control, reason: error.to_string() });
            }
            Err(
                Obstacle::Missing(error)
                | Obstacle::OpenFiles(error)
                | Obstacle::LoopbackV6(error)
                | Obstacle::Other(error),
            ) => return Err(error),
        };
        tracing::debug!(id = %spec.id, %error, "a machine is made again");
        destroy::remove_all(parts, &spec.id).await?;
        entry.begin_again();
    }
}

async fn make(
    parts: &Arc<Parts>,
    entry: &Arc<Entry>,
    spec: &MachineSpec,
) -> Result<Machine, Obstacle> {
    let (image, volumes) = images::look_into(parts, &spec.image).await?;
    let (client, instance) = (&parts.client, &parts.settings.instance);
    parts.runner.ensure(client, instance, &image.id, &volumes).await?;
    reach(Point::RunnerVolumeReady)?;
    let egress = match spec.network {
        NetworkMode::Default => Some(parts.egress().await?),
        NetworkMode::None => None,
    };
    reach(Point::BridgeReady)?;
    let made_workspace = {
        // Nobody removes it between the question and the container that uses it.
        let _kept = match spec.workspace {
            Some(_) => Some(parts.kept.lock().await),
            None => None,
        };
        let is_new = match &spec.workspace {
            Some(kept) => !workspaces::exists(parts, kept).await?,
            None => false,
        };
        entry.set_container(make_container(parts, spec, (&image, &volumes), egress).await?);
        if is_new {
            reach(Point::KeptVolumeMade)?;
        }
        is_new
    };
    reach(Point::ContainerMade)?;
    let complaints = Complaints::of(&spec.id);
    // Before it starts, so that nothing it says is missed.
    let (attached, cut) = streams::attach(&parts.client, &spec.id, complaints.clone()).await?;
    entry.set_cut(cut);
    reach(Point::Attached)?;
    let name = naming::container(&spec.id);
    let started = parts.client.api().start_container(&name, None::<StartContainerOptions>).await;
    started.map_err(|error| refused(parts, spec, "start a container", error))?;
    reach(Point::ContainerStarted)?;
    let opened = match timeout(RUNNER_DEADLINE, streams::open(attached)).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => return Err(did_not_start(spec, &complaints, &error.to_string())),
        Err(_) => return Err(did_not_start(spec, &complaints, "it did not answer in time")),
    };
    reach(Point::RunnerAnswered)?;
    if spec.env.is_empty() {
        entry.set_ready(opened);
    } else {
        // Not on the command line, which the engine shows to everybody who may use it.
        let failed = |error: sandbank_channel::ChannelError| {
            EngineError::Internal(format!("the runner does not take the environment: {error}"))
        };
        let (client, _) = RunnerClient::connect(opened).await.map_err(failed)?;
        client.set_environment(&spec.env).await.map_err(failed)?;
    }
    let (id, state) = (spec.id.clone(), MachineState::Running);
    Ok(Machine { id, state, pid: None, made_workspace })
}

async fn make_container(
    parts: &Arc<Parts>,
    spec: &MachineSpec,
    (image, volumes): (&Facts, &[String]),
    egress: Option<Egress>,
) -> Result<String, Obstacle> {
    let instance = &parts.settings.instance;
    let mut labels = naming::machine_labels(instance, &spec.id);
    labels.insert(naming::SPEC.to_owned(), naming::spec_label(spec));
    labels.insert(naming::RUNNER.to_owned(), runner_volume::digest().to_owned());
    let (volume, volume_labels) = match &spec.workspace {
        None => (naming::own_volume(&spec.id), naming::machine_labels(instance, &spec.id)),
        Some(kept) => {
            labels.insert(naming::WORKSPACE.to_owned(), kept.to_string());
            (naming::kept_volume(instance, kept), naming::kept_labels(instance, kept))
        }
    };
    let recipe = Recipe {
        spec,
        labels,
        image: &image.id,
        image_env: image.env.clone(),
        declared: volumes,
        workspace: Workspace { volume: &volume, labels: volume_labels },
        runner_volume: &RunnerVolume::name(),
        network: &parts.network.name,
        egress,
        runtime: parts.settings.runtime.as_deref(),
        cgroup_parent: parts.settings.cgroup_parent.as_deref(),
        open_files: parts.open_files(),
        loopback_v6: parts.has_loopback_v6(),
        has_cgroups: parts.host.has_cgroups,
        own_kernel: parts.host.own_kernel,
        users: parts.host.users,
        fences: Fences {
            landlock: parts.has(Control::Landlock),
            egress: parts.has(Control::NetworkEgress),
            seccomp_hex: parts.has(Control::Seccomp).then_some(parts.seccomp_hex.as_str()),
        },
    };
    let name = naming::container(&spec.id);
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    let made = parts.client.api().create_container(Some(options), container::body(recipe)).await;
    let made = made.map_err(|error| refused(parts, spec, "make a container", error))?;
    for warning in made.warnings {
        tracing::warn!(id = %spec.id, warning, "Docker warns");
    }
    Ok(made.id)
}

fn refused(parts: &Parts, spec: &MachineSpec, step: &'static str, error: Error) -> Obstacle {
    let refusal = status_of(&error);
    let translated = parts.client.failed(step)(error);
    match refusal {
        Some(refusal) if image_is_gone(&refusal) => {
            parts.images.forget(&spec.image);
            Obstacle::Other(EngineError::ImageNotFound(spec.image.clone()))
        }
        Some(refusal) if names_loopback_v6(&refusal) => Obstacle::LoopbackV6(translated),
        Some(refusal) if refusal.message.contains("rlimit") => Obstacle::OpenFiles(translated),
        Some(refusal) if is_missing(&refusal) => Obstacle::Missing(translated),
        _ => Obstacle::Other(translated),
    }
}

fn image_is_gone(refusal: &Refusal) -> bool {
    refusal.status == 404 && refusal.message.contains("No such image")
}

/// By the setting's name, or by the path of its file.
fn names_loopback_v6(refusal: &Refusal) -> bool {
    let name = container::LOOPBACK_V6.0;
    refusal.message.contains(name) || refusal.message.contains(&name.replace('.', "/"))
}

/// The runner, because its volume was removed and made anew; or the network.
fn is_missing(refusal: &Refusal) -> bool {
    let message = &refusal.message;
    message.contains("no such file or directory")
        || message.contains("network") && message.contains("not found")
}

fn did_not_start(spec: &MachineSpec, complaints: &Complaints, error: &str) -> Obstacle {
    let said = complaints.last().unwrap_or_else(|| format!("{error}; {SEE_LOG}"));
    let text = format!("the runner of {} did not start: {said}", spec.id);
    let error = EngineError::Internal(text);
    match fence(&said) {
        Some(control) => Obstacle::Fence(control, error),
        None => Obstacle::Other(error),
    }
}

/// What a runner cannot put up, by its last words.
fn fence(said: &str) -> Option<Control> {
    let said = said.strip_prefix("runner: ")?;
    match said {
        said if said.starts_with("landlock") => Some(Control::Landlock),
        said if said.contains("PR_SET_SECCOMP") => Some(Control::Seccomp),
        said if said.starts_with("cannot close the network") => Some(Control::NetworkEgress),
        said if said.starts_with("the network is not closed") => Some(Control::NetworkEgress),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words are the runner's own; its tests hear them from a real one.
    #[test]
    fn a_runner_s_last_words_name_the_control_that_it_cannot_have() {
        for (said, control) in [
            (
                "cannot close the network: failed to load the packet filter (nf_tables): x",
                Some(Control::NetworkEgress),
            ),
            (
                "the network is not closed as it should be: there is still a route",
                Some(Control::NetworkEgress),
            ),
            ("landlock cannot be enforced: x", Some(Control::Landlock)),
            ("PR_SET_SECCOMP failed: x", Some(Control::Seccomp)),
            ("cannot give the workspace to the workload: x", None),
        ] {
            assert_eq!(fence(&format!("runner: {said}")), control, "{said}");
            assert_eq!(fence(said), None, "not the runner: {said}");
        }
    }
}

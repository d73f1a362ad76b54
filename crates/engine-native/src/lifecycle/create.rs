//! Making a machine.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use sandbank_engine::{EngineError, Machine, MachineSpec, MachineState};
use sandbank_fault_points::Point;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::table::Entry;
use super::{Parts, blocking, controls, death, destroy, ingredients, reach};
use crate::kernel::process::ProcessKey;
use crate::kernel::watched::watched;
use crate::limits::SPAWN_DEADLINE;
use crate::machine::{Record, log};
use crate::spawner::Failure;
use crate::spawner::client::Spawned;
use crate::user_namespace::uid_base;

/// In a task of its own: a caller that stops waiting leaves a whole machine or none.
pub(super) async fn create(parts: &Arc<Parts>, spec: &MachineSpec) -> Result<Machine, EngineError> {
    controls::require(parts, spec)?;
    let entry = parts.table.reserve(&spec.id)?;
    let (parts, spec) = (Arc::clone(parts), spec.clone());
    let task = tokio::spawn(async move {
        let _busy = entry.busy.lock().await;
        let mut made = make(&parts, &entry, &spec).await;
        // The spawner died under it; whatever it left goes first.
        if matches!(made, Err(EngineError::Unavailable(_)))
            && entry.process().is_none()
            && destroy::remove_all(&parts, &spec.id, &entry).await.is_ok()
        {
            made = make(&parts, &entry, &spec).await;
        }
        match &made {
            Ok(_) => parts.stock.refill(),
            Err(error) => {
                tracing::debug!(id = %spec.id, %error, "a machine was not made");
                match destroy::remove_all(&parts, &spec.id, &entry).await {
                    Ok(()) => parts.table.remove(&spec.id),
                    // `list` still shows it, and `destroy` tries again.
                    Err(left) => tracing::warn!(id = %spec.id, error = %left, "leftovers"),
                }
            }
        }
        made
    });
    match task.await {
        Ok(made) => made,
        Err(error) => Err(EngineError::Internal(format!("making a machine failed: {error}"))),
    }
}

async fn make(
    parts: &Arc<Parts>,
    entry: &Arc<Entry>,
    spec: &MachineSpec,
) -> Result<Machine, EngineError> {
    let network = match &parts.networks {
        Some(networks) => Some(networks.take(spec.network, &spec.id).await?),
        None => None,
    };
    reach(Point::NetworkTaken)?;
    let user_namespace = parts.user_namespaces.take().await?;
    reach(Point::UserNamespaceTaken)?;
    let mut record = Record {
        spec: spec.clone(),
        uid_slot: user_namespace.slot,
        network_slot: network.as_ref().and_then(|network| network.slot),
        boot: parts.boot.clone(),
        process: None,
        runner_digest: controls::runner_digest().to_owned(),
    };
    entry.set_record(record.clone());
    let gathering = {
        let (parts, record) = (Arc::clone(parts), record.clone());
        blocking(move || ingredients::gather(&parts, &record, user_namespace, network))
    };
    let ingredients = gathering.await?;
    reach(Point::IngredientsGathered)?;
    let descriptors = ingredients.descriptors(&parts.runner);
    let spawned = parts.spawner.machine(ingredients.plan.clone(), &descriptors).await?;
    // Before its last other holder goes: a runner that dies at once is heard, too.
    let log = log::keep(parts.directory.log(&spec.id));
    drop(descriptors);
    let made_workspace = ingredients.made_workspace;
    let status = ingredients.into_status();
    reach(Point::Cloned)?;

    record.process = Some(identify(&spawned)?);
    let pid = spawned.pid;
    entry.set_record(record.clone());
    watch(parts, entry, spawned)?;
    entry.set_log(log.map_err(EngineError::io("open the machine's log"))?);
    // Meanwhile the machine puts itself together.
    let finishing = {
        let parts = Arc::clone(parts);
        blocking(move || finish(&parts, &record))
    };
    let (finished, started) = tokio::join!(finishing, started(status));
    started?;
    finished?;
    reach(Point::Started)?;
    still_alive(entry)?;
    let (id, state) = (spec.id.clone(), MachineState::Running);
    Ok(Machine { id, state, pid: Some(pid), made_workspace })
}

/// A process that is killed before its exec closes the pipe just like one that succeeds.
fn still_alive(entry: &Entry) -> Result<(), EngineError> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let Some(process) = entry.process() else { return Ok(()) };
    let mut death = [PollFd::new(process.get_ref(), PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut death, Some(&now)) {
        Ok(0) => Ok(()),
        Ok(_) => Err(EngineError::Internal(
            "the machine died while it started; its limits may be too low".to_owned(),
        )),
        Err(error) => Err(EngineError::io("look at the machine")(error.into())),
    }
}

/// What must be so before anybody can use the machine, but not before it is cloned.
fn finish(parts: &Parts, record: &Record) -> Result<(), EngineError> {
    let spec = &record.spec;
    let runner =
        if parts.rootless { rustix::process::getuid().as_raw() } else { uid_base(record.uid_slot) };
    parts.cgroups.limit(&spec.id, &controls::limits(parts, spec), runner)?;
    reach(Point::Limited)?;
    // Variables may hold secrets, and nobody needs them once the runner has been told.
    let kept = MachineSpec { env: BTreeMap::new(), ..spec.clone() };
    let record = Record { spec: kept, ..record.clone() };
    let write = "write the machine's record";
    parts.directory.write(&spec.id, &record).map_err(EngineError::io(write))?;
    reach(Point::Recorded)
}

/// The process may have died already; its parent has not been told to forget it before we are
/// told of it, so the pid is still its own, or nobody's.
fn identify(spawned: &Spawned) -> Result<ProcessKey, EngineError> {
    match ProcessKey::of(spawned.pid) {
        Ok(key) => Ok(key),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(ProcessKey { pid: spawned.pid, start_time: 0 })
        }
        Err(error) => Err(EngineError::io("identify the machine's first process")(error)),
    }
}

fn watch(parts: &Arc<Parts>, entry: &Arc<Entry>, spawned: Spawned) -> Result<(), EngineError> {
    let process = watched(spawned.pidfd, tokio::io::Interest::READABLE)
        .map_err(EngineError::io("watch the machine"))?;
    let process = Arc::new(process);
    entry.set_process(Arc::clone(&process));
    death::watch(parts, entry, process, Some(spawned.parent));
    Ok(())
}

/// Waits until the runner has taken over, which closes the pipe, or a failure comes through it.
async fn started(status: OwnedFd) -> Result<(), EngineError> {
    let read = "hear from the machine's first process";
    rustix::io::ioctl_fionbio(&status, true)
        .map_err(io::Error::from)
        .map_err(EngineError::io(read))?;
    let mut status = pipe::Receiver::from_owned_fd(status).map_err(EngineError::io(read))?;
    let mut message = Vec::new();
    let limited = &mut (&mut status).take(Failure::BYTES as u64);
    let heard = tokio::time::timeout(SPAWN_DEADLINE, limited.read_to_end(&mut message)).await;
    match heard {
        Err(_) => Err(EngineError::Internal("the machine did not start in time".into())),
        Ok(Err(error)) => Err(EngineError::io(read)(error)),
        Ok(Ok(0)) => Ok(()),
        Ok(Ok(_)) => match Failure::from_bytes(&message) {
            Some(failure) => Err(failure.into_error()),
            None => Err(EngineError::Internal("the machine failed to say why it failed".into())),
        },
    }
}

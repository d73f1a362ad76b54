//! Places where a test makes the daemon die or fail: one table, one function.
//!
//! `SANDBANK_FAULT=<point>:<kill|error>[:<nth>]` arms one point of one process. The nth time it
//! is reached (the first unless told), the process is killed as by `kill -9`, or the step fails
//! with an error; once, so that what is tried again succeeds. Until [`arm`] nothing counts: a
//! daemon's test of itself takes the same steps, and is not what a test wants to cut short.
//!
//! It is all compiled under debug assertions only, rather than under a feature: features are
//! united over a build, so that a test somewhere could arm a program that people install, while
//! the release profile never has debug assertions. There, [`reach`] is an inlined `Ok`.

#[cfg(debug_assertions)]
mod armed;

use std::io;

/// What leads to a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Creating a sandbox with a published port.
    Create,
    /// Publishing the port of a sandbox that runs.
    Publish,
    /// Deleting a sandbox that runs.
    Delete,
    /// Creating a sandbox with a kept workspace that is not there yet.
    Keep,
    /// Removing a kept workspace.
    Remove,
}

/// Whose step it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Whatever engine there is.
    Any,
    Native,
    Docker,
}

macro_rules! points {
    ($($point:ident, $owner:ident, $stage:ident, $name:literal, $after:literal;)*) => {
        /// Named after what has just been done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Point {
            $(#[doc = $after] $point,)*
        }

        impl Point {
            /// Every point there is; the suite arms each of them.
            pub const ALL: &[Self] = &[$(Self::$point,)*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$point => $name,)* }
            }

            pub fn stage(self) -> Stage {
                match self { $(Self::$point => Stage::$stage,)* }
            }

            pub fn owner(self) -> Owner {
                match self { $(Self::$point => Owner::$owner,)* }
            }
        }
    };
}

points! {
    RowInserted, Any, Create, "create.row_inserted", "the intent is in the store";
    NetworkTaken, Native, Create, "machine.network_taken", "a network namespace was taken from the pool";
    UserNamespaceTaken, Native, Create, "machine.user_namespace_taken", "a range of ids was taken";
    DirectoryMade, Native, Create, "machine.directory_made", "the machine's directory is there";
    SocketMade, Native, Create, "machine.socket_made", "its socket listens";
    CgroupMade, Native, Create, "machine.cgroup_made", "its cgroups are there";
    StorageMade, Native, Create, "machine.storage_made", "its workspace is there";
    IngredientsGathered, Native, Create, "machine.ingredients_gathered", "all is ready to be cloned";
    Cloned, Native, Create, "machine.cloned", "its first process exists, and nothing says so";
    Limited, Native, Create, "machine.limited", "its limits are in force";
    Recorded, Native, Create, "machine.recorded", "its record is written";
    Started, Native, Create, "machine.started", "its runner has taken over";
    EngineCreated, Any, Create, "create.engine_created", "the engine has said that it is there";
    RowRunning, Any, Create, "create.row_running", "the store says that it runs, its caller knows nothing";
    PortBound, Any, Publish, "port.bound", "the host port listens";
    PortStored, Any, Publish, "port.stored", "the port is in the store";
    RowStopping, Any, Delete, "delete.row_stopping", "the store says that it is ending";
    Collected, Any, Delete, "delete.collected", "the post-mortem is gathered";
    Killed, Native, Delete, "machine.killed", "its processes are dead";
    CgroupRemoved, Native, Delete, "machine.cgroup_removed", "its cgroups are gone";
    StorageDeleted, Native, Delete, "machine.storage_deleted", "its workspace is gone";
    NetworkReleased, Native, Delete, "machine.network_released", "its network was given back";
    DirectoryRemoved, Native, Delete, "machine.directory_removed", "its directory is gone";
    EngineDestroyed, Any, Delete, "delete.engine_destroyed", "the engine has said that it is gone";
    RowClosed, Any, Delete, "delete.row_closed", "its row is closed, its caller knows nothing";
    WorkspaceDrafted, Native, Keep, "workspace.drafted", "a kept workspace is there, without its name";
    WorkspaceNamed, Native, Keep, "workspace.named", "it has its name";
    WorkspaceDoomed, Native, Remove, "workspace.doomed", "it has lost its name, and is whole";
    WorkspaceRemoved, Native, Remove, "workspace.removed", "nothing of it is left, its caller knows nothing";
    RunnerVolumeReady, Docker, Create, "container.runner_volume_ready", "the volume with the runner is there";
    BridgeReady, Docker, Create, "container.bridge_ready", "the network of this daemon's containers is there";
    ContainerMade, Docker, Create, "container.made", "its container and its volume are there";
    Attached, Docker, Create, "container.attached", "its streams are held, before it starts";
    ContainerStarted, Docker, Create, "container.started", "its first process exists";
    RunnerAnswered, Docker, Create, "container.answered", "its runner has said its first word";
    KeptVolumeMade, Docker, Keep, "container.kept_volume_made", "the volume of a kept workspace is there";
    ContainerRemoved, Docker, Delete, "container.removed", "its container is gone";
    VolumeRemoved, Docker, Delete, "container.volume_removed", "its volume is gone";
}

/// From here on, points that are reached count.
#[cfg(debug_assertions)]
pub fn arm() {
    armed::arm();
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn arm() {}

/// Says that the step named by `point` is done. Fails, or does not return, when a test wants so.
#[cfg(debug_assertions)]
pub fn reach(point: Point) -> io::Result<()> {
    armed::reach(point)
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reach(_point: Point) -> io::Result<()> {
    Ok(())
}

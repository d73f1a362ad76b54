//! What every way of making machines must offer.
//!
//! An engine makes and destroys machines and gives a byte stream to the runner in each. It knows
//! nothing of commands, files or HTTP. What it cannot enforce it says in [`Capabilities`], and a
//! control that was asked for but is not in force makes `create` fail with the control's name.

mod awaited;
mod capabilities;
mod containment;
mod control;
mod death;
mod digest;
mod error;
mod id;
mod image;
pub mod kernel_files;
mod machine;
mod workspace;

pub use awaited::Awaited;
pub use capabilities::Capabilities;
pub use containment::{Confinement, Expected, HostFinding};
pub use control::{Control, ControlReport, Standing};
pub use death::{Death, DeathWatch};
pub use digest::{hex, sha256_hex};
pub use error::EngineError;
pub use id::{InstanceId, InvalidId, SandboxId};
pub use image::{
    BeforeSwap, Freed, ImageInfo, ImageName, ImportProgress, InvalidImageName, PullRequest,
    RegistryCredentials,
};
pub use machine::{
    DeathCause, Limits, Machine, MachineSpec, MachineState, MachineStats, NetworkMode,
    SUBNET_PREFIXES,
};
pub use workspace::{InvalidWorkspaceId, WorkspaceId, WorkspaceInfo};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// A duplex byte stream to a runner.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// `native`, `docker`, …: shown by `/v1/health` and in every sandbox's description.
    fn name(&self) -> &'static str;

    /// The engine's own version, for the doctor.
    fn version(&self) -> String;

    /// Why nothing can be asked of it; none of an engine that was started, whatever became of it
    /// since. See [`Awaited`].
    fn absent(&self) -> Option<String> {
        None
    }

    /// Why it does not answer just now; what is asked of it may be answered all the same, a moment
    /// later.
    fn silent(&self) -> Option<String> {
        self.absent()
    }

    fn capabilities(&self) -> Capabilities;

    /// Each security control and whether it is in force on this machine.
    async fn controls(&self) -> Vec<ControlReport>;

    /// How a machine is meant to be confined, and what of it shows on the host.
    async fn confinement(&self, id: &SandboxId) -> Result<Confinement, EngineError> {
        Err(EngineError::Unavailable(format!("the engine {} cannot examine {id}", self.name())))
    }

    /// What the confinement of machines depends on beside their image: a test of it holds until
    /// this changes. None where machines are not confined in a way that can be tested.
    fn confinement_key(&self) -> Option<String> {
        None
    }

    /// Whether the configuration accepts that this control is weaker or missing.
    fn accepts_without(&self, _control: Control) -> bool {
        false
    }

    /// Whether machines of this engine are meant to have this control. What not is reported, and
    /// machines are made without it.
    fn relies_on(&self, _control: Control) -> bool {
        true
    }

    /// Images whose machines are attacked before any is trusted; the first stands for all as far
    /// as the network is concerned.
    async fn images_to_test(&self) -> Result<Vec<ImageInfo>, EngineError> {
        self.images().await
    }

    /// Makes a machine whose runner accepts connections when this returns. On an error, or when
    /// the future is dropped, nothing is left behind that `list` does not show.
    async fn create(&self, spec: &MachineSpec) -> Result<Machine, EngineError>;

    /// A new stream to the runner. Fails with [`EngineError::NotFound`] or
    /// [`EngineError::Dead`] when the machine is gone.
    async fn connect(&self, id: &SandboxId) -> Result<Box<dyn Stream>, EngineError>;

    /// Removes the machine with everything of it, its own workspace included; a kept one stays.
    /// Idempotent.
    async fn destroy(&self, id: &SandboxId) -> Result<(), EngineError>;

    /// Stops every process of the machine where it stands, without losing anything.
    async fn pause(&self, id: &SandboxId) -> Result<(), EngineError>;

    async fn resume(&self, id: &SandboxId) -> Result<(), EngineError>;

    /// Every machine of this instance, including half-made ones.
    async fn list(&self) -> Result<Vec<Machine>, EngineError>;

    async fn stats(&self, id: &SandboxId) -> Result<MachineStats, EngineError>;

    /// Resolves when the machine's first process has died, with the cause as far as it is known.
    async fn wait_dead(&self, id: &SandboxId) -> Result<DeathCause, EngineError>;

    async fn images(&self) -> Result<Vec<ImageInfo>, EngineError>;

    /// Reads an archive (rootfs tar, `docker save`, OCI layout; plain, gzip or zstd) from a file.
    async fn import_image(
        &self,
        name: &ImageName,
        archive: &std::path::Path,
        progress: &(dyn Fn(ImportProgress) + Send + Sync),
    ) -> Result<ImageInfo, EngineError>;

    /// Takes an image from its registry; what its name stood for stays in place until all of it is
    /// here. Cancelled, it fails, and nothing of it is kept.
    async fn pull_image(
        &self,
        _name: &ImageName,
        _request: &PullRequest,
        _progress: &(dyn Fn(ImportProgress) + Send + Sync),
        _cancelled: &CancellationToken,
        _before_swap: &BeforeSwap,
    ) -> Result<ImageInfo, EngineError> {
        Err(EngineError::Unavailable(format!("the engine {} cannot pull images", self.name())))
    }

    /// Forgets a name, and removes the layers that nothing else is made of.
    async fn remove_image(&self, name: &ImageName) -> Result<Freed, EngineError>;

    /// Removes every layer that no image and no machine is made of.
    async fn prune_images(&self) -> Result<Freed, EngineError> {
        Ok(Freed::default())
    }

    /// Every kept workspace, used or not. None where there are no such things.
    async fn workspaces(&self) -> Result<Vec<WorkspaceInfo>, EngineError> {
        Ok(Vec::new())
    }

    /// Whether there is one of that name; engines that can tell without measuring them all do.
    async fn has_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        Ok(self.workspaces().await?.iter().any(|workspace| workspace.id == *id))
    }

    /// Removes a kept workspace with all that is in it; false when there is none of that name.
    /// Refused with [`EngineError::WorkspaceInUse`] as long as a machine has it.
    async fn remove_workspace(&self, _id: &WorkspaceId) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// Removes a kept workspace that nobody has and that nothing is in; says whether it did.
    async fn remove_empty_workspace(&self, _id: &WorkspaceId) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// What a kept workspace may take on disk; none where nothing holds it to that.
    async fn workspace_quota(&self, _id: &WorkspaceId) -> Result<Option<u64>, EngineError> {
        Ok(None)
    }

    /// Gives back pooled ingredients. Machines keep running.
    async fn shutdown(&self);
}

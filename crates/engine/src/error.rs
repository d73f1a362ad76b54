//! Why an engine could not do what was asked.

use crate::{Control, ImageName, SandboxId, WorkspaceId};

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("no machine {0}")]
    NotFound(SandboxId),
    #[error("machine {0} is dead")]
    Dead(SandboxId),
    #[error("image {0} is not here")]
    ImageNotFound(ImageName),
    #[error("image {0} is in use")]
    ImageInUse(ImageName),
    #[error("workspace {id} is in use by {}", names(.by))]
    WorkspaceInUse { id: WorkspaceId, by: Vec<SandboxId> },
    /// The image or its archive itself is at fault.
    #[error("the image is not usable: {0}")]
    BadImage(String),
    /// A registry did not give the image.
    #[error("the image cannot be pulled: {message}")]
    NotPulled { message: String, hint: String, retryable: bool },
    #[error("the control {} cannot be enforced: {reason}", .control.name())]
    ControlUnavailable { control: Control, reason: String },
    #[error("no storage left: {0}")]
    StorageFull(String),
    /// A pool or table of the host is used up; trying later may help.
    #[error("the engine is at its limit: {0}")]
    Exhausted(String),
    /// Another daemon has what this one needs, until it ends.
    #[error("{0}")]
    Taken(String),
    #[error("the engine does not answer: {0}")]
    Unavailable(String),
    #[error("failed to {step}: {source}")]
    Io {
        step: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("{0}")]
    Internal(String),
}

fn names(ids: &[SandboxId]) -> String {
    ids.iter().map(SandboxId::as_str).collect::<Vec<_>>().join(", ")
}

impl EngineError {
    /// For `map_err`: names the step that failed.
    pub fn io(step: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| match source.raw_os_error() {
            Some(28 | 122) => Self::StorageFull(format!("{step}: {source}")),
            _ => Self::Io { step, source },
        }
    }
}

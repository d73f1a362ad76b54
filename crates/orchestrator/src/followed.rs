//! One command from its start to its ending, however often the channel breaks. The runner keeps
//! the output and a command's id makes it safe to start it again, so no byte is lost or comes twice.

use std::time::Duration;

use bytes::Bytes;
use sandbank_channel::OutputStream;
use sandbank_protocol::{CommandId, CommandSpec, Ending, FaultCode, Frame, Started, StreamKind};

use crate::{Attached, Cause, Orchestrator, OrchestratorError, Retry};

/// A command that runs, with everything that it says.
pub struct FollowedCommand {
    orchestrator: Orchestrator,
    id: CommandId,
    /// Keeps the sandbox busy, and tells when it ends.
    attached: Attached,
    output: OutputStream,
    last_seq: u64,
    retry: Retry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Output {
        stream: StreamKind,
        data: Bytes,
    },
    /// Output that nobody keeps any more.
    Dropped {
        bytes: u64,
    },
    /// Nothing, for some time.
    Silence,
    Ended(Ending),
}

/// Why nobody can say what a command does.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FollowError {
    #[error("the sandbox has ended: {0}")]
    SandboxEnded(Cause),
    #[error("{0}")]
    Lost(&'static str),
    #[error(transparent)]
    Failed(#[from] OrchestratorError),
}

impl FollowedCommand {
    /// Until the runner has the command and its output is open. With `patience` it stays with the
    /// start for that long: a short command takes fewer requests.
    pub async fn start(
        orchestrator: Orchestrator,
        mut attached: Attached,
        spec: &CommandSpec,
        patience: Option<Duration>,
    ) -> Result<(Started, Self), OrchestratorError> {
        let mut retry = Retry::default();
        loop {
            let begun = async {
                let started = match patience {
                    Some(patience) => attached.start_and_wait(spec, patience).await?,
                    None => attached.start(spec).await?,
                };
                let id = &spec.id;
                let output = attached.run(|client| async move { client.output(id, 0, true).await });
                Ok::<_, OrchestratorError>((started, output.await?))
            };
            let error = match begun.await {
                Ok((started, output)) => {
                    let (id, last_seq, retry) = (spec.id.clone(), 0, Retry::default());
                    let this = Self { orchestrator, id, attached, output, last_seq, retry };
                    return Ok((started, this));
                }
                Err(error) if error.is_broken() => error,
                Err(error) => return Err(error),
            };
            if !retry.again().await {
                return Err(error);
            }
            match orchestrator.attach(attached.sandbox_id()).await {
                Ok(again) => attached = again,
                Err(error) if error.is_broken() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The hold on its sandbox.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// What comes next; [`Said::Ended`] is the last. Safe to cancel.
    pub async fn next(&mut self) -> Result<Said, FollowError> {
        loop {
            let next = tokio::select! {
                biased;
                next = self.output.next() => next,
                cause = self.attached.ended() => return Err(FollowError::SandboxEnded(cause)),
            };
            match next {
                Ok(Some(frame)) => {
                    if let Some(said) = self.said(frame)? {
                        return Ok(said);
                    }
                }
                Ok(None) => self.reconnect().await?,
                Err(error) if error.is_broken() => self.reconnect().await?,
                Err(error) => return Err(OrchestratorError::from(error).into()),
            }
        }
    }

    fn said(&mut self, frame: Frame) -> Result<Option<Said>, FollowError> {
        let seq = frame.seq();
        let is_new = seq > self.last_seq;
        let said = match frame {
            Frame::Output { stream, data, .. } if is_new => Said::Output { stream, data },
            Frame::Dropped { bytes, .. } if is_new => Said::Dropped { bytes },
            // Sent twice around a reconnect.
            Frame::Output { .. } | Frame::Dropped { .. } => return Ok(None),
            Frame::Heartbeat { .. } => return Ok(Some(Said::Silence)),
            Frame::Ended { ending, .. } => {
                let ending = serde_json::from_slice(&ending);
                return match ending {
                    Ok(ending) => Ok(Some(Said::Ended(ending))),
                    Err(_) => Err(FollowError::Lost("the sandbox does not say how it ended")),
                };
            }
        };
        self.last_seq = seq;
        self.retry = Retry::default();
        Ok(Some(said))
    }

    async fn reconnect(&mut self) -> Result<(), FollowError> {
        while self.retry.again().await {
            match self.reopen().await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_broken() => {}
                Err(error) if error.is_refused_as(FaultCode::NotFound) => {
                    return Err(FollowError::Lost("the sandbox no longer knows it"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(FollowError::Lost("the sandbox does not answer"))
    }

    async fn reopen(&mut self) -> Result<(), OrchestratorError> {
        let attached = self.orchestrator.attach(self.attached.sandbox_id()).await?;
        self.output = attached.output(&self.id, self.last_seq, true).await?;
        self.attached = attached;
        Ok(())
    }
}

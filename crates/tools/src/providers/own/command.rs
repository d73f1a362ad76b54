//! A script that runs in a sandbox of the daemon.

use async_trait::async_trait;
use sandbank_orchestrator::{FollowError, FollowedCommand, Said};
use sandbank_protocol::{CommandId, Ending as RunnerEnding, SignalRequest, StreamKind};

use super::{clipped, failed};
use crate::{Command, Ending, Piece, ToolError};

const KILL: i32 = 9;

pub(super) struct OwnCommand {
    id: CommandId,
    running: FollowedCommand,
}

impl OwnCommand {
    pub(super) fn new(id: CommandId, running: FollowedCommand) -> Self {
        Self { id, running }
    }
}

#[async_trait]
impl Command for OwnCommand {
    async fn next(&mut self) -> Result<Piece, ToolError> {
        loop {
            return Ok(match self.running.next().await {
                Ok(Said::Silence) => continue,
                Ok(Said::Output { stream: StreamKind::Stderr, data }) => Piece::Stderr(data),
                Ok(Said::Output { data, .. }) => Piece::Stdout(data),
                Ok(Said::Dropped { bytes }) => Piece::Dropped { bytes },
                Ok(Said::Ended(ending)) => Piece::Ended(ended(ending)),
                Err(FollowError::SandboxEnded(cause)) => {
                    Piece::Ended(Ending::Lost(format!("the sandbox has ended: {cause}")))
                }
                Err(FollowError::Lost(reason)) => Piece::Ended(Ending::Lost(reason.to_owned())),
                Err(FollowError::Failed(error)) => return Err(failed(error)),
            });
        }
    }

    async fn kill(&mut self) -> Result<(), ToolError> {
        let request = SignalRequest { signal: KILL, by: "tools".to_owned(), tree: true };
        let (id, request) = (&self.id, &request);
        let call =
            self.running.attached().run(|client| async move { client.signal(id, request).await });
        call.await.map(drop).map_err(failed)
    }
}

fn ended(ending: RunnerEnding) -> Ending {
    match ending {
        RunnerEnding::TimedOut => Ending::TimedOut,
        RunnerEnding::Lost { reason } => Ending::Lost(clipped(&reason)),
        other => Ending::Exited(other.exit_code().unwrap_or(1)),
    }
}

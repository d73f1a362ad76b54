//! A command from its start to what is told of it.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::limits::{KILL_PATIENCE, TIMEOUT_MARGIN};
use crate::output::{ABORTED, Collected, Pace, Stream, TIMED_OUT};
use crate::{Command, Ending, Piece, Sandbox, ToolError, Update};

/// What is said of a command that is not wanted any more, in the place of its errors.
const WORDS_OF_ABORT: &str = "Command aborted.";

pub(super) struct Run<'a> {
    pub(super) timeout: Duration,
    pub(super) updates: &'a Sender<Update>,
    pub(super) cancel: &'a CancellationToken,
}

/// Why a command is over.
enum Over {
    Ended(Ending),
    /// Its time is over, and the sandbox has not said so.
    Overdue,
    Aborted,
}

impl Run<'_> {
    /// The result, and before it updates, where there is something to tell before the end.
    pub(super) async fn run(
        &self,
        sandbox: &dyn Sandbox,
        script: &str,
        mut output: Collected,
    ) -> Result<Value, ToolError> {
        // To its end, whoever leaves: what is not known to run cannot be killed.
        let mut command = sandbox.start(script, self.timeout).await?;
        let over = match self.follow(&mut *command, &mut output).await {
            Ok(over) => over,
            Err(error) => {
                kill(&mut *command).await;
                return Err(error);
            }
        };
        let timed_out = || format!("Command timed out after {}ms.", self.timeout.as_millis());
        match over {
            Over::Ended(Ending::Exited(code)) => Ok(output.finish(code, None)),
            Over::Ended(Ending::TimedOut) => Ok(output.finish(TIMED_OUT, Some(&timed_out()))),
            Over::Ended(Ending::Lost(reason)) => {
                Err(ToolError::Failed(format!("nobody can say how the command ended: {reason}")))
            }
            Over::Overdue => {
                kill(&mut *command).await;
                Ok(output.finish(TIMED_OUT, Some(&timed_out())))
            }
            Over::Aborted => {
                kill(&mut *command).await;
                Ok(output.finish(ABORTED, Some(WORDS_OF_ABORT)))
            }
        }
    }

    async fn follow(
        &self,
        command: &mut dyn Command,
        output: &mut Collected,
    ) -> Result<Over, ToolError> {
        let overdue = tokio::time::sleep(self.timeout + TIMEOUT_MARGIN);
        tokio::pin!(overdue);
        let mut pace = Pace::begin(Instant::now());
        loop {
            let due = pace.due();
            let piece = tokio::select! {
                biased;
                () = self.unwanted() => return Ok(Over::Aborted),
                () = &mut overdue => return Ok(Over::Overdue),
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.update(output, &mut pace);
                    continue;
                }
                piece = command.next() => piece?,
            };
            match piece {
                Piece::Stdout(bytes) => output.push(Stream::Stdout, &bytes),
                Piece::Stderr(bytes) => output.push(Stream::Stderr, &bytes),
                Piece::Dropped { bytes } => output.gap(bytes),
                Piece::Ended(ending) => return Ok(Over::Ended(ending)),
            }
            if pace.note(output.kept(), Instant::now()) {
                self.update(output, &mut pace);
            }
        }
    }

    fn update(&self, output: &Collected, pace: &mut Pace) {
        let sent = offer(self.updates, || output.progress());
        pace.updated(output.kept(), Instant::now(), sent);
    }

    /// Resolves when whoever called wants it no more, or is gone.
    async fn unwanted(&self) {
        tokio::select! {
            () = self.cancel.cancelled() => {}
            () = self.updates.closed() => {}
        }
    }
}

/// Left out where nobody has taken the ones before: the next one says all that this one would. Then it
/// is not even made, which costs as much as it shows.
fn offer(updates: &Sender<Update>, view: impl FnOnce() -> Option<Value>) -> bool {
    let Ok(place) = updates.try_reserve() else { return false };
    if let Some(view) = view() {
        place.send(Update::Progress(view));
    }
    true
}

/// Until it is gone with all that it started, within bounds.
async fn kill(command: &mut dyn Command) {
    let killed = async {
        command.kill().await?;
        while !matches!(command.next().await?, Piece::Ended(_)) {}
        Ok::<_, ToolError>(())
    };
    match tokio::time::timeout(KILL_PATIENCE, killed).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "a command was not killed"),
        Err(_) => tracing::warn!("a command that was killed has not ended yet"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;

    #[test]
    fn an_update_that_nobody_has_room_for_is_not_made() {
        let (updates, mut taken) = mpsc::channel(1);
        assert!(offer(&updates, || None), "there was nothing to tell");
        assert!(offer(&updates, || Some(json!(1))));
        assert!(!offer(&updates, || panic!("it is made in vain")));
        assert_eq!(taken.try_recv(), Ok(Update::Progress(json!(1))));
        assert!(offer(&updates, || Some(json!(2))));
    }
}

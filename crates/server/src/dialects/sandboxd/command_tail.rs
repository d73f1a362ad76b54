//! The end of what a command printed, for an answer that brings its ending along.

use std::time::Duration;

use sandbank_orchestrator::{Attached, OrchestratorError};
use sandbank_protocol::{CommandStatus, Frame, StreamKind};
use tokio::time::timeout;

use crate::limits::{MAX_TAIL_BYTES, TAIL_PATIENCE};

/// What was kept of one stream, from its end, and how much came before that.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) text: String,
    pub(super) truncated_bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) stdout: Tail,
    pub(super) stderr: Tail,
}

/// None when nobody can tell; the ending is true all the same, and `logs` says more.
pub(super) async fn of(attached: &Attached, status: &CommandStatus) -> Option<Printed> {
    if status.stdout_bytes == 0 && status.stderr_bytes == 0 {
        return Some(Printed::default());
    }
    within(TAIL_PATIENCE, read(attached, status)).await
}

async fn within(
    limit: Duration,
    reading: impl Future<Output = Result<Printed, OrchestratorError>>,
) -> Option<Printed> {
    match timeout(limit, reading).await {
        Ok(Ok(printed)) => Some(printed),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a command's output was not read");
            None
        }
        Err(_) => None,
    }
}

async fn read(attached: &Attached, status: &CommandStatus) -> Result<Printed, OrchestratorError> {
    let id = &status.id;
    let mut frames =
        attached.run(|client| async move { client.output(id, 0, false).await }).await?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(frame) = frames.next().await? {
        if let Frame::Output { stream, data, .. } = frame {
            let tail = match stream {
                StreamKind::Stderr => &mut stderr,
                StreamKind::Stdout | StreamKind::Pty => &mut stdout,
            };
            tail.extend_from_slice(&data);
            if tail.len() > 2 * MAX_TAIL_BYTES {
                tail.drain(..tail.len() - MAX_TAIL_BYTES);
            }
        }
    }
    Ok(Printed {
        stdout: cut(&stdout, status.stdout_bytes),
        stderr: cut(&stderr, status.stderr_bytes),
    })
}

/// Not inside a character.
fn cut(kept: &[u8], total: u64) -> Tail {
    let mut tail = &kept[kept.len().saturating_sub(MAX_TAIL_BYTES)..];
    if (tail.len() as u64) < total {
        let is_inside = |byte: &&u8| **byte & 0xc0 == 0x80;
        tail = &tail[tail.iter().take(3).take_while(is_inside).count()..];
    }
    let text = String::from_utf8_lossy(tail).into_owned();
    Tail { text, truncated_bytes: total.saturating_sub(tail.len() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_between_characters_and_the_rest_counted() {
        assert_eq!(cut(b"hi\n", 3), Tail { text: "hi\n".to_owned(), truncated_bytes: 0 });
        assert_eq!(cut(b"hi\n", 10).truncated_bytes, 7, "dropped before anybody read it");
        let long = format!("x{}", "€".repeat(MAX_TAIL_BYTES));
        let tail = cut(long.as_bytes(), long.len() as u64);
        assert!(tail.text.chars().all(|c| c == '€'), "cut inside a character");
        assert!(tail.text.len() > MAX_TAIL_BYTES - 3);
        assert_eq!(tail.text.len() as u64 + tail.truncated_bytes, long.len() as u64);
        let odd = vec![0x80; MAX_TAIL_BYTES + 100];
        assert!(cut(&odd, odd.len() as u64).text.starts_with('\u{fffd}'));
    }
}

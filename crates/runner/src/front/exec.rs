//! `exec`: a shell command from start to ending.

use std::fmt::Write as _;
use std::time::Instant;

use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_protocol::{CommandId, CommandSpec, Ending, Frame, Hello};

use super::request::Outcome;
use crate::limits::FRONT_OUTPUT_BYTES;

/// Runs its first argument in a login bash, or in a login sh where there is no bash.
const PICK_SHELL: &str = r#"if command -v bash >/dev/null 2>&1; then exec bash -lc "$1"; fi
exec sh -lc "$1""#;

pub(super) async fn perform(
    client: &RunnerClient,
    hello: &Hello,
    cmd: String,
    timeout_ms: Option<u64>,
) -> Result<Outcome, ChannelError> {
    let began = Instant::now();
    let started = client.start(&spec(cmd, timeout_ms)?).await?;
    let (output, truncated, ending) = collect(client, &started.status.id).await?;
    Ok(match (ending.exit_code(), ending) {
        (_, Ending::TimedOut) => Outcome::Error { message: "timeout exceeded".into() },
        (None, ending) => Outcome::Error { message: format!("the command was lost: {ending:?}") },
        (Some(exit_code), _) => Outcome::Exec {
            exit_code,
            // Every command starts afresh, so this is also where the next one starts.
            cwd: started.status.cwd.unwrap_or_else(|| hello.workspace.clone()),
            output: String::from_utf8_lossy(&output).into_owned(),
            truncated,
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        },
    })
}

fn spec(cmd: String, timeout_ms: Option<u64>) -> Result<CommandSpec, ChannelError> {
    let argv = ["sh", "-c", PICK_SHELL, "sh"].map(str::to_owned).into_iter().chain([cmd]);
    Ok(CommandSpec { timeout_ms, ..CommandSpec::new(random_id()?, argv.collect()) })
}

/// Request ids of callers repeat; those of commands must not.
fn random_id() -> Result<CommandId, ChannelError> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random).map_err(|error| ChannelError::Broken(error.to_string()))?;
    let mut id = String::from("front-");
    for byte in random {
        let _ = write!(id, "{byte:02x}");
    }
    Ok(id.parse().expect("letters, digits and a dash"))
}

/// Both streams in the order in which they were written, up to the limit, and the ending.
async fn collect(
    client: &RunnerClient,
    id: &CommandId,
) -> Result<(Vec<u8>, bool, Ending), ChannelError> {
    let mut frames = client.output(id, 0, true).await?;
    let mut output = Vec::new();
    let mut truncated = false;
    while let Some(frame) = frames.next().await? {
        match frame {
            Frame::Output { data, .. } => {
                let room = FRONT_OUTPUT_BYTES - output.len();
                truncated |= data.len() > room;
                output.extend_from_slice(&data[..data.len().min(room)]);
            }
            Frame::Dropped { .. } => truncated = true,
            Frame::Ended { ending, .. } => {
                let ending = serde_json::from_slice(&ending)
                    .map_err(|error| ChannelError::Violation(error.to_string()))?;
                return Ok((output, truncated, ending));
            }
            Frame::Heartbeat { .. } => {}
        }
    }
    Err(ChannelError::Violation("the output ended without an ending".into()))
}

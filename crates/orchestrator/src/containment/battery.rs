//! Runs the attacks of the inside, as a command.

use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_engine::SandboxId;
use sandbank_protocol::containment::{BatteryPlan, Finding, PROGRAM, WORD};
use sandbank_protocol::{CommandId, CommandSpec, Ending, Frame, StreamKind};
use tokio::time::timeout;

use crate::limits::{BATTERY_DEADLINE, BATTERY_MARGIN, BATTERY_OUTPUT_BYTES};

/// What the battery printed and is understood; what is missing is for the judge to notice. One
/// that had to be cut short has found nothing: a slow machine is not a leaking one.
pub(crate) async fn run(
    client: &RunnerClient,
    plan: &BatteryPlan,
) -> Result<Vec<Finding>, ChannelError> {
    let limit = BATTERY_DEADLINE + BATTERY_MARGIN;
    timeout(limit, hear(client, plan)).await.map_err(|_| ChannelError::TimedOut(limit))?
}

async fn hear(client: &RunnerClient, plan: &BatteryPlan) -> Result<Vec<Finding>, ChannelError> {
    let spec = command(plan);
    client.start(&spec).await?;
    let mut output = client.output(&spec.id, 0, true).await?;
    let mut text = Vec::new();
    while let Some(frame) = output.next().await? {
        match frame {
            Frame::Output { stream: StreamKind::Stdout, data, .. } => text.extend_from_slice(&data),
            Frame::Ended { ending, .. }
                if serde_json::from_slice::<Ending>(&ending).ok() == Some(Ending::TimedOut) =>
            {
                return Err(ChannelError::TimedOut(BATTERY_DEADLINE));
            }
            _ => {}
        }
        if text.len() > BATTERY_OUTPUT_BYTES {
            return Err(ChannelError::Violation("a battery of attacks says too much".to_owned()));
        }
    }
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn command(plan: &BatteryPlan) -> CommandSpec {
    let plan = serde_json::to_string(plan).expect("a plan is plain data");
    let id: CommandId = format!("containment-{}", SandboxId::random().as_str())
        .parse()
        .expect("a sandbox's id has the characters of a command's");
    CommandSpec {
        timeout_ms: u64::try_from(BATTERY_DEADLINE.as_millis()).ok(),
        ..CommandSpec::new(id, vec![PROGRAM.to_owned(), WORD.to_owned(), plan])
    }
}

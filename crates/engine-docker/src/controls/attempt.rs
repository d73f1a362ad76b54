//! Whether a machine with network is kept from what it may not reach: made, tried from inside, and
//! destroyed.

use std::sync::Arc;

use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_engine::{Engine, EngineError, ImageName, MachineSpec, NetworkMode, SandboxId};
use sandbank_protocol::containment::{BatteryPlan, Finding, PROGRAM, WORD};
use sandbank_protocol::{CommandSpec, Frame, StreamKind};
use tokio::time::timeout;

use super::confinement::private;
use crate::egress::Egress;
use crate::lifecycle::{DockerEngine, Parts, create_anyway};
use crate::limits::{ATTEMPT_DEADLINE, ATTEMPT_OUTPUT_BYTES};

/// Its name in the table of probes.
const PROBE: &str = "private_addresses";

pub(super) struct Attempt {
    pub(super) finding: Finding,
    /// What the machine was closed with.
    pub(super) egress: Egress,
}

pub(super) async fn attempt(parts: &Arc<Parts>, image: &ImageName) -> Result<Attempt, EngineError> {
    let engine = DockerEngine::over(parts);
    let spec = MachineSpec { network: NetworkMode::Default, ..MachineSpec::probe(image.clone()) };
    let _hidden = parts.table.hide(&spec.id);
    let tried = async {
        let egress = parts.egress().await?;
        create_anyway(parts, &spec).await?;
        let (client, _) =
            RunnerClient::connect(engine.connect(&spec.id).await?).await.map_err(not_tried)?;
        let plan = BatteryPlan { private: private(&egress), ..BatteryPlan::default() };
        let findings = timeout(ATTEMPT_DEADLINE, run(&client, &plan)).await;
        let findings = findings.map_err(|_| not_tried("it takes too long"))?.map_err(not_tried)?;
        let finding = findings.into_iter().find(|finding| finding.probe == PROBE);
        let finding = finding.ok_or_else(|| not_tried("the runner says nothing of it"))?;
        Ok(Attempt { finding, egress })
    }
    .await;
    if let Err(error) = engine.destroy(&spec.id).await {
        tracing::warn!(%error, "the machine whose network was tried stays");
    }
    tried
}

fn not_tried(why: impl std::fmt::Display) -> EngineError {
    EngineError::Internal(format!("the network of a machine cannot be tried: {why}"))
}

async fn run(client: &RunnerClient, plan: &BatteryPlan) -> Result<Vec<Finding>, ChannelError> {
    let plan = serde_json::to_string(plan).expect("a plan is plain data");
    let command = CommandSpec {
        timeout_ms: u64::try_from(ATTEMPT_DEADLINE.as_millis()).ok(),
        ..CommandSpec::new(
            SandboxId::random().as_str().parse().expect("the same characters"),
            vec![PROGRAM.to_owned(), WORD.to_owned(), plan],
        )
    };
    client.start(&command).await?;
    let mut output = client.output(&command.id, 0, true).await?;
    let mut text = Vec::new();
    while let Some(frame) = output.next().await? {
        if let Frame::Output { stream: StreamKind::Stdout, data, .. } = frame
            && text.len() < ATTEMPT_OUTPUT_BYTES
        {
            text.extend_from_slice(&data);
        }
    }
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

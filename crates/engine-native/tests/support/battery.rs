//! The battery of attacks, run in a machine of a test.

use std::collections::BTreeSet;

use sandbank_engine::{Control, Engine, SandboxId};
use sandbank_protocol::containment::{BatteryPlan, Finding, Outcome, PROBES, PROGRAM, Probe, WORD};

use super::TestEngine;

/// Findings of both sides, in the order of the table. What the machine goes without by its
/// configuration is left out.
pub async fn attack(test: &TestEngine, id: &SandboxId) -> Vec<Finding> {
    let before = test.engine.confinement(id).await.unwrap();
    let plan = before.battery_plan(true);
    let inside = run(test, id, &plan).await;
    let after = test.engine.confinement(id).await.unwrap();
    let claimed = |probe: &&Probe| {
        let control = Control::named(probe.control).unwrap();
        !after.without.iter().any(|(without, _)| *without == control)
    };
    let silent = |probe: &Probe| Finding::new(probe.name, Outcome::Failed, "no answer");
    let probes = PROBES.iter().filter(claimed);
    probes.map(|probe| after.finding(probe, &inside).unwrap_or_else(|| silent(probe))).collect()
}

pub async fn run(test: &TestEngine, id: &SandboxId, plan: &BatteryPlan) -> Vec<Finding> {
    let client = test.client(id).await;
    let plan = serde_json::to_string(plan).unwrap();
    let output = super::run(&client, &[PROGRAM, WORD, &plan]).await;
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{}", output.stdout);
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Names of the controls of which a probe failed.
pub fn failed_controls(findings: &[Finding]) -> BTreeSet<&'static str> {
    let failed = findings.iter().filter(|finding| finding.outcome == Outcome::Failed);
    failed.map(|finding| Probe::named(&finding.probe).unwrap().control).collect()
}

pub fn failures(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|finding| finding.outcome == Outcome::Failed).collect()
}

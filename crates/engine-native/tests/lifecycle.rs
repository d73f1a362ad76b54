//! Machines from the first to the last moment, as root, for real.

mod support;

use sandbank_engine::{Engine, EngineError, MachineState};
use support::{TestEngine, cannot_run};

sandbank_engine_native::spawner_entry!();

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_answers_hello_and_runs_true() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    assert_eq!(machine.state, MachineState::Running);
    let output = test.sh(&machine.id, "true").await;
    assert_eq!(output.code(), Some(0), "{}", output.stderr);
    test.engine.destroy(&machine.id).await.unwrap();
    let error = test.engine.connect(&machine.id).await.err();
    assert!(matches!(error, Some(EngineError::NotFound(_))), "{error:?}");
    test.finish().await;
}

//! Creates that wait for their turn: as many as there may be sandboxes, in the order they came, and
//! as long as others are made.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sandbank_orchestrator::{Created, OrchestratorError, SandboxState, Settings};
use sandbank_test_support::eventually;
use tokio::task::JoinHandle;

use crate::world::{SOON, World, request, settings};

type Creating = JoinHandle<Result<Created, OrchestratorError>>;

/// The next in the queue: it is there when this returns.
async fn queued(world: &World, number: usize) -> Creating {
    let daemon = world.daemon();
    let key = format!("chat:{number}");
    let creating = tokio::spawn(async move { daemon.create(request(&key)).await });
    eventually("it to be in the queue", SOON, || async {
        let status = world.daemon().status();
        (status.creates_waiting + status.creates_making == number + 1).then_some(())
    })
    .await
    .unwrap();
    creating
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_no_longer_than_there_may_be_sandboxes_and_ends_where_nothing_moves() {
    const MAX: usize = 6;
    let turn_patience = Duration::from_secs(2);
    let concurrent_creates = Some(2);
    let slow = Settings { max_sandboxes: MAX, turn_patience, concurrent_creates, ..settings() };
    let world = World::new(slow).await;
    let gate = world.engine.create_gate.acquire_many(1000).await.unwrap();
    let mut creating = Vec::new();
    for number in 0..MAX {
        creating.push(queued(&world, number).await);
    }
    let status = world.daemon().status();
    assert_eq!((status.creates_making, status.creates_waiting), (2, MAX - 2));
    let error = world.try_create(request("one more")).await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), ("at_limit", true), "{error}");

    let waited = creating.split_off(2);
    for create in waited {
        let error = create.await.unwrap().unwrap_err();
        assert!(matches!(error, OrchestratorError::NoTurn(after) if after == turn_patience));
        assert_eq!((error.code(), error.retryable()), ("create_queue", true));
    }
    drop(gate);
    for create in creating {
        let id = create.await.unwrap().unwrap().id;
        assert_eq!(world.info(&id).await.state, SandboxState::Running, "it had its turn");
    }
    // Whoever was turned away has left nothing, and may come again.
    world.create(&format!("chat:{}", MAX - 1)).await;
    assert_eq!(world.engine.ids().len(), 3);
    assert_eq!(world.engine.creates.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_in_a_queue_that_moves_is_served_in_order_however_long_it_takes() {
    const RUSH: usize = 12;
    let turn_patience = Duration::from_secs(5);
    let one_at_once = Settings {
        max_sandboxes: RUSH,
        turn_patience,
        // What they wait is more than both together.
        create_deadline: Duration::from_secs(4),
        concurrent_creates: Some(1),
        ..settings()
    };
    let world = World::new(one_at_once).await;
    let gate = world.engine.create_gate.acquire_many(1000).await.unwrap();
    world.engine.create_takes_ms.store(900, Ordering::SeqCst);
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut creating = Vec::new();
    for number in 0..RUSH {
        let (create, served) = (queued(&world, number).await, served.clone());
        creating.push(tokio::spawn(async move {
            let created = create.await.unwrap();
            served.lock().unwrap().push(number);
            created
        }));
    }
    drop(gate);
    for create in creating {
        assert!(create.await.unwrap().unwrap().created, "it was let in, and the queue moved");
    }
    assert_eq!(*served.lock().unwrap(), (0..RUSH).collect::<Vec<_>>());
}

//! Wall clocks that jump.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sandbank_orchestrator::{Clock, SandboxState, Settings, SystemClock};

use crate::world::{World, bash, output, settings};

const DAY_MS: i64 = 86_400_000;

struct Jumping {
    real: SystemClock,
    off_ms: AtomicI64,
}

impl Clock for Jumping {
    fn boot_ms(&self) -> i64 {
        self.real.boot_ms()
    }

    fn wall_ms(&self) -> u64 {
        self.real.wall_ms().saturating_add_signed(self.off_ms.load(Ordering::SeqCst))
    }

    fn boot_id(&self) -> &str {
        self.real.boot_id()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_forward_reaps_nobody() {
    survives_jump(DAY_MS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_back_makes_nobody_immortal() {
    survives_jump(-DAY_MS).await;
}

/// The sandbox lives exactly as long as before, by the new clock, while running and over a
/// restart.
async fn survives_jump(jump: i64) {
    let ttl = Duration::from_secs(6);
    let clock = Arc::new(Jumping { real: SystemClock::new(), off_ms: AtomicI64::new(0) });
    let settings = Settings { default_idle_ttl: ttl, ..settings() };
    let mut world = World::with_clock(settings, clock.clone()).await;
    let id = world.create("chat:1").await;
    // The runner dates its commands by the clock as it was.
    let attached = world.attach(&id).await.unwrap();
    attached.start(&bash("before", "echo x")).await.unwrap();
    assert_eq!(output(&attached, "before", 0).await.0, "x\n");
    drop(attached);
    for jumps in 1..=2 {
        clock.off_ms.store(jumps * jump, Ordering::SeqCst);
        let info = world.info(&id).await;
        assert_eq!(info.state, SandboxState::Running);
        let left = info.expires_at_ms.unwrap().saturating_sub(clock.wall_ms());
        assert!(left <= 6000, "{left} ms left");
        if jumps == 1 {
            world.restart_after_kill().await;
        }
    }
    clock.off_ms.store(3 * jump, Ordering::SeqCst);
    world.restart_after_kill().await;
    assert_eq!(world.info(&id).await.state, SandboxState::Running);
    assert_eq!(world.ended(&id).await.state, SandboxState::Gone);
}

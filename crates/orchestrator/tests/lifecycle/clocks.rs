//! Wall clocks that jump.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sandbank_orchestrator::{Clock, SandboxState, Settings, SystemClock};

use crate::world::{World, settings};

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

/// Neither a mass reap nor an immortal, while running and over a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_day_forward_or_back_changes_no_life() {
    let ttl = Duration::from_secs(3);
    for jump in [DAY_MS, -DAY_MS] {
        let clock = Arc::new(Jumping { real: SystemClock::new(), off_ms: AtomicI64::new(0) });
        let settings = Settings { default_idle_ttl: ttl, ..settings() };
        let mut world = World::with_clock(settings, clock.clone()).await;
        let id = world.create("chat:1").await;
        let left = |info: sandbank_orchestrator::SandboxInfo| {
            info.expires_at_ms.unwrap().saturating_sub(clock.wall_ms())
        };
        clock.off_ms.store(jump, Ordering::SeqCst);
        let running = world.info(&id).await;
        assert_eq!(running.state, SandboxState::Running);
        assert!(left(running) <= 3000, "as long as before, by the new clock");
        clock.off_ms.store(2 * jump, Ordering::SeqCst);
        world.restart_after_kill().await;
        let adopted = world.info(&id).await;
        assert_eq!(adopted.state, SandboxState::Running);
        assert!(left(adopted) <= 3000);
        assert_eq!(world.ended(&id).await.state, SandboxState::Gone);
    }
}

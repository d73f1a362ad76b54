//! The two clocks. Leases run on the boot clock, which nobody can set and which goes on while the
//! machine sleeps; the wall clock is for people, and for what survives a boot.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use sandbank_store::{LeaseRow, Stamp};

use crate::lifecycle::{Lease, Millis};

pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the machine started.
    fn boot_ms(&self) -> i64;

    /// Unix time in milliseconds.
    fn wall_ms(&self) -> u64;

    /// Different after every start of the machine.
    fn boot_id(&self) -> &str;
}

pub struct SystemClock {
    boot_id: String,
}

impl SystemClock {
    pub fn new() -> Self {
        let file = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        // Without it, every start of the daemon counts as a boot, and the wall clock decides.
        let boot_id = file.map(|id| id.trim().to_owned());
        let unknown = |_| format!("unknown-{}", sandbank_engine::InstanceId::random());
        Self { boot_id: boot_id.unwrap_or_else(unknown) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn boot_ms(&self) -> i64 {
        let now = clock_gettime(ClockId::Boottime);
        now.tv_sec * 1000 + now.tv_nsec / 1_000_000
    }

    fn wall_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn boot_id(&self) -> &str {
        &self.boot_id
    }
}

/// A moment of the boot clock as Unix time, by what the wall clock says now.
pub(crate) fn wall_of(clock: &dyn Clock, moment: Millis) -> u64 {
    let away = moment.saturating_sub(clock.boot_ms());
    clock.wall_ms().saturating_add_signed(away)
}

/// A moment of the wall clock on the boot clock, by what both say now.
pub(crate) fn boot_of(clock: &dyn Clock, wall_ms: u64) -> Millis {
    let distance = i128::from(wall_ms) - i128::from(clock.wall_ms());
    let distance = distance.clamp(i128::from(i64::MIN / 4), i128::from(i64::MAX / 4));
    clock.boot_ms() + i64::try_from(distance).expect("clamped")
}

fn stamp(clock: &dyn Clock, moment: Millis) -> Stamp {
    Stamp { wall_ms: wall_of(clock, moment), boot_ms: moment }
}

/// What the store keeps of a lease.
pub(crate) fn lease_row(clock: &dyn Clock, lease: &Lease) -> LeaseRow {
    LeaseRow {
        idle_ttl_ms: u64::try_from(lease.idle_ttl).unwrap_or(0),
        last_active: stamp(clock, lease.active_until(clock.boot_ms())),
        ends_at: lease.ends_at.map(|end| stamp(clock, end)),
        boot_id: clock.boot_id().to_owned(),
        commands: lease.commands,
    }
}

/// A lease as it was stored. After a boot only the wall clock can tell how much time has passed;
/// a clock that was set back meanwhile must make nobody immortal, so nothing is active in the
/// future and no lifetime gets longer than it was.
pub(crate) fn lease_from_row(clock: &dyn Clock, row: &LeaseRow, created_at_ms: u64) -> Lease {
    let now = clock.boot_ms();
    let same_boot = row.boot_id == clock.boot_id();
    let on_boot_clock =
        |stamp: Stamp| if same_boot { stamp.boot_ms } else { boot_of(clock, stamp.wall_ms) };
    let ends_at = row.ends_at.map(|end| {
        let whole_life = end.wall_ms.saturating_sub(created_at_ms);
        on_boot_clock(end).min(now.saturating_add_unsigned(whole_life))
    });
    let idle_ttl = Millis::try_from(row.idle_ttl_ms).unwrap_or(Millis::MAX / 4);
    let mut lease = Lease::new(idle_ttl, ends_at, on_boot_clock(row.last_active).min(now));
    lease.saved_at = now;
    lease.commands = row.commands;
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;

    struct Fixed {
        boot_ms: i64,
        wall_ms: u64,
        boot_id: &'static str,
    }

    impl Clock for Fixed {
        fn boot_ms(&self) -> i64 {
            self.boot_ms
        }

        fn wall_ms(&self) -> u64 {
            self.wall_ms
        }

        fn boot_id(&self) -> &str {
            self.boot_id
        }
    }

    fn stored() -> LeaseRow {
        let at = Fixed { boot_ms: 50_000, wall_ms: 100 * DAY, boot_id: "a" };
        lease_row(&at, &Lease::new(10_000, Some(50_000 + 60_000), 50_000))
    }

    #[test]
    fn a_wall_clock_set_forward_or_back_changes_no_deadline() {
        for wall_ms in [99 * DAY, 100 * DAY + 4_000, 101 * DAY] {
            let later = Fixed { boot_ms: 54_000, wall_ms, boot_id: "a" };
            let lease = lease_from_row(&later, &stored(), 100 * DAY);
            assert_eq!(lease.idle_deadline(), 60_000);
            assert_eq!(lease.ends_at, Some(110_000));
        }
    }

    #[test]
    fn after_a_boot_the_wall_clock_tells_how_much_time_passed() {
        let later = Fixed { boot_ms: 1_000, wall_ms: 100 * DAY + 4_000, boot_id: "b" };
        let lease = lease_from_row(&later, &stored(), 100 * DAY);
        assert_eq!(lease.idle_deadline(), 1_000 + 6_000);
        assert_eq!(lease.ends_at, Some(1_000 + 56_000));
    }

    #[test]
    fn a_clock_set_back_over_a_boot_makes_nobody_immortal() {
        let later = Fixed { boot_ms: 1_000, wall_ms: 98 * DAY, boot_id: "b" };
        let lease = lease_from_row(&later, &stored(), 100 * DAY);
        assert_eq!(lease.idle_deadline(), 1_000 + 10_000);
        assert_eq!(lease.ends_at, Some(1_000 + 60_000));
    }

    #[test]
    fn the_system_clock_moves_forward() {
        let clock = SystemClock::new();
        let first = clock.boot_ms();
        assert!(first > 0 && clock.boot_ms() >= first);
        assert!(!clock.boot_id().is_empty());
    }
}

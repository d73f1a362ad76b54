//! Whether this process is in a landlock domain. The kernel does not say so; but it counts: a
//! process can be in sixteen (in old kernels 64) nested ones, so those that can still be added
//! tell how many it is in.

use sandbank_protocol::containment::BatteryPlan;

use super::answer::{Answer, answered, call, failed};
use super::child::{self, Ended};

const MOST_LAYERS: i32 = 16;
const MOST_LAYERS_ONCE: i32 = 64;
const ACCESS_FS_MAKE_BLOCK: u64 = 1 << 11;

pub(super) fn domain(_: &BatteryPlan) -> Answer {
    let handled = ACCESS_FS_MAKE_BLOCK;
    let attributes = (&raw const handled) as usize;
    let ruleset = call(libc::SYS_landlock_create_ruleset, [attributes, size_of::<u64>(), 0, 0, 0]);
    let Ok(ruleset) = ruleset else {
        return failed(format!("the kernel's landlock {}", answered(&ruleset)));
    };
    let counted = child::run(|| {
        let enter = |_: &i32| call(libc::SYS_landlock_restrict_self, [ruleset, 0, 0, 0, 0]).is_ok();
        (0..=MOST_LAYERS_ONCE).take_while(enter).count() as i32
    });
    let _ = call(libc::SYS_close, [ruleset, 0, 0, 0, 0]);
    match counted {
        Ok(Ended::Exited(0)) => failed("no layer can be added, so nothing can be said"),
        Ok(Ended::Exited(added)) => {
            let most = if added <= MOST_LAYERS { MOST_LAYERS } else { MOST_LAYERS_ONCE };
            match most - added {
                0 => failed("it is in no landlock domain"),
                taken => Ok(format!("{taken} of {most} layers is taken")),
            }
        }
        other => failed(format!("the layers cannot be counted: {other:?}")),
    }
}

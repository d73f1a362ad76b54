//! A bug ends the program with a sentence and code 70, not with a back-trace nobody asked for.

use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

use crate::failure::{Exit, Failure};

/// From now on a panic is one log line; RUST_BACKTRACE brings the usual report back.
pub(crate) fn tame() {
    if std::env::var_os("RUST_BACKTRACE").is_none_or(|value| value == "0") {
        std::panic::set_hook(Box::new(|info| tracing::error!("{}", described(info))));
    }
}

/// Runs `work`; a panic in it is a failure like any other.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let reason = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no reason given".to_owned());
        Err(Failure::new(Exit::Internal, format!("sandbank has a bug: {reason}"))
            .hint("run it again with RUST_BACKTRACE=1 and report what it prints"))
    })
}

fn described(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
    let reason = info.payload_as_str().unwrap_or("no reason given");
    format!("a panic{place}: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_failure_with_code_70() {
        let failure = caught::<()>(|| panic!("lost my {}", "marbles")).unwrap_err();
        assert_eq!(failure.exit, Exit::Internal);
        assert!(failure.message.contains("lost my marbles") && failure.hint.is_some());
    }
}

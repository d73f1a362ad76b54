//! The id under which one request is found in every log on its way.

use crate::limits::MAX_REQUEST_ID_CHARS;

pub(crate) const REQUEST_ID_HEADER: &str = "x-request-id";

tokio::task_local! {
    static CURRENT: String;
}

/// Requests to a place that are made in `work` carry this id.
pub async fn with_request_id<F: Future>(id: String, work: F) -> F::Output {
    CURRENT.scope(id, work).await
}

/// The id of the request that this task works for.
pub fn current_request_id() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// The one that is there, if it may stand in a log.
pub(crate) fn accepted(id: Option<&str>) -> String {
    let fits = |id: &&str| {
        (1..=MAX_REQUEST_ID_CHARS).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    id.filter(fits).map_or_else(fresh, str::to_owned)
}

fn fresh() -> String {
    format!("{:032x}", random())
}

/// Never the same twice.
pub(crate) fn random() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the kernel's random source answers");
    u128::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_id_reaches_what_the_task_does_and_a_strange_one_is_replaced() {
        assert_eq!(current_request_id(), None);
        let seen = with_request_id("abc-1".into(), async { current_request_id() }).await;
        assert_eq!(accepted(seen.as_deref()), "abc-1");
        for strange in [None, Some(""), Some("a b"), Some("a\"b"), Some(&*"x".repeat(129))] {
            assert_eq!(accepted(strange).len(), 32, "{strange:?} was taken");
        }
    }
}

//! The id of the request that a task works for, which every call to a runner carries.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use sandbank_protocol::{REQUEST_ID_HEADER, plain_request_id};

tokio::task_local! {
    static CURRENT: Arc<str>;
}

/// Calls that are made in `work` carry this id.
pub async fn with_request_id<F: Future>(id: Arc<str>, work: F) -> F::Output {
    CURRENT.scope(id, work).await
}

/// The id of the request that this task works for.
pub fn current_request_id() -> Option<Arc<str>> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Only where none stands yet, and only one that may stand in a log at the other end.
pub(crate) fn stamp(headers: &mut HeaderMap) {
    if headers.contains_key(REQUEST_ID_HEADER) {
        return;
    }
    let value = CURRENT.try_with(|id| {
        plain_request_id(id).map(|id| HeaderValue::from_str(id).expect("letters and digits"))
    });
    if let Ok(Some(value)) = value {
        headers.insert(REQUEST_ID_HEADER, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn stamped(id: &str) -> HeaderMap {
        with_request_id(id.into(), async {
            let mut headers = HeaderMap::new();
            stamp(&mut headers);
            headers
        })
        .await
    }

    #[tokio::test]
    async fn a_call_carries_the_tasks_id_and_never_a_hostile_one() {
        assert_eq!(current_request_id(), None);
        assert_eq!(stamped("follow-1").await[REQUEST_ID_HEADER], "follow-1");
        for hostile in ["", "a\nforged: line", "a b", &"x".repeat(10_000)] {
            assert!(stamped(hostile).await.is_empty(), "{hostile:.20} was passed on");
        }
        let mut outside = HeaderMap::new();
        stamp(&mut outside);
        assert!(outside.is_empty());
    }
}

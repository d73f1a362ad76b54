//! Whether sandboxes can be had just now: asked once in a while, and by one at a time.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::Provider;
use crate::limits::{HEALTH_AGE, HEALTH_PATIENCE};

/// More are not remembered, and then told again.
const MAX_TOLD: usize = 64;

pub(crate) struct Health {
    provider: Arc<dyn Provider>,
    /// Held while it is asked, so that those who come meanwhile share the answer.
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    answer: Option<(Instant, Result<(), String>)>,
    /// Failures that the log has already.
    told: HashSet<String>,
}

impl Health {
    pub(crate) fn new(provider: Arc<dyn Provider>) -> Self {
        Self { provider, last: Mutex::default() }
    }

    pub(crate) async fn check(&self) -> Result<(), String> {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = &last.answer
            && at.elapsed() < HEALTH_AGE
        {
            return answer.clone();
        }
        let asked = tokio::time::timeout(HEALTH_PATIENCE, self.provider.health()).await;
        let answer = asked.unwrap_or_else(|_| {
            Err(format!("the engine did not answer within {} ms", HEALTH_PATIENCE.as_millis()))
        });
        if let Err(reason) = &answer {
            if last.told.len() >= MAX_TOLD {
                last.told.clear();
            }
            if last.told.insert(reason.clone()) {
                tracing::warn!(
                    provider = self.provider.name(),
                    reason,
                    "the tools have no sandboxes"
                );
            }
        }
        last.answer = Some((Instant::now(), answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;

    use super::*;
    use crate::{Opened, ToolError};

    struct Asked {
        times: AtomicUsize,
        takes: Duration,
    }

    #[async_trait]
    impl Provider for Asked {
        fn name(&self) -> &'static str {
            "asked"
        }

        async fn health(&self) -> Result<(), String> {
            self.times.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(self.takes).await;
            Ok(())
        }

        async fn open(&self, _session: &str) -> Result<Opened, ToolError> {
            Err(ToolError::Failed("not here".into()))
        }
    }

    fn asked(takes: Duration) -> (Arc<Asked>, Health) {
        let provider = Arc::new(Asked { times: AtomicUsize::new(0), takes });
        (provider.clone(), Health::new(provider))
    }

    #[tokio::test(start_paused = true)]
    async fn many_callers_share_one_question_and_its_answer_for_five_seconds() {
        let (provider, health) = asked(Duration::from_millis(100));
        let all = futures_util::future::join_all((0..50).map(|_| health.check())).await;
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(provider.times.load(Ordering::SeqCst), 1);
        tokio::time::advance(Duration::from_millis(4_800)).await;
        health.check().await.unwrap();
        assert_eq!(provider.times.load(Ordering::SeqCst), 1);
        tokio::time::advance(Duration::from_millis(300)).await;
        health.check().await.unwrap();
        assert_eq!(provider.times.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_says_nothing_for_800_ms_is_not_well() {
        let (_, health) = asked(Duration::from_millis(801));
        assert!(health.check().await.unwrap_err().contains("800 ms"));
        let (_, health) = asked(Duration::from_millis(799));
        health.check().await.unwrap();
    }
}

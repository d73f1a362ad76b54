//! That a machine has died, and of what: known once, for good, and to everybody who waits.

use tokio::sync::watch;

use crate::DeathCause;

#[derive(Debug)]
pub struct Death(watch::Sender<Option<DeathCause>>);

impl Default for Death {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Death {
    /// The first cause that is told stays.
    pub fn tell(&self, cause: DeathCause) {
        self.0.send_if_modified(|told| {
            let first = told.is_none();
            told.get_or_insert(cause);
            first
        });
    }

    pub fn is_told(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Another machine takes the place of the one that died.
    pub fn forget(&self) {
        self.0.send_replace(None);
    }

    pub fn listen(&self) -> DeathWatch {
        DeathWatch(self.0.subscribe())
    }
}

/// Keeps nothing of the machine alive.
#[derive(Debug)]
pub struct DeathWatch(watch::Receiver<Option<DeathCause>>);

impl DeathWatch {
    /// None when the machine was forgotten before it was known to have died.
    pub async fn told(mut self) -> Option<DeathCause> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_cause_stays_until_it_is_forgotten() {
        let death = Death::default();
        assert!(!death.is_told());
        let early = death.listen();
        death.tell(DeathCause::OutOfMemory);
        death.tell(DeathCause::Unknown);
        for watch in [early, death.listen()] {
            assert_eq!(watch.told().await, Some(DeathCause::OutOfMemory));
        }
        death.forget();
        assert!(!death.is_told());
        let late = death.listen();
        drop(death);
        assert_eq!(late.told().await, None);
    }
}

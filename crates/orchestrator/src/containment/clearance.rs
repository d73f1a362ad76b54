//! Whether sandboxes may be made: not before what would hold them was attacked.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::{SelfTest, Tested};
use crate::OrchestratorError;
use crate::context::Context;
use crate::limits::{FIRST_RETEST, LAST_RETEST};

#[derive(Default)]
pub(crate) struct Clearance {
    /// Why none may be made.
    withheld: Mutex<Option<String>>,
    /// Held while there are canaries: the sweep would take them for machines without an owner.
    pub(crate) canaries: tokio::sync::Mutex<()>,
}

impl Clearance {
    pub(crate) fn check(&self) -> Result<(), OrchestratorError> {
        let withheld = self.withheld.lock().unwrap_or_else(PoisonError::into_inner);
        withheld.clone().map_or(Ok(()), |reason| Err(OrchestratorError::Untested(reason)))
    }

    pub(crate) fn set(&self, withheld: Option<String>) {
        *self.withheld.lock().unwrap_or_else(PoisonError::into_inner) = withheld;
    }
}

/// Tests until there is a result, which lifts the refusal unless something got out. None when the
/// daemon leaves first.
pub(crate) async fn catch_up(context: &Context, test: SelfTest, data_dir: &Path) -> Option<Tested> {
    let (clearance, leaving) = (&context.clearance, &context.leaving);
    let mut wait = FIRST_RETEST;
    loop {
        leaving.run_until_cancelled(tokio::time::sleep(wait)).await?;
        wait = (2 * wait).min(LAST_RETEST);
        let _canaries = clearance.canaries.lock().await;
        match test.run(&*context.engine, data_dir, leaving).await {
            Ok(Tested::Failed { image, report }) => {
                clearance.set(Some("a test sandbox was not contained".to_owned()));
                return Some(Tested::Failed { image, report });
            }
            Ok(tested) => {
                clearance.set(None);
                return Some(tested);
            }
            Err(_) if leaving.is_cancelled() => return None,
            Err(error) => {
                tracing::warn!(%error, "containment is still not tested; no sandbox is made");
                clearance.set(Some(error.to_string()));
            }
        }
    }
}

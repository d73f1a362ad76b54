//! Whether sandboxes may be made: not before what would hold them was attacked.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbank_engine::{EngineError, ImageName};

use super::{Containment, SelfTest, Tested};
use crate::OrchestratorError;
use crate::context::Context;
use crate::limits::{FIRST_RETEST, LAST_RETEST, NO_IMAGE_RETEST};
use crate::provider::Provider;

#[derive(Default)]
pub(crate) struct Clearance {
    /// Why none may be made.
    withheld: Mutex<Option<OrchestratorError>>,
    /// Images of which none may be made: they are on their way, or not tested yet.
    images: Mutex<Vec<ImageName>>,
    /// How often each was withheld: whatever was begun before is of another image now.
    changes: Mutex<HashMap<ImageName, u64>>,
    /// Held while there are canaries: the sweep would take them for machines without an owner.
    pub(crate) canaries: tokio::sync::Mutex<()>,
}

impl Clearance {
    pub(crate) fn check(&self, image: &ImageName) -> Result<(), OrchestratorError> {
        if let Some(error) = self.withheld() {
            return Err(error);
        }
        if lock(&self.images).contains(image) {
            let reason = format!("the image {image} is being imported or removed");
            return Err(OrchestratorError::Untested(reason));
        }
        Ok(())
    }

    /// What everybody is refused with, whatever the image.
    pub(crate) fn withheld(&self) -> Option<OrchestratorError> {
        lock(&self.withheld).clone()
    }

    /// For [`Clearance::still_holds`], after a machine of it was made.
    pub(crate) fn changes(&self, image: &ImageName) -> u64 {
        lock(&self.changes).get(image).copied().unwrap_or(0)
    }

    /// Whether the image that a machine was made of is the one that was cleared before.
    pub(crate) fn still_holds(
        &self,
        image: &ImageName,
        changes: u64,
    ) -> Result<(), OrchestratorError> {
        if self.changes(image) == changes {
            return Ok(());
        }
        Err(OrchestratorError::Untested(format!("the image {image} is being replaced or removed")))
    }

    pub(crate) fn withhold_all(&self, why: OrchestratorError) {
        *lock(&self.withheld) = Some(why);
    }

    fn clear(&self) {
        *lock(&self.withheld) = None;
    }

    /// An image has come, and withstood the attacks. Whatever else creates are withheld for stays.
    pub(super) fn has_tested_image(&self) {
        let mut withheld = lock(&self.withheld);
        if matches!(*withheld, Some(OrchestratorError::NoImageToTest { .. })) {
            *withheld = None;
        }
    }

    /// For good: what got out once is not tried again.
    fn refuse(&self, engine: &'static str, image: &ImageName, report: &Containment) {
        let controls: Vec<_> =
            report.failed_controls().iter().map(|control| control.name()).collect();
        let reason = format!(
            "a test sandbox of the image {image} was not contained, for want of {}",
            controls.join(", ")
        );
        *lock(&self.withheld) = Some(OrchestratorError::NotContained { engine, reason });
    }

    /// Nothing is made of this image for as long as the answer lives.
    pub(crate) fn withhold(self: &Arc<Self>, image: ImageName) -> Withheld {
        lock(&self.images).push(image.clone());
        *lock(&self.changes).entry(image.clone()).or_default() += 1;
        Withheld { clearance: Arc::clone(self), image }
    }
}

pub(crate) struct Withheld {
    clearance: Arc<Clearance>,
    image: ImageName,
}

impl Drop for Withheld {
    fn drop(&mut self) {
        let mut images = lock(&self.clearance.images);
        if let Some(place) = images.iter().position(|image| *image == self.image) {
            images.swap_remove(place);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tests until there is a result, which lifts the refusal unless something got out. None when the
/// daemon leaves first.
pub(crate) async fn catch_up(
    context: &Context,
    provider: &Provider,
    test: SelfTest,
    data_dir: &Path,
) -> Option<Tested> {
    let (clearance, leaving) = (&provider.clearance, &context.leaving);
    let mut patience = FIRST_RETEST;
    loop {
        let wait;
        let canaries = clearance.canaries.lock().await;
        match test.run(&*provider.engine, data_dir, leaving).await {
            Ok(Tested::Failed { image, report }) => {
                clearance.refuse(provider.name(), &image, &report);
                return Some(Tested::Failed { image, report });
            }
            Ok(tested) => {
                clearance.clear();
                provider.pool.try_again(None);
                return Some(tested);
            }
            Err(_) if leaving.is_cancelled() => return None,
            Err(error) => {
                // To ask for an image costs nothing, and somebody may be about to get it.
                wait = if wants_image(&error) { NO_IMAGE_RETEST } else { patience };
                patience = (2 * patience).min(LAST_RETEST);
                let why = error.while_untested();
                let told = clearance.withheld().map(|told| told.to_string());
                if told != Some(why.to_string()) {
                    let engine = provider.name();
                    tracing::warn!(engine, "containment is still not tested: {why}");
                }
                clearance.withhold_all(why);
            }
        }
        drop(canaries);
        leaving.run_until_cancelled(tokio::time::sleep(wait)).await?;
    }
}

/// There is none, or none that a canary could be made of.
fn wants_image(error: &OrchestratorError) -> bool {
    match error {
        OrchestratorError::NoImageToTest { .. } => true,
        OrchestratorError::Engine(error) => matches!(**error, EngineError::BadImage(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_of_an_image_that_is_on_its_way() {
        let clearance = Arc::new(Clearance::default());
        let (new, other): (ImageName, ImageName) = ("new".parse().unwrap(), ImageName::host());
        let (first, second) = (clearance.withhold(new.clone()), clearance.withhold(new.clone()));
        drop(first);
        let refused = clearance.check(&new);
        assert!(matches!(refused, Err(OrchestratorError::Untested(_))), "{refused:?}");
        clearance.check(&other).unwrap();
        drop(second);
        clearance.check(&new).unwrap();
        // What was begun before the change is of nobody knows which image.
        assert!(clearance.still_holds(&new, 0).is_err());
        clearance.still_holds(&new, clearance.changes(&new)).unwrap();
        clearance.still_holds(&other, 0).unwrap();
        clearance.withhold_all(OrchestratorError::Untested("no test".to_owned()));
        assert!(clearance.check(&other).is_err());
    }

    #[test]
    fn what_got_out_is_not_said_to_be_tried_again() {
        let clearance = Clearance::default();
        let report = Containment { probes: Vec::new(), duration_ms: 1 };
        clearance.withhold_all(OrchestratorError::Untested("no test yet".to_owned()));
        let untested = clearance.check(&ImageName::host()).unwrap_err();
        assert_eq!((untested.code(), untested.retryable()), ("containment_untested", true));
        clearance.refuse("docker", &ImageName::host(), &report);
        let refused = clearance.check(&ImageName::host()).unwrap_err();
        assert_eq!((refused.code(), refused.retryable()), ("not_contained", false));
        let hint = refused.hint().unwrap();
        assert!(hint.contains("doctor --engine docker --attack"), "{hint}");
        assert!(hint.contains("SANDBANK_ENGINES"), "{hint}");
    }

    #[test]
    fn an_image_that_has_come_lifts_nothing_but_the_want_of_one() {
        let clearance = Clearance::default();
        clearance.withhold_all(OrchestratorError::NoImageToTest { engine: "docker" });
        let refused = clearance.check(&ImageName::host()).unwrap_err();
        assert_eq!((refused.code(), refused.retryable()), ("containment_untested", true));
        let hint = refused.hint().unwrap();
        assert!(hint.contains("make images") && hint.contains("docker pull"), "{hint}");
        clearance.has_tested_image();
        clearance.check(&ImageName::host()).unwrap();
        clearance.withhold_all(OrchestratorError::Untested("another reason".to_owned()));
        clearance.has_tested_image();
        assert!(clearance.check(&ImageName::host()).is_err());
    }
}

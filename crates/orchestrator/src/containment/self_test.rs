//! The test that comes before serving: once for each image, kernel, boot and version.

use std::path::Path;

use sandbank_engine::{Control, Engine, EngineError, ImageInfo, ImageName, NetworkMode};
use tokio_util::sync::CancellationToken;

use super::Containment;
use super::canary::attack;
use super::record::{Record, mark};
use crate::OrchestratorError;
use crate::limits::TESTED_IMAGES;

/// When to attack canaries, and of which images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SelfTest {
    /// Even where an earlier test still holds.
    pub always: bool,
    /// One stands for all, and the host's where the engine has it: for a daemon that is there for a
    /// moment. The others are left to the daemon that they belong to.
    pub only_one: bool,
}

/// What a self-test came to.
#[derive(Debug)]
pub enum Tested {
    /// Nothing got out. `attacked` says of how many images: none when an earlier test still holds.
    /// `left_out` is how many were too many to be attacked.
    Held {
        attacked: usize,
        left_out: usize,
    },
    Failed {
        image: ImageName,
        report: Box<Containment>,
    },
    /// A control is missing without which no sandbox of some image is made, so there is nothing
    /// to attack, and nothing to escape from. Nothing got out of the others.
    Unavailable {
        control: Control,
        reason: String,
    },
    /// The engine's machines are not confined in a way that can be tested.
    NotApplicable,
}

impl SelfTest {
    /// Tests every image that no earlier test in `data_dir` covers. An error says that it cannot
    /// be told whether sandboxes hold; what was found until then is remembered.
    pub async fn run(
        self,
        engine: &dyn Engine,
        data_dir: &Path,
        leaving: &CancellationToken,
    ) -> Result<Tested, OrchestratorError> {
        let Some(key) = engine.confinement_key() else { return Ok(Tested::NotApplicable) };
        let mut images = engine.images_to_test().await?;
        if self.only_one {
            let host = images.iter().position(|image| image.name.is_host());
            images = images.into_iter().skip(host.unwrap_or(0)).take(1).collect();
        }
        // Nothing was attacked, so nothing is known of what a sandbox could do.
        if images.is_empty() {
            return Err(OrchestratorError::NoImageToTest { engine: engine.name() });
        }
        let mark = mark(engine.name());
        let key_of = |image: ImageInfo| {
            let digest = image.digest.as_deref().unwrap_or("of this host");
            (format!("{mark}{key}; image {} {digest}", image.name), image.name)
        };
        let images: Vec<_> = images.into_iter().map(key_of).collect();
        let before = Record::read(data_dir);
        let mut record = before.clone();
        record.keep(&mark, &images.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>());
        let tested = self.attack_each(engine, &images, &mut record, leaving).await;
        if record != before
            && let Err(error) = record.write(&mark, data_dir)
        {
            tracing::warn!(%error, "the next start tests containment again");
        }
        tested
    }

    async fn attack_each(
        self,
        engine: &dyn Engine,
        images: &[(String, ImageName)],
        record: &mut Record,
        leaving: &CancellationToken,
    ) -> Result<Tested, OrchestratorError> {
        // How a network is kept in does not depend on the image: one stands for all.
        let stands_for_all = images.first().map(|(_, image)| image);
        let mut due: Vec<_> = images.iter().collect();
        due.retain(|(key, _)| self.always || record.find(key).is_none());
        let left_out = due.len().saturating_sub(TESTED_IMAGES);
        due.truncate(TESTED_IMAGES);
        let mut tested = Tested::Held { attacked: due.len(), left_out };
        for (key, image) in due {
            record.forget(key);
            let attacked = if Some(image) == stands_for_all || image.is_host() {
                attack_all(engine, image, leaving).await
            } else {
                attack(engine, image, NetworkMode::None, leaving).await
            };
            match attacked {
                Ok(report) if report.holds() => record.add(key.clone(), report),
                Ok(report) => {
                    return Ok(Tested::Failed { image: image.clone(), report: Box::new(report) });
                }
                Err(error) => tested = unavailable(error)?,
            }
        }
        Ok(tested)
    }
}

/// Forgets earlier results that are of none of these engines.
pub fn forget_all_but(engines: &[&str], data_dir: &Path) {
    if let Err(error) = Record::keep_only(engines, data_dir) {
        tracing::warn!(%error, "results of engines that are gone stay on record");
    }
}

/// Both kinds of network, side by side.
pub async fn attack_all(
    engine: &dyn Engine,
    image: &ImageName,
    leaving: &CancellationToken,
) -> Result<Containment, OrchestratorError> {
    let alone = attack(engine, image, NetworkMode::None, leaving);
    if !engine.capabilities().network_egress {
        return alone.await;
    }
    let online = attack(engine, image, NetworkMode::Default, leaving);
    match tokio::join!(alone, online) {
        (Ok(alone), Ok(online)) => Ok(alone.with(online)),
        // What got out of one is not made good by the other's trouble.
        (Ok(report), Err(_)) | (Err(_), Ok(report)) if !report.holds() => Ok(report),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

fn unavailable(error: OrchestratorError) -> Result<Tested, OrchestratorError> {
    if let OrchestratorError::Engine(engine) = &error
        && let EngineError::ControlUnavailable { control, reason } = &**engine
    {
        return Ok(Tested::Unavailable { control: *control, reason: reason.clone() });
    }
    Err(error)
}

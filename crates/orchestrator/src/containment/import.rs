//! An image is attacked as soon as it is here, and nothing is made of it before. As long as it is
//! on its way from a registry, sandboxes are made of what its name stood for.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sandbank_engine::{BeforeSwap, EngineError, ImageInfo, ImageName, ImportProgress, PullRequest};
use tokio_util::sync::CancellationToken;

use super::clearance::Withheld;
use super::{Containment, ProbeStanding, SelfTest, Tested};
use crate::context::Context;
use crate::pool;
use crate::provider::Provider;

/// Where an image comes from.
pub(crate) enum ImageSource<'a> {
    Archive(&'a Path),
    /// Until the token is cancelled.
    Registry(&'a PullRequest, &'a CancellationToken),
}

/// One whose sandboxes do not hold, or cannot be tested, is not kept.
pub(crate) async fn import(
    context: &Context,
    provider: &Provider,
    name: &ImageName,
    source: ImageSource<'_>,
    tell: &(dyn Fn(ImportProgress) + Send + Sync),
    data_dir: &Path,
) -> Result<ImageInfo, EngineError> {
    let engine = &*provider.engine;
    let (image, _withheld) = match source {
        ImageSource::Archive(path) => {
            let withheld = provider.clearance.withhold(name.clone());
            pool::clear(context, provider, name).await;
            (engine.import_image(name, path, tell).await?, withheld)
        }
        ImageSource::Registry(request, cancelled) => {
            let pulled = pull(context, provider, name, request, tell, cancelled).await?;
            pool::clear(context, provider, name).await;
            pulled
        }
    };
    let refusal = {
        let _canaries = provider.clearance.canaries.lock().await;
        match SelfTest::default().run(engine, data_dir, &context.leaving).await {
            Ok(Tested::Failed { report, .. }) => EngineError::BadImage(format!(
                "a test sandbox of it was not contained: {}",
                failures(&report)
            )),
            Ok(_) => {
                provider.clearance.has_tested_image();
                return Ok(image);
            }
            Err(error) => EngineError::Unavailable(format!(
                "the image cannot be tested and was not kept; import it again: {error}"
            )),
        }
    };
    if let Err(error) = engine.remove_image(name).await {
        tracing::error!(image = %name, %error, "an image that was refused stays");
    }
    Err(refusal)
}

/// Ends early when the daemon leaves, too. Never dropped half-way: an image that is there is tested.
async fn pull(
    context: &Context,
    provider: &Provider,
    name: &ImageName,
    request: &PullRequest,
    tell: &(dyn Fn(ImportProgress) + Send + Sync),
    cancelled: &CancellationToken,
) -> Result<(ImageInfo, Withheld), EngineError> {
    let stop = context.leaving.child_token();
    let withheld = Arc::new(Mutex::new(None));
    let before_swap: BeforeSwap = {
        let (withheld, clearance) = (Arc::clone(&withheld), Arc::clone(&provider.clearance));
        let name = name.clone();
        Arc::new(move || {
            let mut withheld = withheld.lock().unwrap_or_else(PoisonError::into_inner);
            withheld.get_or_insert_with(|| clearance.withhold(name.clone()));
        })
    };
    let pulling = provider.engine.pull_image(name, request, tell, &stop, &before_swap);
    tokio::pin!(pulling);
    let pulled = tokio::select! {
        pulled = &mut pulling => pulled?,
        () = cancelled.cancelled() => {
            stop.cancel();
            pulling.await?
        }
    };
    before_swap();
    let withheld = withheld.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok((pulled, withheld.expect("it was just put there")))
}

fn failures(report: &Containment) -> String {
    let failed = report.probes.iter().filter(|probe| probe.standing == ProbeStanding::Failed);
    let names: Vec<&str> = failed.map(|probe| probe.probe.as_str()).collect();
    names.join(", ")
}

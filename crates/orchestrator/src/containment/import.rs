//! An image is attacked as soon as it is here, and nothing is made of it before.

use std::path::Path;

use sandbank_engine::{Engine, EngineError, ImageInfo, ImageName, ImportProgress, PullRequest};
use tokio_util::sync::CancellationToken;

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
    let _withheld = provider.clearance.withhold(name.clone());
    pool::clear(context, provider, name).await;
    let image = match source {
        ImageSource::Archive(path) => engine.import_image(name, path, tell).await?,
        ImageSource::Registry(request, cancelled) => {
            pull(context, engine, name, request, tell, cancelled).await?
        }
    };
    let refusal = {
        let _canaries = provider.clearance.canaries.lock().await;
        match SelfTest::default().run(engine, data_dir, &context.leaving).await {
            Ok(Tested::Failed { report, .. }) => EngineError::BadImage(format!(
                "a test sandbox of it was not contained: {}",
                failures(&report)
            )),
            Ok(_) => return Ok(image),
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
    engine: &dyn Engine,
    name: &ImageName,
    request: &PullRequest,
    tell: &(dyn Fn(ImportProgress) + Send + Sync),
    cancelled: &CancellationToken,
) -> Result<ImageInfo, EngineError> {
    let stop = context.leaving.child_token();
    let pulling = engine.pull_image(name, request, tell, &stop);
    tokio::pin!(pulling);
    tokio::select! {
        pulled = &mut pulling => return pulled,
        () = cancelled.cancelled() => stop.cancel(),
    }
    pulling.await
}

fn failures(report: &Containment) -> String {
    let failed = report.probes.iter().filter(|probe| probe.standing == ProbeStanding::Failed);
    let names: Vec<&str> = failed.map(|probe| probe.probe.as_str()).collect();
    names.join(", ")
}

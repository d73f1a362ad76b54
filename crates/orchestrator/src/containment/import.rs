//! An image is attacked as soon as it is here, and nothing is made of it before.

use std::path::Path;
use std::sync::Arc;

use sandbank_engine::{EngineError, ImageInfo, ImageName, ImportProgress};

use super::{Containment, ProbeStanding, SelfTest, Tested};
use crate::context::Context;
use crate::pool;

/// One whose sandboxes do not hold, or cannot be tested, is not kept.
pub(crate) async fn import(
    context: &Arc<Context>,
    name: &ImageName,
    archive: &Path,
    tell: &(dyn Fn(ImportProgress) + Send + Sync),
    data_dir: &Path,
) -> Result<ImageInfo, EngineError> {
    let engine = &*context.engine;
    let _withheld = context.clearance.withhold(name.clone());
    pool::clear(context, name).await;
    let image = engine.import_image(name, archive, tell).await?;
    let refusal = {
        let _canaries = context.clearance.canaries.lock().await;
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

fn failures(report: &Containment) -> String {
    let failed = report.probes.iter().filter(|probe| probe.standing == ProbeStanding::Failed);
    let names: Vec<&str> = failed.map(|probe| probe.probe.as_str()).collect();
    names.join(", ")
}

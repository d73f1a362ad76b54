//! `--probe`: a workspace service used once, as a control plane would.

use std::sync::Arc;

use sandbank_workspace::{
    Place, PlaceError, PlaceErrorKind, RemoteNames, RemotePlace, RemoteSettings, probe,
};
use serde_json::json;

use super::WorkspaceServiceArgs;
use crate::context::Context;
use crate::failure::{Exit, Failure};

pub(super) async fn run(
    context: &Context,
    url: &str,
    args: &WorkspaceServiceArgs,
) -> Result<u8, Failure> {
    let keys = args.keys().map_err(|problem| super::wrong(&[problem]))?;
    let mut settings = RemoteSettings::new(url);
    settings.tls.authorities.clone_from(&args.authorities);
    let problems = settings.problems(&RemoteNames {
        url: "--probe",
        allowed: "--probe",
        authorities: "--authorities",
    });
    if !problems.is_empty() {
        return Err(super::wrong(&problems));
    }
    let place = RemotePlace::new(&settings, Arc::new(keys)).map_err(|error| failed(&error))?;
    let root = probe(&place).await.map_err(|error| failed(&error))?;
    let version = place.health().await.version.unwrap_or_default();
    if context.ui.json {
        context.ui.document(&json!({ "status": "ok", "root": root, "version": version }))?;
    } else {
        context.ui.line(&format!("{url} serves {root}, version {version}"))?;
    }
    Ok(0)
}

fn failed(error: &PlaceError) -> Failure {
    let exit = match error.kind() {
        PlaceErrorKind::Auth => Exit::NotPermitted,
        PlaceErrorKind::Settings => Exit::Usage,
        PlaceErrorKind::Refused | PlaceErrorKind::Forbidden => Exit::Refused,
        _ => Exit::Unreachable,
    };
    Failure::new(exit, format!("{}: {error}", error.kind().name())).hint(error.next_step())
}

//! Where the workspace of `/api` is, when it is not in a sandbox.

use std::path::Path;
use std::sync::Arc;

use sandbank_server::config::{Settings, WorkspaceMode};
use sandbank_workspace::{
    KeyFile, LocalPlace, LocalSettings, Place, PlaceError, PlaceErrorKind, Problem, RemoteNames,
    RemotePlace, RemoteSettings,
};

use crate::failure::{Exit, Failure};

/// Below the data directory: the runner of mode local, its socket, record and log.
const RUNNER: &str = "workspace-runner";

pub(super) fn open(
    settings: &Settings,
    data_dir: &Path,
) -> Result<Option<Arc<dyn Place>>, Failure> {
    let workspace = &settings.workspace;
    match workspace.mode {
        WorkspaceMode::Off | WorkspaceMode::Sandbox => Ok(None),
        WorkspaceMode::Local => {
            let root = workspace.root.clone().expect("checked with the settings");
            let local = LocalSettings::new(root, data_dir.join(RUNNER));
            let apart = vec![("SANDBANK_DATA_DIR".to_owned(), data_dir.to_owned())];
            refuse(&local.problems("SANDBANK_WORKSPACE_ROOT", "SANDBANK_DATA_DIR", apart))?;
            Ok(Some(Arc::new(LocalPlace::open(local).map_err(|error| unusable(&error))?)))
        }
        WorkspaceMode::Remote => {
            let url = workspace.service_url.as_deref().expect("checked with the settings");
            let mut remote = RemoteSettings::new(url);
            remote.allowed.clone_from(&workspace.service_allowed);
            remote.tls.authorities.clone_from(&workspace.service_authorities);
            refuse(&remote.problems(&RemoteNames {
                url: "SANDBANK_WORKSPACE_SERVICE_URL",
                allowed: "SANDBANK_WORKSPACE_SERVICE_ALLOWED",
                authorities: "SANDBANK_WORKSPACE_SERVICE_AUTHORITIES",
            }))?;
            let file = workspace.service_secret_file.as_ref().expect("checked with the settings");
            let name = "SANDBANK_WORKSPACE_SERVICE_SECRET_FILE";
            let keys = KeyFile::open(file).map_err(|error| wrong(&[error.problem(name, file)]))?;
            let place =
                RemotePlace::new(&remote, Arc::new(keys)).map_err(|error| unusable(&error))?;
            Ok(Some(Arc::new(place)))
        }
    }
}

fn refuse(problems: &[Problem]) -> Result<(), Failure> {
    if problems.is_empty() { Ok(()) } else { Err(wrong(problems)) }
}

pub(crate) fn wrong(problems: &[Problem]) -> Failure {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Failure::usage(lines.join("\n"))
}

pub(crate) fn unusable(error: &PlaceError) -> Failure {
    let exit = match error.kind() {
        PlaceErrorKind::Settings => Exit::Usage,
        PlaceErrorKind::InUse => Exit::Temporary,
        _ => Exit::CannotWrite,
    };
    Failure::new(exit, error.to_string()).hint(error.next_step())
}

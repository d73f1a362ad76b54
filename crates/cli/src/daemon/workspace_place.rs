//! Where the workspace of `/api` is, when it is not in a sandbox.

use std::path::Path;
use std::sync::Arc;

use sandbank_server::config::{Settings, WorkspaceMode};
use sandbank_workspace::{
    KeyFile, LocalPlace, LocalSettings, Place, PlaceError, PlaceErrorKind, Problem, RemoteNames,
    RemotePlace, RemoteSettings,
};

use crate::failure::{Exit, Failure};
use crate::limits::SERVICE_PATIENCE;

const URL: &str = "SANDBANK_WORKSPACE_SERVICE_URL";
const SECRET_FILE: &str = "SANDBANK_WORKSPACE_SERVICE_SECRET_FILE";
const AUTHORITIES: &str = "SANDBANK_WORKSPACE_SERVICE_AUTHORITIES";

/// Below the data directory: the runner of mode local, its socket, record and log.
const RUNNER: &str = "workspace-runner";

pub(super) async fn open(
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
            let place = remote(settings)?;
            if let Some(problem) = greet(&place).await? {
                tracing::warn!("{problem}; /readyz is 503 until it answers");
            }
            Ok(Some(Arc::new(place)))
        }
    }
}

/// Whether a start would fail because of it. What only may be otherwise later is told.
pub(crate) async fn check(settings: &Settings) -> Result<Option<Problem>, Failure> {
    match settings.workspace.mode {
        WorkspaceMode::Remote => greet(&remote(settings)?).await,
        WorkspaceMode::Off | WorkspaceMode::Sandbox | WorkspaceMode::Local => Ok(None),
    }
}

fn remote(settings: &Settings) -> Result<RemotePlace, Failure> {
    let workspace = &settings.workspace;
    let url = workspace.service_url.as_deref().expect("checked with the settings");
    let mut remote = RemoteSettings::new(url);
    remote.allowed.clone_from(&workspace.service_allowed);
    remote.tls.authorities.clone_from(&workspace.service_authorities);
    refuse(&remote.problems(&RemoteNames {
        url: URL,
        allowed: "SANDBANK_WORKSPACE_SERVICE_ALLOWED",
        authorities: AUTHORITIES,
    }))?;
    let file = workspace.service_secret_file.as_ref().expect("checked with the settings");
    let keys = KeyFile::open(file).map_err(|error| wrong(&[error.problem(SECRET_FILE, file)]))?;
    RemotePlace::new(&remote, Arc::new(keys)).map_err(|error| unusable(&error))
}

/// A service that is there and refuses us will do so until somebody changes something, so it is a
/// failure. One that is away may come later, and is a problem to be told.
async fn greet(place: &RemotePlace) -> Result<Option<Problem>, Failure> {
    let greeted = tokio::time::timeout(SERVICE_PATIENCE, place.client()).await;
    let error = match greeted {
        Ok(Ok(_)) => return Ok(None),
        Ok(Err(error)) => error,
        Err(_) => PlaceError::TimedOut(SERVICE_PATIENCE),
    };
    let kind = error.kind();
    let (setting, exit) = match kind {
        PlaceErrorKind::Auth => (SECRET_FILE, Some(Exit::NotPermitted)),
        PlaceErrorKind::Certificate => (AUTHORITIES, Some(Exit::Usage)),
        PlaceErrorKind::BadPath => (URL, Some(Exit::Usage)),
        PlaceErrorKind::Version => (URL, Some(Exit::Unsupported)),
        _ => (URL, None),
    };
    let what = format!("{}: {error}", kind.name());
    let problem = Problem::new(setting, what, error.next_step());
    match exit.filter(|_| !error.may_pass()) {
        Some(exit) => Err(Failure::new(exit, problem.to_string())),
        None => Ok(Some(problem)),
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

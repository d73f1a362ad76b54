//! A repository, cloned inside the sandbox.
//!
//! Nothing of the configuration becomes text of a script: URL and revision are checked, and reach git
//! as words of their own. A secret is only ever in the environment of the clone, for the one host.

mod output;
mod revision;
mod url;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

pub use revision::Revision;
pub use url::{Credentials, RepositoryUrl};

use super::limits::CLEARING;
use super::{Progress, SeedError};
use crate::prelude::quoted;
use crate::{Ending, Piece, Sandbox};
use output::Output;

/// Run by a shell in the workspace, with everything in variables.
const CLONE: &str = include_str!("clone.sh");
/// What a clone that was killed left.
const CLEAR: &str = "rm -rf .remcochat/seed_draft";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSeed {
    pub url: RepositoryUrl,
    pub revision: Option<Revision>,
    /// How many commits of history; all without it.
    pub depth: Option<u32>,
    pub submodules: bool,
    pub credentials: Option<Credentials>,
    pub timeout: Duration,
}

impl GitSeed {
    /// Once per workspace; one that has files already is only marked. After a failure nothing is left,
    /// so that it can be tried again.
    pub async fn clone_into(
        &self,
        sandbox: &dyn Sandbox,
        progress: Progress<'_>,
    ) -> Result<(), SeedError> {
        let mut output = Output::new(self.credentials.as_ref());
        let ending = self.clone_inside(sandbox, &mut output, progress).await;
        let code = match ending {
            Ok(Ending::Exited(0)) => return Ok(()),
            Ok(Ending::Exited(code)) => code,
            Ok(Ending::TimedOut) => {
                output.add(&format!("\nit took longer than {} s", self.timeout.as_secs()));
                124
            }
            Ok(Ending::Lost(reason)) => {
                output.add(&format!("\n{reason}"));
                1
            }
            Err(error) => return Err(error),
        };
        clear(sandbox).await;
        Err(SeedError::Git { code, stderr: output.end() })
    }

    async fn clone_inside(
        &self,
        sandbox: &dyn Sandbox,
        output: &mut Output,
        progress: Progress<'_>,
    ) -> Result<Ending, SeedError> {
        let mut command = sandbox.start_with(&self.script(), self.secrets(), self.timeout).await?;
        loop {
            match command.next().await? {
                Piece::Stderr(bytes) => output.read(&bytes, progress),
                Piece::Stdout(_) | Piece::Dropped { .. } => {}
                Piece::Ended(ending) => return Ok(ending),
            }
        }
    }

    fn script(&self) -> String {
        let (how, revision) = match &self.revision {
            None => ("default", ""),
            Some(revision) => (revision.how(), revision.as_str()),
        };
        let depth = self.depth.map(|depth| depth.to_string()).unwrap_or_default();
        let variables = [
            ("seed_url", self.url.as_str()),
            ("seed_how", how),
            ("seed_revision", revision),
            ("seed_depth", depth.as_str()),
            ("seed_submodules", if self.submodules { "yes" } else { "" }),
            ("seed_protocols", self.url.protocols()),
            (
                "seed_host",
                if self.credentials.is_some() { self.url.credential_scope() } else { "" },
            ),
        ];
        let set = variables.map(|(name, value)| format!("{name}={}\n", quoted(value)));
        format!("{}{CLONE}", set.concat())
    }

    fn secrets(&self) -> BTreeMap<String, String> {
        let Some(credentials) = &self.credentials else { return BTreeMap::new() };
        BTreeMap::from([
            ("SANDBANK_SEED_USER".to_owned(), credentials.user.clone()),
            ("SANDBANK_SEED_PASSWORD".to_owned(), credentials.password.clone()),
        ])
    }
}

async fn clear(sandbox: &dyn Sandbox) {
    let cleared = async {
        let mut command = sandbox.start(CLEAR, CLEARING).await?;
        while !matches!(command.next().await?, Piece::Ended(_)) {}
        Ok::<_, crate::ToolError>(())
    };
    if let Err(error) = cleared.await {
        tracing::debug!(%error, "what is left of a clone is cleared by the next one");
    }
}

//! The seed that the configuration asks for.

use std::sync::Arc;

use async_trait::async_trait;

use super::git::{Credentials, GitSeed, RepositoryUrl, Revision};
use super::upload::{Include, UploadSeed};
use super::{Progress, Seed, SeedError};
use crate::config::{Config, SeedConfig};
use crate::{Sandbox, ToolError};

/// Of a token that has no user of its own.
const TOKEN_USER: &str = "x-access-token";

/// `variable` is the environment, asked for the token's name only.
pub fn configured(
    config: &Config,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Arc<dyn Seed>>, SeedError> {
    Ok(match &config.seed {
        SeedConfig::None => None,
        SeedConfig::Upload { root, include } => {
            let include = Include::new([include.as_str()])?;
            Some(Arc::new(UploadSeed { root: root.clone(), include }))
        }
        SeedConfig::Git { url, revision, depth, submodules, token_env } => {
            let (url, mut credentials) = RepositoryUrl::parse(url.as_str())?;
            if let Some(name) = token_env {
                let token = variable(name).filter(|token| !token.trim().is_empty());
                let token = token.ok_or_else(|| SeedError::NoToken(name.clone()))?;
                credentials = Some(Credentials::new(TOKEN_USER, token.trim())?);
            }
            if credentials.is_some() {
                url.accepts_credentials()?;
            }
            Some(Arc::new(GitSeed {
                url,
                revision: revision.as_deref().map(Revision::parse).transpose()?,
                depth: *depth,
                submodules: *submodules,
                credentials,
                timeout: config.sandbox.timeout,
            }))
        }
    })
}

#[async_trait]
impl Seed for GitSeed {
    async fn fill(&self, sandbox: &dyn Sandbox, progress: Progress<'_>) -> Result<(), ToolError> {
        let id = sandbox.id().to_owned();
        tracing::info!(sandbox = id, url = self.url.as_str(), "a repository is cloned");
        let told = |line: &str| {
            tracing::debug!(sandbox = id, line, "cloning");
            progress(line);
        };
        Ok(self.clone_into(sandbox, &told).await?)
    }
}

#[async_trait]
impl Seed for UploadSeed {
    async fn fill(&self, sandbox: &dyn Sandbox, progress: Progress<'_>) -> Result<(), ToolError> {
        let id = sandbox.id().to_owned();
        let told = |line: &str| {
            tracing::debug!(sandbox = id, line, "uploading");
            progress(line);
        };
        let report = self.upload_into(sandbox, &told).await?;
        tracing::info!(sandbox = id, ?report, "a directory was uploaded");
        Ok(())
    }
}

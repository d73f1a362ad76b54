//! `[app.bash_tools.seed]`: what a new workspace is filled with.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::SECTION;
use super::section::{Problems, Section};
use crate::seed::git::{RepositoryUrl, Revision};
use crate::seed::upload::Include;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeedConfig {
    /// It begins empty.
    None,
    Git {
        /// Empty where the file has none, which is refused where the tools are enabled.
        url: GitUrl,
        revision: Option<String>,
        /// How many commits of history; all without it.
        depth: Option<u32>,
        submodules: bool,
        /// The variable that has the token.
        token_env: Option<String>,
    },
    Upload {
        root: PathBuf,
        /// Which files; all by default.
        include: String,
    },
}

/// As it stands in the file, so it may have a password in it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct GitUrl(String);

impl GitUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for GitUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl fmt::Debug for GitUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

/// History that is asked for.
const DEPTHS: RangeInclusive<u64> = 1..=1_000_000;

impl SeedConfig {
    /// Where the mode is not said, it follows from what there is to fill it with.
    pub(super) fn read(section: &Section<'_>, project_root: Option<&Path>) -> Self {
        let mode = section.choice("mode", &["none", "git", "upload"]);
        let url = section.text("git_url");
        let revision = section.text("git_revision");
        let include = section.text("upload_include").unwrap_or_else(|| "**/*".to_owned());
        let depth = section.value("git_depth").is_some();
        let depth = depth.then(|| section.integer("git_depth", 1, DEPTHS));
        let depth = depth.and_then(|depth| u32::try_from(depth).ok());
        let submodules = section.switch("git_submodules", false);
        let token_env = section.text("git_token_env");
        let mode = mode.unwrap_or(match (&url, project_root) {
            (Some(_), _) => "git",
            (None, Some(_)) => "upload",
            (None, None) => "none",
        });
        match mode {
            "git" => {
                let url = GitUrl(url.unwrap_or_default());
                Self::Git { url, revision, depth, submodules, token_env }
            }
            "upload" => {
                Self::Upload { root: project_root.map(PathBuf::from).unwrap_or_default(), include }
            }
            _ => Self::None,
        }
    }

    pub(super) fn check(&self, project_root: Option<&Path>, problems: &Problems) {
        match self {
            Self::Git { url, .. } if url.as_str().is_empty() => problems.add(format!(
                "{SECTION}.seed.mode is \"git\", but {SECTION}.seed.git_url is not set; set it, or \
                 use mode \"none\""
            )),
            Self::Upload { root, .. } if root.as_os_str().is_empty() => problems.add(format!(
                "{SECTION}.seed.mode is \"upload\", but {SECTION}.project_root is not set; set it \
                 to the directory that is copied, or use mode \"none\""
            )),
            Self::Git { url, revision, token_env, .. } => {
                let parsed = RepositoryUrl::parse(url.as_str());
                let secret = token_env.is_some() || matches!(parsed, Ok((_, Some(_))));
                let accepted = parsed.and_then(|(url, _)| match secret {
                    true => url.accepts_credentials(),
                    false => Ok(()),
                });
                let revision =
                    revision.as_deref().map_or(Ok(()), |text| Revision::parse(text).map(drop));
                for wrong in [accepted, revision].into_iter().filter_map(Result::err) {
                    problems.add(wrong.to_string());
                }
            }
            Self::Upload { include, .. } => {
                if let Err(wrong) = Include::new([include.as_str()]) {
                    problems.add(wrong.to_string());
                }
            }
            Self::None => {}
        }
        if let Some(root) = project_root
            && !root.is_absolute()
        {
            problems.wrong(
                &format!("{SECTION}.project_root"),
                &format!("{:?}", root.display().to_string()),
                "an absolute path",
                "write it from / on",
            );
        }
    }
}

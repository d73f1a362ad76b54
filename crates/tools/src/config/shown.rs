//! The section as people look at it: every key with the value that counts, and nothing secret.

use super::{Config, Network, SeedConfig};
use crate::seed::git::RepositoryUrl;

const NONE: &str = "none";

impl Config {
    /// The whole keys, in the order of the documentation.
    pub fn shown(&self) -> Vec<(&'static str, String)> {
        let text = |text: Option<&str>| text.unwrap_or(NONE).to_owned();
        let millis = |time: std::time::Duration| time.as_millis().to_string();
        let root = self.project_root.as_ref().map(|root| root.display().to_string());
        let provider = self.provider.map_or("this server's own engine", |kind| kind.name());
        let ports: Vec<String> = self.sandbox.ports.iter().map(u16::to_string).collect();
        let network = match self.network {
            Network::Default => "default",
            Network::None => NONE,
        };
        let approvals = &self.approvals.config;
        let mut shown = vec![
            ("app.bash_tools.enabled", self.enabled.to_string()),
            ("app.bash_tools.provider", provider.to_owned()),
            ("app.bash_tools.access", self.access.name().to_owned()),
            ("app.bash_tools.project_root", text(root.as_deref())),
            ("app.bash_tools.max_stdout_chars", self.max_stdout_chars.to_string()),
            ("app.bash_tools.max_stderr_chars", self.max_stderr_chars.to_string()),
            ("app.bash_tools.timeout_ms", millis(self.timeout)),
            ("app.bash_tools.max_concurrent_sandboxes", self.max_concurrent_sandboxes.to_string()),
            ("app.bash_tools.idle_ttl_ms", millis(self.idle_ttl)),
            ("app.bash_tools.sandbox.runtime", self.sandbox.runtime.clone()),
            ("app.bash_tools.sandbox.ports", ports.join(", ")),
            ("app.bash_tools.sandbox.vcpus", self.sandbox.vcpus.to_string()),
            ("app.bash_tools.sandbox.timeout_ms", millis(self.sandbox.timeout)),
            ("app.bash_tools.docker.memory_mb", self.memory_mb.to_string()),
            ("app.bash_tools.docker.network_mode", network.to_owned()),
        ];
        shown.extend(seed(&self.seed));
        shown.extend([
            ("app.bash_tools.approvals.default", approvals.default.as_str().to_owned()),
            ("app.bash_tools.approvals.timeout_ms", approvals.timeout_ms.to_string()),
            ("app.bash_tools.approvals.rules", approvals.rules.len().to_string()),
        ]);
        shown
    }
}

/// Only what belongs to its mode.
fn seed(seed: &SeedConfig) -> Vec<(&'static str, String)> {
    const MODE: &str = "app.bash_tools.seed.mode";
    match seed {
        SeedConfig::None => vec![(MODE, NONE.to_owned())],
        SeedConfig::Upload { include, .. } => vec![
            (MODE, "upload".to_owned()),
            ("app.bash_tools.seed.upload_include", include.clone()),
        ],
        SeedConfig::Git { url, revision, depth, submodules, token_env } => {
            // One that has a password in it is shown without.
            let url = RepositoryUrl::parse(url.as_str()).map(|(url, _)| url.as_str().to_owned());
            let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| NONE.to_owned());
            let depth = depth.map_or("all".to_owned(), |depth| depth.to_string());
            vec![
                (MODE, "git".to_owned()),
                ("app.bash_tools.seed.git_url", url.unwrap_or_else(|_| "[redacted]".to_owned())),
                ("app.bash_tools.seed.git_revision", or_none(revision)),
                ("app.bash_tools.seed.git_depth", depth),
                ("app.bash_tools.seed.git_submodules", submodules.to_string()),
                ("app.bash_tools.seed.git_token_env", or_none(token_env)),
            ]
        }
    }
}

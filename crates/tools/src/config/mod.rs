//! `[app.bash_tools]`: what the operator says about the tools, checked as a whole.
//!
//! Ranges and defaults are those of RemcoChat's own file, so that it can be used as it is. Keys
//! that only another provider needs are accepted and checked, too. What has to fit together is
//! checked only where the tools are enabled: a file that switches them off is never wrong for that.

mod section;
mod seed;
mod shown;

use std::path::PathBuf;
use std::time::Duration;

use toml::Table;

use crate::approval::Approvals;
use crate::gates::Closed;
use crate::limits::MIN_ADMIN_TOKEN_CHARS;
pub use section::{Problems, Section};
pub use seed::{GitUrl, SeedConfig};

/// The name of the section in the file.
pub const SECTION: &str = "app.bash_tools";

/// What of the environment belongs to the tools.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `REMCOCHAT_ENABLE_BASH_TOOL`.
    pub enable: Option<String>,
    /// How long `REMCOCHAT_ADMIN_TOKEN` is, where there is one. Never the token.
    pub admin_token_chars: Option<usize>,
    /// The engines of this daemon, where that is known before it starts.
    pub engines: Option<Vec<&'static str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub enabled: bool,
    /// `REMCOCHAT_ENABLE_BASH_TOOL` allows it.
    pub switched_on: bool,
    /// What says no in so many words: it is heard by those, too, who need no yes.
    pub switched_off: Option<Closed>,
    /// None: whatever makes the sandboxes of callers who do not say.
    pub provider: Option<ProviderKind>,
    pub access: Access,
    pub project_root: Option<PathBuf>,
    pub max_stdout_chars: usize,
    pub max_stderr_chars: usize,
    /// Of one command.
    pub timeout: Duration,
    pub max_concurrent_sandboxes: usize,
    pub idle_ttl: Duration,
    pub sandbox: SandboxConfig,
    pub network: Network,
    pub memory_mb: u64,
    pub seed: SeedConfig,
    pub approvals: Approvals,
    /// What was said and has no effect here, for the log.
    pub notices: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    Native,
    Docker,
    Vercel,
}

impl ProviderKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Docker => "docker",
            Self::Vercel => "vercel",
        }
    }
}

/// Whose calls are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Localhost,
    Lan,
}

impl Access {
    pub fn name(self) -> &'static str {
        match self {
            Self::Localhost => "localhost",
            Self::Lan => "lan",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Default,
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    pub runtime: String,
    pub ports: Vec<u16>,
    pub vcpus: u64,
    /// How long filling the workspace may take.
    pub timeout: Duration,
}

const MAX_PORTS: usize = 4;

impl Default for Config {
    fn default() -> Self {
        Self::read(None, &Environment::default()).expect("the defaults are in range")
    }
}

impl Config {
    /// `app` is the section of that name. Either all of it is right, or every problem is told.
    pub fn read(app: Option<&Table>, environment: &Environment) -> Result<Self, Vec<String>> {
        let problems = Problems::default();
        let outer = Section::new("app", app, &problems);
        let section = outer.inner("bash_tools");
        let mut config = Self::values(&section, &problems);
        section.finish();
        let switch = said(environment.enable.as_deref());
        config.switched_on = switch == Some(true);
        config.switched_off = match (is_forbidden(app), switch) {
            (true, _) => Some(Closed::Configuration),
            (false, Some(false)) => Some(Closed::KillSwitch),
            (false, _) => None,
        };
        if config.enabled {
            config.check(environment, &problems);
        }
        let lines = problems.into_lines();
        if lines.is_empty() { Ok(config) } else { Err(lines) }
    }

    fn values(section: &Section<'_>, problems: &Problems) -> Self {
        let millis = |section: &Section<'_>, key, default, range| {
            Duration::from_millis(section.integer(key, default, range))
        };
        let count = |section: &Section<'_>, key, default, range| {
            usize::try_from(section.integer(key, default, range)).expect("the ranges are small")
        };
        let provider = match section.choice("provider", &["native", "docker", "vercel"]) {
            Some("native") => Some(ProviderKind::Native),
            Some("docker") => Some(ProviderKind::Docker),
            Some(_) => Some(ProviderKind::Vercel),
            None => None,
        };
        let mut notices = Vec::new();
        let project_root = section.text("project_root").map(PathBuf::from);
        let sandbox = section.inner("sandbox");
        let sandbox_config = SandboxConfig {
            runtime: runtime(&sandbox, provider),
            ports: ports(&sandbox),
            vcpus: sandbox.integer("vcpus", 2, 1..=8),
            timeout: millis(&sandbox, "timeout_ms", 900_000, 30_000..=18_000_000),
        };
        sandbox.finish();
        let docker = section.inner("docker");
        let (network, memory_mb) = docker_keys(&docker, problems, &mut notices);
        docker.finish();
        let seed_section = section.inner("seed");
        let seed = SeedConfig::read(&seed_section, project_root.as_deref());
        seed_section.finish();
        Self {
            enabled: section.switch("enabled", false),
            switched_on: false,
            switched_off: None,
            provider,
            access: match section.choice("access", &["localhost", "lan"]) {
                Some("lan") => Access::Lan,
                _ => Access::Localhost,
            },
            project_root,
            max_stdout_chars: count(section, "max_stdout_chars", 12_000, 200..=200_000),
            max_stderr_chars: count(section, "max_stderr_chars", 12_000, 200..=200_000),
            timeout: millis(section, "timeout_ms", 30_000, 1_000..=300_000),
            max_concurrent_sandboxes: count(section, "max_concurrent_sandboxes", 2, 1..=10),
            idle_ttl: millis(section, "idle_ttl_ms", 900_000, 10_000..=21_600_000),
            sandbox: sandbox_config,
            network,
            memory_mb,
            seed,
            approvals: Approvals::read(section.value("approvals"), problems),
            notices,
        }
    }

    /// What has to fit together.
    fn check(&self, environment: &Environment, problems: &Problems) {
        let key = |name: &str| format!("{SECTION}.{name}");
        match self.provider {
            Some(ProviderKind::Vercel) => problems.wrong(
                &key("provider"),
                "\"vercel\"",
                "native or docker",
                "that provider does not exist here yet; change it, or leave it out for this \
                 server's own engine",
            ),
            Some(kind) => {
                let has = |engines: &Vec<&str>| engines.contains(&kind.name());
                if environment.engines.as_ref().is_some_and(|engines| !has(engines)) {
                    problems.add(format!(
                        "{} is \"{name}\", but this server has no engine {name}; start it with \
                         SANDBANK_ENGINE={name}, or leave the key out",
                        key("provider"),
                        name = kind.name()
                    ));
                }
            }
            None => {}
        }
        if self.provider != Some(ProviderKind::Vercel) && self.sandbox.runtime == "node22" {
            problems.wrong(
                &key("sandbox.runtime"),
                "\"node22\"",
                "node24 or python3.13",
                "node22 is Vercel's; change it, or leave it out for the default (node24)",
            );
        }
        self.seed.check(self.project_root.as_deref(), problems);
        match environment.admin_token_chars {
            Some(length) if length < MIN_ADMIN_TOKEN_CHARS => problems.add(format!(
                "REMCOCHAT_ADMIN_TOKEN is {length} characters long, but must have at least \
                 {MIN_ADMIN_TOKEN_CHARS}; make one with `openssl rand -hex 32`"
            )),
            None if self.access == Access::Lan => problems.add(format!(
                "{} is \"lan\", but REMCOCHAT_ADMIN_TOKEN is not set; set it to a secret of at \
                 least {MIN_ADMIN_TOKEN_CHARS} characters, or use \"localhost\"",
                key("access")
            )),
            _ => {}
        }
    }
}

/// As RemcoChat reads it; none where nothing is said.
fn said(word: Option<&str>) -> Option<bool> {
    let word = word.map(|word| word.trim().to_ascii_lowercase()).filter(|word| !word.is_empty())?;
    Some(matches!(word.as_str(), "1" | "true" | "yes" | "on"))
}

/// `enabled = false` stands there; a key that does not says nothing.
fn is_forbidden(app: Option<&Table>) -> bool {
    let enabled = app.and_then(|app| app.get("bash_tools")?.get("enabled")?.as_bool());
    enabled == Some(false)
}

fn runtime(section: &Section<'_>, provider: Option<ProviderKind>) -> String {
    let usual = if provider == Some(ProviderKind::Vercel) { "node22" } else { "node24" };
    section.choice("runtime", &["node24", "python3.13", "node22"]).unwrap_or(usual).to_owned()
}

fn ports(section: &Section<'_>) -> Vec<u16> {
    let Some(value) = section.value("ports") else { return vec![3000] };
    let read = value.as_array().and_then(|items| {
        let port = |item: &toml::Value| item.as_integer().and_then(|port| u16::try_from(port).ok());
        items.iter().map(|item| port(item).filter(|port| *port > 0)).collect::<Option<Vec<u16>>>()
    });
    match read {
        Some(mut ports) if ports.len() <= MAX_PORTS => {
            ports.sort_unstable();
            ports.dedup();
            ports
        }
        _ => {
            let allowed = format!("a list of at most {MAX_PORTS} numbers from 1 to 65535");
            section.wrong("ports", value, &allowed, "[3000]");
            vec![3000]
        }
    }
}

fn docker_keys(
    section: &Section<'_>,
    problems: &Problems,
    notices: &mut Vec<String>,
) -> (Network, u64) {
    if let Some(url) = section.text("orchestrator_url")
        && !is_loopback(&url)
    {
        problems.wrong(
            &section.key("orchestrator_url"),
            &format!("{:?}", url.chars().take(120).collect::<String>()),
            "absent, or an http(s) URL of a loopback address",
            "this server gives the tools sandboxes of its own and asks no other; leave it out",
        );
    }
    if let Some(name) = section.text("admin_token_env")
        && name != "REMCOCHAT_ADMIN_TOKEN"
    {
        notices.push(format!(
            "{} is set, but has no effect here: no other server is asked",
            section.key("admin_token_env")
        ));
    }
    let network = match section.choice("network_mode", &["default", "none"]) {
        Some("none") => Network::None,
        _ => Network::Default,
    };
    (network, section.integer("memory_mb", 2_048, 256..=16_384))
}

fn is_loopback(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    };
    matches!(uri.scheme_str(), Some("http" | "https")) && is_loopback
}

#[cfg(test)]
mod tests;

//! Finding the engine the way the Docker CLI does: what was said, then the environment, then the
//! chosen context, then the sockets of the systems that bring one.

use std::path::{Path, PathBuf};

use sandbank_engine::{EngineError, sha256_hex};
use serde::Deserialize;

use super::address::{Address, TlsFiles};

/// An address and why it is this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) address: Address,
    pub(crate) source: String,
}

/// What decides, as far as it is outside of our configuration.
pub(crate) struct Surroundings<'a> {
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) exists: &'a dyn Fn(&Path) -> bool,
}

impl Surroundings<'static> {
    pub(crate) fn of_this_process() -> Self {
        Self {
            env: &|name| std::env::var(name).ok().filter(|value| !value.is_empty()),
            exists: &|path| path.exists(),
        }
    }
}

pub(crate) fn find(said: Option<&str>, around: &Surroundings<'_>) -> Result<Found, EngineError> {
    let env = around.env;
    if let Some(host) = said {
        return by_host(host, "the configuration", env);
    }
    if let Some(host) = env("DOCKER_HOST") {
        return by_host(&host, "DOCKER_HOST", env);
    }
    let config = config_directory(env);
    let chosen = env("DOCKER_CONTEXT").map(|name| (name, "DOCKER_CONTEXT"));
    let current = || current_context(config.as_deref()?).map(|name| (name, "the current context"));
    if let Some((name, source)) = chosen.or_else(current)
        && name != "default"
    {
        let config =
            config.ok_or_else(|| wrong(format!("{source} is {name:?}, without a home")))?;
        return by_context(&config, &name, source);
    }
    let candidates = sockets(env);
    let there = candidates.iter().find(|path| (around.exists)(path)).or(candidates.first());
    let path = there.cloned().unwrap_or_else(|| PathBuf::from(USUAL));
    Ok(Found { address: Address::Unix(path), source: "the usual places".to_owned() })
}

const USUAL: &str = "/var/run/docker.sock";

fn sockets(env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from(USUAL)];
    let home = env("HOME").map(PathBuf::from);
    let at_home = |name: &str| home.as_ref().map(|home| home.join(name));
    found.extend(at_home(".docker/run/docker.sock"));
    found.extend(env("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("docker.sock")));
    for name in [".orbstack/run/docker.sock", ".colima/default/docker.sock", ".rd/docker.sock"] {
        found.extend(at_home(name));
    }
    found
}

fn wrong(text: String) -> EngineError {
    EngineError::Unavailable(text)
}

fn by_host(
    host: &str,
    source: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Found, EngineError> {
    let tls = match env("DOCKER_TLS_VERIFY") {
        None => None,
        Some(_) => {
            let directory = env("DOCKER_CERT_PATH").map(PathBuf::from);
            let directory = directory.or_else(|| config_directory(env));
            directory.map(|directory| TlsFiles::below(&directory))
        }
    };
    let address = Address::parse(host, tls).map_err(|error| wrong(format!("{source}: {error}")))?;
    Ok(Found { address, source: source.to_owned() })
}

fn config_directory(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let home = || env("HOME").map(|home| Path::new(&home).join(".docker"));
    env("DOCKER_CONFIG").map(PathBuf::from).or_else(home)
}

#[derive(Deserialize)]
struct CliConfig {
    #[serde(rename = "currentContext")]
    current_context: Option<String>,
}

fn current_context(config: &Path) -> Option<String> {
    let text = std::fs::read(config.join("config.json")).ok()?;
    let config: CliConfig = serde_json::from_slice(&text).ok()?;
    config.current_context.filter(|name| !name.is_empty())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ContextMeta {
    endpoints: std::collections::HashMap<String, Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    #[serde(rename = "Host", default)]
    host: String,
    #[serde(rename = "SkipTLSVerify", default)]
    skip_tls_verify: bool,
}

fn by_context(config: &Path, name: &str, source: &str) -> Result<Found, EngineError> {
    let digest = sha256_hex(name.as_bytes());
    let meta = config.join("contexts/meta").join(&digest).join("meta.json");
    let failed = |why: String| {
        wrong(format!(
            "{source} names the Docker context {name:?}, but {why}; \
             `docker context ls` shows those there are"
        ))
    };
    let text =
        std::fs::read(&meta).map_err(|error| failed(format!("{}: {error}", meta.display())))?;
    let meta: ContextMeta = serde_json::from_slice(&text).map_err(|e| failed(e.to_string()))?;
    let endpoint = meta.endpoints.get("docker").ok_or_else(|| failed("it has no engine".into()))?;
    if endpoint.skip_tls_verify {
        return Err(failed("it does not verify who answers, which Sandbank does not do".into()));
    }
    let tls = config.join("contexts/tls").join(&digest).join("docker");
    let tls = tls.is_dir().then(|| TlsFiles::below(&tls));
    let address = Address::parse(&endpoint.host, tls).map_err(|e| failed(e.to_string()))?;
    Ok(Found { address, source: format!("the Docker context {name:?}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        said: Option<&str>,
        env: &[(&str, &str)],
        there: &[&str],
    ) -> Result<Found, EngineError> {
        let lookup = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let exists = |path: &Path| there.iter().any(|known| Path::new(known) == path);
        find(said, &Surroundings { env: &lookup, exists: &exists })
    }

    fn socket(found: Result<Found, EngineError>) -> String {
        found.unwrap().address.to_string()
    }

    #[test]
    fn what_was_said_comes_before_the_environment_and_that_before_the_usual_places() {
        let env = [("DOCKER_HOST", "unix:///env.sock"), ("HOME", "/h")];
        let there = ["/var/run/docker.sock", "/h/.colima/default/docker.sock"];
        assert_eq!(socket(found(Some("/said.sock"), &env, &there)), "unix:///said.sock");
        assert_eq!(socket(found(None, &env, &there)), "unix:///env.sock");
        let home = [("HOME", "/h")];
        assert_eq!(socket(found(None, &home, &there)), "unix:///var/run/docker.sock");
        assert_eq!(
            socket(found(None, &home, &there[1..])),
            "unix:///h/.colima/default/docker.sock"
        );
        assert_eq!(socket(found(None, &home, &[])), "unix:///var/run/docker.sock");
        let desktop = ["/h/.docker/run/docker.sock", "/run/user/7/docker.sock"];
        let both = [("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/user/7")];
        assert_eq!(socket(found(None, &both, &desktop)), "unix:///h/.docker/run/docker.sock");
        assert_eq!(socket(found(None, &both, &desktop[1..])), "unix:///run/user/7/docker.sock");
        let rootless = [("XDG_RUNTIME_DIR", "/run/user/7")];
        assert_eq!(
            socket(found(None, &rootless, &["/run/user/7/docker.sock"])),
            "unix:///run/user/7/docker.sock"
        );
    }

    #[test]
    fn a_context_is_followed_and_a_missing_one_is_named() {
        let home = tempfile::tempdir().unwrap();
        let docker = home.path().join(".docker");
        // The digest of "box".
        let digest = sha256_hex(b"box");
        let meta = docker.join("contexts/meta").join(&digest);
        std::fs::create_dir_all(&meta).unwrap();
        let text = r#"{"Name":"box","Endpoints":{"docker":{"Host":"tcp://box:99"}}}"#;
        std::fs::write(meta.join("meta.json"), text).unwrap();
        std::fs::write(docker.join("config.json"), r#"{"currentContext":"box"}"#).unwrap();
        let home = home.path().to_str().unwrap();
        assert_eq!(socket(found(None, &[("HOME", home)], &[])), "tcp://box:99");
        let other = [("HOME", home), ("DOCKER_CONTEXT", "other")];
        let error = found(None, &other, &[]).unwrap_err().to_string();
        assert!(error.contains("\"other\"") && error.contains("docker context ls"), "{error}");
        let usual = [("HOME", home), ("DOCKER_CONTEXT", "default")];
        assert_eq!(socket(found(None, &usual, &[])), "unix:///var/run/docker.sock");
    }

    #[test]
    fn a_context_that_verifies_nobody_is_refused_and_one_with_certificates_speaks_tls() {
        let home = tempfile::tempdir().unwrap();
        let contexts = home.path().join(".docker/contexts");
        for (name, endpoint) in [
            ("blind", r#"{"Host":"tcp://box:99","SkipTLSVerify":true}"#),
            ("sealed", r#"{"Host":"tcp://box:99","SkipTLSVerify":false}"#),
        ] {
            let digest = sha256_hex(name.as_bytes());
            let meta = contexts.join("meta").join(&digest);
            std::fs::create_dir_all(&meta).unwrap();
            let text = format!(r#"{{"Name":"{name}","Endpoints":{{"docker":{endpoint}}}}}"#);
            std::fs::write(meta.join("meta.json"), text).unwrap();
            std::fs::create_dir_all(contexts.join("tls").join(&digest).join("docker")).unwrap();
        }
        let home = home.path().to_str().unwrap();
        let of = |name: &str| found(None, &[("HOME", home), ("DOCKER_CONTEXT", name)], &[]);
        let error = of("blind").unwrap_err().to_string();
        assert!(error.contains("does not verify"), "{error}");
        let sealed = of("sealed").unwrap().address;
        let Address::Tls { files, .. } = sealed else { panic!("{sealed:?}") };
        let digest = sha256_hex(b"sealed");
        assert_eq!(files.ca, contexts.join("tls").join(digest).join("docker/ca.pem"));
    }

    #[test]
    fn tls_is_spoken_where_the_environment_asks_for_it() {
        let env = [
            ("DOCKER_HOST", "tcp://box"),
            ("DOCKER_TLS_VERIFY", "1"),
            ("DOCKER_CERT_PATH", "/certs"),
        ];
        let Address::Tls { port: 2376, files, .. } = found(None, &env, &[]).unwrap().address else {
            panic!("not TLS");
        };
        assert_eq!(files.ca, Path::new("/certs/ca.pem"));
    }
}

//! `[app.bash_tools]` and `[app.chat]` as people look at them. Their keys are in no table of ours: another program's file may have them.

use sandbank_chat::{ModelSettings, Provider};
use toml::{Table, Value};

use super::error::{ConfigError, Origin};
use super::resolve::{Sources, resolve};
use super::{engines, tools};

/// One key as it is in force. No value is secret.
#[derive(Debug)]
pub struct ExplainedApp {
    pub key: &'static str,
    pub value: String,
    pub origin: Origin,
}

/// Reads every source and checks every value, like `load`.
pub fn explain_app(sources: &Sources) -> Result<Vec<ExplainedApp>, ConfigError> {
    let (engine, others) = engines::read(&resolve(sources)?)?;
    let (config, _, chat) = tools::read(sources, engine, &others)?;
    let (path, app) = tools::app(sources)?;
    let origin = |key: &'static str| match path.clone().filter(|_| has(app.as_ref(), key)) {
        Some(path) => Origin::File { path, key },
        None => Origin::Default,
    };
    let rows = config.shown().into_iter().chain(shown(chat.as_ref()));
    Ok(rows.map(|(key, value)| ExplainedApp { key, value, origin: origin(key) }).collect())
}

fn has(app: Option<&Table>, key: &str) -> bool {
    let mut parts = key.split('.').skip(1);
    let first = parts.next().and_then(|part| app?.get(part));
    parts.fold(first, |value, part| value.and_then(Value::as_table)?.get(part)).is_some()
}

fn shown(chat: Option<&ModelSettings>) -> Vec<(&'static str, String)> {
    let Some(chat) = chat else {
        return vec![("app.chat.model", "none: there is no chat".to_owned())];
    };
    let or = |value: Option<String>, absent: &str| value.unwrap_or_else(|| absent.to_owned());
    let provider = match chat.provider {
        Provider::OpenAi => "openai",
        Provider::Anthropic => "anthropic",
    };
    let key = if chat.key.is_some() { "is set" } else { "is not set" };
    vec![
        ("app.chat.provider", provider.to_owned()),
        ("app.chat.model", chat.model.clone()),
        ("app.chat.base_url", chat.base_url.to_string()),
        ("app.chat.api_key_env", format!("{}, which {key}", chat.key_env)),
        ("app.chat.tools", chat.tools.to_string()),
        ("app.chat.max_tokens", or(chat.max_tokens.map(|most| most.to_string()), "the provider's")),
        ("app.chat.system_prompt", or(chat.system_prompt.clone(), "none")),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::ConfigFlags;
    use super::*;

    fn rows(text: &str, env: &[(&str, &str)]) -> Vec<ExplainedApp> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let flags = ConfigFlags { config: Some(file.path().into()), ..ConfigFlags::default() };
        let env = env.iter().map(|(name, text)| (name.into(), text.into())).collect();
        explain_app(&Sources { flags, env, ..Sources::default() }).unwrap()
    }

    #[test]
    fn both_sections_are_shown_with_where_each_value_is_from_and_without_secrets() {
        let text = "[app.chat]\nmodel = \"m\"\napi_key_env = \"MY_KEY\"\n\
             [app.bash_tools]\nenabled = true\n[app.bash_tools.sandbox]\nports = [1, 2]\n\
             [app.bash_tools.seed]\ngit_url = \"https://me:hunter2@git.example/x\"\n";
        let rows =
            rows(text, &[("MY_KEY", "hunter2"), ("REMCOCHAT_ADMIN_TOKEN", &"hunter2".repeat(5))]);
        let of = |key: &str| rows.iter().find(|row| row.key == key).unwrap();
        let in_file =
            |key: &str| matches!(&of(key).origin, Origin::File { key: known, .. } if *known == key);
        for (key, value, is_in_file) in [
            ("app.chat.model", "m", true),
            ("app.chat.provider", "openai", false),
            ("app.chat.api_key_env", "MY_KEY, which is set", true),
            ("app.bash_tools.enabled", "true", true),
            ("app.bash_tools.timeout_ms", "30000", false),
            ("app.bash_tools.sandbox.ports", "1, 2", true),
            ("app.bash_tools.sandbox.vcpus", "2", false),
            ("app.bash_tools.seed.mode", "git", false),
            ("app.bash_tools.seed.git_url", "https://git.example/x", true),
            ("app.bash_tools.approvals.rules", "0", false),
        ] {
            assert_eq!((of(key).value.as_str(), in_file(key)), (value, is_in_file), "{key}");
        }
        assert!(!format!("{rows:?}").contains("hunter2"), "{rows:?}");
    }

    #[test]
    fn without_the_sections_their_defaults_are_shown() {
        let rows = rows("", &[]);
        let of = |key: &str| rows.iter().find(|row| row.key == key).unwrap();
        assert_eq!(of("app.bash_tools.enabled").value, "false");
        assert_eq!(of("app.chat.model").value, "none: there is no chat");
        assert!(rows.iter().all(|row| row.origin == Origin::Default));
    }
}

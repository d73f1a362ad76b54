//! `[app.chat]`: the model that `/api/chat` talks to. Its key is in the environment only.

use http::Uri;
use sandbank_chat::{ApiKey, ModelSettings, Provider};
use sandbank_tools::config::{Problems, Section};
use toml::Table;

use super::resolve::Sources;

/// None where no model is named.
pub(super) fn read(
    app: Option<&Table>,
    sources: &Sources,
) -> Result<Option<ModelSettings>, Vec<String>> {
    if !app.is_some_and(|app| app.contains_key("chat")) {
        return Ok(None);
    }
    let problems = Problems::default();
    let outer = Section::new("app", app, &problems);
    let section = outer.inner("chat");
    let settings = model(&section, &problems, sources);
    let is_misnamed = section.value("model").is_some_and(|name| !name.is_str());
    section.finish();
    if settings.is_none() && !is_misnamed {
        problems.add("app.chat.model is missing; name the model, or remove [app.chat]".to_owned());
    }
    let lines = problems.into_lines();
    if lines.is_empty() { Ok(settings) } else { Err(lines) }
}

fn model(section: &Section<'_>, problems: &Problems, sources: &Sources) -> Option<ModelSettings> {
    let provider = match section.choice("provider", &["openai", "anthropic"]) {
        Some("anthropic") => Provider::Anthropic,
        _ => Provider::OpenAi,
    };
    let (usual_url, usual_env) = match provider {
        Provider::OpenAi => ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        Provider::Anthropic => ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    };
    let url = section.text("base_url").unwrap_or_else(|| usual_url.to_owned());
    let env = section.text("api_key_env").unwrap_or_else(|| usual_env.to_owned());
    let settings = ModelSettings {
        provider,
        base_url: url.parse().unwrap_or_default(),
        model: section.text("model").unwrap_or_default(),
        key: sources.env(&env).map(|key| ApiKey::new(key.trim())),
        key_env: env.clone(),
        tools: section.switch("tools", true),
        max_tokens: section
            .value("max_tokens")
            .map(|_| section.integer("max_tokens", 8_192, 1..=1_000_000)),
        system_prompt: section.text("system_prompt"),
    };
    let (_, host) = url.split_once("://").unwrap_or_default();
    if host.split('/').next().is_some_and(|host| host.contains('@')) {
        let key = section.key("base_url");
        problems.add(format!("{key} has a user in it; take it out, and use api_key_env"));
    } else if !is_address(&settings.base_url) {
        let allowed = "an address such as https://host/v1";
        problems.wrong(&section.key("base_url"), &format!("{url:?}"), allowed, "correct it");
    } else if settings.key.is_some() && !is_private(&settings.base_url) {
        let fix = format!("use https, or unset {env} if that server needs no key");
        let allowed = "https where a key is sent to another machine";
        problems.wrong(&section.key("base_url"), &format!("{url:?}"), allowed, &fix);
    }
    if !is_variable(&env) {
        // It may be the key itself.
        let key = section.key("api_key_env");
        problems.add(format!(
            "{key} is not the name of a variable; put the key into one, and its name here"
        ));
    }
    let plain = |key: String| key.trim().bytes().all(|byte| byte.is_ascii_graphic());
    if !sources.env(&env).is_none_or(plain) {
        problems.add(format!("{env} has characters that no key has; set it again"));
    }
    (!settings.model.is_empty()).then_some(settings)
}

fn is_variable(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(allowed) && !name.starts_with(|first: char| first.is_ascii_digit())
}

fn is_address(url: &Uri) -> bool {
    let has_host = url.host().is_some_and(|host| !host.is_empty());
    has_host && matches!(url.scheme_str(), Some("http" | "https")) && url.query().is_none()
}

/// Nobody on the way can read along.
fn is_private(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let loopback = host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    url.scheme_str() == Some("https") || host == "localhost" || loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-never-shown-7f3a";

    fn read(section: &str, env: &[(&str, &str)]) -> Result<Option<ModelSettings>, Vec<String>> {
        let app: Table = section.parse().unwrap();
        let env = env.iter().map(|(name, text)| (name.into(), text.into())).collect();
        super::read(Some(&app), &Sources { env, ..Sources::default() })
    }

    #[test]
    fn a_model_needs_a_name_and_everything_else_has_a_default() {
        assert!(
            read("", &[("OPENAI_API_KEY", "not a key")]).unwrap().is_none(),
            "there is no chat"
        );
        let chat = read("[chat]\nmodel = \"m\"", &[("OPENAI_API_KEY", KEY)]).unwrap().unwrap();
        assert_eq!(
            (chat.provider, chat.base_url.to_string().as_str(), chat.tools, chat.max_tokens),
            (Provider::OpenAi, "https://api.openai.com/v1", true, None)
        );
        assert_eq!(chat.key, Some(ApiKey::new(KEY)));
        let section =
            "[chat]\nprovider = \"anthropic\"\nmodel = \"m\"\nmax_tokens = 5\ntools = false";
        let chat = read(section, &[("OPENAI_API_KEY", KEY)]).unwrap().unwrap();
        assert_eq!(
            (chat.provider, chat.key, chat.key_env.as_str(), chat.tools, chat.max_tokens),
            (Provider::Anthropic, None, "ANTHROPIC_API_KEY", false, Some(5))
        );
        for local in ["http://127.0.0.1:1/v1", "http://[::1]:1", "http://localhost:1/v1"] {
            let section = format!("[chat]\nmodel = \"m\"\nbase_url = \"{local}\"");
            assert!(read(&section, &[("OPENAI_API_KEY", KEY)]).is_ok(), "{local}");
        }
    }

    #[test]
    fn every_wrong_value_is_one_line_that_names_the_key_and_the_fix() {
        for (line, key, fix) in [
            ("", "app.chat.model is missing", "name the model, or remove [app.chat]"),
            ("model = 1", "app.chat.model is 1", "but must be a text"),
            ("provider = \"x\"", "app.chat.provider is \"x\"", "one of openai, anthropic"),
            ("base_url = \"nowhere\"", "app.chat.base_url is \"nowhere\"", "https://host/v1"),
            ("base_url = \"ftp://h/\"", "app.chat.base_url is \"ftp://h/\"", "https://host/v1"),
            ("base_url = \"https://h/?k=1\"", "app.chat.base_url is", "https://host/v1"),
            (
                "base_url = \"http://h/v1\"",
                "app.chat.base_url is \"http://h/v1\"",
                "use https, or unset",
            ),
            (
                "base_url = \"https://u:sk-never-shown-7f3a@h/\"",
                "app.chat.base_url has a user",
                "api_key_env",
            ),
            (
                "api_key_env = \"sk-never-shown-7f3a\"",
                "app.chat.api_key_env is not the name",
                "its name here",
            ),
            ("api_key_env = \"BAD\"", "BAD has characters that no key has", "set it again"),
            ("tools = \"yes\"", "app.chat.tools is \"yes\"", "true or false"),
            ("max_tokens = 0", "app.chat.max_tokens is 0", "a whole number from 1 to 1000000"),
            ("max_tokens = 1000001", "app.chat.max_tokens is 1000001", "leave it out"),
            ("system_prompt = []", "app.chat.system_prompt is []", "a text"),
            ("modle = \"m\"", "app.chat.modle is not a key of [app.chat]", "did you mean model?"),
        ] {
            let model =
                if line.starts_with("model") || line.is_empty() { "" } else { "model = \"m\"" };
            let env = [("OPENAI_API_KEY", KEY), ("BAD", "two words")];
            let said = read(&format!("[chat]\n{model}\n{line}"), &env).unwrap_err();
            let named: Vec<_> = said.iter().filter(|said| said.starts_with(key)).collect();
            assert!(named.len() == 1 && named[0].contains(fix), "{line}: {said:?}");
            assert!(!said.concat().contains(KEY), "{line}: {said:?}");
            assert_eq!(said.len(), 1, "{line}: {said:?}");
        }
        let many = "[chat]\nprovider = 1\ntools = 1\nmax_tokens = -1\nbase_url = \"x\"";
        assert_eq!(read(many, &[]).unwrap_err().len(), 5, "all at once, with the missing model");
        assert!(read("chat = 1", &[]).unwrap_err()[0].contains("write [app.chat] above its keys"));
    }
}

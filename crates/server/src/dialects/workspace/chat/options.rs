//! What a client may choose of the agent's program: checked parameters of a template that is the
//! server's own. Nothing of it is ever command text.

use sandbank_protocol::CommandStatus;
use serde_json::{Value, json};
use uuid::Uuid;

use super::chosen::Chosen;
use crate::limits::{MAX_CHAT_FILES, MAX_CHAT_WORD_BYTES};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Of the program's own permission modes; none for a mode that is not known.
    pub(super) permission_mode: Option<&'static str>,
    pub(super) model: Option<String>,
    allowed_tools: Option<String>,
    disallowed_tools: Option<String>,
    pub(super) max_thinking_tokens: Option<u64>,
    max_turns: Option<u64>,
    max_budget_usd: Option<String>,
    /// Each as `id:path`.
    files: Vec<String>,
}

/// How the program is to know the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversation {
    New,
    Resumed,
}

impl Options {
    /// What makes no sense is left out, as the original does.
    pub(super) fn read(query: &[(String, String)]) -> Self {
        let get = |names: &[&str]| {
            let found = query.iter().rev().find(|(name, _)| names.contains(&name.as_str()));
            found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        };
        let number = |name| get(&[name]).and_then(|value| value.parse().ok());
        let word = |names: &[&str]| get(names).filter(|value| is_plain(value)).map(str::to_owned);
        let one = query.iter().filter(|(name, _)| name == "file").map(|(_, value)| value.as_str());
        let many = get(&["files"]).into_iter().flat_map(|files| files.split(','));
        let files = one.chain(many).map(str::trim).filter(|file| is_plain(file));
        Self {
            permission_mode: match get(&["mode"]).unwrap_or("ask") {
                "ask" => Some("default"),
                "act" => Some("acceptEdits"),
                "plan" => Some("plan"),
                _ => None,
            },
            model: word(&["model"]),
            allowed_tools: word(&["allowed_tools", "allowedTools"]),
            disallowed_tools: word(&["disallowed_tools", "disallowedTools"]),
            max_thinking_tokens: number("max_thinking_tokens"),
            max_turns: number("max_turns"),
            max_budget_usd: get(&["max_budget_usd"])
                .filter(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
                .map(str::to_owned),
            files: files.take(MAX_CHAT_FILES).map(str::to_owned).collect(),
        }
    }

    /// Program and arguments.
    pub(super) fn argv(
        &self,
        program: &[String],
        id: Uuid,
        conversation: Conversation,
    ) -> Vec<String> {
        let mut argv = program.to_vec();
        let mut flag = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                argv.extend([name.to_owned(), value.to_owned()]);
            }
        };
        flag("--output-format", Some("stream-json"));
        flag("--input-format", Some("stream-json"));
        flag("--permission-mode", self.permission_mode);
        flag("--model", self.model.as_deref());
        flag("--permission-prompt-tool", Some("stdio"));
        flag("--allowedTools", self.allowed_tools.as_deref());
        flag("--disallowedTools", self.disallowed_tools.as_deref());
        flag("--max-thinking-tokens", self.max_thinking_tokens.map(|n| n.to_string()).as_deref());
        flag("--max-turns", self.max_turns.map(|n| n.to_string()).as_deref());
        flag("--max-budget-usd", self.max_budget_usd.as_deref());
        for file in &self.files {
            flag("--file", Some(file));
        }
        flag("--setting-sources", Some("user,project,local"));
        let id = id.to_string();
        match conversation {
            Conversation::New => flag("--session-id", Some(&id)),
            Conversation::Resumed => flag("--resume", Some(&id)),
        }
        argv.push("--verbose".to_owned());
        argv
    }

    /// Whether a program runs with these, however it came to its conversation.
    pub(super) fn are_of(&self, program: &[String], id: Uuid, status: &CommandStatus) -> bool {
        [Conversation::New, Conversation::Resumed]
            .into_iter()
            .any(|conversation| self.argv(program, id, conversation) == status.argv)
    }

    /// With what was said to the program while it ran.
    pub(super) fn with(&self, chosen: &Chosen) -> Self {
        let mut whole = self.clone();
        whole.permission_mode = chosen.permission_mode.or(whole.permission_mode);
        if let Some(model) = &chosen.model {
            whole.model.clone_from(model);
        }
        if let Some(tokens) = chosen.max_thinking_tokens {
            whole.max_thinking_tokens = tokens;
        }
        whole
    }

    /// As a client is told when it is connected.
    pub(super) fn settings(&self) -> Value {
        json!({
            "model": self.model.as_deref().unwrap_or("sonnet"),
            "max_thinking_tokens": self.max_thinking_tokens,
        })
    }
}

/// A value, never an option or several lines.
pub(super) fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_CHAT_WORD_BYTES
        && !text.starts_with('-')
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &[(&str, &str)]) -> Options {
        let query: Vec<_> =
            query.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Options::read(&query)
    }

    fn argv(options: &Options) -> String {
        options.argv(&["claude".to_owned()], Uuid::nil(), Conversation::New).join(" ")
    }

    #[test]
    fn every_choice_becomes_an_argument_of_the_template() {
        let options = read(&[
            ("mode", "act"),
            ("model", "opus"),
            ("allowedTools", "Bash,Read"),
            ("disallowed_tools", "Write"),
            ("max_turns", "3"),
            ("max_thinking_tokens", "1000"),
            ("max_budget_usd", "1.5"),
            ("file", "a:x.txt"),
            ("files", "b:y.txt,c:z.txt"),
        ]);
        assert_eq!(
            argv(&options),
            "claude --output-format stream-json --input-format stream-json --permission-mode \
             acceptEdits --model opus --permission-prompt-tool stdio --allowedTools Bash,Read \
             --disallowedTools Write --max-thinking-tokens 1000 --max-turns 3 --max-budget-usd 1.5 \
             --file a:x.txt --file b:y.txt --file c:z.txt --setting-sources user,project,local \
             --session-id 00000000-0000-0000-0000-000000000000 --verbose"
        );
        assert_eq!(options.settings(), json!({ "model": "opus", "max_thinking_tokens": 1000 }));
    }

    #[test]
    fn what_makes_no_sense_is_left_out_and_nothing_becomes_an_option() {
        let plain = read(&[]);
        assert!(argv(&plain).contains("--permission-mode default"));
        assert_eq!(plain.settings()["model"], "sonnet");
        for odd in [
            ("max_turns", "many"),
            ("max_turns", "-1"),
            ("max_budget_usd", "NaN"),
            ("model", "--dangerously-skip-permissions"),
            ("model", "a\nb"),
            ("file", "-x"),
            ("allowed_tools", ""),
        ] {
            assert_eq!(read(&[odd]), plain, "{odd:?}");
        }
        assert!(!argv(&read(&[("mode", "god")])).contains("--permission-mode"));
    }
}

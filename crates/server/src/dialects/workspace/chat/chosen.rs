//! What was said to a program while it ran, and is said to the next one that goes on with the
//! conversation: its model, its permission mode, how long it may think.
//!
//! The store has it, so it outlives the daemon. What comes back from there is checked as what a
//! client says.

use sandbank_store::{ChatSettingsRow, Store, StoreError};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::super::sessions::Name;
use super::options::{Options, is_plain};
use crate::limits::MAX_REMEMBERED_CHATS;

/// Each outer option says whether it was said at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) permission_mode: Option<&'static str>,
    /// None inside: the program's own.
    pub(super) model: Option<Option<String>>,
    pub(super) max_thinking_tokens: Option<Option<u64>>,
}

const PERMISSION_MODE: &str = "permission_mode";
const MODEL: &str = "model";
const MAX_THINKING_TOKENS: &str = "max_thinking_tokens";

/// What a control message sets, and to what; both spellings of it are understood.
fn setting(message: &Value) -> Option<(&'static str, &Value)> {
    let request = message.get("request").filter(|request| request.is_object());
    let said = request.unwrap_or(message);
    let (name, value) = match said.get("subtype")?.as_str()? {
        "set_permission_mode" => (PERMISSION_MODE, said.get("mode")),
        "set_model" => (MODEL, said.get("model")),
        "set_max_thinking_tokens" => (MAX_THINKING_TOKENS, said.get("max_thinking_tokens")),
        _ => return None,
    };
    Some((name, value.unwrap_or(&Value::Null)))
}

impl Chosen {
    /// Nothing of it is command text, and a mode in which nothing is asked for is not given to
    /// another program by itself.
    fn set(&mut self, name: &str, value: &Value) {
        match (name, value) {
            (PERMISSION_MODE, value) => {
                self.permission_mode = match value.as_str() {
                    Some("default" | "ask") => Some("default"),
                    Some("acceptEdits" | "act") => Some("acceptEdits"),
                    Some("plan") => Some("plan"),
                    _ => None,
                };
            }
            (MODEL, Value::Null) => self.model = Some(None),
            (MODEL, Value::String(name)) if name == "default" => self.model = Some(None),
            (MODEL, Value::String(name)) if is_plain(name) => {
                self.model = Some(Some(name.clone()));
            }
            (MAX_THINKING_TOKENS, Value::Null) => self.max_thinking_tokens = Some(None),
            (MAX_THINKING_TOKENS, Value::Number(number)) => {
                if let Some(number) = number.as_u64() {
                    self.max_thinking_tokens = Some(Some(number));
                }
            }
            _ => {}
        }
    }

    fn read(kept: &Value) -> Self {
        let mut chosen = Self::default();
        for (name, value) in kept.as_object().into_iter().flatten() {
            chosen.set(name, value);
        }
        chosen
    }

    /// Only what was said.
    fn kept(&self) -> Value {
        let mut kept = Map::new();
        let mut keep = |name: &str, value: Option<Value>| {
            kept.extend(value.map(|value| (name.to_owned(), value)));
        };
        keep(PERMISSION_MODE, self.permission_mode.map(|mode| json!(mode)));
        keep(MODEL, self.model.as_ref().map(|model| json!(model)));
        keep(MAX_THINKING_TOKENS, self.max_thinking_tokens.map(|tokens| json!(tokens)));
        Value::Object(kept)
    }
}

/// What a client came with, of what can also be set.
fn asked(options: &Options) -> Value {
    json!({
        PERMISSION_MODE: options.permission_mode,
        MODEL: options.model,
        MAX_THINKING_TOKENS: options.max_thinking_tokens,
    })
}

/// Of all conversations, whether or not a program runs.
pub(in crate::dialects::workspace) struct ChosenByName {
    store: Store,
    /// Held by whoever changes what is there.
    changing: Mutex<()>,
}

impl ChosenByName {
    pub(in crate::dialects::workspace) fn new(store: Store) -> Self {
        Self { store, changing: Mutex::default() }
    }

    /// A client came with these. What it asks for now and did not ask for before counts more than
    /// what was said meanwhile.
    pub(super) async fn came(&self, name: &Name, options: &Options) -> Result<Options, StoreError> {
        let _changing = self.changing.lock().await;
        let chat = name.to_string();
        let Some(row) = self.store.chat_settings().find(&chat).await? else {
            return Ok(options.clone());
        };
        let (mut chosen, asked) = (Chosen::read(&row.chosen), asked(options));
        if row.asked == asked {
            return Ok(options.with(&chosen));
        }
        if row.asked[PERMISSION_MODE] != asked[PERMISSION_MODE] {
            chosen.permission_mode = None;
        }
        if row.asked[MODEL] != asked[MODEL] {
            chosen.model = None;
        }
        if row.asked[MAX_THINKING_TOKENS] != asked[MAX_THINKING_TOKENS] {
            chosen.max_thinking_tokens = None;
        }
        self.keep(chat, asked, &chosen).await?;
        Ok(options.with(&chosen))
    }

    /// One of them said this to the program.
    pub(super) async fn said(
        &self,
        name: &Name,
        options: &Options,
        message: &Value,
    ) -> Result<(), StoreError> {
        let Some((setting, value)) = setting(message) else { return Ok(()) };
        let _changing = self.changing.lock().await;
        let chat = name.to_string();
        let mut chosen = self.chosen(&chat).await?;
        chosen.set(setting, value);
        self.keep(chat, asked(options), &chosen).await
    }

    /// With what was said since.
    pub(super) async fn over(&self, name: &Name, options: &Options) -> Result<Options, StoreError> {
        Ok(options.with(&self.chosen(&name.to_string()).await?))
    }

    async fn chosen(&self, chat: &str) -> Result<Chosen, StoreError> {
        let row = self.store.chat_settings().find(chat).await?;
        Ok(row.map(|row| Chosen::read(&row.chosen)).unwrap_or_default())
    }

    async fn keep(&self, chat: String, asked: Value, chosen: &Chosen) -> Result<(), StoreError> {
        let rows = self.store.chat_settings();
        if *chosen == Chosen::default() {
            return rows.forget(&chat).await;
        }
        let row = ChatSettingsRow { chat, asked, chosen: chosen.kept() };
        rows.set(&row, MAX_REMEMBERED_CHATS).await
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::super::sessions::Kind;
    use super::*;

    fn name(number: u128) -> Name {
        Name::new(Kind::Chat, Uuid::from_u128(number), "ann")
    }

    fn asked(pairs: &[(&str, &str)]) -> Options {
        let pairs: Vec<_> =
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Options::read(&pairs)
    }

    async fn all() -> (tempfile::TempDir, ChosenByName) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("db")).await.unwrap();
        (directory, ChosenByName::new(store))
    }

    #[tokio::test]
    async fn what_was_set_counts_until_it_is_asked_for_anew() {
        let ((_directory, all), first) = (all().await, asked(&[("model", "sonnet")]));
        for message in [
            json!({ "type": "control", "subtype": "set_model", "model": "opus" }),
            json!({ "type": "control", "request": { "subtype": "set_permission_mode", "mode": "plan" } }),
            json!({ "type": "control", "subtype": "set_max_thinking_tokens", "max_thinking_tokens": 7 }),
        ] {
            all.said(&name(1), &first, &message).await.unwrap();
        }
        let expected = asked(&[("model", "opus"), ("mode", "plan"), ("max_thinking_tokens", "7")]);
        assert_eq!(all.over(&name(1), &first).await.unwrap(), expected);
        assert_eq!(all.came(&name(1), &first).await.unwrap(), expected, "the same again");
        assert_eq!(all.came(&name(2), &first).await.unwrap(), first, "another conversation");
        let other = asked(&[("model", "haiku")]);
        let expected = asked(&[("model", "haiku"), ("mode", "plan"), ("max_thinking_tokens", "7")]);
        assert_eq!(all.came(&name(1), &other).await.unwrap(), expected);
        let own = json!({ "type": "control", "subtype": "set_model", "model": null });
        all.said(&name(1), &other, &own).await.unwrap();
        let expected = asked(&[("mode", "plan"), ("max_thinking_tokens", "7")]);
        assert_eq!(all.over(&name(1), &other).await.unwrap(), expected);
    }

    #[tokio::test]
    async fn nothing_becomes_an_option_and_no_mode_without_questions_is_kept() {
        let ((_directory, all), plain) = (all().await, asked(&[]));
        for message in [
            json!({ "subtype": "set_model", "model": "--dangerously-skip-permissions" }),
            json!({ "subtype": "set_model", "model": 7 }),
            json!({ "subtype": "set_permission_mode", "mode": "bypassPermissions" }),
            json!({ "subtype": "set_max_thinking_tokens", "max_thinking_tokens": "many" }),
            json!({ "subtype": "interrupt" }),
            json!([]),
        ] {
            all.said(&name(1), &plain, &message).await.unwrap();
            assert_eq!(all.over(&name(1), &plain).await.unwrap(), plain, "{message}");
        }
        // Nor where somebody wrote it into the store.
        let row = ChatSettingsRow {
            chat: name(1).to_string(),
            asked: super::asked(&plain),
            chosen: json!({
                "model": "--dangerously-skip-permissions", "permission_mode": "bypassPermissions",
                "max_thinking_tokens": -1, "program": "sh",
            }),
        };
        all.store.chat_settings().set(&row, 1).await.unwrap();
        assert_eq!(all.over(&name(1), &plain).await.unwrap(), plain);
    }

    #[tokio::test]
    async fn the_chat_that_was_set_longest_ago_is_forgotten() {
        let ((_directory, all), plain) = (all().await, asked(&[]));
        let model = json!({ "subtype": "set_model", "model": "opus" });
        for number in 0..=MAX_REMEMBERED_CHATS as u128 {
            all.said(&name(number), &plain, &model).await.unwrap();
        }
        assert_eq!(all.over(&name(0), &plain).await.unwrap(), plain);
        assert_ne!(all.over(&name(1), &plain).await.unwrap(), plain);
    }
}

//! Chats with a model's server that plays a script on loopback, and tools that really run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conversations;
mod hostile;
mod orders;
mod scripted;
mod shell;

use std::sync::Arc;

use sandbank_chat::{ApiKey, ModelSettings, Provider};
use sandbank_chat::{ChatRequest, Conversation, Explicit, Job, Model, Part, explicit, run};
use sandbank_tools::Toolbox;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-never-shown-7f3a";

fn settings(url: &str, provider: Provider) -> ModelSettings {
    ModelSettings {
        provider,
        base_url: url.parse().unwrap(),
        model: "scripted".to_owned(),
        key: Some(ApiKey::new(KEY)),
        key_env: "KEY".to_owned(),
        tools: true,
        max_tokens: None,
        system_prompt: None,
    }
}

fn conversation(message: &str) -> Conversation {
    let parts = json!([{ "type": "text", "text": message }]);
    let body = json!({ "id": "c", "messages": [{ "id": "1", "role": "user", "parts": parts }] });
    ChatRequest::read(body.to_string().as_bytes()).unwrap().conversation("be good".to_owned())
}

/// All parts that one message leads to, as clients get them.
async fn chat(model: &Model, message: &str, toolbox: Option<Arc<dyn Toolbox>>) -> Vec<Value> {
    let job = job(message, toolbox, explicit(message));
    let (out, mut parts) = mpsc::channel::<Part>(4);
    let work = run(model, job, out, CancellationToken::new());
    let all = async {
        let mut all = Vec::new();
        while let Some(part) = parts.recv().await {
            all.push(serde_json::to_value(part).unwrap());
        }
        all
    };
    let ((), all) = tokio::join!(work, all);
    assert!(!json!(all).to_string().contains(KEY), "the key is told: {all:?}");
    all
}

fn job(message: &str, toolbox: Option<Arc<dyn Toolbox>>, explicit: Option<Explicit>) -> Job {
    Job { conversation: conversation(message), toolbox, explicit }
}

fn kinds(parts: &[Value]) -> Vec<&str> {
    parts.iter().map(|part| part["type"].as_str().unwrap()).collect()
}

fn error_text(parts: &[Value]) -> &str {
    let last = parts.last().unwrap();
    assert_eq!(last["type"], "error", "{parts:?}");
    last["errorText"].as_str().unwrap()
}

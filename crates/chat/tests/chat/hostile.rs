//! Servers that do not keep to their protocol, or mean harm: the chat ends with one clean error.

use sandbank_chat::{Model, Provider};
use serde_json::{Value, json};

use crate::scripted::{Canned, Scripted, calls, says};
use crate::shell::Shell;
use crate::{KEY, chat, error_text, kinds, settings};

async fn told(provider: Provider, answer: Canned) -> Vec<Value> {
    let server = Scripted::start(vec![answer]).await;
    let model = Model::new(settings(&server.url, provider)).unwrap();
    chat(&model, "hi", Some(Shell::new())).await
}

#[tokio::test]
async fn what_makes_no_sense_is_one_error_at_the_end() {
    let stream = |text: &str| Canned::Stream(text.to_owned());
    let call = |name: &str| calls(&[("x", name, json!({}))]);
    for (answer, wanted) in [
        (Canned::Endless("data: x"), "too long: one event"),
        (Canned::Endless(": comment\n\n"), "too long: all of it"),
        (stream("data: {\"choices\":\n\n"), "not JSON"),
        (stream("data: {\"choices\": 7}\n\n"), "not a completion"),
        (stream("data: \u{0}\n\n"), "not JSON"),
        (stream(""), "broke off"),
        (stream("data: [DONE]\n\n"), "broke off"),
        (stream("data: {\"error\":{\"message\":\"no\u{7}\\u0007 more\"}}\n\n"), "no"),
        (call("rm\u{1b}[2J"), "whose name is none"),
        (call(""), "whose name is none"),
        (call(&"x".repeat(65)), "whose name is none"),
        (
            stream(
                "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":4,\"function\":{\"arguments\":\"x\"}}]}}]}\n\n",
            ),
            "whose name is none",
        ),
        (Canned::Status(200, "{}".to_owned()), "does not stream"),
        (Canned::Status(302, "{}".to_owned()), "refused the request (302)"),
        (Canned::Status(401, json!({ "error": { "message": KEY } }).to_string()), "the key"),
        (
            Canned::Status(
                400,
                json!({ "error": { "message": format!("bad {KEY}\n\u{1b}[2J") } }).to_string(),
            ),
            "bad [redacted]",
        ),
    ] {
        let parts = told(Provider::OpenAi, answer).await;
        let error = error_text(&parts);
        assert!(error.contains(wanted), "{wanted}: {error}");
        assert!(!error.chars().any(char::is_control) && error.len() < 500, "{error:?}");
        assert_eq!(kinds(&parts).iter().filter(|kind| **kind == "error").count(), 1);
    }
    for (answer, wanted) in [
        (stream("data: []\n\n"), "not an event"),
        (stream("data: {\"type\":\"message_stop\"}\n\n"), "broke off"),
        (
            stream(
                "data: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"x\"}}\n\n",
            ),
            "input of no call",
        ),
        (
            stream(
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
            ),
            "Overloaded",
        ),
    ] {
        let parts = told(Provider::Anthropic, answer).await;
        assert!(error_text(&parts).contains(wanted), "{wanted}: {parts:?}");
    }
}

/// Whole, or as much of it as a clip would leave: `chat` looks for all of it, this for the beginning.
#[tokio::test]
async fn a_server_that_repeats_the_key_does_not_have_it_told() {
    let padding = "x".repeat(300 - KEY.len() / 2);
    for said in [format!("bad key {KEY}"), format!("{padding}{KEY}")] {
        let error = json!({ "type": "error", "error": { "message": said } });
        let stream = || Canned::Stream(format!("data: {error}\n\n"));
        for (provider, answer) in [
            (Provider::OpenAi, stream()),
            (Provider::Anthropic, stream()),
            (Provider::OpenAi, Canned::Status(400, error.to_string())),
            (Provider::Anthropic, Canned::Status(400, error.to_string())),
        ] {
            let parts = told(provider, answer).await;
            let error = error_text(&parts);
            assert!(!error.contains(&KEY[..6]), "{error}");
            assert!(error.contains("bad key [redacted]") || error.contains("xxx"), "{error}");
        }
    }
}

#[tokio::test]
async fn input_without_end_is_given_up() {
    let begin = json!({ "choices": [{ "delta": { "tool_calls": [
        { "index": 0, "id": "x", "function": { "name": "bash", "arguments": "" } } ] } }] });
    let more = json!({ "choices": [{ "delta": { "tool_calls": [
        { "index": 0, "function": { "arguments": "a".repeat(900_000) } } ] } }] });
    let text = format!("data: {begin}\n\n{}", format!("data: {more}\n\n").repeat(6));
    let parts = told(Provider::OpenAi, Canned::Stream(text)).await;
    assert!(error_text(&parts).contains("too long: the input of a call"));
}

#[tokio::test]
async fn tools_that_there_are_not_and_input_that_is_none_are_told_to_the_model() {
    let unknown =
        calls(&[("x", "launchRockets", json!({ "at": "dawn" })), ("y", "bash", json!([]))]);
    let server = Scripted::start(vec![unknown, says("sorry")]).await;
    let model = Model::new(settings(&server.url, Provider::OpenAi)).unwrap();
    let parts = chat(&model, "hi", Some(Shell::new())).await;
    let errors: Vec<&Value> =
        parts.iter().filter(|part| part["type"] == "tool-input-error").collect();
    assert_eq!(errors[0]["errorText"], "there is no tool called \"launchRockets\"");
    assert_eq!(errors[0]["dynamic"], true);
    assert_eq!(errors[1]["errorText"], "the input is not a JSON object");
    let second = &server.bodies()[1]["messages"];
    assert!(second[3]["content"].as_str().unwrap().contains("no tool"), "{second}");
    assert_eq!(kinds(&parts).last(), Some(&"finish"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_to_be_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let model = Model::new(settings(&url, Provider::OpenAi)).unwrap();
    let parts = chat(&model, "hi", None).await;
    assert!(error_text(&parts).contains("cannot be reached"), "{parts:?}");
}

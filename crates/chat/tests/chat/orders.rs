//! Plain orders are carried out whatever the model says.

use sandbank_chat::{Model, Provider};
use serde_json::json;

use crate::scripted::{Canned, Scripted, says};
use crate::shell::Shell;
use crate::{chat, error_text, kinds, settings};

async fn model(answers: Vec<Canned>) -> (Model, Scripted) {
    let server = Scripted::start(answers).await;
    let model = Model::new(settings(&server.url, Provider::OpenAi)).unwrap();
    (model, server)
}

#[tokio::test]
async fn a_slash_command_runs_without_the_model() {
    let (model, server) = model(vec![says("never")]).await;
    let parts = chat(&model, "/bash echo hi", Some(Shell::new())).await;
    assert_eq!(
        kinds(&parts),
        [
            "start",
            "start-step",
            "tool-input-start",
            "tool-input-available",
            "tool-output-available",
            "finish-step",
            "finish"
        ]
    );
    assert_eq!(parts[4]["output"], json!({ "stdout": "hi\n", "stderr": "", "exitCode": 0 }));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn an_order_in_words_runs_first_and_the_model_is_told() {
    let (model, server) = model(vec![says("It says OK.")]).await;
    let parts = chat(&model, "Run: `echo REMCOCHAT_BASH_E2E_OK`", Some(Shell::new())).await;
    let output = &parts[4];
    assert_eq!(output["output"]["stdout"], "REMCOCHAT_BASH_E2E_OK\n");
    assert_eq!(kinds(&parts).last(), Some(&"finish"));
    let messages = &server.bodies()[0]["messages"];
    assert_eq!(messages[2]["tool_calls"][0]["function"]["name"], "bash");
    assert!(messages[3]["content"].as_str().unwrap().contains("REMCOCHAT_BASH_E2E_OK"));
}

#[tokio::test]
async fn it_runs_also_where_the_model_is_away() {
    let (model, _server) = model(vec![Canned::Status(400, "{}".to_owned())]).await;
    let parts = chat(&model, "Run `echo hi`", Some(Shell::new())).await;
    assert_eq!(parts[4]["output"]["stdout"], "hi\n");
    assert!(error_text(&parts).contains("refused the request (400)"));
}

#[tokio::test]
async fn without_tools_an_order_is_a_message_like_any_other() {
    let (model, server) = model(vec![says("I cannot.")]).await;
    let parts = chat(&model, "/bash echo hi", None).await;
    assert!(parts.iter().all(|part| part.get("toolCallId").is_none()), "{parts:?}");
    assert_eq!(server.bodies()[0]["messages"][1]["content"], "/bash echo hi");
}

//! What well-behaved models say, and what they are told.

use std::time::Duration;

use sandbank_chat::{Job, Model, Part, Provider, STEPS_WITH_BASH, STEPS_WITHOUT_TOOLS};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::scripted::{Canned, Scripted, calls, completion, message, says};
use crate::shell::Shell;
use crate::{chat, conversation, kinds, settings};

fn open_ai(server: &Scripted) -> Model {
    Model::new(settings(&format!("{}/v1", server.url), Provider::OpenAi)).unwrap()
}

#[tokio::test]
async fn text_and_thinking_of_a_completion_are_told_in_their_own_blocks() {
    let deltas = [
        json!({ "role": "assistant", "reasoning_content": "hm" }),
        json!({ "content": "Hel" }),
        json!({ "content": "lo \u{1f600}" }),
    ];
    let server = Scripted::start(vec![completion(&deltas, "length")]).await;
    let parts = chat(&open_ai(&server), "hi", None).await;
    assert_eq!(
        parts,
        [
            json!({ "type": "start" }),
            json!({ "type": "start-step" }),
            json!({ "type": "reasoning-start", "id": "1" }),
            json!({ "type": "reasoning-delta", "id": "1", "delta": "hm" }),
            json!({ "type": "reasoning-end", "id": "1" }),
            json!({ "type": "text-start", "id": "2" }),
            json!({ "type": "text-delta", "id": "2", "delta": "Hel" }),
            json!({ "type": "text-delta", "id": "2", "delta": "lo \u{1f600}" }),
            json!({ "type": "text-end", "id": "2" }),
            json!({ "type": "finish-step" }),
            json!({ "type": "finish", "finishReason": "length" }),
        ]
    );
    let (head, body) = server.requests().remove(0);
    assert!(head.starts_with("post /v1/chat/completions "), "{head}");
    assert!(head.contains("authorization: bearer sk-never-shown-7f3a"), "{head}");
    assert_eq!(body["stream"], true);
    assert_eq!(body["messages"][0], json!({ "role": "system", "content": "be good" }));
    assert!(body.get("tools").is_none(), "no tools were offered: {body}");
}

#[tokio::test]
async fn thinking_is_told_once_under_whichever_names_it_comes() {
    for thinking in [
        json!({ "reasoning_content": "hm" }),
        json!({ "reasoning": "hm" }),
        json!({ "reasoning_content": "hm", "reasoning": "hm" }),
        json!({ "reasoning_content": "", "reasoning": "hm" }),
        json!({ "reasoning_content": null, "reasoning": "hm" }),
    ] {
        let server =
            Scripted::start(vec![completion(std::slice::from_ref(&thinking), "stop")]).await;
        let parts = chat(&open_ai(&server), "hi", None).await;
        let told: Vec<_> = parts.iter().filter(|part| part["type"] == "reasoning-delta").collect();
        assert_eq!((told.len(), &told[0]["delta"]), (1, &json!("hm")), "{thinking}");
        assert_eq!(kinds(&parts).last(), Some(&"finish"));
    }
}

#[tokio::test]
async fn parallel_calls_are_done_in_order_and_their_results_told_to_the_model() {
    let both = calls(&[
        ("a", "bash", json!({ "command": "echo one > f; cat f" })),
        ("b", "bash", json!({ "command": "cat f; exit 3" })),
    ]);
    let server = Scripted::start(vec![both, says("done")]).await;
    let parts = chat(&open_ai(&server), "do it", Some(Shell::new())).await;
    let of = |id: &str, kind: &str| -> Vec<Value> {
        let its = |part: &&Value| part["toolCallId"] == id && part["type"] == kind;
        parts.iter().filter(its).cloned().collect()
    };
    assert_eq!(of("b", "tool-input-start")[0]["toolName"], "bash");
    let typed: String = of("b", "tool-input-delta")
        .iter()
        .map(|part| part["inputTextDelta"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(typed, r#"{"command":"cat f; exit 3"}"#);
    assert_eq!(of("b", "tool-input-available")[0]["input"]["command"], "cat f; exit 3");
    let told = of("b", "tool-output-available");
    assert_eq!(told[0]["preliminary"], true);
    let last = told.last().unwrap();
    assert_eq!(last["output"], json!({ "stdout": "one\n", "stderr": "", "exitCode": 3 }));
    assert!(last.get("preliminary").is_none());
    assert_eq!(parts.last().unwrap(), &json!({ "type": "finish", "finishReason": "stop" }));

    let second = &server.bodies()[1]["messages"];
    assert_eq!(second[2]["tool_calls"][1]["function"]["name"], "bash");
    assert_eq!((&second[3]["role"], &second[3]["tool_call_id"]), (&json!("tool"), &json!("a")));
    assert!(second[4]["content"].as_str().unwrap().contains(r#""exitCode":3"#), "{second}");
    assert_eq!(server.bodies()[0]["tools"][0]["function"]["name"], "bash");
}

#[tokio::test]
async fn whole_calls_are_told_apart_however_they_are_numbered() {
    let call = |index: Value, id: &str, command: &str| {
        let input = json!({ "command": command }).to_string();
        let function = json!({ "name": "bash", "arguments": input });
        json!({ "index": index, "id": id, "type": "function", "function": function })
    };
    let first = |index: Value| call(index, "a", "echo one");
    let second = |index: Value| call(index, "b", "echo two");
    let null = Value::Null;
    for deltas in [
        vec![
            json!({ "tool_calls": [first(json!(0))] }),
            json!({ "tool_calls": [second(json!(0))] }),
        ],
        vec![json!({ "tool_calls": [first(json!(0)), second(json!(0))] })],
        vec![json!({ "tool_calls": [first(null.clone()), second(null)] })],
    ] {
        let server = Scripted::start(vec![completion(&deltas, "tool_calls"), says("done")]).await;
        let parts = chat(&open_ai(&server), "do it", Some(Shell::new())).await;
        let commands: Vec<_> = parts
            .iter()
            .filter(|part| part["type"] == "tool-input-available")
            .map(|part| (&part["toolCallId"], &part["input"]["command"]))
            .collect();
        let wanted = [(&json!("a"), &json!("echo one")), (&json!("b"), &json!("echo two"))];
        assert_eq!(commands, wanted, "{deltas:?}");
    }
}

#[tokio::test]
async fn a_call_whose_pieces_have_ids_of_their_own_is_one() {
    let piece = |id: &str, name: Option<&str>, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "tool_calls": [{ "index": 0, "id": id, "function": function }] })
    };
    let deltas = [
        piece("a", Some("bash"), "{\"command\":"),
        piece("b", None, "\"echo"),
        piece("a", Some("bash"), " one\"}"),
    ];
    let server = Scripted::start(vec![completion(&deltas, "tool_calls"), says("done")]).await;
    let parts = chat(&open_ai(&server), "do it", Some(Shell::new())).await;
    let inputs: Vec<_> =
        parts.iter().filter(|part| part["type"] == "tool-input-available").collect();
    assert_eq!((inputs.len(), &inputs[0]["input"]["command"]), (1, &json!("echo one")));
}

#[tokio::test]
async fn an_empty_reason_does_not_end_an_answer() {
    let piece = |content: &str, reason: &str| {
        let choice = json!({ "delta": { "content": content }, "finish_reason": reason });
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    };
    let text = piece("Hel", "") + &piece("lo", "") + &piece("", "stop") + "data: [DONE]\n\n";
    let server = Scripted::start(vec![Canned::Stream(text)]).await;
    let parts = chat(&open_ai(&server), "hi", None).await;
    let deltas = parts.iter().filter_map(|part| part["delta"].as_str());
    assert_eq!(deltas.collect::<String>(), "Hello");
    assert_eq!(parts.last().unwrap(), &json!({ "type": "finish", "finishReason": "stop" }));
}

#[tokio::test]
async fn calls_with_the_same_id_are_told_apart() {
    let same = || calls(&[("call_0", "bash", json!({ "command": "true" }))]);
    let server = Scripted::start(vec![same(), same(), says("done")]).await;
    let parts = chat(&open_ai(&server), "do it", Some(Shell::new())).await;
    let starts = parts.iter().filter(|part| part["type"] == "tool-input-start");
    let ids: Vec<&str> = starts.map(|part| part["toolCallId"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), ids[0]), (2, "call_0"));
    assert_ne!(ids[0], ids[1]);
    let last = &server.bodies()[2]["messages"];
    assert_eq!(last[4]["tool_calls"][0]["id"], last[5]["tool_call_id"], "{last}");
}

#[tokio::test]
async fn a_message_of_anthropics_thinks_speaks_and_calls() {
    let block = |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta = |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let over = |reason: &str| {
        [
            json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": {} }),
            json!({ "type": "message_stop" }),
        ]
    };
    let mut first = vec![
        json!({ "type": "message_start", "message": { "id": "m" } }),
        json!({ "type": "ping" }),
        block(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "hm" })),
        delta(0, json!({ "type": "signature_delta", "signature": "sig" })),
        stop(0),
        // One whose words the provider keeps to itself.
        block(3, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(3, json!({ "type": "signature_delta", "signature": "other" })),
        stop(3),
        block(1, json!({ "type": "text", "text": "" })),
        delta(1, json!({ "type": "text_delta", "text": "Let me see." })),
        stop(1),
        block(2, json!({ "type": "tool_use", "id": "toolu_1", "name": "bash", "input": {} })),
        delta(2, json!({ "type": "input_json_delta", "partial_json": "" })),
        delta(2, json!({ "type": "input_json_delta", "partial_json": "{\"command\":" })),
        delta(2, json!({ "type": "input_json_delta", "partial_json": "\"echo hi\"}" })),
        stop(2),
    ];
    first.extend(over("tool_use"));
    let mut second = vec![
        block(0, json!({ "type": "text", "text": "" })),
        delta(0, json!({ "type": "text_delta", "text": "It said hi." })),
        stop(0),
    ];
    second.extend(over("end_turn"));
    let server = Scripted::start(vec![message(&first), message(&second)]).await;
    let model = Model::new(settings(&server.url, Provider::Anthropic)).unwrap();
    let parts = chat(&model, "say hi", Some(Shell::new())).await;
    let told = kinds(&parts);
    assert_eq!(
        told[2..8],
        [
            "reasoning-start",
            "reasoning-delta",
            "reasoning-end",
            "text-start",
            "text-delta",
            "text-end"
        ]
    );
    assert_eq!(told.last(), Some(&"finish"));
    let (head, _) = &server.requests()[1];
    assert!(head.starts_with("post /v1/messages "), "{head}");
    assert!(head.contains("x-api-key: ") && head.contains("anthropic-version: "), "{head}");
    let bodies = server.bodies();
    assert_eq!(bodies[0]["tools"][0]["input_schema"]["required"][0], "command");
    let turn = &bodies[1]["messages"][1]["content"];
    assert_eq!(turn[0], json!({ "type": "thinking", "thinking": "hm", "signature": "sig" }));
    assert_eq!(turn[1], json!({ "type": "thinking", "thinking": "", "signature": "other" }));
    assert_eq!(turn[3]["input"], json!({ "command": "echo hi" }));
    let result = &bodies[1]["messages"][2]["content"][0];
    assert_eq!((&result["tool_use_id"], &result["is_error"]), (&json!("toolu_1"), &json!(false)));
}

#[tokio::test]
async fn a_model_that_never_stops_calling_is_stopped_by_its_budget() {
    let server = Scripted::start(vec![calls(&[("x", "bash", json!({ "command": "true" }))])]).await;
    let parts = chat(&open_ai(&server), "loop", Some(Shell::new())).await;
    assert_eq!(server.requests().len(), STEPS_WITH_BASH);
    assert_eq!(kinds(&parts).iter().filter(|kind| **kind == "start-step").count(), STEPS_WITH_BASH);
    assert_eq!(parts.last().unwrap(), &json!({ "type": "finish", "finishReason": "tool-calls" }));
}

#[tokio::test]
async fn a_model_without_tools_that_calls_all_the_same_has_fewer_steps() {
    let server = Scripted::start(vec![calls(&[("x", "bash", json!({ "command": "true" }))])]).await;
    let parts = chat(&open_ai(&server), "loop", None).await;
    assert_eq!((server.requests().len(), STEPS_WITHOUT_TOOLS), (5, 5));
    let steps = kinds(&parts).iter().filter(|kind| **kind == "start-step").count();
    let errors = kinds(&parts).iter().filter(|kind| **kind == "tool-input-error").count();
    assert_eq!((steps, errors), (5, 5), "{parts:?}");
    assert_eq!(parts.last().unwrap(), &json!({ "type": "finish", "finishReason": "tool-calls" }));
}

#[tokio::test]
async fn a_busy_server_is_asked_again_but_not_once_it_has_begun() {
    let busy = |status| Canned::Status(status, String::new());
    let server = Scripted::start(vec![busy(429), busy(529), says("hi")]).await;
    let parts = chat(&open_ai(&server), "hi", None).await;
    assert_eq!((kinds(&parts).last(), server.requests().len()), (Some(&"finish"), 3));

    let server = Scripted::start(vec![busy(503)]).await;
    let parts = chat(&open_ai(&server), "hi", None).await;
    assert!(crate::error_text(&parts).contains("busy (503)"), "{parts:?}");
    assert_eq!(server.requests().len(), 3);

    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"He\"}}]}\n\n";
    let server = Scripted::start(vec![Canned::Stream(begun.to_owned()), says("never")]).await;
    let parts = chat(&open_ai(&server), "hi", None).await;
    assert!(crate::error_text(&parts).contains("broke off"), "{parts:?}");
    assert_eq!(server.requests().len(), 1);
    let text_ended = parts.iter().any(|part| part["type"] == "text-end");
    assert!(text_ended, "what was begun is ended: {parts:?}");
}

#[tokio::test]
async fn whoever_stops_reading_ends_the_model_and_the_tool() {
    let shell = Shell::new();
    let command = "echo $$ > pid; echo begun; sleep 600";
    let server =
        Scripted::start(vec![calls(&[("x", "bash", json!({ "command": command }))])]).await;
    let model = open_ai(&server);
    let job =
        Job { conversation: conversation("wait"), toolbox: Some(shell.clone()), explicit: None };
    let (out, mut parts) = mpsc::channel(4);
    let chat = tokio::spawn(async move {
        sandbank_chat::run(&model, job, out, CancellationToken::new()).await;
    });
    loop {
        let part = parts.recv().await.expect("the command is told of before it ends");
        if matches!(part, Part::ToolOutputAvailable { preliminary: true, .. }) {
            break;
        }
    }
    let pid = std::fs::read_to_string(shell.path("pid")).unwrap();
    let process = format!("/proc/{}", pid.trim());
    assert!(std::fs::exists(&process).unwrap());
    drop(parts);
    chat.await.unwrap();
    let gone = async {
        while std::fs::read_to_string(format!("{process}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("the command is killed");
}

//! MCP between a host's pipes and the server: lines in, messages over HTTP, lines out.
//!
//! Messages pass as they are. What is added: a session that the server has forgotten, because it was
//! restarted or nobody used it for long, is begun again with the same sandbox, and a server that is
//! away for a moment is waited for.

mod link;
mod pipes;

pub(crate) use link::Link;
pub(crate) use pipes::Output;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::task::JoinSet;

use crate::client::Told;
use crate::failure::Failure;
use crate::interrupt::{Interrupts, Request};
use crate::limits::{MAX_MCP_LINE_BYTES, MCP_LAST_ANSWERS};

/// Until the host closes our standard input, or wants us to end.
pub(crate) async fn serve(link: Link) -> Result<u8, Failure> {
    let (link, output) = (Arc::new(link), Output::default());
    let mut interrupts = Interrupts::listen()?;
    let mut answers = JoinSet::new();
    let exit = tokio::select! {
        ended = read_all(&link, &output, &mut answers) => ended.map(|()| 0),
        exit = leave(&mut interrupts) => Ok(exit),
    };
    if matches!(exit, Ok(0)) {
        // A script that pipes its requests in reads the answers after that.
        let rest = async { while answers.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(MCP_LAST_ANSWERS, rest).await;
    }
    answers.abort_all();
    link.end().await;
    exit
}

async fn leave(interrupts: &mut Interrupts) -> u8 {
    match interrupts.next().await {
        Request::Interrupt => 130,
        Request::Leave { exit_code } => exit_code,
    }
}

async fn read_all(
    link: &Arc<Link>,
    output: &Output,
    answers: &mut JoinSet<()>,
) -> Result<(), Failure> {
    let mut input = BufReader::new(tokio::io::stdin());
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut input).take(MAX_MCP_LINE_BYTES + 1);
        limited
            .read_until(b'\n', &mut line)
            .await
            .map_err(Failure::io("read the host's messages"))?;
        while answers.try_join_next().is_some() {}
        if line.is_empty() {
            return Ok(());
        }
        if line.len() as u64 > MAX_MCP_LINE_BYTES {
            let message = format!("a message has more than {MAX_MCP_LINE_BYTES} bytes");
            return Err(Failure::usage(message));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        pass_on(link, output, answers, line.into()).await?;
    }
}

/// In the order in which they came; only what is told later is waited for beside.
async fn pass_on(
    link: &Arc<Link>,
    output: &Output,
    answers: &mut JoinSet<()>,
    line: Bytes,
) -> Result<(), Failure> {
    let Ok(message) = serde_json::from_slice::<Value>(&line) else {
        let error = json!({ "code": -32700, "message": "the line is not JSON" });
        return output.write(&json!({ "jsonrpc": "2.0", "id": null, "error": error })).await;
    };
    let id = message.get("id").filter(|_| message.get("method").is_some()).cloned();
    match link.send(&message, line).await {
        Ok(Told::Nothing) => Ok(()),
        Ok(Told::One(answer)) => output.write(&answer).await,
        Ok(Told::Many(mut events)) => {
            let output = output.clone();
            answers.spawn(async move {
                let mut wanted = id;
                let broken = loop {
                    match events.next().await {
                        Ok(Some(message)) => {
                            if message.get("id").is_some() && message.get("id") == wanted.as_ref() {
                                wanted = None;
                            }
                            if output.write(&message).await.is_err() {
                                return;
                            }
                        }
                        // A call that was cancelled has no answer.
                        Ok(None) => return,
                        Err(error) => break error.to_string(),
                    }
                };
                if let Some(id) = wanted {
                    let _ = output.write(&failed(&id, &broken)).await;
                }
            });
            Ok(())
        }
        Err(error) => {
            let failure = Failure::from(error);
            let hint = failure.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            let said = format!("{}{hint}", failure.message);
            eprintln!("sandbank mcp: {said}");
            match id {
                Some(id) => output.write(&failed(&id, &said)).await,
                None => Ok(()),
            }
        }
    }
}

fn failed(id: &Value, why: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": why } })
}

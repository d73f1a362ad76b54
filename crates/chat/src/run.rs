//! Back and forth between the model and the tools, until it has nothing more to do.

use std::collections::HashSet;
use std::sync::Arc;

use sandbank_tools::{Tool, ToolError, Toolbox, Update, Updates, random_id};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::conversation::{Block, Conversation, ToolCall, ToolResult, Turn};
use crate::explicit::Explicit;
use crate::limits::{STEPS_WITH_BASH, STEPS_WITHOUT_TOOLS};
use crate::model::Model;
use crate::parts::{Approval, ApprovalStatus, FinishReason, Part, Preparing, Question};
use crate::step::{Step, StepError, is_name, tell};

/// One message of a person, and what may be done about it.
pub struct Job {
    pub conversation: Conversation,
    /// None: the model has no tools.
    pub toolbox: Option<Arc<dyn Toolbox>>,
    /// Done first, if there are tools, whatever the model says.
    pub explicit: Option<Explicit>,
}

/// Whoever read the parts is gone.
#[derive(Debug)]
pub(crate) struct Gone;

/// Who tells the parts, and knows which names were used.
pub(crate) struct Teller {
    out: mpsc::Sender<Part>,
    tools: HashSet<&'static str>,
    calls: HashSet<String>,
    ids: u64,
}

impl Teller {
    pub(crate) async fn tell(&self, part: Part) -> Result<(), Gone> {
        self.out.send(part).await.map_err(|_| Gone)
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.tools.contains(name)
    }

    pub(crate) fn next_id(&mut self) -> String {
        self.ids += 1;
        self.ids.to_string()
    }

    /// The model's own id of a call, unless it has none that is one, or said it before.
    pub(crate) fn call_id(&mut self, said: &str) -> String {
        let mut id = said.to_owned();
        while !is_name(&id) || self.calls.contains(&id) {
            id = random_id("call_");
        }
        self.calls.insert(id.clone());
        id
    }
}

/// Tells everything that happens; the last part is a finish, an error or an abort. Ends at once
/// when it is cancelled or nobody reads; what was started in the sandbox is then killed.
pub async fn run(model: &Model, job: Job, out: mpsc::Sender<Part>, cancel: CancellationToken) {
    let known = earlier_calls(&job.conversation);
    let tools = job.toolbox.as_ref().map(|toolbox| toolbox.tools()).unwrap_or_default();
    let names = tools.iter().map(|tool| tool.name).collect();
    let mut teller = Teller { out, tools: names, calls: known, ids: 0 };
    let (child, reader) = (cancel.child_token(), teller.out.clone());
    // Whoever drops this future ends the tools, too.
    let _guard = child.clone().drop_guard();
    let ended = tokio::select! {
        ended = converse(model, job, &tools, &mut teller, &child) => ended,
        () = cancel.cancelled() => {
            let _ = teller.out.try_send(Part::Abort);
            return;
        }
        () = reader.closed() => return,
    };
    let last = match ended {
        Ok(finish_reason) => Part::Finish { finish_reason },
        Err(StepError::Model(error)) => Part::Error { error_text: error.to_string() },
        Err(StepError::Gone) => return,
    };
    let _ = teller.tell(last).await;
}

fn earlier_calls(conversation: &Conversation) -> HashSet<String> {
    let blocks = conversation.turns.iter().filter_map(|turn| match turn {
        Turn::Assistant(blocks) => Some(blocks),
        _ => None,
    });
    let id = |block: &Block| match block {
        Block::Call(call) => Some(call.id.clone()),
        _ => None,
    };
    blocks.flatten().filter_map(id).collect()
}

async fn converse(
    model: &Model,
    job: Job,
    tools: &[Tool],
    teller: &mut Teller,
    cancel: &CancellationToken,
) -> Result<FinishReason, StepError> {
    let Job { mut conversation, toolbox, explicit } = job;
    teller.tell(Part::Start).await?;
    if let (Some(order), Some(toolbox)) = (&explicit, &toolbox) {
        obey(order, toolbox, &mut conversation, teller, cancel).await?;
        if !order.answer {
            return Ok(FinishReason::Stop);
        }
    }
    let has_bash = tools.iter().any(|tool| tool.name == "bash");
    let steps = if has_bash { STEPS_WITH_BASH } else { STEPS_WITHOUT_TOOLS };
    for _ in 0..steps {
        teller.tell(Part::StartStep).await?;
        let mut answer = model.ask(&conversation, tools).await?;
        let Step { blocks, reason, unreadable } = tell(&mut answer, teller).await?;
        drop(answer);
        let calls: Vec<ToolCall> = blocks.iter().filter_map(call_of).collect();
        conversation.push(Turn::Assistant(blocks));
        // One after the other: what a call writes the next one may need.
        let mut results = Vec::new();
        for call in &calls {
            let is_readable = !unreadable.contains(&call.id);
            results.push(do_call(call, is_readable, toolbox.as_ref(), teller, cancel).await?);
        }
        conversation.push(Turn::Results(results));
        teller.tell(Part::FinishStep).await?;
        if calls.is_empty() {
            return Ok(reason);
        }
    }
    Ok(FinishReason::ToolCalls)
}

fn call_of(block: &Block) -> Option<ToolCall> {
    match block {
        Block::Call(call) => Some(call.clone()),
        _ => None,
    }
}

/// A person's order, as a step of its own.
async fn obey(
    order: &Explicit,
    toolbox: &Arc<dyn Toolbox>,
    conversation: &mut Conversation,
    teller: &mut Teller,
    cancel: &CancellationToken,
) -> Result<(), Gone> {
    let id = teller.call_id("");
    let input = json!({ "command": order.command });
    let name = "bash".to_owned();
    let call = ToolCall { id: id.clone(), name: name.clone(), input: input.clone() };
    teller.tell(Part::StartStep).await?;
    let (tool_call_id, tool_name) = (id, name);
    let start = Part::ToolInputStart {
        tool_call_id: tool_call_id.clone(),
        tool_name: tool_name.clone(),
        dynamic: false,
    };
    teller.tell(start).await?;
    teller.tell(Part::ToolInputAvailable { tool_call_id, tool_name, input }).await?;
    let begun = toolbox.call_quietly(&call.name, call.input.clone(), cancel.child_token()).await;
    let result = follow(&call, begun, teller).await?;
    teller.tell(Part::FinishStep).await?;
    conversation.push(Turn::Assistant(vec![Block::Call(call)]));
    conversation.push(Turn::Results(vec![result]));
    Ok(())
}

async fn do_call(
    call: &ToolCall,
    is_readable: bool,
    toolbox: Option<&Arc<dyn Toolbox>>,
    teller: &Teller,
    cancel: &CancellationToken,
) -> Result<ToolResult, Gone> {
    let refused = |output: String| ToolResult { id: call.id.clone(), output, is_error: true };
    match toolbox.filter(|_| teller.knows(&call.name)) {
        None => Ok(refused(format!("there is no tool called {:?}", call.name))),
        Some(_) if !is_readable => Ok(refused("the input is not a JSON object".to_owned())),
        Some(toolbox) => use_tool(call, toolbox, teller, cancel).await,
    }
}

async fn use_tool(
    call: &ToolCall,
    toolbox: &Arc<dyn Toolbox>,
    teller: &Teller,
    cancel: &CancellationToken,
) -> Result<ToolResult, Gone> {
    let begun = toolbox.call(&call.name, call.input.clone(), cancel.child_token()).await;
    follow(call, begun, teller).await
}

/// Tells all that happens to a call.
async fn follow(
    call: &ToolCall,
    begun: Result<Updates, ToolError>,
    teller: &Teller,
) -> Result<ToolResult, Gone> {
    let mut updates = match begun {
        Ok(updates) => updates,
        Err(error) => return told(call, Err(error), teller).await,
    };
    let mut asked: Option<Question> = None;
    loop {
        let update = updates.recv().await;
        let answer = match &update {
            Some(Update::Allowed) => Some(ApprovalStatus::Allowed),
            Some(Update::Failed(ToolError::Denied(_))) => Some(ApprovalStatus::Denied),
            _ => None,
        };
        if let Some(status) = answer
            && let Some(question) = asked.take()
        {
            teller.tell(approval(call, status, question)).await?;
        }
        let done = match update {
            Some(Update::Asked(question)) => {
                let question: Question = serde_json::from_value(question).unwrap_or_default();
                teller.tell(approval(call, ApprovalStatus::Waiting, question.clone())).await?;
                asked = Some(question);
                continue;
            }
            Some(Update::Allowed) => continue,
            Some(Update::Preparing(message)) => {
                let data = Preparing { tool_call_id: call.id.clone(), message };
                teller.tell(Part::Preparing { data, transient: true }).await?;
                continue;
            }
            Some(Update::Progress(output)) => {
                let tool_call_id = call.id.clone();
                let preliminary = true;
                teller
                    .tell(Part::ToolOutputAvailable { tool_call_id, output, preliminary })
                    .await?;
                continue;
            }
            Some(Update::Done(output)) => Ok(output),
            Some(Update::Failed(error)) => Err(error),
            None => Err(ToolError::Failed("the tool ended without a result".to_owned())),
        };
        return told(call, done, teller).await;
    }
}

fn approval(call: &ToolCall, status: ApprovalStatus, question: Question) -> Part {
    let id = question.approval_id.clone();
    Part::Approval { id, data: Approval { tool_call_id: call.id.clone(), status, question } }
}

/// Tells what came of a call, and has it for the model.
async fn told(
    call: &ToolCall,
    done: Result<Value, ToolError>,
    teller: &Teller,
) -> Result<ToolResult, Gone> {
    let (id, tool_call_id) = (call.id.clone(), call.id.clone());
    match done {
        Ok(output) => {
            let text = output.to_string();
            let preliminary = false;
            teller.tell(Part::ToolOutputAvailable { tool_call_id, output, preliminary }).await?;
            Ok(ToolResult { id, output: text, is_error: false })
        }
        Err(error) => {
            let error_text = error.to_string();
            let output = error_text.clone();
            teller.tell(Part::ToolOutputError { tool_call_id, error_text }).await?;
            Ok(ToolResult { id, output, is_error: true })
        }
    }
}

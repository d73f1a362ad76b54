//! One answer of the model, told as it comes.

use serde_json::{Value, json};

use crate::conversation::{Block, ToolCall};
use crate::error::ModelError;
use crate::limits::{MAX_CALLS, MAX_INPUT_BYTES, MAX_NAME_BYTES};
use crate::model::Said;
use crate::parts::{FinishReason, Part};
use crate::run::{Gone, Teller};
use crate::server::Answer;

/// What an answer was.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) blocks: Vec<Block>,
    pub(crate) reason: FinishReason,
    /// Calls that are not in `blocks`' words what the tools want: their input is no object.
    pub(crate) unreadable: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum StepError {
    Model(ModelError),
    /// Nobody reads any more.
    Gone,
}

impl From<ModelError> for StepError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<Gone> for StepError {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// Reads the answer to its end. Whatever happens, text that was begun is ended.
pub(crate) async fn tell(answer: &mut Answer, teller: &mut Teller) -> Result<Step, StepError> {
    let mut telling = Telling { teller, open: None, blocks: Vec::new(), calls: Vec::new() };
    let mut reason = None;
    let result: Result<(), StepError> = loop {
        match answer.next().await {
            Err(error) => break Err(error.into()),
            Ok(None) => break Ok(()),
            Ok(Some(said)) => {
                for each in said {
                    if let Said::Finished(why) = each {
                        reason = Some(why);
                    } else if let Err(error) = telling.hear(each).await {
                        telling.close().await?;
                        return Err(error);
                    }
                }
            }
        }
    };
    telling.close().await?;
    result?;
    let (blocks, unreadable) = telling.finish().await?;
    let reason = reason.unwrap_or(FinishReason::Other);
    Ok(Step { blocks, reason, unreadable })
}

struct Telling<'a> {
    teller: &'a mut Teller,
    open: Option<Open>,
    blocks: Vec<Block>,
    calls: Vec<Begun>,
}

/// The text or thinking that is being told; it is the last block.
struct Open {
    id: String,
    thinking: bool,
}

/// A call whose input is coming.
struct Begun {
    index: u64,
    id: String,
    name: String,
    input: String,
    /// Its place among the blocks.
    place: usize,
}

impl Telling<'_> {
    async fn hear(&mut self, said: Said) -> Result<(), StepError> {
        match said {
            Said::Text(delta) => self.words(delta, false).await?,
            Said::Thinking(delta) => self.words(delta, true).await?,
            Said::Signature(mark) => self.sign(mark).await?,
            Said::Redacted(data) => {
                self.close().await?;
                self.blocks.push(Block::Redacted(data));
            }
            Said::BlockEnd => self.close().await?,
            Said::CallStart { index, id, name } => self.begin(index, &id, name).await?,
            Said::CallInput { index, piece } => self.input(index, piece).await?,
            Said::Finished(_) => {}
        }
        Ok(())
    }

    async fn words(&mut self, delta: String, thinking: bool) -> Result<(), StepError> {
        if self.open.as_ref().is_none_or(|open| open.thinking != thinking) {
            self.close().await?;
            let id = self.teller.next_id();
            self.open = Some(Open { id: id.clone(), thinking });
            let (part, block) = if thinking {
                let block = Block::Thinking { text: String::new(), signature: String::new() };
                (Part::ReasoningStart { id }, block)
            } else {
                (Part::TextStart { id }, Block::Text(String::new()))
            };
            self.blocks.push(block);
            self.teller.tell(part).await?;
        }
        if let Some(Block::Text(text) | Block::Thinking { text, .. }) = self.blocks.last_mut() {
            text.push_str(&delta);
        }
        let id = self.open.as_ref().map(|open| open.id.clone()).unwrap_or_default();
        let part = match thinking {
            true => Part::ReasoningDelta { id, delta },
            false => Part::TextDelta { id, delta },
        };
        Ok(self.teller.tell(part).await?)
    }

    /// The thinking that is being told, or else one without words: that before it has its own.
    async fn sign(&mut self, mark: String) -> Result<(), Gone> {
        if self.open.as_ref().is_some_and(|open| open.thinking)
            && let Some(Block::Thinking { signature, .. }) = self.blocks.last_mut()
        {
            signature.push_str(&mark);
            return Ok(());
        }
        self.close().await?;
        self.blocks.push(Block::Thinking { text: String::new(), signature: mark });
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Gone> {
        match self.open.take() {
            Some(Open { id, thinking: true }) => self.teller.tell(Part::ReasoningEnd { id }).await,
            Some(Open { id, .. }) => self.teller.tell(Part::TextEnd { id }).await,
            None => Ok(()),
        }
    }

    async fn begin(&mut self, index: u64, id: &str, name: String) -> Result<(), StepError> {
        if !is_name(&name) {
            return Err(ModelError::Nonsense("it calls a tool whose name is none").into());
        }
        if self.calls.len() == MAX_CALLS || self.calls.iter().any(|call| call.index == index) {
            return Err(ModelError::Nonsense("it has too many calls, or one twice").into());
        }
        self.close().await?;
        let id = self.teller.call_id(id);
        let part = Part::ToolInputStart {
            tool_call_id: id.clone(),
            tool_name: name.clone(),
            dynamic: !self.teller.knows(&name),
        };
        self.teller.tell(part).await?;
        let place = self.blocks.len();
        let call = ToolCall { id: id.clone(), name: name.clone(), input: Value::Null };
        self.blocks.push(Block::Call(call));
        self.calls.push(Begun { index, id, name, input: String::new(), place });
        Ok(())
    }

    async fn input(&mut self, index: u64, piece: String) -> Result<(), StepError> {
        let Some(call) = self.calls.iter_mut().find(|call| call.index == index) else {
            return Err(ModelError::Nonsense("it has input of no call").into());
        };
        if call.input.len() + piece.len() > MAX_INPUT_BYTES {
            return Err(ModelError::TooLong("the input of a call").into());
        }
        call.input.push_str(&piece);
        let part = Part::ToolInputDelta { tool_call_id: call.id.clone(), input_text_delta: piece };
        Ok(self.teller.tell(part).await?)
    }

    /// Tells the calls' input, now that it is whole.
    async fn finish(mut self) -> Result<(Vec<Block>, Vec<String>), Gone> {
        let mut unreadable = Vec::new();
        for call in std::mem::take(&mut self.calls) {
            let Begun { id, name, input, place, .. } = call;
            let text = if input.trim().is_empty() { "{}" } else { &input };
            let read: Option<Value> = serde_json::from_str(text).ok().filter(Value::is_object);
            let known = self.teller.knows(&name);
            let input = read.clone().unwrap_or_else(|| json!({}));
            let part = match (&read, known) {
                (Some(_), true) => Part::ToolInputAvailable {
                    tool_call_id: id.clone(),
                    tool_name: name.clone(),
                    input: input.clone(),
                },
                _ => Part::ToolInputError {
                    tool_call_id: id.clone(),
                    tool_name: name.clone(),
                    input: read.clone().unwrap_or(Value::String(text.to_owned())),
                    dynamic: !known,
                    error_text: match known {
                        true => "the input is not a JSON object".to_owned(),
                        false => format!("there is no tool called {name:?}"),
                    },
                },
            };
            if read.is_none() {
                unreadable.push(id.clone());
            }
            self.blocks[place] = Block::Call(ToolCall { id, name, input });
            self.teller.tell(part).await?;
        }
        Ok((self.blocks, unreadable))
    }
}

/// As providers allow them: nothing that a reader could be deceived with.
pub(crate) fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_allowed)
}

//! What each tool does, and the toolbox of one session.

mod bash;
mod files;
mod notice;
mod schema;
mod table;
mod url;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::approval::Call;
use crate::limits::UPDATES_WAITING;
use crate::output::{Collected, Room};
use crate::prelude;
use crate::service::Shared;
use crate::sessions::InUse;
use crate::{Tool, ToolError, Toolbox, Update, Updates};
use bash::Run;
use notice::with_notice;
use schema::Input;
pub use table::Surface;
use table::{Entry, TABLE, Which};

/// The tools of one session, as one surface offers them.
pub(crate) struct SessionToolbox {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: Arc<str>,
    pub(crate) surface: Surface,
    /// By which the caller reaches this server, where ports are published on every address.
    pub(crate) host: Option<String>,
}

/// How much is told.
#[derive(Clone, Copy)]
enum Telling {
    WhileItRuns,
    AtTheEnd,
}

#[async_trait]
impl Toolbox for SessionToolbox {
    fn tools(&self) -> Vec<Tool> {
        let offered = TABLE.iter().filter(|entry| entry.is_offered(self.surface));
        offered.map(|entry| entry.tool(&self.shared.config)).collect()
    }

    async fn call(
        &self,
        name: &str,
        input: Value,
        cancel: CancellationToken,
    ) -> Result<Updates, ToolError> {
        self.begin(name, input, cancel, Telling::WhileItRuns)
    }

    async fn call_quietly(
        &self,
        name: &str,
        input: Value,
        cancel: CancellationToken,
    ) -> Result<Updates, ToolError> {
        self.begin(name, input, cancel, Telling::AtTheEnd)
    }
}

impl SessionToolbox {
    fn begin(
        &self,
        name: &str,
        input: Value,
        cancel: CancellationToken,
        telling: Telling,
    ) -> Result<Updates, ToolError> {
        let offered = TABLE.iter().filter(|entry| entry.is_offered(self.surface));
        let entry = offered.clone().find(|entry| entry.name == name);
        let Some(entry) = entry else {
            let error = ToolError::UnknownTool(name.chars().take(64).collect());
            self.shared.calls.add(("unknown", error.code()), 1);
            return Err(error);
        };
        let input = Input::check(entry.name, entry.fields, input)
            .inspect_err(|error| self.shared.calls.add((entry.name, error.code()), 1))?;
        let (updates, receiver) = mpsc::channel(UPDATES_WAITING);
        let job = Job {
            shared: self.shared.clone(),
            session: self.session.clone(),
            host: self.host.clone(),
            entry,
            input,
            telling,
            cancel,
            updates,
        };
        // A task of its own: it ends what it started, also where its caller is gone.
        tokio::spawn(job.run().in_current_span());
        Ok(receiver)
    }
}

/// One call.
struct Job {
    shared: Arc<Shared>,
    session: Arc<str>,
    host: Option<String>,
    entry: &'static Entry,
    input: Input,
    telling: Telling,
    cancel: CancellationToken,
    updates: mpsc::Sender<Update>,
}

impl Job {
    async fn run(self) {
        let result = self.result().await;
        let outcome = match &result {
            // A command that was aborted has something to tell, too.
            Ok(_) if self.cancel.is_cancelled() || self.updates.is_closed() => {
                ToolError::Cancelled.code()
            }
            Ok(_) => "done",
            Err(error) => error.code(),
        };
        self.shared.calls.add((self.entry.name, outcome), 1);
        let last = match result {
            Ok(value) => Update::Done(value),
            Err(error) => Update::Failed(error),
        };
        let _ = self.updates.send(last).await;
    }

    async fn result(&self) -> Result<Value, ToolError> {
        let is_asked = AtomicBool::new(false);
        let call = Call {
            session: &self.session,
            tool: self.entry.name,
            input: self.input.value(),
            waiting: &|question| {
                is_asked.store(true, Ordering::Relaxed);
                let _ = self.updates.try_send(Update::Asked(question));
            },
        };
        self.while_wanted(self.shared.approver.allow(&call)).await?;
        if is_asked.load(Ordering::Relaxed) {
            let _ = self.updates.try_send(Update::Allowed);
        }
        match self.entry.which {
            // It has something to tell where it is cancelled.
            Which::Bash => self.bash().await,
            which => self.while_wanted(self.with_files(which)).await,
        }
    }

    async fn bash(&self) -> Result<Value, ToolError> {
        let script = prelude::wrapped(self.input.text("command"))?;
        let config = &self.shared.config;
        let room = Room { stdout: config.max_stdout_chars, stderr: config.max_stderr_chars };
        let output = match self.telling {
            Telling::WhileItRuns => Collected::live(room),
            Telling::AtTheEnd => Collected::whole(room),
        };
        // At once: a sandbox may have to be made first.
        if let Some(first) = output.progress() {
            let _ = self.updates.try_send(Update::Progress(first));
        }
        let held = self.while_wanted(self.sandbox()).await?;
        let run = Run { timeout: config.timeout, updates: &self.updates, cancel: &self.cancel };
        self.noted(&held, run.run(&*held.sandbox, &script, output).await)
    }

    async fn sandbox(&self) -> Result<InUse, ToolError> {
        let told = |line: &str| {
            let _ = self.updates.try_send(Update::Preparing(line.to_owned()));
        };
        self.shared.sessions.get_telling(&self.session, &told).await
    }

    async fn with_files(&self, which: Which) -> Result<Value, ToolError> {
        let held = self.sandbox().await?;
        let (sandbox, input) = (&*held.sandbox, &self.input);
        let result = match which {
            Which::ReadFile => files::read(sandbox, input).await,
            Which::WriteFile => files::write(sandbox, input).await,
            Which::EditFile => files::edit(sandbox, input).await,
            Which::SandboxUrl => url::of_port(sandbox, input, self.host.as_deref()).await,
            Which::ListFiles => files::list(sandbox, input).await,
            Which::Search => files::search(sandbox, input).await,
            Which::Bash => unreachable!("it has a way of its own"),
        };
        self.noted(&held, result)
    }

    /// With a word on the sandbox, where it is not the one that the session had; once, to who hears it.
    fn noted(&self, held: &InUse, result: Result<Value, ToolError>) -> Result<Value, ToolError> {
        if !held.is_news() {
            return result;
        }
        let (result, has_notice) = with_notice(result);
        if has_notice && !self.updates.is_closed() && !self.cancel.is_cancelled() {
            held.set_told();
        }
        result
    }

    async fn while_wanted<T>(
        &self,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ToolError::Cancelled),
            () = self.updates.closed() => Err(ToolError::Cancelled),
            result = work => result,
        }
    }
}

#[cfg(test)]
mod tests;

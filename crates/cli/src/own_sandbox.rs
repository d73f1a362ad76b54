//! A sandbox made for one command line, and removed after it unless it is to be kept.

use crate::attach::{Attachment, Outcome};
use crate::client::{Client, CommandRequest, SandboxRequest};
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::daemon::Mark;
use crate::ending;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::options::{SandboxOptions, fresh_name};
use crate::ui::Progress;

/// Runs one command in a new sandbox, with or without a server, and gives its exit code.
pub(crate) async fn run(
    context: &Context,
    options: &SandboxOptions,
    prefix: &str,
    command: &CommandRequest,
) -> Result<u8, Failure> {
    options.check()?;
    let mut interrupts = Interrupts::listen()?;
    // A kept workspace must outlive the command, whether its sandbox does or not.
    let keep = options.keep || options.workspace.is_some();
    let engine = options.engine.as_deref();
    let connection = Connection::open(context, Reach::OrOwn { keep, engine }).await?;
    connection.client.check_input(command)?;
    let own = OwnCommand { context, client: &connection.client, command, keep: options.keep };
    let request = options.request(fresh_name(prefix));
    let mark = match options.keep {
        true => None,
        false => connection.mark(&request.session_key)?,
    };
    let code = own.run(&request, &mut interrupts, mark).await;
    connection.close().await;
    code
}

struct OwnCommand<'a> {
    context: &'a Context,
    client: &'a Client,
    command: &'a CommandRequest,
    keep: bool,
}

impl OwnCommand<'_> {
    async fn run(
        &self,
        request: &SandboxRequest,
        interrupts: &mut Interrupts,
        mark: Option<Mark>,
    ) -> Result<u8, Failure> {
        let sandbox = self.create(request, interrupts).await?;
        let outcome = self.in_sandbox(&sandbox, interrupts).await;
        // Who detaches wants to come back.
        let keep = self.keep || matches!(outcome, Ok(Outcome::Detached));
        let left = self.leave(&sandbox, keep).await;
        // One that could not be removed is left for whoever comes next.
        if let (Ok(()), Some(mark)) = (&left, mark) {
            mark.take_away();
        }
        let code = ending::report(self.context, &sandbox, &self.command.command_id, outcome?)?;
        left.map(|()| code)
    }

    /// Ctrl-C while it is being made gives up and leaves nothing behind.
    async fn create(
        &self,
        request: &SandboxRequest,
        interrupts: &mut Interrupts,
    ) -> Result<String, Failure> {
        let progress = Progress::spinner(&self.context.ui, "making a sandbox");
        let created = tokio::select! {
            created = self.client.create(request) => created.map_err(Failure::from),
            _ = interrupts.next() => Err(interrupted()),
        };
        progress.done();
        match created {
            Ok(created) => Ok(created.sandbox_id),
            Err(failure) => {
                self.forget(&request.session_key).await;
                Err(failure)
            }
        }
    }

    async fn in_sandbox(
        &self,
        sandbox: &str,
        interrupts: &mut Interrupts,
    ) -> Result<Outcome, Failure> {
        self.client.start_command(sandbox, self.command).await?;
        Attachment::started(&self.context.ui, self.client, sandbox, self.command)
            .join(interrupts)
            .await
    }

    async fn leave(&self, sandbox: &str, keep: bool) -> Result<(), Failure> {
        if keep {
            let remove =
                format!("the sandbox {sandbox} stays; remove it with `sandbank rm {sandbox}`");
            self.context.ui.note(&remove);
            return Ok(());
        }
        Ok(self.client.stop_sandbox(sandbox).await?)
    }

    /// A create whose answer never came may still have made something under our key.
    async fn forget(&self, key: &str) {
        if let Ok(id) = self.client.resolve(key).await {
            let _ = self.client.stop_sandbox(&id).await;
        }
    }
}

fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted before the sandbox was ready")
}

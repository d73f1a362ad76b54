//! `sandbank run`: a command in a sandbox of its own, with or without a server.

use clap::Args;

use crate::attach::{Attachment, Stdin};
use crate::client::CommandRequest;
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::ending;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::options::{CommandOptions, SandboxOptions, fresh_name};
use crate::own_sandbox::OwnSandbox;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank run -- python3 -c 'print(6 * 7)'
  sandbank run --network none --memory 512m -- make test
  sandbank run -it -- bash
  tar c src | sandbank run -- sh -c 'tar x && ls -R'
  sandbank run --json -- ls | jq .

It uses the server on this machine when one runs, and otherwise starts its own parts for as long
as it takes. Ends with the command's exit code: 128+n for signal n, 124 after --timeout.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) sandbox: SandboxOptions,
    #[command(flatten)]
    pub(crate) command: CommandOptions,
    /// Program and arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) argv: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: RunArgs) -> Result<u8, Failure> {
    args.sandbox.check()?;
    let forward = args.command.forwards_stdin();
    let request = args.command.request(args.argv, forward)?;
    let mut interrupts = Interrupts::listen()?;
    let connection = Connection::open(context, Reach::OrOwn { keep: args.sandbox.keep }).await?;
    let sandbox = OwnSandbox::create(
        context,
        &connection.client,
        &args.sandbox.request(fresh_name("run")),
        args.sandbox.keep,
        &mut interrupts,
    )
    .await;
    let outcome = match &sandbox {
        Ok(sandbox) => in_sandbox(context, sandbox, &request, forward, &mut interrupts).await,
        Err(_) => Ok(0),
    };
    let removed = match sandbox {
        Ok(sandbox) => sandbox.leave().await,
        Err(failure) => Err(failure),
    };
    connection.close().await;
    let code = outcome?;
    removed.map(|()| code)
}

async fn in_sandbox(
    context: &Context,
    sandbox: &OwnSandbox<'_>,
    request: &CommandRequest,
    forward: bool,
    interrupts: &mut Interrupts,
) -> Result<u8, Failure> {
    sandbox.client.start_command(&sandbox.id, request).await?;
    let attachment = Attachment {
        ui: &context.ui,
        client: sandbox.client,
        sandbox: &sandbox.id,
        command: &request.command_id,
        after: 0,
        stdin: if forward { Stdin::Forwarded { offset: 0 } } else { Stdin::Closed },
        pty: request.pty.is_some(),
    };
    let outcome = attachment.join(interrupts).await?;
    ending::report(context, &sandbox.id, &request.command_id, outcome)
}

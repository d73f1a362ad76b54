//! `sandbank run`: a command in a sandbox of its own, with or without a server.

use clap::Args;

use crate::context::Context;
use crate::failure::Failure;
use crate::options::{CommandOptions, SandboxOptions};
use crate::own_sandbox;

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
}

pub(crate) async fn run(context: &Context, args: RunArgs) -> Result<u8, Failure> {
    let request = args.command.request(args.command.forwards_stdin())?;
    own_sandbox::run(context, &args.sandbox, "run", &request).await
}

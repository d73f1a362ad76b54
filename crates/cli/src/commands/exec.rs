//! `sandbank exec`: a command in a sandbox that is already there.

use clap::Args;
use serde_json::json;

use crate::attach::Attachment;
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::ending;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::options::CommandOptions;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank exec sbx7 -- ls -l
  sandbank exec chat:1 --env DEBUG=1 --workdir app -- npm test
  sandbank exec sbx7 -it -- top
  id=$(sandbank exec sbx7 --detach -- ./server); sandbank logs sbx7 $id -f

Ends with the command's exit code: 128+n for signal n, 124 after --timeout.")]
pub(crate) struct ExecArgs {
    /// Id, unique beginning of an id, or key
    pub(crate) sandbox: String,
    #[command(flatten)]
    pub(crate) command: CommandOptions,
    /// Start it, print its id, and leave
    #[arg(short, long, conflicts_with_all = ["interactive", "tty"])]
    pub(crate) detach: bool,
}

pub(crate) async fn run(context: &Context, args: ExecArgs) -> Result<u8, Failure> {
    let forward = !args.detach && args.command.forwards_stdin();
    let request = args.command.request(forward)?;
    let mut interrupts = Interrupts::listen()?;
    let connection = Connection::open(context, Reach::Running).await?;
    let client = &connection.client;
    client.check_input(&request)?;
    let sandbox = client.resolve(&args.sandbox).await?;
    client.start_command(&sandbox, &request).await.map_err(|error| error.about(&sandbox))?;
    if args.detach {
        if context.ui.json {
            let started = json!({ "sandboxId": sandbox, "commandId": request.command_id });
            context.ui.document(&started)?;
        } else {
            context.ui.line(&request.command_id)?;
        }
        return Ok(0);
    }
    let attachment = Attachment::started(&context.ui, client, &sandbox, &request);
    let outcome = attachment.join(&mut interrupts).await?;
    ending::report(context, &sandbox, &request.command_id, outcome)
}

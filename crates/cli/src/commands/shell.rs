//! `sandbank shell`: an interactive terminal in a sandbox, new or old.

use std::io::IsTerminal;

use clap::Args;

use crate::attach::{Attachment, Stdin, window_size};
use crate::client::{Client, CommandRequest};
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::ending;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::options::{CommandOptions, SandboxOptions};
use crate::own_sandbox;

/// The best shell the image has.
const LOGIN_SHELL: &str = "command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank shell                       a new sandbox, removed when you leave
  sandbank shell --image node24
  sandbank shell sbx7
  sandbank shell sbx7 --attach c-1f2e  back to a shell you detached from

Press Ctrl-] three times quickly to detach: the shell goes on, and --attach comes back to it.
Ends with the shell's exit code.")]
pub(crate) struct ShellArgs {
    /// Id, unique beginning of an id, or key; a new sandbox when left out
    #[arg(conflicts_with = "SandboxOptions")]
    pub(crate) sandbox: Option<String>,
    /// Come back to a command that was started with a terminal
    #[arg(long, value_name = "COMMAND_ID", requires = "sandbox")]
    pub(crate) attach: Option<String>,
    #[command(flatten)]
    pub(crate) options: SandboxOptions,
    /// Directory to start in; relative ones are below the workspace
    #[arg(short, long, value_name = "DIR", help_heading = "Command", conflicts_with = "attach")]
    pub(crate) workdir: Option<String>,
    /// Set a variable, or pass this one on with NAME alone; repeatable
    #[arg(
        short,
        long = "env",
        value_name = "NAME[=VALUE]",
        help_heading = "Command",
        conflicts_with = "attach"
    )]
    pub(crate) env: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: ShellArgs) -> Result<u8, Failure> {
    if !std::io::stdin().is_terminal() {
        let message = "a shell needs a terminal, and standard input is none";
        return Err(
            Failure::usage(message).hint("use `sandbank exec` or `sandbank run` in scripts")
        );
    }
    let Some(name) = &args.sandbox else {
        return own_sandbox::run(context, &args.options, "shell", &login_shell(&args)?).await;
    };
    let mut interrupts = Interrupts::listen()?;
    let connection = Connection::open(context, Reach::Running).await?;
    let client = &connection.client;
    let sandbox = client.resolve(name).await?;
    if let Some(command) = &args.attach {
        let command = client.resolve_command(&sandbox, command).await?;
        return come_back(context, client, &sandbox, &command, &mut interrupts).await;
    }
    let request = login_shell(&args)?;
    client.check_input(&request)?;
    client.start_command(&sandbox, &request).await?;
    let attachment = Attachment::started(&context.ui, client, &sandbox, &request);
    let outcome = attachment.join(&mut interrupts).await?;
    ending::report(context, &sandbox, &request.command_id, outcome)
}

fn login_shell(args: &ShellArgs) -> Result<CommandRequest, Failure> {
    let argv = ["/bin/sh", "-c", LOGIN_SHELL].map(str::to_owned).to_vec();
    let options = CommandOptions {
        env: args.env.clone(),
        workdir: args.workdir.clone(),
        tty: true,
        ..CommandOptions::plain(argv)
    };
    options.request(true)
}

async fn come_back(
    context: &Context,
    client: &Client,
    sandbox: &str,
    command: &str,
    interrupts: &mut Interrupts,
) -> Result<u8, Failure> {
    let status = client.command(sandbox, command).await.map_err(|error| error.about(sandbox))?;
    if let Some(ending) = &status.ending {
        let code = ending.exit_code().map_or("?".to_owned(), |code| code.to_string());
        return Err(Failure::new(Exit::Refused, format!("{command} has ended with code {code}"))
            .hint(format!("`sandbank logs {sandbox} {command}` shows its output")));
    }
    // A size is sent even when it did not change, so that full-screen programs redraw.
    client.resize(sandbox, command, window_size()).await?;
    let stdin = Stdin::Forwarded { offset: status.stdin_offset };
    let ui = &context.ui;
    let attachment = Attachment { ui, client, sandbox, command, after: 0, stdin, pty: true };
    ending::report(context, sandbox, command, attachment.join(interrupts).await?)
}

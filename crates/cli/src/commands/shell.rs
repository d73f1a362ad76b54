//! `sandbank shell`: an interactive terminal in a sandbox, new or old.

use std::io::IsTerminal;

use clap::Args;

use crate::attach::{Attachment, Outcome, Stdin, window_size};
use crate::client::Client;
use crate::connection::{Connection, Reach};
use crate::context::Context;
use crate::ending;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::options::{CommandOptions, SandboxOptions, fresh_name};
use crate::own_sandbox::OwnSandbox;

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
    args.options.check()?;
    let (sandbox, attach) = (args.sandbox.clone(), args.attach.clone());
    match (sandbox, attach) {
        (None, _) => in_new_sandbox(context, args).await,
        (Some(name), None) => {
            let connection = Connection::open(context, Reach::Running).await?;
            let sandbox = connection.client.resolve(&name).await?;
            let command = start(&connection.client, &sandbox, &args).await?;
            let outcome = join(context, &connection.client, &sandbox, &command, 0).await?;
            ending::report(context, &sandbox, &command, outcome)
        }
        (Some(name), Some(command)) => {
            let connection = Connection::open(context, Reach::Running).await?;
            let sandbox = connection.client.resolve(&name).await?;
            come_back(context, &connection.client, &sandbox, &command).await
        }
    }
}

async fn in_new_sandbox(context: &Context, args: ShellArgs) -> Result<u8, Failure> {
    let keep = args.options.keep;
    let mut interrupts = Interrupts::listen()?;
    let connection = Connection::open(context, Reach::OrOwn { keep }).await?;
    let request = args.options.request(fresh_name("shell"));
    let sandbox =
        OwnSandbox::create(context, &connection.client, &request, keep, &mut interrupts).await;
    let code = match sandbox {
        Ok(sandbox) => until_left(context, &connection.client, sandbox, &args).await,
        Err(failure) => Err(failure),
    };
    connection.close().await;
    code
}

async fn until_left(
    context: &Context,
    client: &Client,
    mut sandbox: OwnSandbox<'_>,
    args: &ShellArgs,
) -> Result<u8, Failure> {
    let joined = async {
        let command = start(client, &sandbox.id, args).await?;
        let outcome = join(context, client, &sandbox.id, &command, 0).await?;
        Ok::<_, Failure>((command, outcome))
    };
    let code = match joined.await {
        Ok((command, outcome)) => {
            if matches!(outcome, Outcome::Detached) {
                sandbox.keep();
            }
            ending::report(context, &sandbox.id, &command, outcome)
        }
        Err(failure) => Err(failure),
    };
    let left = sandbox.leave().await;
    let code = code?;
    left.map(|()| code)
}

async fn start(client: &Client, sandbox: &str, args: &ShellArgs) -> Result<String, Failure> {
    let options = CommandOptions {
        env: args.env.clone(),
        workdir: args.workdir.clone(),
        tty: true,
        ..CommandOptions::plain()
    };
    let argv = ["/bin/sh", "-c", LOGIN_SHELL].map(str::to_owned).to_vec();
    let request = options.request(argv, true)?;
    client.start_command(sandbox, &request).await?;
    Ok(request.command_id)
}

async fn come_back(
    context: &Context,
    client: &Client,
    sandbox: &str,
    command: &str,
) -> Result<u8, Failure> {
    let status = client.command(sandbox, command).await?;
    if let Some(ending) = &status.ending {
        let code = ending.exit_code().map_or("?".to_owned(), |code| code.to_string());
        return Err(Failure::new(Exit::Refused, format!("{command} has ended with code {code}"))
            .hint(format!("`sandbank logs {sandbox} {command}` shows its output")));
    }
    // A size is sent again even when it did not change, so that full-screen programs redraw.
    client.resize(sandbox, command, window_size()).await?;
    let outcome = join(context, client, sandbox, command, status.stdin_offset).await?;
    ending::report(context, sandbox, command, outcome)
}

async fn join(
    context: &Context,
    client: &Client,
    sandbox: &str,
    command: &str,
    stdin_offset: u64,
) -> Result<Outcome, Failure> {
    let attachment = Attachment {
        ui: &context.ui,
        client,
        sandbox,
        command,
        after: 0,
        stdin: Stdin::Forwarded { offset: stdin_offset },
        pty: true,
    };
    attachment.join(&mut Interrupts::listen()?).await
}

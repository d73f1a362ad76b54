//! `sandbank exec`: a command in a sandbox that is already there.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;

use crate::attach::Attachment;
use crate::client::{Client, CommandRequest, ShellScript};
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
  sandbank exec sbx7 --shell -- 'cd app; export DEBUG=1'
  sandbank exec sbx7 --shell -- 'npm test'      in app, with DEBUG
  sandbank exec sbx7 --shell=build -- make      beside it, in another shell

With --shell the words are one script for a bash of the sandbox that remembers: directory, variables,
functions, aliases, options and jobs of one script are there for the next. Scripts of one shell take
turns; each NAME is a shell of its own. After `exit` the next script gets a new shell with the same
directory and exported variables, and you are told. Input is only passed on with -i or -t.

Ends with the command's exit code: 128+n for signal n, 124 after --timeout.")]
pub(crate) struct ExecArgs {
    /// Id, unique beginning of an id, or key
    pub(crate) sandbox: String,
    #[command(flatten)]
    pub(crate) command: CommandOptions,
    /// Start it, print its id, and leave
    #[arg(short, long, conflicts_with_all = ["interactive", "tty"])]
    pub(crate) detach: bool,
    /// Run the words as a script in a shell that remembers
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "main",
        conflicts_with_all = ["env", "workdir"]
    )]
    pub(crate) shell: Option<String>,
}

impl ExecArgs {
    fn request(&self) -> Result<CommandRequest, Failure> {
        let Some(shell) = &self.shell else {
            return self.command.request(!self.detach && self.command.forwards_stdin());
        };
        // A shell's input is a terminal, to which a file's bytes may mean something else.
        let forward = !self.detach && (self.command.interactive || self.command.tty);
        let request = self.command.request(forward)?;
        let script = ShellScript { shell: shell.clone(), script: self.command.argv.join(" ") };
        let (argv, env) = (Vec::new(), BTreeMap::new());
        Ok(CommandRequest { argv, env, script: Some(script), ..request })
    }
}

/// The name in `--shell NAME -- …`, which is a script's first word to whoever reads on.
fn name_apart(words: &[String]) -> Option<&str> {
    let own = words.iter().take_while(|word| *word != "--").count();
    match &words[..own] {
        [.., flag, name] if flag == "--shell" && !name.starts_with('-') && own < words.len() => {
            Some(name)
        }
        _ => None,
    }
}

const NEW_SHELL: &str = "the shell before had ended; this one had its directory and exported \
                         variables, and nothing else of it";

/// For a note only: whoever cannot say leaves it out.
async fn was_restarted(client: &Client, sandbox: &str, command: &str) -> bool {
    let status = client.command(sandbox, command).await;
    status.is_ok_and(|status| status.shell.is_some_and(|shell| shell.restarted))
}

pub(crate) async fn run(context: &Context, args: ExecArgs) -> Result<u8, Failure> {
    if args.shell.is_some() {
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        if let Some(name) = name_apart(&words) {
            let message = format!("{name:?} after --shell would be the script's first word");
            return Err(Failure::usage(message).hint(format!("write --shell={name}")));
        }
    }
    let request = args.request()?;
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
    if args.shell.is_some() && was_restarted(client, &sandbox, &request.command_id).await {
        context.ui.note(NEW_SHELL);
    }
    ending::report(context, &sandbox, &request.command_id, outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shells_name_without_its_equals_sign_is_noticed() {
        let apart = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            name_apart(&words).map(str::to_owned)
        };
        assert_eq!(apart("sandbank exec sbx --shell build -- make"), Some("build".to_owned()));
        for fine in [
            "sandbank exec sbx --shell -- grep -- x",
            "sandbank exec sbx --shell=build -- make",
            "sandbank exec sbx --shell make all",
            "sandbank exec sbx --shell --json -- make",
            "sandbank exec --shell sbx cd",
        ] {
            assert_eq!(apart(fine), None, "{fine}");
        }
    }
}

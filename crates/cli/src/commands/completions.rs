//! `sandbank completions`: tab completion for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::context::Context;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandbank completions bash > /etc/bash_completion.d/sandbank
  sandbank completions zsh > \"${fpath[1]}/_sandbank\"
  sandbank completions fish > ~/.config/fish/completions/sandbank.fish")]
pub(crate) struct CompletionsArgs {
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

pub(crate) fn run(context: &Context, args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut command = crate::cli::Cli::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "sandbank", &mut script);
    context.ui.bytes(&script)?;
    Ok(0)
}

//! The command line as a whole: which commands there are and how `--help` shows them.

use clap::{Parser, Subcommand};

use crate::commands;
use crate::options::GlobalOptions;

/// clap cannot group subcommands, so the list is written here; a test keeps it complete.
const HELP: &str = "\
{about}

{usage-heading} {usage}

Run something:
  run          Run a command in a new sandbox, with or without a server
  shell        Open a terminal in a sandbox
  exec         Run a command in a sandbox that is there
  mcp          Give an agent's host the tools of a sandbox (MCP on standard input and output)

Look after sandboxes:
  ps           List sandboxes
  inspect      Show everything about one
  logs         Show what a command printed
  cp           Copy files in and out
  search       Search for names, or for text in files
  port         Make a port reachable
  rm           Remove sandboxes
  image        List, import and remove images
  workspace    List and remove kept workspaces

This machine:
  serve        Start the server
  health       Ask whether the server serves
  doctor       Check what this machine can enforce
  bench        Measure this machine
  config       Show and check the configuration
  token        Print the server's token
  completions  Print tab completion for a shell
  workspace-service
               Serve a directory of this machine to a control plane on another

Options:
{options}

Try it:
  sandbank doctor
  sandbank run -- python3 -c 'print(6 * 7)'
  sandbank serve

`sandbank COMMAND --help` explains a command, with examples. Exit codes: 0 done, 1 refused,
64 wrong usage or configuration, 65 damaged or newer database, 69 no server, 70 internal,
73 cannot write, 75 try later, 77 not permitted, 78 this machine lacks something.
";

/// Isolated Linux sandboxes for AI agents
#[derive(Debug, Parser)]
#[command(name = "sandbank", version, help_template = HELP, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a new sandbox, with or without a server
    Run(commands::run::RunArgs),
    /// Open a terminal in a sandbox
    Shell(commands::shell::ShellArgs),
    /// Run a command in a sandbox that is there
    Exec(commands::exec::ExecArgs),
    /// Give an agent's host the tools of a sandbox (MCP on standard input and output)
    Mcp(commands::mcp::McpArgs),
    /// List sandboxes
    Ps(commands::ps::PsArgs),
    /// Show everything about one sandbox
    Inspect(commands::inspect::InspectArgs),
    /// Show what a command printed
    Logs(commands::logs::LogsArgs),
    /// Copy files in and out
    Cp(commands::cp::CpArgs),
    /// Search for names, or for text in files
    Search(commands::search::SearchArgs),
    /// Make a port reachable
    Port(commands::port::PortArgs),
    /// Remove sandboxes
    Rm(commands::rm::RmArgs),
    /// List, import and remove images
    Image(commands::image::ImageArgs),
    /// List and remove kept workspaces
    Workspace(commands::workspace::WorkspaceArgs),
    /// Start the server
    Serve(commands::serve::ServeArgs),
    /// Ask whether the server serves
    Health(commands::health::HealthArgs),
    /// Check what this machine can enforce
    Doctor(commands::doctor::DoctorArgs),
    /// Measure this machine
    Bench(commands::bench::BenchArgs),
    /// Show and check the configuration
    Config(commands::config::ConfigArgs),
    /// Print the server's token
    Token(commands::token::TokenArgs),
    /// Print tab completion for a shell
    Completions(commands::completions::CompletionsArgs),
    /// Serve a directory of this machine to a control plane on another
    WorkspaceService(commands::workspace_service::WorkspaceServiceArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_in_the_help_with_its_own_words_and_an_example() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let listed = HELP.lines().any(|line| line.split_whitespace().next() == Some(name));
            assert!(listed, "{name} is not in the list of commands");
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.contains("Examples:"), "{name} --help shows no example");
        }
    }

    #[test]
    fn a_command_may_follow_with_or_without_dashes() {
        for line in ["sandbank run python3 -c x", "sandbank run --keep -- python3 -c x"] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            let Command::Run(args) = cli.command else { panic!("{line} is not a run") };
            assert_eq!(args.command.argv, ["python3", "-c", "x"], "{line}");
        }
        let cli = Cli::try_parse_from("sandbank exec sbx --env A=1 -it top -d".split(' ')).unwrap();
        let Command::Exec(args) = cli.command else { panic!("not an exec") };
        assert_eq!(args.command.argv, ["top", "-d"]);
        assert!(args.command.tty && args.command.interactive && !args.detach);
        let cli = Cli::try_parse_from("sandbank run -- -odd --memory".split(' ')).unwrap();
        let Command::Run(args) = cli.command else { panic!("not a run") };
        assert_eq!(args.command.argv, ["-odd", "--memory"]);
    }

    #[test]
    fn a_mistyped_flag_is_never_the_program() {
        for line in [
            "sandbank run --memroy 512m -- ls",
            "sandbank run --keep --memroy=512m ls",
            "sandbank run -x ls",
            "sandbank exec sbx --evn A=1 -- ls",
            "sandbank exec sbx -x ls",
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::UnknownArgument, "{line}");
        }
    }
}

//! The sandbank program: reads the command line, runs one command, ends with its code.

mod attach;
mod cli;
mod client;
mod commands;
mod connection;
mod context;
mod copy;
mod daemon;
mod ending;
mod failure;
mod interrupt;
mod limits;
mod locate;
mod log;
mod mcp;
mod options;
mod own_sandbox;
mod panics;
mod scratch;
mod ui;
mod usage;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use context::Context;
use failure::{Exit, Failure};
use sandbank_engine_native::{SPAWNER_ARGUMENT, SPAWNER_FD, keep_freed_memory, spawner_main};

fn main() -> ExitCode {
    // The spawner clones machines, so it must never have had a second thread.
    if std::env::args_os().nth(1).is_some_and(|word| word == SPAWNER_ARGUMENT) {
        spawner_main(SPAWNER_FD);
    }
    keep_freed_memory();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let context = Context::new(&cli.global);
    panics::tame();
    let result = panics::caught(|| dispatch(&context, cli.command));
    let code = result.unwrap_or_else(|failure| failure.report(&context.ui));
    ExitCode::from(code)
}

fn refuse(error: &clap::Error) -> ExitCode {
    if usage::is_answer(error) {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    ExitCode::from(usage::failure(error, &words).report(&ui::Ui::new(json)))
}

fn dispatch(context: &Context, command: Command) -> Result<u8, Failure> {
    match command {
        Command::Completions(args) => commands::completions::run(context, &args),
        Command::Config(args) => commands::config::run(context, args),
        Command::Token(args) => commands::token::run(context, &args),
        other => {
            if !matches!(other, Command::Serve(_) | Command::WorkspaceService(_)) {
                log::for_command();
            }
            let runtime = runtime(&other)?;
            let result = runtime.block_on(with_runtime(context, other));
            // A thread may wait for standard input for ever; nobody waits for it.
            runtime.shutdown_background();
            result
        }
    }
}

async fn with_runtime(context: &Context, command: Command) -> Result<u8, Failure> {
    match command {
        Command::Run(args) => commands::run::run(context, args).await,
        Command::Shell(args) => commands::shell::run(context, args).await,
        Command::Exec(args) => commands::exec::run(context, args).await,
        Command::Ps(args) => commands::ps::run(context, args).await,
        Command::Inspect(args) => commands::inspect::run(context, args).await,
        Command::Logs(args) => commands::logs::run(context, args).await,
        Command::Cp(args) => commands::cp::run(context, args).await,
        Command::Search(args) => commands::search::run(context, args).await,
        Command::Port(args) => commands::port::run(context, args).await,
        Command::Rm(args) => commands::rm::run(context, args).await,
        Command::Image(args) => commands::image::run(context, args).await,
        Command::Workspace(args) => commands::workspace::run(context, args).await,
        Command::Mcp(args) => commands::mcp::run(context, args).await,
        Command::Serve(args) => commands::serve::run(context, args).await,
        Command::Health(args) => commands::health::run(context, args).await,
        Command::Doctor(args) => commands::doctor::run(context, args).await,
        Command::Bench(args) => commands::bench::run(context, args).await,
        Command::WorkspaceService(args) => commands::workspace_service::run(context, args).await,
        Command::Completions(_) | Command::Config(_) | Command::Token(_) => {
            unreachable!("these need no runtime")
        }
    }
}

fn runtime(command: &Command) -> Result<tokio::runtime::Runtime, Failure> {
    let mut runtime = match command {
        // One thread measures: its own are not to wait for each other.
        Command::Bench(_) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot start threads: {error}")))
}

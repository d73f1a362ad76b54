//! One request from the command line, one answer on stdout.
//!
//! Exits with 0 when the runner answered, be it with an error; with 64 for wrong usage and with
//! 69 when there is no runner to ask. Every one of them prints a JSON line.

use std::io::Write as _;

use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_protocol::Hello;
use serde_json::Value;
use tokio::net::UnixStream;

use super::request::{Answer, Outcome, Request, parse};
use super::{exec, read, write};

const DEFAULT_SOCKET: &str = "/run/runner.sock";
const SOCKET_VARIABLE: &str = "SANDBANK_RUNNER_SOCKET";

const ANSWERED: u8 = 0;
const USAGE: u8 = 64;
const UNREACHABLE: u8 = 69;

/// `args` are those after the program's name.
pub(crate) fn run(args: &[String]) -> u8 {
    let Some((line, socket)) = arguments(args) else {
        let message = "usage: runner --client '<json>' [--socket PATH]";
        return print(Value::Null, Outcome::Error { message: message.into() }, USAGE);
    };
    let (id, request) = parse(&line);
    let request = match request {
        Ok(request) => request,
        Err(message) => return print(id, Outcome::Error { message }, USAGE),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let answer = match runtime {
        Ok(runtime) => runtime.block_on(ask(&socket, request)),
        Err(error) => Err(error.to_string()),
    };
    match answer {
        Ok(outcome) => print(id, outcome, ANSWERED),
        Err(message) => print(id, Outcome::Error { message }, UNREACHABLE),
    }
}

fn arguments(args: &[String]) -> Option<(String, String)> {
    let from_environment = || std::env::var(SOCKET_VARIABLE).ok();
    let default = || from_environment().unwrap_or_else(|| DEFAULT_SOCKET.to_owned());
    match args {
        [client, line] if client == "--client" => Some((line.clone(), default())),
        [client, line, flag, socket] if client == "--client" && flag == "--socket" => {
            Some((line.clone(), socket.clone()))
        }
        _ => None,
    }
}

/// An error means that nobody answered.
async fn ask(socket: &str, request: Request) -> Result<Outcome, String> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|error| format!("there is no runner at {socket:?}: {error}"))?;
    let (client, hello) = RunnerClient::connect(stream).await.map_err(|error| error.to_string())?;
    match perform(&client, &hello, request).await {
        Ok(outcome) => Ok(outcome),
        Err(error) if error.is_broken() => Err(error.to_string()),
        Err(error) => Ok(Outcome::Error { message: error.to_string() }),
    }
}

async fn perform(
    client: &RunnerClient,
    hello: &Hello,
    request: Request,
) -> Result<Outcome, ChannelError> {
    match request {
        Request::Exec { cmd, timeout_ms } => exec::perform(client, hello, cmd, timeout_ms).await,
        Request::Read { path, max_bytes } => read::perform(client, &path, max_bytes).await,
        Request::Write { path, content_base64 } => {
            write::perform(client, &path, &content_base64).await
        }
    }
}

fn print(id: Value, outcome: Outcome, code: u8) -> u8 {
    let line = serde_json::to_string(&Answer { id, outcome }).expect("answers are plain data");
    match writeln!(std::io::stdout(), "{line}") {
        Ok(()) => code,
        Err(_) => UNREACHABLE,
    }
}

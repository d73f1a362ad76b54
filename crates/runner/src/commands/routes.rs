//! Requests below `/commands`: decode, ask the registry, answer.

use std::rc::Rc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use sandbank_protocol::{CommandId, CommandSpec, Fault, FaultCode, PtySize};

use super::{Command, Commands, reader};
use crate::http::{Counters, Open, RunnerBody, json, query_value, read_json};
use crate::limits::MAX_START_WAIT;
use crate::log::Asker;

pub(crate) async fn handle(
    request: Request<Incoming>,
    commands: &Rc<Commands>,
    counters: &Rc<Counters>,
) -> Result<Response<RunnerBody>, Fault> {
    let path = request.uri().path().to_owned();
    let mut segments = path.split('/').skip(2);
    let (id, action, rest) = (segments.next(), segments.next(), segments.next());
    let method = request.method().clone();
    let Some(id) = id.filter(|_| rest.is_none()) else {
        return match method {
            Method::POST if id.is_none() => start(request, commands).await,
            Method::GET if id.is_none() => Ok(json(&commands.list())),
            _ => Err(crate::http::no_route(&method, &path)),
        };
    };
    let id: CommandId = id.parse().map_err(|error| invalid(&error))?;
    let command = commands.get(&id)?;
    match (&method, action) {
        (&Method::GET, None) => {}
        (&Method::GET, Some("wait")) => command.ended().await,
        (&Method::GET, Some("output")) => return output(&request, command, counters),
        (&Method::GET, Some("screen")) => return command.screen().map(|screen| json(&screen)),
        (&Method::POST, Some("stdin")) => {
            let offset = number(&request, "offset")?;
            let eof = flag(&request, "eof")?.unwrap_or(false);
            return command.stdin().feed(offset, eof, request.into_body()).await.map(|s| json(&s));
        }
        (&Method::POST, Some("input")) => {
            let writer = query_value(request.uri(), "writer").unwrap_or_default().parse();
            let writer: CommandId = writer.map_err(|error| invalid(&error))?;
            let offset = number(&request, "offset")?.unwrap_or(0);
            let feeding = command.stdin().feed_by(&writer, offset, request.into_body());
            return feeding.await.map(|status| json(&status));
        }
        (&Method::POST, Some("signal")) => {
            let (command, signal) = (command.clone(), read_json(request.into_body()).await?);
            // To its end, whether or not somebody waits for the answer.
            let signalling = tokio::task::spawn_local(async move { command.signal(signal).await });
            let ended = signalling.await;
            ended.map_err(|error| Fault::new(FaultCode::Internal, error.to_string()))??;
        }
        (&Method::POST, Some("resize")) => {
            command.resize(read_json::<PtySize>(request.into_body()).await?)?;
        }
        _ => return Err(crate::http::no_route(&method, &path)),
    }
    Ok(json(&command.status()))
}

/// With `wait_ms` the answer comes when the command has ended, at most that much later: a short
/// command then takes one request.
async fn start(
    request: Request<Incoming>,
    commands: &Rc<Commands>,
) -> Result<Response<RunnerBody>, Fault> {
    let patience = number(&request, "wait_ms")?.map(Duration::from_millis);
    let asker = Asker::of(request.headers());
    let spec = read_json::<CommandSpec>(request.into_body()).await?;
    let id = spec.id.clone();
    let mut started = commands.start(spec, asker)?;
    if let Some(patience) = patience {
        let command = commands.get(&id)?;
        let _ = tokio::time::timeout(patience.min(MAX_START_WAIT), command.ended()).await;
        started.status = command.status();
    }
    Ok(json(&started))
}

fn output(
    request: &Request<Incoming>,
    command: Rc<Command>,
    counters: &Rc<Counters>,
) -> Result<Response<RunnerBody>, Fault> {
    let after = number(request, "after")?.unwrap_or(0);
    let follow = flag(request, "follow")?.unwrap_or(true);
    let newest = command.output().journal().last_seq();
    if after > newest {
        let message = format!("after={after} is beyond the newest frame, which is {newest}");
        return Err(Fault::new(FaultCode::Invalid, message));
    }
    let hold = flag(request, "hold")?.unwrap_or(true);
    let wanted = reader::Wanted { after, follow, hold };
    Ok(Response::new(reader::stream(command, wanted, Open::reader(counters))))
}

fn number(request: &Request<Incoming>, name: &str) -> Result<Option<u64>, Fault> {
    let parse = |text: &str| text.parse().map_err(|_| bad_value(name, text));
    query_value(request.uri(), name).map(parse).transpose()
}

fn flag(request: &Request<Incoming>, name: &str) -> Result<Option<bool>, Fault> {
    let parse = |text: &str| text.parse().map_err(|_| bad_value(name, text));
    query_value(request.uri(), name).map(parse).transpose()
}

fn bad_value(name: &str, text: &str) -> Fault {
    Fault::new(FaultCode::Invalid, format!("{name}={text:.40} is not understood"))
}

fn invalid(error: &dyn std::error::Error) -> Fault {
    Fault::new(FaultCode::Invalid, error.to_string())
}

//! Where log lines go: always stderr, in the form that suits who reads it.

use std::io::IsTerminal;

use sandbank_server::config::{LogFormat, LogSettings, TraceEndpoint};
use sandbank_traces::{Endpoint, Sampling, TraceSettings, Traces};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::failure::Failure;

const QUIET_LIBRARIES: &str = "sqlx=warn,hyper=info,hyper_util=info,h2=info,reqwest=info";

/// JSON for machines, text for people at a terminal; and spans for a collector, where there is one.
pub(crate) fn for_server(
    settings: &LogSettings,
    traces: Option<&TraceSettings>,
) -> Result<Option<Traces>, Failure> {
    let filter = filter(&settings.filter)?;
    let terminal = std::io::stderr().is_terminal();
    let pretty = match settings.format {
        LogFormat::Auto => terminal,
        LogFormat::Json => false,
        LogFormat::Pretty => true,
    };
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let traces = traces.map(Traces::open).transpose();
    let traces = traces.map_err(|error| Failure::usage(error.to_string()))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = if pretty {
        lines.with_ansi(colour).with_target(false).with_filter(filter).boxed()
    } else {
        lines.json().flatten_event(true).with_filter(filter).boxed()
    };
    let spans = traces.as_ref().map(Traces::layer);
    tracing_subscriber::registry().with(spans).with(lines).init();
    Ok(traces)
}

/// The collector's settings as the exporter has them.
pub(crate) fn traces(
    settings: &sandbank_server::config::TraceSettings,
) -> Result<TraceSettings, Failure> {
    let sampling = Sampling::parse(&settings.sampler, settings.sampler_arg.as_deref())
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(TraceSettings {
        endpoint: match &settings.endpoint {
            TraceEndpoint::Collector(url) => Endpoint::Collector(url.clone()),
            TraceEndpoint::Exact(url) => Endpoint::Traces(url.clone()),
        },
        headers: settings.headers.as_ref().map(|headers| headers.expose().to_owned()),
        service_name: settings.service_name.clone(),
        sampling,
    })
}

/// Commands speak for themselves: only errors, or what SANDBANK_LOG asks for.
pub(crate) fn for_command() {
    let asked = std::env::var("SANDBANK_LOG").ok().and_then(|text| filter(&text).ok());
    let filter = asked.unwrap_or_else(|| EnvFilter::new("error"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .init();
}

/// A bare level is about our own parts: libraries that log every statement or frame stay quiet.
fn filter(text: &str) -> Result<EnvFilter, Failure> {
    let bare = !text.contains(['=', ',']);
    let whole = if bare { format!("{text},{QUIET_LIBRARIES}") } else { text.to_owned() };
    // Spans for a collector are no part of the log.
    EnvFilter::try_new(format!("{whole},sandbank::spans=off")).map_err(|error| {
        Failure::usage(format!("the log filter {text:?} makes no sense: {error}"))
            .hint("use error, warn, info, debug or trace")
    })
}

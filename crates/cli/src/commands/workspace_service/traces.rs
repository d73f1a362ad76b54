//! Where a workspace service sends its spans: OpenTelemetry's variables, as the server has them.

use clap::Args;
use sandbank_server::config::{Secret, TraceEndpoint, TraceSettings};

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// An OpenTelemetry collector for spans, like http://host:4318
    #[arg(long = "traces-endpoint", env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    endpoint: Option<String>,
    /// Where exactly spans are sent, like http://host:4318/v1/traces
    #[arg(long = "traces-url", env = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", value_name = "URL")]
    url: Option<String>,
    /// What this service is called in traces
    #[arg(
        long = "traces-service-name",
        env = "OTEL_SERVICE_NAME",
        value_name = "NAME",
        default_value = "sandbank-workspace"
    )]
    service_name: String,
    #[arg(
        long = "traces-sampler",
        env = "OTEL_TRACES_SAMPLER",
        default_value = "parentbased_always_on",
        hide = true
    )]
    sampler: String,
    #[arg(long = "traces-sampler-arg", env = "OTEL_TRACES_SAMPLER_ARG", hide = true)]
    sampler_arg: Option<String>,
}

impl TraceArgs {
    /// None without a collector. Its headers, which may be secret, have no flag.
    pub(super) fn settings(&self) -> Option<TraceSettings> {
        let given = |url: &Option<String>| url.clone().filter(|url| !url.is_empty());
        Some(TraceSettings {
            endpoint: TraceEndpoint::of(given(&self.endpoint), given(&self.url))?,
            headers: std::env::var("OTEL_EXPORTER_OTLP_HEADERS").ok().map(Secret::new),
            service_name: self.service_name.clone(),
            sampler: self.sampler.clone(),
            sampler_arg: self.sampler_arg.clone(),
        })
    }
}

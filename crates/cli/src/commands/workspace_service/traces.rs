//! Where a workspace service sends its spans: OpenTelemetry's variables, as the server has them.

use clap::Args;
use sandbank_server::config::{Secret, TraceEndpoint, TraceSettings};

const SERVICE_NAME: &str = "sandbank-workspace";
const SAMPLER: &str = "parentbased_always_on";

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
        default_value = SERVICE_NAME
    )]
    service_name: String,
    #[arg(
        long = "traces-sampler",
        env = "OTEL_TRACES_SAMPLER",
        default_value = SAMPLER,
        hide = true
    )]
    sampler: String,
    #[arg(long = "traces-sampler-arg", env = "OTEL_TRACES_SAMPLER_ARG", hide = true)]
    sampler_arg: Option<String>,
}

impl TraceArgs {
    /// None without a collector. Its headers, which may be secret, have no flag. What is empty counts
    /// as unset, as the server has it.
    pub(super) fn settings(&self) -> Option<TraceSettings> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let or = |text: &str, default: &str| {
            if text.trim().is_empty() { default.to_owned() } else { text.to_owned() }
        };
        Some(TraceSettings {
            endpoint: TraceEndpoint::of(given(&self.endpoint), given(&self.url))?,
            headers: std::env::var("OTEL_EXPORTER_OTLP_HEADERS").ok().map(Secret::new),
            service_name: or(&self.service_name, SERVICE_NAME),
            sampler: or(&self.sampler, SAMPLER),
            sampler_arg: given(&self.sampler_arg),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    /// With every flag, so that no variable of this process counts.
    fn settings(endpoint: &str, text: &str) -> Option<TraceSettings> {
        let others = ["url", "service-name", "sampler", "sampler-arg"];
        let others = others.map(|flag| format!("--traces-{flag}={text}"));
        let command = TraceArgs::augment_args(Command::new("x").no_binary_name(true));
        let words = others.into_iter().chain([format!("--traces-endpoint={endpoint}")]);
        let matches = command.get_matches_from(words);
        TraceArgs::from_arg_matches(&matches).unwrap().settings()
    }

    #[test]
    fn what_is_empty_counts_as_unset() {
        for empty in ["", " "] {
            assert!(settings(empty, empty).is_none());
            let set = settings("http://c", empty).unwrap();
            assert_eq!(set.endpoint, TraceEndpoint::Collector("http://c".to_owned()));
            assert_eq!([&*set.service_name, &*set.sampler], [SERVICE_NAME, SAMPLER]);
            assert_eq!(set.sampler_arg, None);
            crate::log::traces(&set).unwrap();
        }
        assert_eq!(settings("http://c", "x").unwrap().service_name, "x");
    }
}

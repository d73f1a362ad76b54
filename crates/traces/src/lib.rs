//! Spans of requests, sent to an OpenTelemetry collector by OTLP over HTTP.
//!
//! Spans are made where the work is done, with the target [`sandbank_channel::trace::SPANS`]; this
//! crate collects them, sends them in the background, and translates between spans and the W3C's
//! `traceparent`. Nobody ever waits for a collector: what cannot be sent in time is dropped.

mod client;
mod limits;
mod propagator;
mod settings;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider,
};
use sandbank_channel::trace::{self, SPANS};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

pub use settings::{Endpoint, Sampling, TraceError, TraceSettings};

use client::Client;
use limits::{EXPORT_INTERVAL, EXPORT_PATIENCE, LAST_EXPORT_PATIENCE, MAX_BATCH, MAX_WAITING};
use propagator::W3c;

/// What is under way to a collector.
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Traces {
    /// Calls nobody yet; spans that end are sent from a thread of its own. To be called in the
    /// runtime that will send them.
    pub fn open(settings: &TraceSettings) -> Result<Self, TraceError> {
        let url = settings.traces_url()?;
        let client = Client::new(&url, tokio::runtime::Handle::current())?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(url)
            .with_headers(settings.headers()?)
            .with_timeout(EXPORT_PATIENCE)
            .build()
            .map_err(|error| TraceError::Exporter(error.to_string()))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_WAITING)
            .with_max_export_batch_size(MAX_BATCH)
            .with_scheduled_delay(EXPORT_INTERVAL)
            .build();
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        let resource = Resource::builder_empty()
            .with_service_name(settings.service_name.clone())
            .with_attribute(opentelemetry::KeyValue::new(
                "service.version",
                env!("CARGO_PKG_VERSION"),
            ))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_sampler(settings.sampling.sampler())
            .with_resource(resource)
            .build();
        let tracer = provider.tracer("sandbank");
        trace::install(Box::new(W3c::default()));
        Ok(Self { provider, tracer })
    }

    /// Takes our own spans and nothing else: no line of the log, and no span of a library, which
    /// might tell more than is ours to tell.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + 'static
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.tracer.clone())
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_level(false)
            .with_context_activation(false)
            .with_filter(filter_fn(|meta| meta.is_span() && meta.target() == SPANS))
    }

    /// Sends what is left, in bounded time.
    pub async fn end(self) {
        let ending = move || self.provider.shutdown_with_timeout(LAST_EXPORT_PATIENCE);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(ending).await {
            tracing::debug!(%error, "the last spans were not sent");
        }
    }
}

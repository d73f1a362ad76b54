//! Where spans go, and which. The names are those of OpenTelemetry's environment variables.

use std::collections::HashMap;
use std::fmt;

use opentelemetry_sdk::trace::Sampler;

#[derive(Clone)]
pub struct TraceSettings {
    pub endpoint: Endpoint,
    /// `name=value,name=value`, sent along; values may be secrets.
    pub headers: Option<String>,
    pub service_name: String,
    pub sampling: Sampling,
}

/// Where spans go.
#[derive(Clone)]
pub enum Endpoint {
    /// To `/v1/traces` below a collector like `http://host:4318`.
    Collector(String),
    /// Exactly there.
    Traces(String),
}

/// Which traces are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Of those that begin here.
    pub ratio: f64,
    /// A trace that began elsewhere is sent if it is there.
    pub follows_parent: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("{name} {what}; give it as {example}")]
    Endpoint { name: &'static str, what: &'static str, example: &'static str },
    #[error("OTEL_EXPORTER_OTLP_HEADERS is not name=value,name=value; correct it or leave it out")]
    Headers,
    #[error("OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG make no sense together: {0}")]
    Sampling(&'static str),
    #[error("the system's certificates cannot be read, which https to a collector needs: {0}")]
    NoCertificates(std::io::Error),
    #[error("spans cannot be exported: {0}")]
    Exporter(String),
}

/// Secrets may be in the headers, and credentials in the address.
impl fmt::Debug for TraceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceSettings")
            .field("service_name", &self.service_name)
            .finish_non_exhaustive()
    }
}

impl TraceSettings {
    pub(crate) fn traces_url(&self) -> Result<String, TraceError> {
        self.endpoint.check()?;
        Ok(match &self.endpoint {
            Endpoint::Collector(url) => format!("{}/v1/traces", url.trim_end_matches('/')),
            Endpoint::Traces(url) => url.clone(),
        })
    }

    pub(crate) fn headers(&self) -> Result<HashMap<String, String>, TraceError> {
        let pairs = self.headers.as_deref().unwrap_or_default().split(',');
        let pairs = pairs.map(str::trim).filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').ok_or(TraceError::Headers)?;
                let (name, value) = (name.trim(), value.trim());
                name.parse::<http::HeaderName>().map_err(|_| TraceError::Headers)?;
                value.parse::<http::HeaderValue>().map_err(|_| TraceError::Headers)?;
                Ok((name.to_owned(), value.to_owned()))
            })
            .collect()
    }
}

impl Endpoint {
    /// The text is not repeated: a password may be in it.
    fn check(&self) -> Result<(), TraceError> {
        let (url, name, example) = match self {
            Self::Collector(url) => {
                (url, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://host:4318 or https://host:4318")
            }
            Self::Traces(url) => {
                (url, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://host:4318/v1/traces")
            }
        };
        let wrong = |what| Err(TraceError::Endpoint { name, what, example });
        let Ok(uri) = url.parse::<http::Uri>() else { return wrong("is not a URL") };
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return wrong("does not begin with http:// or https://");
        }
        if uri.host().is_none_or(str::is_empty) {
            return wrong("names no host");
        }
        if uri.query().is_some() || url.contains(['#', '@']) {
            return wrong("has a user, a query or a fragment");
        }
        Ok(())
    }
}

impl Sampling {
    /// From the two standard variables.
    pub fn parse(name: &str, argument: Option<&str>) -> Result<Self, TraceError> {
        let (follows_parent, bare) = match name.strip_prefix("parentbased_") {
            Some(bare) => (true, bare),
            None => (false, name),
        };
        let ratio = match (bare, argument) {
            ("always_on", _) => 1.0,
            ("always_off", _) => 0.0,
            ("traceidratio", None) => 1.0,
            ("traceidratio", Some(text)) => text
                .parse()
                .ok()
                .filter(|ratio| (0.0..=1.0).contains(ratio))
                .ok_or(TraceError::Sampling("the ratio is a number from 0 to 1, like 0.1"))?,
            _ => {
                return Err(TraceError::Sampling(
                    "there are always_on, always_off and traceidratio, each with parentbased_ \
                     before it or not",
                ));
            }
        };
        Ok(Self { ratio, follows_parent })
    }

    pub(crate) fn sampler(self) -> Sampler {
        let own = Sampler::TraceIdRatioBased(self.ratio);
        if self.follows_parent { Sampler::ParentBased(Box::new(own)) } else { own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(endpoint: &str, headers: Option<&str>) -> TraceSettings {
        TraceSettings {
            endpoint: Endpoint::Collector(endpoint.to_owned()),
            headers: headers.map(str::to_owned),
            service_name: "s".to_owned(),
            sampling: Sampling::parse("parentbased_always_on", None).unwrap(),
        }
    }

    #[test]
    fn a_collectors_address_gets_the_path_of_traces_and_a_wrong_one_is_not_repeated() {
        for (given, url) in [
            ("http://c:4318", "http://c:4318/v1/traces"),
            ("https://c/base/", "https://c/base/v1/traces"),
        ] {
            assert_eq!(settings(given, None).traces_url().unwrap(), url);
        }
        for bad in
            ["", "c:4318", "ftp://c", "http://u:hunter2@c", "http://c/?k=hunter2", "http://c/#x"]
        {
            let error = settings(bad, None).traces_url().unwrap_err().to_string();
            assert!(error.contains("OTEL_EXPORTER_OTLP_ENDPOINT") && !error.contains("hunter2"));
        }
    }

    #[test]
    fn the_address_of_traces_is_taken_as_it_is() {
        let of = |url: &str| {
            let endpoint = Endpoint::Traces(url.to_owned());
            TraceSettings { endpoint, ..settings("", None) }.traces_url()
        };
        for url in ["http://c:4318", "https://c/base/", "http://c:4318/v1/traces"] {
            assert_eq!(of(url).unwrap(), url);
        }
        for bad in ["", "c:4318/v1/traces", "http://u:hunter2@c/v1/traces"] {
            let error = of(bad).unwrap_err().to_string();
            assert!(error.contains("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn headers_are_pairs_and_are_never_shown() {
        let right = settings("http://c", Some("authorization=Bearer hunter2, x=1,"));
        assert_eq!(right.headers().unwrap()["authorization"], "Bearer hunter2");
        assert!(!format!("{right:?}").contains("hunter2"));
        for bad in ["hunter2", "a b=hunter2", "x=hunter\n2"] {
            let error = settings("http://c", Some(bad)).headers().unwrap_err().to_string();
            assert!(error.contains("OTEL_EXPORTER_OTLP_HEADERS") && !error.contains("hunter"));
        }
    }

    #[test]
    fn samplers_have_their_standard_names() {
        let sampling = |ratio, follows_parent| Sampling { ratio, follows_parent };
        for (name, argument, expected) in [
            ("always_on", None, sampling(1.0, false)),
            ("parentbased_always_off", None, sampling(0.0, true)),
            ("parentbased_traceidratio", Some("0.25"), sampling(0.25, true)),
            ("traceidratio", None, sampling(1.0, false)),
        ] {
            assert_eq!(Sampling::parse(name, argument).unwrap(), expected);
        }
        for (name, argument) in [("jaeger", None), ("traceidratio", Some("2")), ("", None)] {
            assert!(Sampling::parse(name, argument).is_err(), "{name} {argument:?}");
        }
    }
}

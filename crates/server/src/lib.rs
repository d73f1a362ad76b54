//! HTTP: auth, limits, dialects, configuration.

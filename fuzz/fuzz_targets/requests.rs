//! What the runner reads: JSON lines of its front, and query strings.

#![no_main]

#[allow(dead_code, reason = "only its parser is fuzzed")]
#[path = "../../crates/runner/src/files/query.rs"]
mod query;
#[allow(dead_code, reason = "only its parser is fuzzed")]
#[path = "../../crates/runner/src/front/request.rs"]
mod request;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = request::parse(text);
    let _ = query::Query::parse(text);
});

//! Frames as NDJSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sandbank_server::fuzzing::lines(data));
